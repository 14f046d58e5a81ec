"""Measuring: paced trials one at a time, as many as can be side by side, and single calls."""

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial

from benchmarks.sandbox.ways import Way

WIDTHS = (1, 2, 4)
PAUSE_S = 0.7
"""What is prepared ahead is done by then."""


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


def measure(ways: Sequence[Way], amount: Amount) -> dict[str, Cost]:
    """The costs of the ways, by name.

    They take turns, so that what else the machine does falls on all of them; the first trial of
    each, which warms caches, isn't counted.
    """
    for way in ways:
        way.trial()
    paced = _paced_ms(ways, amount.paced)
    calls = _call_ms(ways, amount.calls)
    per_minute: dict[str, dict[int, float]] = {way.name: {} for way in ways}
    for width in WIDTHS:
        for way in ways:
            per_minute[way.name][width] = _per_minute(way.trial, width, amount.saturated_s)
    names = [way.name for way in ways]
    return {name: Cost(name, paced[name], calls[name], per_minute[name]) for name in names}


def _paced_ms(ways: Sequence[Way], rounds: int) -> dict[str, float]:
    """The median trial, with pauses in which what is prepared ahead can be."""
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            time.sleep(PAUSE_S)
            times[way.name].append(_seconds(way.trial))
    return {name: 1000 * statistics.median(some) for name, some in times.items()}


def _call_ms(ways: Sequence[Way], rounds: int) -> dict[str, float]:
    """The median call, each way in one machine of its own."""
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    with ExitStack() as stack:
        steps = {way.name: stack.enter_context(closing(way.call())) for way in ways}
        for one in steps.values():
            next(one)
        time.sleep(PAUSE_S * len(ways))
        for _ in range(rounds):
            for name, one in steps.items():
                times[name].append(_seconds(partial(next, one)))
    return {name: 1000 * statistics.median(some) for name, some in times.items()}


def _seconds(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


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
