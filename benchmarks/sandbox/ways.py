"""The ways to run a trial: three files in, ten shell calls, one artifact out, nothing left."""

import io
import os
import subprocess
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import docker

from rsi.ports import BoxFile, BoxSpec, Sandbox

FILES = {f"file-{n}": b"x" * 10_000 for n in range(3)}
CALL = ("bash", "-c", "true")
LAST_CALL = ("bash", "-c", "wc -c < /work/file-0 > /work/artifact")
CALLS = 10
LABEL = "rsi.bench"
LIMIT_S = 120
SDK, CLI = "create, exec, remove, by the SDK", "docker run and exec, by the command line"
POOL, COLD = "rsi, containers from the pool", "rsi, containers made on demand"
NAMESPACES = "rsi, namespaces"


def own_label() -> dict[str, str]:
    """The label of this process's containers: others may measure on the same engine."""
    return {LABEL: str(os.getpid())}


class Way(ABC):
    """One way to have a machine for a trial."""

    name: str

    @abstractmethod
    def trial(self) -> None:
        """A whole trial, from ready to removed."""

    @abstractmethod
    def call(self) -> Generator[None, None, None]:
        """Makes a machine at the first step, and one shell call at each further one."""


class Boxes(Way):
    """rsi's own, over the Sandbox port."""

    def __init__(self, name: str, sandbox: Sandbox) -> None:
        self.name, self._sandbox = name, sandbox

    def trial(self) -> None:
        with self._sandbox.box(BoxSpec()) as box:
            box.put([BoxFile(f"/work/{name}", content) for name, content in FILES.items()])
            for _ in range(CALLS - 1):
                box.run(CALL, timeout_s=LIMIT_S)
            box.run(LAST_CALL, timeout_s=LIMIT_S)
            box.stop_all()
            (artifact,) = box.get(["/work/artifact"])
            _check(artifact.content)

    def call(self) -> Generator[None, None, None]:
        with self._sandbox.box(BoxSpec()) as box:
            while True:
                yield
                box.run(CALL, timeout_s=LIMIT_S)


class DockerCli(Way):
    """`docker run`, `docker exec` for each call, `docker cp`, `docker rm`."""

    name = CLI

    def __init__(self, url: str, image: str) -> None:
        self._url, self._image = url, image

    def trial(self) -> None:
        with self._machine() as machine:
            for _ in range(CALLS - 1):
                self._docker("exec", machine, *CALL)
            self._docker("cp", "-", f"{machine}:/work", given=_tar())
            self._docker("exec", machine, *LAST_CALL)
            _check(_only(self._docker("cp", f"{machine}:/work/artifact", "-")))

    def call(self) -> Generator[None, None, None]:
        with self._machine() as machine:
            while True:
                yield
                self._docker("exec", machine, *CALL)

    @contextmanager
    def _machine(self) -> Iterator[str]:
        label = f"{LABEL}={own_label()[LABEL]}"
        words = ("run", "-d", "--network", "none", "--label", label, self._image)
        machine = self._docker(*words, "sleep", "600").decode().strip()
        try:
            yield machine
        finally:
            self._docker("rm", "-f", machine)

    def _docker(self, *words: str, given: bytes | None = None) -> bytes:
        command = ["docker", "-H", self._url, *words]
        return subprocess.run(
            command, input=given, capture_output=True, timeout=LIMIT_S, check=True
        ).stdout


class DockerSdk(Way):
    """Create, start, an exec for each call, archives, and remove, by the Docker SDK."""

    name = SDK

    def __init__(self, url: str, image: str) -> None:
        self._api: Any = docker.APIClient(base_url=url, version="auto", timeout=LIMIT_S)
        self._image = image

    def trial(self) -> None:
        with self._machine() as machine:
            self._api.put_archive(machine, "/work", _tar())
            for _ in range(CALLS - 1):
                self._exec(machine, CALL)
            self._exec(machine, LAST_CALL)
            chunks, _ = self._api.get_archive(machine, "/work/artifact")
            _check(_only(b"".join(chunks)))

    def call(self) -> Generator[None, None, None]:
        with self._machine() as machine:
            while True:
                yield
                self._exec(machine, CALL)

    @contextmanager
    def _machine(self) -> Iterator[str]:
        host = self._api.create_host_config(network_mode="none")
        machine: str = self._api.create_container(
            self._image, ["sleep", "600"], host_config=host, labels=own_label()
        )["Id"]
        try:
            self._api.start(machine)
            yield machine
        finally:
            self._api.remove_container(machine, force=True)

    def _exec(self, machine: str, command: tuple[str, ...]) -> None:
        made = self._api.exec_create(machine, list(command))
        self._api.exec_start(made["Id"])
        if self._api.exec_inspect(made["Id"])["ExitCode"] != 0:
            raise RuntimeError(f"{command} failed")


def _tar() -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name, content in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return whole.getvalue()


def _only(archive: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        (member,) = tar.getmembers()
        content = tar.extractfile(member)
        return content.read() if content else b""


def _check(artifact: bytes) -> None:
    if artifact.strip() != b"10000":
        raise RuntimeError(f"the artifact says {artifact[:40]!r}")
