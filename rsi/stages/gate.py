"""Gate: a fresh exam of four arms, a check for forgetting, a verdict, and maybe a promotion."""

from collections.abc import Sequence
from dataclasses import dataclass

from rsi.domain.evaluation import Evaluation
from rsi.domain.generation import Generation, Stage
from rsi.domain.promotion import Promotion
from rsi.domain.task import Split, Task
from rsi.domain.trial import Trial
from rsi.domain.values import Digest
from rsi.domain.verdict import Decision, Verdict
from rsi.errors import PartError
from rsi.stages.block import Planned, run_block, trial_seed
from rsi.stages.draw import draw
from rsi.stages.events import Result, result, staged
from rsi.stages.parts import Contender, Parts, contender, serve
from rsi.steps.gate import ARMS, NEW_NEW, NEW_OLD, OLD_NEW, OLD_OLD, Evidence, gate

EXAM_SEED = 500
"""The exam's trial seeds begin here."""
REGRESSION_SEED = 900
"""The regression check's trial seed."""


def decide(parts: Parts, generation: Generation) -> None:
    """Leaves the verdict on the successor with its evidence, and the promotion if it earned it."""
    staged(parts, generation, Stage.GATE, lambda: _decide(parts, generation))


@dataclass(frozen=True, slots=True)
class _Lineup:
    """The four arms, served side by side."""

    arms: dict[str, Contender]
    champion: Contender
    successor: Contender


def _decide(parts: Parts, generation: Generation) -> Result:
    evaluation = parts.ledger.evaluation(generation.evaluation)
    rule = evaluation.gate
    steps = rule.exam_tasks * rule.seeds * len(ARMS) + 2 * rule.regression_tasks
    parts.progress.stage("gate", steps)
    verdict = _recorded(parts, generation)
    if verdict is None:
        verdict = _verdict(parts, generation, evaluation)
        parts.ledger.add_verdict(verdict, _promotion(parts, verdict))
    return {"verdict": verdict.digest, "decision": verdict.decision.value}


def _recorded(parts: Parts, generation: Generation) -> Verdict | None:
    """The verdict of a run that was killed between its verdict and its event."""
    verdicts = parts.ledger.verdicts(generation.number)
    return verdicts[-1] if verdicts else None


def _verdict(parts: Parts, generation: Generation, evaluation: Evaluation) -> Verdict:
    lineup = _lineup(parts, generation)
    exam = _exam(parts, generation, evaluation, lineup)
    again = _regression_tasks(parts, generation, evaluation)
    trials = _exam_trials(parts, generation, evaluation, lineup, exam)
    seed = trial_seed(generation, REGRESSION_SEED)
    pairs = [
        Planned(one, task, seed) for task in again for one in (lineup.champion, lineup.successor)
    ]
    checked = run_block(parts, generation, "regression", pairs)
    evidence = Evidence(
        generation=generation.number,
        evaluation=generation.evaluation,
        champion=lineup.champion.pair,
        successor=lineup.successor.pair,
        arms={name: (lineup.arms[name].pair, trials[name]) for name in ARMS},
        regression=list(zip(checked[::2], checked[1::2], strict=True)),
        families={task.digest: task.family for task in [*exam, *again]},
    )
    return gate(evidence, evaluation.gate)


def _lineup(parts: Parts, generation: Generation) -> _Lineup:
    """Old and new model times old and new contract.

    The new contract is the successor's; when the successor keeps the old one, the finalist's
    stands in, so that the 2x2 can still be told. The new model likewise.
    """
    ledger = parts.ledger
    old = ledger.pair(generation.champion)
    found = result(parts, generation, Stage.UPDATE)
    new = ledger.pair(str(found["successor_pair"]))
    finalist = str(result(parts, generation, Stage.EXPANSION)["finalist"])
    new_contract = new.contract if new.contract != old.contract else finalist
    new_model = _trained_model(parts, found, old.model, new.model)
    models = {"old": ledger.model(old.model), "new": ledger.model(new_model)}
    chats = dict(zip(models, serve(parts, *models.values()), strict=True))
    contracts = {"old": ledger.contract(old.contract), "new": ledger.contract(new_contract)}
    arms = {}
    for name in (OLD_OLD, OLD_NEW, NEW_OLD, NEW_NEW):
        model, contract = name.split("/")
        arms[name] = contender(parts, models[model], contracts[contract], chats[model])
    by_pair = {arm.pair: arm for arm in arms.values()}
    return _Lineup(arms, by_pair[old.digest], by_pair[new.digest])


def _trained_model(
    parts: Parts, found: dict[str, object], old: Digest, successor: Digest
) -> Digest:
    """The model with the new adapter, also when the successor is the old model after all."""
    successors = found.get("successors")
    if successor != old or not isinstance(successors, list):
        return successor
    models = [parts.ledger.pair(entry["pair"]).model for entry in successors]
    return next((model for model in models if model != old), old)


def _exam(
    parts: Parts, generation: Generation, evaluation: Evaluation, lineup: _Lineup
) -> tuple[Task, ...]:
    """Tasks drawn only now, when every candidate is frozen: the stream hangs on the arms."""
    frozen = [lineup.arms[name].pair for name in ARMS]
    return draw(parts, generation, Split.EXAM, evaluation.gate.exam_tasks, *frozen)


def _exam_trials(
    parts: Parts,
    generation: Generation,
    evaluation: Evaluation,
    lineup: _Lineup,
    exam: Sequence[Task],
) -> dict[str, list[Trial]]:
    """The arms' trials, interleaved task by task so that a drift of the machine hits all four."""
    seeds = [trial_seed(generation, EXAM_SEED + index) for index in range(evaluation.gate.seeds)]
    plan = [
        Planned(lineup.arms[name], task, seed) for seed in seeds for task in exam for name in ARMS
    ]
    trials = run_block(parts, generation, "exam", plan)
    if trials and all(trial.is_invalid for trial in trials):
        raise PartError(
            f"every trial of the exam is invalid, the first one because {trials[0].outcome}; "
            "mend the machine (`rsi doctor`) and open a new generation"
        )
    return {name: trials[place :: len(ARMS)] for place, name in enumerate(ARMS)}


def _regression_tasks(
    parts: Parts, generation: Generation, evaluation: Evaluation
) -> tuple[Task, ...]:
    """What the champion could do: tasks it solved earlier, those of past exams first, since no
    adapter was ever trained on them."""
    solved = parts.ledger.trials_of(pair=generation.champion, solved=True)
    earlier = [trial for trial in solved if trial.generation < generation.number]
    splits = parts.ledger.split_of([trial.task for trial in earlier])
    order = {Split.EXAM: 0, Split.HOLDOUT: 1, Split.SEARCH: 2}
    ranked = sorted(
        {trial.task for trial in earlier if trial.task in splits},
        key=lambda task: (order[splits[task]], task),
    )
    chosen = ranked[: evaluation.gate.regression_tasks]
    parts.ledger.use_tasks(generation.number, Split.REGRESSION, chosen)
    return parts.ledger.tasks(chosen)


def _promotion(parts: Parts, verdict: Verdict) -> Promotion | None:
    if verdict.decision is not Decision.PROMOTE:
        return None
    return Promotion(
        ordinal=len(parts.ledger.promotions()),
        pair=verdict.successor,
        replaced=verdict.champion,
        verdict=verdict.digest,
        reason="; ".join(verdict.reasons),
        at=parts.clock.now(),
    )
