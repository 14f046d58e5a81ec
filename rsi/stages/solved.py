"""The pair's own verified solutions, as examples for prompts and for training."""

from collections import Counter
from collections.abc import Sequence

from rsi.domain.contract import Example
from rsi.domain.task import Split, Task
from rsi.domain.trial import Trajectory, Trial
from rsi.errors import BlobError
from rsi.stages.parts import Parts
from rsi.steps.curate import Solution, solutions


def solved_trials(parts: Parts, up_to: int) -> tuple[Trial, ...]:
    """Every solved trial on a search task, of this generation and the earlier ones."""
    found = parts.ledger.trials_of(split=Split.SEARCH, solved=True)
    return tuple(
        sorted(
            (trial for trial in found if trial.generation <= up_to),
            key=lambda trial: (trial.generation, trial.task, trial.pair, trial.seed),
        )
    )


def trajectory_of(parts: Parts, trial: Trial) -> Trajectory:
    """What the trial did. Raises BlobError when its trajectory is not at hand."""
    if trial.trajectory is None:
        raise BlobError(f"the trial on task {trial.task[:12]} has no trajectory")
    return parts.traces.read(parts.blobs.get(trial.trajectory))


def solutions_of(parts: Parts, up_to: int) -> list[Solution]:
    """The verified one-action solutions, in a stable order."""
    trials = solved_trials(parts, up_to)
    digests = sorted({trial.task for trial in trials})
    tasks = dict(zip(digests, parts.ledger.tasks(digests), strict=True))
    return solutions(trials, tasks, lambda trial: trajectory_of(parts, trial))


def pool_of(found: Sequence[Solution], per_family: int) -> tuple[Example, ...]:
    """Examples from solutions, the shortest commands of each family and level first."""
    ordered = sorted(found, key=lambda s: (len(s.action.tool_input), s.task.digest))
    taken: Counter[tuple[str, int]] = Counter()
    seen: set[str] = set()
    pool = []
    for solution in ordered:
        key = (solution.task.family, solution.task.level)
        if taken[key] < per_family and solution.task.digest not in seen:
            taken[key] += 1
            seen.add(solution.task.digest)
            pool.append(
                Example(
                    instruction=solution.task.instruction,
                    reply=solution.action.tool_input,
                    origin=solution.task.digest,
                )
            )
    return tuple(pool)


def reference_pool(tasks: Sequence[Task], per_family: int) -> tuple[Example, ...]:
    """Examples from one-line reference solutions; only where the evaluation allows them."""
    taken: Counter[tuple[str, int]] = Counter()
    pool = []
    for task in tasks:
        scripts = [file for file in task.solution if file.path == "solve.sh"]
        lines = [
            line.strip()
            for script in scripts
            for line in script.content.decode("utf-8", "replace").splitlines()
        ]
        commands = [
            line
            for line in lines
            if line and not line.startswith("#") and not line.startswith("set ")
        ]
        if len(commands) == 1 and taken[task.family, task.level] < per_family:
            taken[task.family, task.level] += 1
            pool.append(
                Example(instruction=task.instruction, reply=commands[0], origin=task.digest)
            )
    return tuple(pool)
