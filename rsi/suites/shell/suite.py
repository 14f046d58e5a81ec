"""The suite as a source of tasks: every draw is fixed by its split, seed and levels."""

import random
from collections.abc import Iterator, Mapping

from rsi.domain.task import Family, Split, Task
from rsi.domain.values import Digest
from rsi.suites.shell.changing import KINDS as CHANGING
from rsi.suites.shell.counting import KINDS as COUNTING
from rsi.suites.shell.filing import KINDS as FILING
from rsi.suites.shell.kit import SUITE, Kind, task_of
from rsi.suites.shell.selecting import KINDS as SELECTING

KINDS: tuple[Kind, ...] = (*COUNTING, *SELECTING, *CHANGING, *FILING)
REDRAWS = 40
"""Draws of one family, at most, for a task that isn't there yet."""


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
                if task.digest not in seen:
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
        fresh = [
            new for _, new in zip(range(4), _stream(kind, level, stream, "harden"), strict=False)
        ]
        return tuple({new.digest: new for new in fresh}.values())


def _stream(kind: Kind, level: int, name: str, made_by: str) -> Iterator[Task]:
    """Tasks of a family at a level, as many as a redraw may need."""
    rng = random.Random(name)
    for _ in range(REDRAWS):
        yield task_of(kind.name, level, kind.make(rng, level), made_by)
