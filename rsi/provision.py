"""What a machine needs before a generation or the tests: each step checks itself, and says how
long it has left."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import rsi
from rsi import wiring
from rsi.errors import ModelError, SandboxError
from rsi.settings import Settings

SERVED_LIMIT_S = 300
"""How long the served form of the model may take to be written."""
LISTENER_LIMIT_S = 5


@dataclass(frozen=True, slots=True)
class Step:
    """One part to provide; `cost_s` is what it takes on first use, for the time left."""

    name: str
    cost_s: int
    is_done: Callable[[], bool]
    do: Callable[[], None]


def provision(chosen: Settings, say: Callable[[str], None]) -> None:
    """Provides every part that the settings ask for; on a second run only looks.

    Raises PartError with what to do when a part can't be had.
    """
    provide(steps_of(chosen, say), say)


def provide(steps: Sequence[Step], say: Callable[[str], None]) -> None:
    """Does the steps that aren't done yet, in order. An error ends it where it is, so that the
    next run goes on from there."""
    missing = [step for step in steps if not step.is_done()]
    for place, step in enumerate(missing, start=1):
        left_s = sum(later.cost_s for later in missing[place - 1 :])
        say(f"[{place}/{len(missing)}] {step.name}: about {left_s} s left in all")
        begun_s = time.monotonic()
        step.do()
        say(f"      {step.name}: ready after {time.monotonic() - begun_s:.1f} s")


def steps_of(chosen: Settings, say: Callable[[str], None]) -> list[Step]:
    """The parts in the order in which they are provided."""
    steps = [
        Step("database", 5, lambda: False, lambda: _database(chosen)),
        Step(
            "sandbox image",
            15,
            lambda: chosen.base_image is not None or (chosen.state_dir / "image/digest").exists(),
            lambda: _image(chosen, say),
        ),
    ]
    if chosen.sandbox != "namespaces":
        steps.append(
            Step("sandbox engine", 60, lambda: _has_engine(chosen), lambda: _engine(chosen, say))
        )
    if chosen.model_url is None:
        model, served = wiring.small_model_path(chosen), wiring.served_model_path(chosen)
        steps.append(Step("small model (98 MB)", 30, model.exists, lambda: _model(chosen, say)))
        steps.append(Step("served form of the model", 5, served.exists, lambda: _served(chosen)))
    else:
        url = chosen.model_url
        steps.append(Step("model server", 1, lambda: _listens(url), lambda: _no_listener(url)))
    return steps


def _database(chosen: Settings) -> None:
    from rsi.edges.ledger.schema import upgrade

    upgrade(wiring.database_url(chosen))


def _image(chosen: Settings, say: Callable[[str], None]) -> None:
    from rsi.edges.sandbox_image.staging import stage

    try:
        stage(chosen.state_dir / "image", say)
    except SandboxError:
        if chosen.sandbox == "namespaces":
            raise
        # Docker's boxes can be made from a public image; who opens a sandbox says so.


def _has_engine(chosen: Settings) -> bool:
    """Whether an engine answers or can be started when it is needed; also where none can be
    installed, or that was tried in vain: who opens a sandbox says what is used in its place."""
    from rsi.edges.docker_sandbox.engine import find_engine

    if find_engine(os.environ, chosen.state_dir / "docker") is not None:
        return True
    can_install = os.geteuid() == 0 and shutil.which("apt-get") is not None
    found = shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    was_tried = _install_fault(chosen).exists() and chosen.sandbox != "docker"
    return not can_install or found is not None or was_tried


def _engine(chosen: Settings, say: Callable[[str], None]) -> None:
    """Installs an engine; where that fails and need not be, it is noted and not tried again."""
    from rsi.edges.docker_sandbox.installing import install_engine

    try:
        install_engine(say)
    except SandboxError as error:
        if chosen.sandbox == "docker":
            raise
        fault = _install_fault(chosen)
        fault.write_text(f"{error}\n")
        say(f"      Docker can't be installed: {error}. Delete {fault} to have it tried again.")


def _install_fault(chosen: Settings) -> Path:
    return chosen.state_dir / "docker-was-not-installed"


def _model(chosen: Settings, say: Callable[[str], None]) -> None:
    from rsi.edges.model_files import fetch_small_model

    fetch_small_model(wiring.small_model_path(chosen).parent, say)


def _served(chosen: Settings) -> None:
    """Makes the form that is served, in a process of its own: the packages for it are large."""
    source, target = wiring.small_model_path(chosen), wiring.served_model_path(chosen)
    command = [sys.executable, "-m", "rsi.worker.requantize", str(source), str(target)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SERVED_LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd=Path(rsi.__path__[0]).parent,
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"{target.name} took over {SERVED_LIMIT_S} s to write") from error
    if done.returncode:
        raise ModelError(
            f"{target} could not be made from {source.name}: {done.stderr.strip()[-400:]}; "
            "delete both files and run `make setup` again"
        )


def _listens(url: str) -> bool:
    """Whether something listens at the address; a server may take its time to answer."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname or "", port), timeout=LISTENER_LIMIT_S).close()
    except (OSError, ValueError):
        return False
    return True


def _no_listener(url: str) -> None:
    raise ModelError(
        f"No model server listens at {url} (RSI_MODEL_URL), tried for {LISTENER_LIMIT_S} s: start "
        "it or mend the address; unset RSI_MODEL_URL to use the embedded model"
    )


def undo(chosen: Settings) -> None:
    """Stops the services that rsi left running: the database and our own Docker engine."""
    from rsi.edges.embedded_postgres.server import EmbeddedPostgres

    with ExitStack() as stack:
        stack.callback(EmbeddedPostgres(chosen.state_dir / "postgres").stop)
        leave_engine(chosen)


def leave_engine(chosen: Settings) -> None:
    """Stops our own Docker engine, unless somebody uses it."""
    from rsi.edges.docker_sandbox.engine import stop_own_engine

    stop_own_engine(chosen.state_dir / "docker")
