"""Harden: harder tasks aimed at the surest weaknesses."""

from collections.abc import Callable, Mapping, Sequence

from rsi.domain.task import Task
from rsi.domain.values import Digest
from rsi.domain.weakness import Weakness


def harden(
    weaknesses: Sequence[Weakness],
    tasks: Mapping[Digest, Task],
    make: Callable[[Task, int], tuple[Task, ...]],
    limit: int,
    seed: int,
) -> dict[Digest, tuple[Task, ...]]:
    """Harder tasks by the failed task that they were made from, `limit` in all at most.

    Takes one new task for each weakness in turn, the surest weakness first, so that no family
    uses up the limit; ends when a whole turn makes nothing new. `make` is a suite's `harden`.
    """
    made: dict[Digest, list[Task]] = {}
    seen = set(tasks)
    count = 0
    for turn in range(limit):
        before = count
        for weakness in weaknesses:
            if count == limit:
                break
            origin = weakness.examples[turn % len(weakness.examples)]
            fresh = next(
                (new for new in make(tasks[origin], seed + turn) if new.digest not in seen), None
            )
            if fresh is not None:
                seen.add(fresh.digest)
                made.setdefault(origin, []).append(fresh)
                count += 1
        if count in (before, limit):
            break
    return {origin: tuple(children) for origin, children in made.items()}
