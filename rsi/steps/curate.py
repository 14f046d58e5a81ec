"""Curate: a dataset of what worked, rendered for the plain contract."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rsi.domain.contract import Contract
from rsi.domain.dataset import CurationCount, Dataset, DatasetExample
from rsi.domain.rendering import framed, plain, render
from rsi.domain.task import Split, Task
from rsi.domain.trial import Action, Trajectory, Trial
from rsi.domain.values import Digest
from rsi.errors import DisciplineError


@dataclass(frozen=True, slots=True)
class Curated:
    """The dataset, and how many trials each filter let through."""

    dataset: Dataset
    filters: tuple[CurationCount, ...]


@dataclass(frozen=True, slots=True)
class Solution:
    """A verified solution: the one action that solved a task."""

    trial: Trial
    task: Task
    action: Action


def curate(
    trials: Sequence[Trial],
    tasks: Mapping[Digest, Task],
    splits: Mapping[Digest, Split],
    trajectory_of: Callable[[Trial], Trajectory],
    contract: Contract,
    per_family: int,
    limit: int,
) -> Curated:
    """The dataset of the trials' verified solutions, the newest first within a family.

    Raises DisciplineError when a trial's task isn't in the search split: such a trial should
    never have been offered.
    """
    for trial in trials:
        if splits.get(trial.task) is not Split.SEARCH:
            raise DisciplineError(
                f"task {trial.task[:12]} is in split {splits.get(trial.task)}, "
                "so nothing may be trained on it"
            )
    counts: list[CurationCount] = []
    solved = [trial for trial in trials if trial.is_solved]
    counts.append(_count("solved by verifier", trials, solved))
    found = solutions(solved, tasks, trajectory_of)
    counts.append(_count("solved by one action", solved, found))
    distinct = _distinct(found)
    counts.append(_count("not a duplicate", found, distinct))
    balanced = _balanced(distinct, per_family, limit)
    counts.append(_count("balanced over families", distinct, balanced))
    examples = tuple(_example(solution, contract) for solution in balanced)
    return Curated(Dataset(contract=plain(contract).digest, examples=examples), tuple(counts))


def solutions(
    trials: Sequence[Trial],
    tasks: Mapping[Digest, Task],
    trajectory_of: Callable[[Trial], Trajectory],
) -> list[Solution]:
    """The solved trials whose whole effect came from one action, with that action.

    What an earlier action did can't be told apart from what solved the task, so trials with
    several actions teach nothing here.
    """
    found = []
    for trial in trials:
        acted = [action for action in trajectory_of(trial).actions if action.tool is not None]
        if trial.is_solved and len(acted) == 1 and acted[0].tool == "bash":
            found.append(Solution(trial, tasks[trial.task], acted[0]))
    return found


def _count(name: str, before: Sequence[object], after: Sequence[object]) -> CurationCount:
    return CurationCount(filter=name, kept=len(after), dropped=len(before) - len(after))


def _distinct(found: Sequence[Solution]) -> list[Solution]:
    """One solution for each task and for each (instruction, command), the newest."""
    kept: dict[tuple[str, str], Solution] = {}
    tasks: set[Digest] = set()
    for solution in reversed(found):
        key = (solution.task.instruction, solution.action.tool_input)
        if key not in kept and solution.task.digest not in tasks:
            kept[key] = solution
            tasks.add(solution.task.digest)
    return list(kept.values())


def _balanced(found: Sequence[Solution], per_family: int, limit: int) -> list[Solution]:
    """Families take turns until the limit; none has more than `per_family`."""
    families: dict[str, list[Solution]] = defaultdict(list)
    for solution in found:
        families[solution.task.family].append(solution)
    kept: list[Solution] = []
    taken: Counter[str] = Counter()
    for _ in range(per_family):
        for family in sorted(families):
            if taken[family] < len(families[family]) and len(kept) < limit:
                kept.append(families[family][taken[family]])
                taken[family] += 1
    return kept


def _example(solution: Solution, contract: Contract) -> DatasetExample:
    bare = plain(contract)
    trial = solution.trial
    return DatasetExample(
        trial_pair=trial.pair,
        trial_task=trial.task,
        trial_seed=trial.seed,
        family=solution.task.family,
        messages=render(bare, solution.task),
        completion=framed(bare.agent.action, solution.action.tool_input),
    )
