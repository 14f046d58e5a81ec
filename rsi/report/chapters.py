"""The chapters of a generation's story: what each stage found, as frozen values.

An interval that is None says "unscored": nothing valid was counted. It is never a zero.
"""

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
