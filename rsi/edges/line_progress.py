"""Progress as plain lines, for logs and pipes."""

import threading
from collections.abc import Callable

EVERY_S = 10.0
"""Seconds between two lines of one stage."""


class LineProgress:
    """Keeps the `Progress` port by saying a line now and then, with the time that is left."""

    def __init__(self, say: Callable[[str], None], monotonic_s: Callable[[], float]) -> None:
        self._say, self._monotonic_s = say, monotonic_s
        self._lock = threading.Lock()
        self._name, self._steps, self._done = "", 0, 0
        self._begun_s = self._said_s = monotonic_s()

    def stage(self, name: str, steps: int) -> None:
        with self._lock:
            self._name, self._steps, self._done = name, steps, 0
            self._begun_s = self._said_s = self._monotonic_s()
        self._say(f"{name}: {steps} steps")

    def advance(self, steps: int = 1, note: str = "") -> None:
        with self._lock:
            self._done += steps
            now_s = self._monotonic_s()
            is_due = now_s - self._said_s >= EVERY_S
            if is_due:
                self._said_s = now_s
            line = self._line(now_s, note)
        if is_due:
            self._say(line)

    def say(self, text: str) -> None:
        self._say(text)

    def _line(self, now_s: float, note: str) -> str:
        spent_s = now_s - self._begun_s
        left_s = spent_s / max(1, self._done) * max(0, self._steps - self._done)
        tail = f" ({note})" if note else ""
        return f"{self._name}: {self._done} of {self._steps}, about {left_s:.0f} s left{tail}"
