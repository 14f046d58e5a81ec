"""The chapters of a generation's story: what each stage found, as frozen values.

An interval that is None says "unscored": nothing valid was counted. It is never a zero.
"""

from typing import Literal

from pydantic import AwareDatetime

from rsi.domain.lora import Recipe
from rsi.domain.values import Digest, Value
from rsi.domain.verdict import Interval


class LoraNote(Value):
    """A slot of a model, and the adapter in it."""

    slot: str
    lora: Digest


class PairNote(Value):
    """A pair, in words that people know."""

    pair: Digest
    model: Digest
    base: Digest
    base_name: str
    base_format: str
    loras: tuple[LoraNote, ...]
    contract: Digest
    contract_name: str
    contract_version: str


class CauseCount(Value):
    """Why trials failed, and how many did so."""

    cause: str
    failed: int


class TaskNote(Value):
    """A task that stands for others."""

    task: Digest
    instruction: str


class WeaknessNote(Value):
    """How often the champion failed at a family and level, and of what."""

    family: str
    level: int
    trials: int
    failed: int
    invalid: int
    failure: Interval | None
    causes: tuple[CauseCount, ...]
    examples: tuple[TaskNote, ...]


class HardenedNote(Value):
    """Harder tasks made for a weakness, and what the champion solved before and of them."""

    family: str
    from_level: int
    to_level: int
    made: int
    admitted: int
    refused: tuple[str, ...]
    before: Interval | None
    """The share that the champion solved at `from_level`."""
    measured: Interval | None
    """The share that it solved of the admitted tasks at `to_level`."""


class DiscoveryNote(Value):
    """What the champion failed, and what was made harder."""

    tasks: int
    weaknesses: tuple[WeaknessNote, ...]
    hardened: tuple[HardenedNote, ...]


class EditNote(Value):
    """One edit of a candidate; a long value is told by its size."""

    key: str
    value: str


class WinnerNote(Value):
    """A candidate that covered tasks first."""

    contract: Digest
    author: str
    edits: tuple[EditNote, ...]
    covered_first: int
    """Tasks of which it was the first to solve; a search outcome, never a score."""


class FinalistNote(Value):
    """A single contract on holdout tasks."""

    contract: Digest
    author: str
    """`champion` for the contract that the search started from."""
    edits: tuple[EditNote, ...]
    solved: int
    trials: int
    invalid: int
    rate: Interval | None
    is_chosen: bool


class PointNote(Value):
    """How many tasks were covered after so many attempts."""

    attempts: int
    tokens: int
    covered: int


class ExpansionNote(Value):
    """What the search covered with the model frozen. Coverage is never a pair's score."""

    tasks: int
    covered: int
    attempts: int
    tokens: int
    stopped: str
    curve: tuple[PointNote, ...]
    candidates: int
    winners: tuple[WinnerNote, ...]
    finalists: tuple[FinalistNote, ...]


class FamilyCount(Value):
    """A family, and how many."""

    family: str
    count: int


class FilterNote(Value):
    """How many trials a filter of the curation let through."""

    filter: str
    kept: int
    dropped: int


class FidelityNote(Value):
    """How much the served adapter says what the trained one says, on one base."""

    base: Digest
    base_name: str
    base_format: str
    agreement: Interval | None
    """The share of prompts with the same greedy output as the trained adapter."""
    changed: Interval | None
    """The share of prompts on which the adapter changes what the base says."""


class TrainingNote(Value):
    """One training: how, for how long, and how faithfully it is served."""

    lora: Digest
    parent: Digest | None
    recipe: Recipe
    steps: int
    first_loss: float
    last_loss: float
    losses: tuple[float, ...]
    tokens: int
    elapsed_s: float
    fidelity: tuple[FidelityNote, ...]


class SuccessorNote(Value):
    """A pair that could succeed, on holdout tasks."""

    pair: PairNote
    solved: int
    trials: int
    invalid: int
    rate: Interval | None
    is_chosen: bool


class UpdateNote(Value):
    """What the adapter was trained on, and what came of it."""

    outcome: str
    """`trained` or `skipped`."""
    reason: str
    dataset: Digest
    examples: int
    families: tuple[FamilyCount, ...]
    filters: tuple[FilterNote, ...]
    training: TrainingNote | None
    successors: tuple[SuccessorNote, ...]


class ArmNote(Value):
    """One of the four pairs on the exam."""

    name: str
    """The model, then the contract: `old/new` is the old model under the new contract."""
    pair: Digest
    solved: int
    failed: int
    invalid: int
    rate: Interval | None
    is_champion: bool
    is_successor: bool


class AttributionNote(Value):
    """What the contract gave, what the weights gave, and their interaction."""

    contract: Interval | None
    weights: Interval | None
    interaction: Interval | None


class FamilyNote(Value):
    """The champion and the successor on the same exam tasks of one family."""

    family: str
    pairs: int
    old_solved: int
    new_solved: int
    old: Interval | None
    new: Interval | None


class RegressionNote(Value):
    """What the champion could do, run again with both pairs in one block."""

    tasks: int
    kept: int
    lost: int
    invalid: int
    forgotten: Interval | None
    lost_by_family: tuple[FamilyCount, ...]


class GateNote(Value):
    """The verdict, with every number that it rests on."""

    verdict: Digest
    generation: int
    champion: Digest
    successor: Digest
    evaluation: Digest
    decision: str
    reasons: tuple[str, ...]
    gain: Interval | None
    smallest_resolvable: float | None
    needed_pairs: int | None
    arms: tuple[ArmNote, ...]
    attribution: AttributionNote
    families: tuple[FamilyNote, ...]
    regression: RegressionNote
    evidence: int
    """Trials behind the numbers."""


class StageNote(Value):
    """How far a stage is, and what it cost."""

    stage: str
    state: Literal["not started", "under way", "finished", "failed"]
    starts: int
    """More than one after a crash."""
    started_at: AwareDatetime | None
    ended_at: AwareDatetime | None
    elapsed_s: float
    note: str
    trials: int
    invalid: int
    model_calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    model_s: float
    sandbox_s: float
    verifier_s: float
    training_tokens: int
    training_s: float
    usd: float | None
    """None when the evaluation contract names no prices."""


class InvalidReason(Value):
    """Why trials were invalid, and how many."""

    where: str
    reason: str
    trials: int


class InvalidNote(Value):
    """Trials that say nothing: the machine broke, not the pair."""

    trials: int
    invalid: int
    reasons: tuple[InvalidReason, ...]


class LineageNote(Value):
    """One change of the champion."""

    ordinal: int
    kind: Literal["first", "promotion", "rollback"]
    pair: Digest
    replaced: Digest | None
    reason: str
    at: AwareDatetime
    generation: int | None
    gain: Interval | None
    is_champion: bool
