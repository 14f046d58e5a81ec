"""Measuring: paced trials one at a time, as many as can be side by side, and single calls."""

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from benchmarks.sandbox.ways import Way

WIDTHS = (1, 2, 4)
SETTLE_S = 2
"""Before single calls are timed: what is prepared ahead is done by then."""


@dataclass(frozen=True, slots=True)
class Amount:
    """How much is measured."""

    paced: int
    """Trials with pauses."""
    saturated_s: float
    """For each width."""
    calls: int
    tasks: int
    """Trials of each of rsi's kinds with an agent that does nothing."""
    drift: int
    limit_s: float
    """The whole benchmark's."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When the benchmark has to end."""

    at_s: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """The moment so many seconds from now."""
        return cls(time.monotonic() + seconds)

    def left_s(self) -> float:
        """How long there is still; negative when it is over."""
        return self.at_s - time.monotonic()


@dataclass(slots=True)
class Cost:
    """What one way costs."""

    name: str
    paced_ms: float
    """A whole trial while nothing else runs: the median."""
    call_ms: float
    """One shell call in a machine that is there: the median."""
    per_minute: dict[int, float] = field(default_factory=dict)
    """Trials a minute, by how many run side by side."""


def measure(way: Way, amount: Amount) -> Cost:
    """The costs of a way; the first trial, which warms caches, isn't counted."""
    way.trial()
    return Cost(
        name=way.name,
        paced_ms=paced_ms(way.trial, amount.paced),
        call_ms=_call_ms(way, amount.calls),
        per_minute={width: _per_minute(way.trial, width, amount.saturated_s) for width in WIDTHS},
    )


def paced_ms(work: Callable[[], None], count: int, pause_s: float = 0.7) -> float:
    """The median of the work, done with pauses in which what is prepared ahead can be."""
    times = []
    for _ in range(count):
        time.sleep(pause_s)
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return 1000 * statistics.median(times)


def _call_ms(way: Way, count: int) -> float:
    steps, times = way.call(), []
    next(steps)
    time.sleep(SETTLE_S)
    for _ in range(count):
        begun = time.perf_counter()
        next(steps)
        times.append(time.perf_counter() - begun)
    steps.close()
    return 1000 * statistics.median(times)


def _per_minute(work: Callable[[], None], width: int, limit_s: float) -> float:
    """Trials a minute with so many at a time, over about the limit."""
    begun = time.perf_counter()

    def some(_: int) -> int:
        done = 0
        while time.perf_counter() - begun < limit_s:
            work()
            done += 1
        return done

    with ThreadPoolExecutor(width) as threads:
        done = sum(threads.map(some, range(width)))
    return 60 * done / (time.perf_counter() - begun)
