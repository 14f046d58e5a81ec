"""Ends a command within seconds of an interrupt, whatever its threads are waiting for."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""The shell's exit status of a command that an interrupt has ended."""
GRACE_S = 4.0
"""How long trials under way may take to be recorded."""


@contextmanager
def ended_by_signals(
    last: Callable[[], None], grace_s: float = GRACE_S, leave: Callable[[int], None] = os._exit
) -> Iterator[None]:
    """The first signal is a KeyboardInterrupt; after `grace_s`, or at the second, `last` is called
    and the process leaves at once.

    Leaving at once loses nothing: what is recorded stays, and a trial under way is run again, as
    after a SIGKILL. Closing its box or its model instead would make it look broken.
    """
    stopping = _Stopping(last, grace_s, leave)
    before = [(sign, signal.signal(sign, stopping.ask)) for sign in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield
    finally:
        stopping.is_over.set()
        for sign, handler in before:
            signal.signal(sign, handler)


class _Stopping:
    """Remembers that it was asked, and counts the grace down beside the main thread."""

    def __init__(
        self, last: Callable[[], None], grace_s: float, leave: Callable[[int], None]
    ) -> None:
        self._last, self._grace_s, self._leave = last, grace_s, leave
        self._is_asked = False
        self.is_over = threading.Event()

    def ask(self, sign: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self._is_asked:
            self._end()
            return
        self._is_asked = True
        threading.Thread(target=self._count_down, daemon=True).start()
        raise KeyboardInterrupt

    def _count_down(self) -> None:
        if not self.is_over.wait(self._grace_s):
            self._end()

    def _end(self) -> None:
        try:
            self._last()
        finally:
            self._leave(INTERRUPTED)
