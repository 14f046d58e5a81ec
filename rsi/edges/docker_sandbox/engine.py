"""A Docker engine that answers: one of this machine's, or one of our own."""

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rsi.edges.docker_sandbox.own_engine import OwnEngine, find_program
from rsi.errors import SandboxError

PING_LIMIT_S = 2


@dataclass(frozen=True, slots=True)
class DockerEngine:
    """An engine's address; `own` is set when it is one that rsi started."""

    url: str
    own: OwnEngine | None = None

    def stop(self) -> None:
        """Ends the engine if it is ours and nobody else uses it."""
        if self.own is not None:
            self.own.leave()


@contextmanager
def open_engine(
    environment: Mapping[str, str], folder: Path, say: Callable[[str], None]
) -> Iterator[DockerEngine]:
    """The engine that answers, or one of our own in `folder`, which its last user stops.

    Raises SandboxError with the reason in one line when there can be none.
    """
    _check_choice(environment)
    engine = find_engine(environment, folder)
    if engine is None or (engine.own is not None and not engine.own.join()):
        find_program()
        say("Starting a Docker engine of our own")
        engine = start_engine(folder)
    try:
        yield engine
    finally:
        engine.stop()


def find_engine(environment: Mapping[str, str], folder: Path) -> DockerEngine | None:
    """The engine that answers: DOCKER_HOST's, this machine's, or our own in `folder`; else None.

    Nothing is started, and nobody becomes a user of our own.
    """
    chosen = environment.get("DOCKER_HOST")
    if chosen:
        return DockerEngine(chosen) if answers(chosen) else None
    for path in ("/var/run/docker.sock", f"/run/user/{os.geteuid()}/docker.sock"):
        if answers(f"unix://{path}"):
            return DockerEngine(f"unix://{path}")
    own = OwnEngine(folder)
    return DockerEngine(own.url, own) if answers(own.url) else None


def _check_choice(environment: Mapping[str, str]) -> None:
    """A person's choice is kept or refused, never passed over."""
    chosen = environment.get("DOCKER_HOST")
    if chosen and not answers(chosen):
        raise SandboxError(
            f"no Docker engine answers at DOCKER_HOST={chosen} (unix:// and tcp:// without TLS "
            "can be used); start it, or unset DOCKER_HOST, and run again"
        )


def stop_own_engine(folder: Path) -> None:
    """Stops our own engine in `folder` if it runs and nobody uses it."""
    OwnEngine(folder).leave()


def start_engine(folder: Path) -> DockerEngine:
    """An engine of our own, whose data lie in `folder`; only root can have one. Stop it afterwards.

    Raises SandboxError with the reason in one line when there can be none.
    """
    own = OwnEngine(folder)
    own.start(lambda: answers(own.url))
    return DockerEngine(own.url, own)


def answers(url: str) -> bool:
    """Whether an engine answers at the address within two seconds."""
    try:
        with connect(url, PING_LIMIT_S) as channel:
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
    if scheme != "tcp" or not port.isdigit():
        raise OSError(f"{url} is no unix:// or tcp://host:port address")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=limit_s)
