"""Boxes made of Linux namespaces, for machines without a Docker engine.

The kernel and Python's standard library are enough, as root or not. What this kind can't
guarantee is found by trying and named in every trial's facts.
"""

import contextlib
import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rsi.box_probe import PROBE_SPEC, PROCESSOR_SPEC, probe, processor_share
from rsi.box_protocol import HelperBox, folders
from rsi.domain.trial import BoxFacts
from rsi.edges.namespace_sandbox.launcher import Launcher, SocketStream
from rsi.errors import DiskError, SandboxError, TrialFault
from rsi.ports import Box, BoxSpec

GREET_LIMIT_S = 30
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
            box = self._greeted(stream, spec)
            try:
                yield box
            finally:
                box.close_network()

    def _greeted(self, stream: SocketStream, spec: BoxSpec) -> HelperBox:
        facts = self._facts or BoxFacts(engine="namespaces", level="contained", image=self._digest)
        box = HelperBox(stream, facts, spec.workdir)
        box.greet(b"", GREET_LIMIT_S)
        box.open_network(spec.hosts)
        return box

    @contextmanager
    def _stream(self, spec: BoxSpec) -> Iterator[SocketStream]:
        """A new box's stream; the box ends with it."""
        with self._uids.one() as uid:
            request = {
                "root": str(self._root),
                "folders": folders(spec),
                "uid": uid,
                "pids": spec.pids,
                "memory_mb": spec.memory_mb,
                "cpus": spec.cpus,
                "has_loopback": bool(spec.hosts),
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
