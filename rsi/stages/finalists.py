"""Single contracts measured on holdout tasks, which no search saw."""

from collections.abc import Sequence

from rsi.domain.evaluation import Evaluation
from rsi.domain.generation import Generation
from rsi.domain.search import Finalist
from rsi.domain.task import Split
from rsi.stages.block import Planned, run_block, trial_seed
from rsi.stages.draw import draw
from rsi.stages.parts import Contender, Parts


def choose_finalist(
    parts: Parts,
    generation: Generation,
    evaluation: Evaluation,
    base: Contender,
    contenders: Sequence[Contender],
) -> tuple[Finalist, ...]:
    """The contenders and the base on the holdout tasks, the one with most solved chosen.

    The base wins a tie, then the earlier contender: a change has to show something.
    """
    field = [base, *contenders]
    scores = holdout_scores(parts, generation, evaluation, "finalists", field)
    best = max(range(len(field)), key=lambda place: (scores[place].share, -place))
    return tuple(
        score.model_copy(update={"is_chosen": place == best}) for place, score in enumerate(scores)
    )


def holdout_scores(
    parts: Parts,
    generation: Generation,
    evaluation: Evaluation,
    label: str,
    field: Sequence[Contender],
) -> list[Finalist]:
    """How many of the generation's holdout tasks each contender solves, none of them chosen."""
    tasks = draw(parts, generation, Split.HOLDOUT, evaluation.expansion.holdout_tasks)
    seed = trial_seed(generation, 0)
    plan = [Planned(contender, task, seed) for task in tasks for contender in field]
    trials = run_block(parts, generation, label, plan)
    scores = []
    for place, contender in enumerate(field):
        own = trials[place :: len(field)]
        invalid = sum(trial.is_invalid for trial in own)
        scores.append(
            Finalist(
                contract=contender.contract.digest,
                solved=sum(trial.is_solved for trial in own),
                trials=len(own) - invalid,
                invalid=invalid,
                is_chosen=False,
            )
        )
    return scores
