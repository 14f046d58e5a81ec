"""The story of one generation: everything that a report shows, and nothing that it doesn't."""

from pydantic import AwareDatetime

from rsi.domain.generation import Generation, Stage, result_of, state_of
from rsi.domain.values import Digest, Value
from rsi.errors import UsageError
from rsi.ports import Ledger
from rsi.report.chapters import DiscoveryNote, ExpansionNote, PairNote, UpdateNote
from rsi.report.cost_notes import InvalidNote, StageNote
from rsi.report.gate_notes import GateNote, LineageNote
from rsi.report.naming import Naming
from rsi.report.tell_costs import tell_invalid, tell_stages
from rsi.report.tell_discovery import tell_discovery
from rsi.report.tell_expansion import tell_expansion
from rsi.report.tell_gate import tell_gate, tell_lineage
from rsi.report.tell_update import tell_update


class GenerationStory(Value):
    """One generation, whole. A chapter is None while its stage has left nothing yet."""

    generation: int
    state: str
    """`discovery`, `expansion`, `update`, `gate`, `promoted`, `rejected`, `held` or `failed`."""
    opened_at: AwareDatetime
    seed: int
    evaluation: Digest
    evaluation_name: str
    confidence: float
    """Of every interval, for example 0.95."""
    champion: PairNote
    successor: PairNote | None
    discovery: DiscoveryNote | None
    expansion: ExpansionNote | None
    update: UpdateNote | None
    gate: GateNote | None
    stages: tuple[StageNote, ...]
    invalid: InvalidNote
    lineage: tuple[LineageNote, ...]


def tell(ledger: Ledger, number: int) -> GenerationStory:
    """The generation's story, from the ledger alone, whatever stage it is in.

    Raises UsageError when there is no such generation.
    """
    generation = find(ledger, number)
    evaluation = ledger.evaluation(generation.evaluation)
    confidence = evaluation.gate.confidence
    events, naming = ledger.events(number), Naming(ledger)
    trials = ledger.trials_of(generation=number)
    verdicts = ledger.verdicts()
    verdict = next((v for v in reversed(verdicts) if v.generation == number), None)
    updated = result_of(events, Stage.UPDATE)
    successor = verdict.successor if verdict else (updated or {}).get("successor_pair")
    return GenerationStory(
        generation=number,
        state=state_of(events, verdict.decision.value if verdict else None).value,
        opened_at=generation.opened_at,
        seed=generation.seed,
        evaluation=generation.evaluation,
        evaluation_name=evaluation.name,
        confidence=confidence,
        champion=naming.pair(generation.champion),
        successor=naming.pair(successor) if successor else None,
        discovery=tell_discovery(ledger, result_of(events, Stage.DISCOVERY), confidence),
        expansion=tell_expansion(ledger, number, confidence),
        update=tell_update(ledger, number, updated, naming, confidence),
        gate=tell_gate(verdict, confidence) if verdict else None,
        stages=tell_stages(events, trials, ledger.training_runs(number), evaluation.budget),
        invalid=tell_invalid(trials),
        lineage=tell_lineage(ledger.promotions(), verdicts),
    )


def find(ledger: Ledger, number: int) -> Generation:
    """The generation of that number. Raises UsageError that names those that are there."""
    known = ledger.generations()
    for generation in known:
        if generation.number == number:
            return generation
    there = (
        f"there are 1 to {known[-1].number}" if known else "there are none yet; run `make cycle`"
    )
    raise UsageError(f"there is no generation {number}; {there}")
