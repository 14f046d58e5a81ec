"""The suite as a source of tasks: every draw is fixed by its split, seed and levels."""

import random
from collections.abc import Iterator, Mapping
from itertools import islice

from rsi.domain.task import Family, Split, Task
from rsi.domain.values import Digest
from rsi.suites.shell.changing import KINDS as CHANGING
from rsi.suites.shell.counting import KINDS as COUNTING
from rsi.suites.shell.filing import KINDS as FILING
from rsi.suites.shell.kit import SUITE, Kind, task_of
from rsi.suites.shell.selecting import KINDS as SELECTING

KINDS: tuple[Kind, ...] = (*COUNTING, *SELECTING, *CHANGING, *FILING)
REDRAWS = 400
"""Draws of one family, at most, for a task of the wanted split that isn't there yet."""
SHARES = {Split.SEARCH: range(6), Split.HOLDOUT: range(6, 8), Split.EXAM: range(8, 10)}
"""Tenths of all instances that each split may draw, by the task's digest."""


class ShellSuite:
    """Keeps the `TaskSource` port; pure, and without end: each seed gives other tasks."""

    name = SUITE

    def families(self) -> tuple[Family, ...]:
        return tuple(
            Family(suite=SUITE, name=kind.name, levels=kind.levels, about=kind.about)
            for kind in KINDS
        )

    def draw(
        self, split: Split, seed: int, n: int, levels: Mapping[str, int] = {}
    ) -> tuple[Task, ...]:
        """n tasks, the families in turn in a seeded order; no two with the same digest."""
        rng = random.Random(f"{SUITE}/{split.value}/{seed}")
        order = rng.sample(KINDS, len(KINDS))
        seen: set[Digest] = set()
        tasks: list[Task] = []
        for place in range(n):
            kind = order[place % len(order)]
            level = levels.get(kind.name, kind.levels[0])
            stream = f"{SUITE}/{split.value}/{seed}/{kind.name}/{level}/{place}"
            for task in _stream(kind, level, stream, "suite"):
                if task.digest not in seen and is_in(task, split):
                    seen.add(task.digest)
                    tasks.append(task)
                    break
        return tuple(tasks)

    def harden(self, task: Task, seed: int) -> tuple[Task, ...]:
        """Tasks of the same family, one level up; none above the highest."""
        kind = next((kind for kind in KINDS if kind.name == task.family), None)
        if kind is None or task.level >= max(kind.levels):
            return ()
        level = task.level + 1
        stream = f"{SUITE}/harden/{task.digest}/{seed}"
        harder = (new for new in _stream(kind, level, stream, "harden") if is_in(new, Split.SEARCH))
        return tuple({new.digest: new for new in islice(harder, 4)}.values())


def is_in(task: Task, split: Split) -> bool:
    """Whether the split may draw the task: its content decides, so no two splits ever share an
    instance, however small a family is."""
    content = task.model_copy(update={"made_by": ""}).digest
    return int(content[:8], 16) % 10 in SHARES[split]


def _stream(kind: Kind, level: int, name: str, made_by: str) -> Iterator[Task]:
    """Tasks of a family at a level, as many as a redraw may need."""
    rng = random.Random(name)
    for _ in range(REDRAWS):
        yield task_of(kind.name, level, kind.make(rng, level), made_by)
