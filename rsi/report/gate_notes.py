"""The chapters on the verdict and the lineage, as frozen values. None says "unscored"."""

from typing import Literal

from pydantic import AwareDatetime

from rsi.domain.values import Digest, Value
from rsi.domain.verdict import Interval
from rsi.report.chapters import FamilyCount


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
