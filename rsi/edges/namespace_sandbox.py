"""Boxes made of Linux namespaces, for machines without a Docker engine.

The kernel and Python's standard library are enough, as root or not. What this kind can't
guarantee is found by trying and named in every trial's facts.
"""

import contextlib
import json
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rsi.box_probe import PROBE_SPEC, PROCESSOR_SPEC, probe, processor_share
from rsi.box_protocol import HelperBox, folders
from rsi.domain.trial import BoxFacts
from rsi.errors import DiskError, SandboxError, TrialFault
from rsi.ports import Box, BoxSpec

GREET_LIMIT_S = 30
END_LIMIT_S = 2
SEND_LIMIT_S = 60
NO_HOLDER = 0xFFFFFFFF
UIDS = range(200_000, 260_000)
"""As root each box gets an id of its own, so that limits by user aren't shared."""
HELP = (
    "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
    "kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces=10000), run as "
    "root, or start a Docker engine"
)


class NamespaceSandbox:
    """Keeps the `Sandbox` port with the staged root of the base image."""

    def __init__(
        self,
        root: Path,
        image_digest: str,
        sandboxes: Path,
        state: Path,
        disk_floor_mb: int = 512,
        process: Path = Path("/proc/self"),
    ) -> None:
        """`sandboxes` holds the launcher; `state` is where the disk floor is measured; `process`
        tells the launcher its mounts and control groups. Nothing is started before the first box.
        """
        self._root, self._digest = root, image_digest
        self._state, self._floor_mb = state, disk_floor_mb
        self._launcher = Launcher(sandboxes / "namespace_launcher.py", process)
        self._facts: BoxFacts | None = None
        self._lock = threading.Lock()
        self._uids = Uids()

    @contextmanager
    def box(self, spec: BoxSpec) -> Iterator[Box]:
        """A fresh box, removed at the end whatever happens."""
        self.check()
        free_mb = shutil.disk_usage(self._state).free >> 20
        if free_mb < self._floor_mb:
            raise DiskError(
                f"{free_mb} MB are free where {self._state} lies and the floor is "
                f"{self._floor_mb} MB; free some room and run again"
            )
        if spec.image is not None:
            raise TrialFault(
                "sandbox",
                f"image {spec.image} needs a Docker engine; namespaces have the base image alone",
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
        self._launcher.close()

    def _probe(self) -> BoxFacts:
        """Tries the limits that only control groups can give, from inside a box."""
        with contextlib.ExitStack() as stack:
            try:
                box = stack.enter_context(self._started(PROBE_SPEC))
            except TrialFault as fault:
                raise SandboxError(
                    f"this kernel refuses a sandbox of namespaces ({fault.reason}); {HELP}"
                ) from fault
            missing = probe(box)
        if not self._limits_processor():
            missing = (*missing, "share of the processor")
        return BoxFacts(engine="namespaces", level="contained", image=self._digest, missing=missing)

    def _limits_processor(self) -> bool:
        """Whether a busy loop gets less than it could, and the kernel says that it was stopped."""
        with self._stream(PROCESSOR_SPEC) as stream:
            share = processor_share(self._greeted(stream, PROCESSOR_SPEC))
            return share < 0.5 and stream.stops() > 0

    @contextmanager
    def _started(self, spec: BoxSpec) -> Iterator[HelperBox]:
        with self._stream(spec) as stream:
            yield self._greeted(stream, spec)

    def _greeted(self, stream: "SocketStream", spec: BoxSpec) -> HelperBox:
        facts = self._facts or BoxFacts(engine="namespaces", level="contained", image=self._digest)
        box = HelperBox(stream, facts, spec.workdir)
        box.greet(b"", GREET_LIMIT_S)
        return box

    @contextmanager
    def _stream(self, spec: BoxSpec) -> Iterator["SocketStream"]:
        """A new box's stream; the box ends with it."""
        with self._uids.one() as uid:
            request = {
                "root": str(self._root),
                "folders": folders(spec),
                "uid": uid,
                "pids": spec.pids,
                "memory_mb": spec.memory_mb,
                "cpus": spec.cpus,
            }
            stream = SocketStream(self._launcher, request)
            try:
                yield stream
            finally:
                stream.close()


class Uids:
    """User ids of the machine for boxes; no two boxes that run have the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: set[int] = set()

    @contextmanager
    def one(self) -> Iterator[int]:
        """An id that no other box of this process has until the end."""
        with self._lock:
            uid = random.choice(UIDS)
            while uid in self._used:
                uid = random.choice(UIDS)
            self._used.add(uid)
        try:
            yield uid
        finally:
            with self._lock:
                self._used.discard(uid)


class Launcher:
    """The process that makes boxes: started at the first one, and again should it die."""

    def __init__(self, program: Path, process: Path) -> None:
        self._program, self._process_files = program, process
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._closed = False

    def launch(self, request: dict[str, object], stream: socket.socket) -> int:
        """The process that holds a new box, whose helper speaks over the stream."""
        with self._lock:
            if self._closed:
                raise SandboxError("this sandbox is closed; open another one")
            holder = self._ask(request, [stream.fileno()])
            if holder in (0, NO_HOLDER):
                self._stop()
                raise TrialFault("sandbox", "the namespace launcher could not make a process")
            return holder

    def stops(self, holder: int) -> int:
        """How often the kernel has stopped a box for having used its share of the processor."""
        with self._lock:
            return self._ask({"stops": holder}, [])

    def _ask(self, request: dict[str, object], descriptors: list[int]) -> int:
        """The launcher's answer, a number. Raises SandboxError."""
        try:
            channel = self._open()
            channel.settimeout(GREET_LIMIT_S)
            socket.send_fds(channel, [json.dumps(request).encode()], descriptors)
            return int.from_bytes(channel.recv(4), "big")
        except OSError as error:
            self._stop()
            raise SandboxError(
                f"the namespace launcher {self._program} can't be used: {error}"
            ) from error

    def end(self, holder: int) -> None:
        """Kills a box whose end of the stream didn't end it."""
        with self._lock:
            if self._channel is not None:
                with contextlib.suppress(OSError):
                    self._channel.sendall(json.dumps({"end": holder}).encode())

    def close(self) -> None:
        """Ends the launcher, and with it every box."""
        with self._lock:
            self._closed = True
            self._stop()

    def _open(self) -> socket.socket:
        if self._channel is not None and self._process is not None and self._process.poll() is None:
            return self._channel
        self._stop()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", str(self._program), str(self._process_files)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
                start_new_session=True,
                cwd="/",
            )
        return self._channel

    def _stop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            try:
                self._process.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(END_LIMIT_S)
            self._process = None


class SocketStream:
    """The two-way stream of a launched box."""

    def __init__(self, launcher: Launcher, request: dict[str, object]) -> None:
        self._launcher = launcher
        self._channel, theirs = socket.socketpair()
        try:
            with theirs:
                self._holder = launcher.launch(request, theirs)
        except BaseException:
            self._channel.close()
            raise

    def send(self, data: bytes) -> None:
        self._channel.settimeout(SEND_LIMIT_S)
        self._channel.sendall(data)

    def receive(self, count: int, limit_s: float) -> bytes:
        deadline = time.monotonic() + limit_s
        data = bytearray()
        while len(data) < count:
            self._channel.settimeout(max(0.001, deadline - time.monotonic()))
            chunk = self._channel.recv(min(1 << 20, count - len(data)))
            if not chunk:
                raise EOFError
            data += chunk
        return bytes(data)

    def stops(self) -> int:
        """How often the kernel has stopped the box for having used its share of the processor."""
        return self._launcher.stops(self._holder)

    def close(self) -> None:
        """The end of input ends the helper, and with it every process of the box."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)
        if not self._has_ended():
            self._launcher.end(self._holder)
        self._channel.close()

    def _has_ended(self) -> bool:
        """Whether the other side closes the stream within the limit."""
        deadline = time.monotonic() + END_LIMIT_S
        while (left_s := deadline - time.monotonic()) > 0:
            self._channel.settimeout(left_s)
            try:
                if not self._channel.recv(1 << 16):
                    return True
            except TimeoutError:
                return False
            except OSError:
                return True
        return False
