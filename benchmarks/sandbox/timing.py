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


def measure(way: Way, paced: int, saturated_s: float, calls: int) -> Cost:
    """The costs of a way; the first trial, which warms caches, isn't counted."""
    way.trial()
    return Cost(
        name=way.name,
        paced_ms=paced_ms(way.trial, paced),
        call_ms=_call_ms(way, calls),
        per_minute={width: _per_minute(way.trial, width, saturated_s) for width in WIDTHS},
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
    steps.close()  # type: ignore[attr-defined]
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
