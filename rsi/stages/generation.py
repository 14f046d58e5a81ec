"""A generation: opened or taken up where it was left, then its four stages in order."""

from rsi.domain.evaluation import Evaluation
from rsi.domain.generation import Generation, Stage, result_of
from rsi.domain.lora import Model
from rsi.domain.pair import Pair
from rsi.domain.promotion import Promotion
from rsi.ports import ContractDocument
from rsi.stages.budget import check_budget
from rsi.stages.discovery import discover
from rsi.stages.expansion import expand
from rsi.stages.gate import decide
from rsi.stages.parts import Parts
from rsi.stages.update import update


def begin(parts: Parts, evaluation: Evaluation, document: ContractDocument) -> Generation:
    """The generation to work on: the newest one when it is unfinished, else a new one that
    starts from the champion. Without a champion, the base under the contract becomes it.

    Raises UsageError for an evaluation whose budget can't be held.
    """
    check_budget(evaluation)
    ledger = parts.ledger
    ledger.add_evaluation(evaluation)
    champion = _champion(parts, document)
    known = ledger.generations()
    if known and not _is_finished(parts, known[-1]) and known[-1].champion == champion:
        parts.progress.say(f"generation {known[-1].number}: taken up where it was left")
        return known[-1]
    number = known[-1].number + 1 if known else 1
    generation = Generation(
        number=number,
        champion=champion,
        evaluation=evaluation.digest,
        seed=evaluation.seed + number,
        opened_at=parts.clock.now(),
    )
    ledger.open_generation(generation)
    return generation


def run(parts: Parts, evaluation: Evaluation, document: ContractDocument) -> Generation:
    """One whole generation without Prefect, under the one writer's lock."""
    with parts.ledger.lock_generation():
        generation = begin(parts, evaluation, document)
        for stage in (discover, expand, update, decide):
            stage(parts, generation)
    return generation


def _is_finished(parts: Parts, generation: Generation) -> bool:
    return result_of(parts.ledger.events(generation.number), Stage.GATE) is not None


def _champion(parts: Parts, document: ContractDocument) -> str:
    promotions = parts.ledger.promotions()
    if promotions:
        return promotions[-1].pair
    base = parts.engine.base()
    model = Model(base=base.digest)
    pair = Pair(model=model.digest, contract=document.contract.digest)
    parts.ledger.add_contract(document.contract, document.toml)
    parts.ledger.add_base(base)
    parts.ledger.add_pair(pair, model)
    parts.ledger.add_promotion(
        Promotion(
            ordinal=0,
            pair=pair.digest,
            replaced=None,
            verdict=None,
            reason=f"the first pair: {base.name} under contract {document.contract.name}",
            at=parts.clock.now(),
        )
    )
    return pair.digest
