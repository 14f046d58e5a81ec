"""The TaskSource port for a folder of Harbor tasks: a fixed suite, split by content."""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from rsi.domain.task import Family, Split, Task
from rsi.edges.task_files.reading import TaskRead, read_task
from rsi.errors import TaskError

DEPTH = 3
"""Folders below the suite's own in which tasks are looked for."""
SEARCH_SHARE = 0.6
HOLDOUT_SHARE = 0.2
"""Of the tasks; the rest is the exam."""


class FolderSource:
    """Tasks of a folder. They are read once, when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name or "folder"
        self._folder = folder

    @cached_property
    def _read(self) -> tuple[TaskRead, ...]:
        """Every task, each once, in the order of digests."""
        found: dict[str, TaskRead] = {}
        faults: list[str] = []
        for folder in sorted(_task_folders(self._folder, DEPTH)):
            try:
                read = read_task(folder, self.name)
            except TaskError as error:
                faults.append(str(error))
                continue
            owned = read.task.model_copy(update={"suite": self.name, "made_by": self.name})
            found.setdefault(_content(owned), TaskRead(owned, read.warnings))
        if faults:
            raise TaskError("\n".join(faults))
        if not found:
            hint = "each task is a folder with a task.toml"
            raise TaskError(f"no Harbor task lies below {self._folder}; {hint}")
        return tuple(found[content] for content in sorted(found))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the tasks say that rsi doesn't do, each with its task's name.

        Raises TaskError as `families` does.
        """
        return tuple(
            f"{read.task.name}: {warning}" for read in self._read for warning in read.warnings
        )

    def families(self) -> tuple[Family, ...]:
        """The families that the tasks name. Raises TaskError with every fault of every task."""
        levels: dict[str, set[int]] = defaultdict(set)
        for read in self._read:
            levels[read.task.family].add(read.task.level)
        return tuple(
            Family(suite=self.name, name=name, levels=tuple(sorted(levels[name])))
            for name in sorted(levels)
        )

    def draw(
        self,
        split: Split,
        seed: int,
        n: int,
        levels: Mapping[str, int] = {},  # noqa: ARG002
    ) -> tuple[Task, ...]:
        """At most n tasks of the split, spread evenly over families; a fixed suite has its own
        levels, so `levels` chooses nothing. Raises TaskError as `families` does."""
        rng = random.Random(f"{split.value}/{seed}")
        by_family: dict[str, list[Task]] = defaultdict(list)
        for read in self._read:
            if split_of(read.task) is split:
                by_family[read.task.family].append(read.task)
        queues = [by_family[name] for name in sorted(by_family)]
        for queue in queues:
            rng.shuffle(queue)
        rng.shuffle(queues)
        rows = max(map(len, queues), default=0)
        spread = [queue[row] for row in range(rows) for queue in queues if row < len(queue)]
        return tuple(spread[:n])

    def harden(self, task: Task, seed: int) -> tuple[Task, ...]:  # noqa: ARG002
        """Nothing: rsi can't make harder ones of tasks that it doesn't generate."""
        return ()


def split_of(task: Task) -> Split:
    """The split of a fixed suite's task, by its content alone: a renamed, moved or repeated task
    stays where it was, so that no exam task becomes a search task."""
    share = int(_content(task)[:12], 16) / 16**12
    if share < SEARCH_SHARE:
        return Split.SEARCH
    return Split.HOLDOUT if share < SEARCH_SHARE + HOLDOUT_SHARE else Split.EXAM


def _content(task: Task) -> str:
    bare = {"name": "", "suite": "", "family": "", "level": 0, "made_by": ""}
    return task.model_copy(update=bare).digest


def _task_folders(folder: Path, depth: int) -> Iterator[Path]:
    """The folders with a task.toml, none inside another; links aren't followed."""
    if (folder / "task.toml").exists():
        yield folder
        return
    if depth == 0:
        return
    try:
        below = sorted(folder.iterdir())
    except OSError as error:
        raise TaskError(f"the task folder {folder} can't be read: {error.strerror}") from error
    for path in below:
        if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
            yield from _task_folders(path, depth - 1)
