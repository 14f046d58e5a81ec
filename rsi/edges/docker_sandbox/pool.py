"""Boxes that wait ready, so that a trial doesn't wait for them; each is handed out once."""

import contextlib
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from rsi.box_protocol import HelperBox
from rsi.errors import RsiError, SandboxError
from rsi.ports import BoxSpec

MAKERS = 2
"""Threads that fill the pool: making a box is the engine's work, more would only wait on it."""
RECENT = 16
"""A kind that is less than a quarter of so many boxes asked for isn't kept ready."""
MAKE_LIMIT_S = 60
WAITING_BOX_MB = 16
"""What a box that waits takes, with the engine's process for it."""

Line = deque["Future[HelperBox]"]


def pool_size(workers: int, cores: int, available_mb: int) -> int:
    """How many boxes of a kind should wait: one for each trial, no more than two a core (making
    one is the work of a quarter of a second), in no more than an eighth of the memory."""
    return max(1, min(workers, 2 * cores, available_mb // 8 // WAITING_BOX_MB))


def available_mb() -> int:
    """The memory that programs can still have on this machine."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("MemAvailable:")]
    return int(line.split()[1]) >> 10


class Pool:
    """Keeps `size` boxes ready of each kind that is often asked for."""

    def __init__(self, make: Callable[[BoxSpec], HelperBox], size: int) -> None:
        self._make, self._size = make, size
        self._lock = threading.Lock()
        self._lines: dict[BoxSpec, Line] = {}
        self._recent: deque[BoxSpec] = deque(maxlen=RECENT)
        self._makers = ThreadPoolExecutor(MAKERS, thread_name_prefix="boxes")
        self._closed = False

    def take(self, kind: BoxSpec) -> HelperBox:
        """A ready box, or one made now; the line is filled up behind it."""
        ready, dropped = self._next(kind)
        for future in dropped:
            _discard(future)
        if ready is not None:
            # A box that waited may have died, and what could not be made then may succeed now:
            # both only cost a fresh try.
            with contextlib.suppress(RsiError, TimeoutError):
                return _alive(ready.result(MAKE_LIMIT_S))
        return self._make(kind)

    def close(self) -> None:
        """Ends every box that waits; none is made afterwards."""
        with self._lock:
            self._closed = True
            waiting = [future for line in self._lines.values() for future in line]
            self._lines.clear()
        for future in waiting:
            _discard(future)
        self._makers.shutdown(wait=True, cancel_futures=True)

    def _next(self, kind: BoxSpec) -> "tuple[Future[HelperBox] | None, list[Future[HelperBox]]]":
        """The first of the line, and boxes of kinds that nobody has asked for lately."""
        with self._lock:
            if self._closed:
                raise SandboxError("this sandbox is closed; open another one")
            self._recent.append(kind)
            often = {one for one, n in Counter(self._recent).items() if n * 4 >= len(self._recent)}
            line = self._lines.setdefault(kind, deque())
            ready = line.popleft() if line else None
            while kind in often and len(line) < self._size:
                line.append(self._makers.submit(self._make, kind))
            rare = [one for one in self._lines if one not in often]
            return ready, [future for one in rare for future in self._lines.pop(one)]


def _alive(box: HelperBox) -> HelperBox:
    """The box, if it still answers; else it is closed, and the fault told."""
    try:
        box.live(MAKE_LIMIT_S)
    except BaseException:
        box.close()
        raise
    return box


def _discard(future: "Future[HelperBox]") -> None:
    """Ends a box as soon as it is made, if it is being made already."""
    if not future.cancel():
        future.add_done_callback(_close)


def _close(future: "Future[HelperBox]") -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().close()
