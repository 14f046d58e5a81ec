"""Boxes made of Linux namespaces, for machines without a Docker engine.

The kernel and Python's standard library are enough, as root or not. What this kind can't
guarantee is found by trying and named in every trial's facts.
"""

import contextlib
import json
import os
import random
import select
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rsi.box_protocol import BOOTSTRAP, FORK_PROBE, MEMORY_PROBE, HelperBox, folders
from rsi.domain.trial import BoxFacts
from rsi.errors import DiskError, SandboxError, TrialFault
from rsi.ports import Box, BoxSpec

GREET_LIMIT_S = 30
UIDS = range(200_000, 260_000)
"""As root each box gets an id of its own, so that process limits aren't shared."""


class NamespaceSandbox:
    """Keeps the `Sandbox` port with the staged root of the base image."""

    def __init__(
        self,
        root: Path,
        image_digest: str,
        sandboxes: Path,
        state: Path,
        disk_floor_mb: int = 512,
    ) -> None:
        self._root, self._digest = root, image_digest
        self._sandboxes, self._state, self._floor_mb = sandboxes, state, disk_floor_mb
        self._mount = state / "mount"
        self._facts: BoxFacts | None = None
        self._lock = threading.Lock()
        self._open: set[subprocess.Popen[bytes]] = set()

    @contextmanager
    def box(self, spec: BoxSpec) -> Iterator[Box]:
        """A fresh box, removed at the end whatever happens."""
        free_mb = shutil.disk_usage(self._state).free >> 20
        if free_mb < self._floor_mb:
            raise DiskError(
                f"{free_mb} MB are free where {self._state} lies and the floor is "
                f"{self._floor_mb} MB; free some room and run again"
            )
        if spec.image is not None:
            raise SandboxError(
                f"image {spec.image} needs a Docker engine; namespaces have the base image alone"
            )
        with self._started(spec) as box:
            box.live(spec.life_s)
            yield box

    def check(self) -> BoxFacts:
        """What a box guarantees, found by trying one. Raises SandboxError."""
        with self._lock:
            if self._facts is None:
                self._facts = self._probe()
            return self._facts

    def close(self) -> None:
        """Ends every box of this process."""
        for process in list(self._open):
            _end(process)
            self._open.discard(process)

    @contextmanager
    def _started(self, spec: BoxSpec) -> Iterator[HelperBox]:
        facts = self._facts or BoxFacts(engine="namespaces", level="contained", image=self._digest)
        process = self._launch(spec)
        self._open.add(process)
        try:
            box = HelperBox(PipeStream(process), facts, spec.workdir)
            box.greet((self._sandboxes / "box_helper.py").read_bytes(), GREET_LIMIT_S)
            yield box
        finally:
            _end(process)
            self._open.discard(process)

    def _launch(self, spec: BoxSpec) -> "subprocess.Popen[bytes]":
        self._mount.mkdir(parents=True, exist_ok=True)
        uid = random.choice(UIDS) if os.geteuid() == 0 else 1000
        request = {
            "root": str(self._root),
            "mount": str(self._mount),
            "folders": folders(spec),
            "uid": uid,
            "pids": spec.pids,
            "memory_mb": spec.memory_mb,
            "argv": ["/usr/local/bin/python3", "-I", "-S", "-c", BOOTSTRAP],
        }
        launcher = self._sandboxes / "enter_namespaces.py"
        try:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", str(launcher), json.dumps(request)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            raise SandboxError(f"the namespace launcher can't be run: {error}") from error

    def _probe(self) -> BoxFacts:
        """Tries the limits that only cgroups can give, from inside a box."""
        missing = ["share of the processor"]
        try:
            with self._started(BoxSpec(pids=32, memory_mb=128)) as box:
                forked = box.run(["python3", "-c", FORK_PROBE], timeout_s=20)
                box.stop_all()
                if int(forked.stdout or b"0") >= 64:
                    missing.append("number of processes")
                eaten = box.run(["python3", "-c", MEMORY_PROBE], timeout_s=20)
                if b"held" in eaten.stdout:
                    missing.append("memory of all processes together")
        except TrialFault as fault:
            raise SandboxError(
                f"this kernel refuses a sandbox of namespaces ({fault.reason}); allow user "
                "namespaces (sysctl kernel.unprivileged_userns_clone=1) or start a Docker engine"
            ) from fault
        return BoxFacts(
            engine="namespaces", level="contained", image=self._digest, missing=tuple(missing)
        )


class PipeStream:
    """The input and output of a launched box."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._in, self._out = process, process.stdin, process.stdout

    def send(self, data: bytes) -> None:
        self._in.write(data)
        self._in.flush()

    def receive(self, count: int, limit_s: float) -> bytes:
        deadline = time.monotonic() + limit_s
        data = bytearray()
        while len(data) < count:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([self._out], [], [], left_s)[0]:
                raise TimeoutError(f"no answer within {limit_s:g} s")
            chunk = os.read(self._out.fileno(), min(1 << 20, count - len(data)))
            if not chunk:
                raise EOFError(self._last_words())
            data += chunk
        return bytes(data)

    def close(self) -> None:
        _end(self._process)

    def _last_words(self) -> str:
        assert self._process.stderr is not None
        ready = select.select([self._process.stderr], [], [], 0.2)[0]
        said = os.read(self._process.stderr.fileno(), 400) if ready else b""
        return said.decode("utf-8", "replace").strip()


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The end of input ends PID 1, and with it every process of the box."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(5)
