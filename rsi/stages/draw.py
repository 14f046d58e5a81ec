"""Drawing tasks for a generation, each use from a stream of its own, and recording the use."""

from collections import defaultdict
from collections.abc import Mapping

from rsi.domain.generation import Generation
from rsi.domain.task import Family, Split, Task
from rsi.domain.values import Digest, digest_bytes
from rsi.stages.parts import Parts

MASTERED = 0.8
"""A family's level counts as mastered when the champion solves at least this share of it."""


def draw(
    parts: Parts, generation: Generation, split: Split, count: int, *purpose: str
) -> tuple[Task, ...]:
    """`count` tasks over all suites, recorded as used by the generation for the split.

    The stream depends on the generation, the split and the purpose alone, so a rerun draws the
    same tasks. Fewer come when fixed suites have no more, and when an exam would draw a task
    again that an earlier one has used up.
    """
    used = parts.ledger.used_tasks(generation.number, split)
    words = [str(generation.seed), str(generation.number), split.value, *purpose]
    seed = int(digest_bytes("/".join(words).encode())[:12], 16)
    levels = frontier(parts, generation)
    tasks: list[Task] = []
    for place, suite in enumerate(parts.suites):
        share = (count * (place + 1)) // len(parts.suites) - (count * place) // len(parts.suites)
        parts.ledger.add_families(suite.families())
        tasks += suite.draw(split, seed, share, levels)
    if split is Split.EXAM:
        seen = parts.ledger.split_of([task.digest for task in tasks])
        tasks = [task for task in tasks if task.digest in used or task.digest not in seen]
    parts.ledger.add_tasks(tasks)
    fresh = [task.digest for task in tasks if task.digest not in used]
    parts.ledger.use_tasks(generation.number, split, fresh)
    return tuple(tasks)


def frontier(parts: Parts, generation: Generation) -> Mapping[str, int]:
    """The level to draw of each family: the first that the champion hasn't mastered, by its
    trials on holdout and exam tasks of earlier generations."""
    families = [family for suite in parts.suites for family in suite.families()]
    scores: dict[tuple[str, int], list[bool]] = defaultdict(list)
    before = [
        trial
        for trial in parts.ledger.trials_of(pair=generation.champion)
        if trial.generation < generation.number and not trial.is_invalid
    ]
    splits = parts.ledger.split_of([trial.task for trial in before])
    before = [trial for trial in before if splits.get(trial.task) in (Split.EXAM, Split.HOLDOUT)]
    wanted = sorted({trial.task for trial in before})
    known: dict[Digest, Task] = dict(zip(wanted, parts.ledger.tasks(wanted), strict=True))
    for trial in before:
        task = known[trial.task]
        scores[task.family, task.level].append(trial.is_solved)
    return {family.name: _first_unmastered(family, scores) for family in families}


def _first_unmastered(family: Family, scores: Mapping[tuple[str, int], list[bool]]) -> int:
    for level in sorted(family.levels):
        seen = scores.get((family.name, level), [])
        if not seen or sum(seen) / len(seen) < MASTERED:
            return level
    return max(family.levels)
