"""A local Prefect server: started when none is named, and stopped by who started it.

It imports no Prefect, so that it can be started before the long import.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from rsi.errors import PartError

START_LIMIT_S = 120
STOP_LIMIT_S = 15
LEASES = "prefect.server.concurrency.lease_storage.filesystem"
"""Leases in the server's memory are lost with it, and their slots stay taken for ever."""
CONSOLE_LEVEL = "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"
NOT_FOR_THE_SERVER = {"PYTHONDONTWRITEBYTECODE", CONSOLE_LEVEL}
"""Bytecode halves its start, and its log is what is shown when it doesn't start."""
PORT = 4200
"""Prefect's usual port; another one is taken when it is in use."""


@dataclass(frozen=True, slots=True)
class PrefectServer:
    """A server's address; `pid` is set when it is ours."""

    url: str
    pid: int | None
    state: Path
    process: "subprocess.Popen[bytes] | None" = field(default=None, compare=False, repr=False)
    """Held by who started it: an object that is dropped while its process runs is a warning."""

    @property
    def ui(self) -> str:
        """The page that shows the runs."""
        return self.url.removesuffix("/api")

    def is_alive(self) -> bool:
        """Whether its process runs; a server that isn't ours counts as alive."""
        if self.process is not None:
            return self.process.poll() is None
        return self.pid is None or Path(f"/proc/{self.pid}").exists()

    def wait(self) -> None:
        """Until it answers. Raises PartError with the end of its log when it doesn't."""
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            if _answers(self.url):
                return
            if not self.is_alive():
                break
            time.sleep(0.1)
        log = self.state / "server.log"
        tail = log.read_text(errors="replace").strip()[-400:] if log.exists() else ""
        raise PartError(f"the Prefect server at {self.url} doesn't answer: {tail}")

    def stop(self) -> None:
        """Ends it, if it is ours, within a limit."""
        if self.pid is None:
            return
        (self.state / "server.json").unlink(missing_ok=True)
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.pid, sign)
            except ProcessLookupError:
                return
            deadline = time.monotonic() + STOP_LIMIT_S
            while time.monotonic() < deadline:
                if not self.is_alive():
                    return
                time.sleep(0.05)

    def kill(self) -> None:
        """Ends it, if it is ours, without a word to its clients; its records are kept."""
        if self.pid is not None:
            (self.state / "server.json").unlink(missing_ok=True)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)


def start(state: Path) -> PrefectServer:
    """The server that PREFECT_API_URL names, the one of ours that runs, or a new one.

    A new one is not waited for. The environment of this process is set for its clients.
    """
    for name, value in logging_environment().items():
        os.environ.setdefault(name, value)
    named = os.environ.get("PREFECT_API_URL")
    if named:
        return PrefectServer(named, None, state)
    state.mkdir(parents=True, exist_ok=True)
    os.environ.update(environment(state))
    server = running(state) or _started(state)
    os.environ["PREFECT_API_URL"] = server.url
    return server


def running(state: Path) -> PrefectServer | None:
    """The server of ours that runs, if one does."""
    try:
        noted = json.loads((state / "server.json").read_text())
        found = PrefectServer(str(noted["url"]), int(noted["pid"]), state)
    except (OSError, ValueError, KeyError):
        return None
    return found if _answers(found.url) else None


def is_own(state: Path) -> bool:
    """Whether this process's runs go to the server of this state folder."""
    server = running(state)
    return server is not None and server.url == os.environ.get("PREFECT_API_URL")


def environment(state: Path) -> dict[str, str]:
    """Settings of a local server and of its clients: nothing is asked of the outside."""
    return {
        "PREFECT_HOME": str(state),
        "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_SERVER_UI_API_URL": "/api",
        # The second UI asks an outside host, even when analytics are off.
        "PREFECT_SERVER_UI_V2_ENABLED": "false",
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": LEASES,
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
        "PREFECT_CLIENT_MAX_RETRIES": "10",
        "PREFECT_RESULTS_DEFAULT_SERIALIZER": "json",
    }


def logging_environment() -> dict[str, str]:
    """How runs log, wherever the server is: to the server in full, to the terminal nothing, since
    an error ends there as one message."""
    return {
        CONSOLE_LEVEL: "CRITICAL",
        "PREFECT_LOGGING_LEVEL": "WARNING",
        "PREFECT_LOGGING_LOGGERS_PREFECT_EXTRA_LEVEL": "INFO",
        "PREFECT_LOGGING_EXTRA_LOGGERS": "rsi",
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    }


def _started(state: Path) -> PrefectServer:
    port = _free_port()
    url = f"http://127.0.0.1:{port}/api"
    own = {name: value for name, value in os.environ.items() if name not in NOT_FOR_THE_SERVER}
    own |= {
        "PREFECT_SERVER_API_HOST": "127.0.0.1",
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_API_URL": url,
    }
    with (state / "server.log").open("ab") as log:
        # Started as a session of its own with the usual meaning of interrupts: one that ignores
        # them can't be stopped.
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", "server", "start"],
            env=own,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    noted = {"url": url, "pid": process.pid}
    (state / "server.json").write_text(json.dumps(noted))
    return PrefectServer(url, process.pid, state, process)


def _free_port() -> int:
    for wanted in (PORT, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", wanted))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise PartError("no loopback port is free for the Prefect server")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except OSError:
        return False
