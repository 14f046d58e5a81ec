"""A Docker engine: one that answers, or one of our own that we also stop."""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rsi.edges.docker_sandbox.owners import client
from rsi.errors import SandboxError

START_LIMIT_S = 45
STOP_LIMIT_S = 20
INSTALL_LIMIT_S = 600
DEFAULT_SOCKET = "/var/run/docker.sock"


@dataclass(frozen=True, slots=True)
class DockerEngine:
    """An engine's address; `pid` is set when the engine is ours to stop."""

    url: str
    pid: int | None = None

    def stop(self) -> None:
        """Ends the engine if it is ours, within a limit."""
        if self.pid is None:
            return
        for sign, limit_s in ((signal.SIGTERM, STOP_LIMIT_S), (signal.SIGKILL, 5)):
            try:
                os.kill(self.pid, sign)
            except ProcessLookupError:
                return
            if _ended(self.pid, limit_s):
                return


def find_engine(environment: Mapping[str, str], folder: Path) -> DockerEngine | None:
    """The engine that answers: DOCKER_HOST's, this machine's, or the one we started earlier."""
    own = f"unix://{_socket_path(folder)}"
    for url in (environment.get("DOCKER_HOST"), f"unix://{DEFAULT_SOCKET}", own):
        if url and answers(url):
            pid = _own_pid(folder) if url == own else None
            return DockerEngine(url, pid)
    return None


def start_engine(folder: Path) -> DockerEngine:
    """An engine of our own, whose data lie in `folder`; only root can have one.

    Raises SandboxError with the reason in one line when there can be none.
    """
    if os.geteuid() != 0:
        raise SandboxError("no Docker engine answers, and only root can start one")
    program = shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        raise SandboxError("no Docker engine answers, and dockerd isn't installed")
    folder.mkdir(parents=True, exist_ok=True)
    url = f"unix://{_socket_path(folder)}"
    Path(_socket_path(folder)).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / "dockerd.pid").unlink(missing_ok=True)
    with (folder / "dockerd.log").open("ab") as log:
        # Boxes have no network at all, so the engine needs no bridge and no packet filter.
        process = subprocess.Popen(
            [
                program,
                "--host",
                url,
                "--data-root",
                str(folder / "data"),
                "--exec-root",
                str(Path(_socket_path(folder)).parent / "exec"),
                "--pidfile",
                str(folder / "dockerd.pid"),
                "--bridge",
                "none",
                "--iptables=false",
                "--ip6tables=false",
                "--log-level",
                "warn",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        if answers(url):
            return DockerEngine(url, process.pid)
        if process.poll() is not None:
            break
        time.sleep(0.1)
    DockerEngine(url, process.pid).stop()
    tail = (folder / "dockerd.log").read_text(errors="replace").strip()[-300:]
    raise SandboxError(f"dockerd didn't start within {START_LIMIT_S} s: {tail}")


def install_engine(say: Callable[[str], None]) -> None:
    """Installs Debian's docker.io, as root. Raises SandboxError when it can't be had."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise SandboxError("installing Docker needs root and Debian's apt-get")
    say("Installing Debian's docker.io (about 1 min)")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-q"],
        ["apt-get", "install", "-y", "-q", "--no-install-recommends", "docker.io"],
    ):
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=INSTALL_LIMIT_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as error:
            raise SandboxError(f"{' '.join(command)} took over {INSTALL_LIMIT_S} s") from error
        if done.returncode:
            raise SandboxError(f"{' '.join(command)} failed: {done.stderr.strip()[-300:]}")


def answers(url: str) -> bool:
    """Whether an engine answers at the address within two seconds."""
    try:
        with connect(url, limit_s=2) as channel:
            channel.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            return b"200 OK" in channel.recv(256)
    except OSError:
        return False


def connect(url: str, limit_s: float) -> socket.socket:
    """A connection to an engine by unix:// or tcp:// address. Raises OSError."""
    scheme, _, rest = url.partition("://")
    if scheme == "unix":
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        channel.settimeout(limit_s)
        try:
            channel.connect(rest)
        except OSError:
            channel.close()
            raise
        return channel
    host, _, port = rest.rstrip("/").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=limit_s)


def _socket_path(folder: Path) -> str:
    """Beside the data, or in a short private folder: socket paths hold 107 bytes."""
    place = folder.resolve() / "docker.sock"
    if len(str(place)) <= 90:
        return str(place)
    name = hashlib.sha256(str(place).encode()).hexdigest()[:12]
    return str(Path(tempfile.gettempdir()) / f"rsi-docker-{os.geteuid()}-{name}" / "docker.sock")


def _own_pid(folder: Path) -> int | None:
    try:
        return int((folder / "dockerd.pid").read_text())
    except (OSError, ValueError):
        return None


def _ended(pid: int, limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                return True
        except ChildProcessError:
            if not Path(f"/proc/{pid}").exists():
                return True
        time.sleep(0.05)
    return False


def load_image(engine: DockerEngine, tag: str, tar: Callable[[], Path]) -> None:
    """Makes sure that the engine has the image; `tar` writes its file where it hasn't.

    Raises SandboxError when the engine refuses it.
    """
    with client(engine.url) as api:
        if api.images(tag):
            return
        name, _, version = tag.partition(":")
        with tar().open("rb") as stream:
            api.import_image_from_data(
                stream, repository=name, tag=version, changes=["LABEL rsi.image=base"]
            )
