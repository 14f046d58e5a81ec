"""Mine: the champion's failures, grouped by family, level and cause, the surest weakness first."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from rsi.domain.statistics import rate
from rsi.domain.task import Task
from rsi.domain.trial import Failed, Trial
from rsi.domain.values import Digest
from rsi.domain.weakness import Weakness


def mine(
    trials: Sequence[Trial], tasks: Mapping[Digest, Task], confidence: float = 0.95
) -> tuple[Weakness, ...]:
    """One weakness for each family and level with a failure, by its failure rate, surest first.

    Invalid trials are counted but say nothing about a rate.
    """
    groups: dict[tuple[str, int], list[Trial]] = defaultdict(list)
    for trial in trials:
        task = tasks[trial.task]
        groups[task.family, task.level].append(trial)
    found = [
        _weakness(family, level, group, confidence) for (family, level), group in groups.items()
    ]
    failing = [weakness for weakness in found if weakness.failed]
    return tuple(
        sorted(
            failing,
            key=lambda weakness: (
                -weakness.failure.low,
                -weakness.failure.estimate,
                weakness.family,
                weakness.level,
            ),
        )
    )


def _weakness(family: str, level: int, trials: Sequence[Trial], confidence: float) -> Weakness:
    valid = [trial for trial in trials if not trial.is_invalid]
    causes = Counter(trial.outcome.cause for trial in valid if isinstance(trial.outcome, Failed))
    failed = [trial for trial in valid if not trial.is_solved]
    return Weakness(
        family=family,
        level=level,
        trials=len(valid),
        failed=len(failed),
        invalid=len(trials) - len(valid),
        failure=rate(len(failed), len(valid), confidence),
        causes=dict(sorted(causes.items())),
        examples=tuple(sorted({trial.task for trial in failed})[:3]),
    )
