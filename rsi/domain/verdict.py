"""Verdicts: the comparison of two pairs under an evaluation contract, with its evidence."""

from enum import StrEnum

from rsi.domain.trial import TrialKey
from rsi.domain.values import Digest, Value, digest_value


class Decision(StrEnum):
    PROMOTE = "promote"
    REJECT = "reject"
    HOLD = "hold"


class Interval(Value):
    """An estimate with its confidence interval."""

    estimate: float
    low: float
    high: float
    n: int
    """What was counted: trials for a rate, pairs for a difference."""


class Arm(Value):
    """One of the four pairs on the exam, with its share of solved tasks."""

    name: str
    """`old/old`, `old/new`, `new/old`, `new/new`: the model, then the contract."""
    pair: Digest
    solved: int
    failed: int
    invalid: int
    rate: Interval


class Attribution(Value):
    """The 2x2 analysis: what the contract gave, what the weights gave, and their interaction."""

    contract: Interval
    weights: Interval
    interaction: Interval


class Regression(Value):
    """What the champion could do, run again with the successor in the same block."""

    tasks: int
    kept: int
    lost: int
    invalid: int
    lost_by_family: dict[str, int] = {}


class FamilyResult(Value):
    """Solved of run, per family: the champion and the successor on the same exam tasks."""

    family: str
    pairs: int
    old_solved: int
    new_solved: int


class Verdict(Value):
    """What the gate decided about a successor, why, and on which trials."""

    generation: int
    champion: Digest
    successor: Digest
    evaluation: Digest
    decision: Decision
    reasons: tuple[str, ...]
    gain: Interval
    smallest_resolvable: float
    """The half-width of the gain's interval: what this evidence could have told apart."""
    needed_pairs: int | None
    """For a hold: about how many more pairs it needs."""
    arms: tuple[Arm, ...]
    attribution: Attribution
    regression: Regression
    families: tuple[FamilyResult, ...]
    evidence: tuple[TrialKey, ...]
    """Every trial behind the numbers, exam and regression."""

    @property
    def digest(self) -> Digest:
        """SHA-256 of the canonical form."""
        return digest_value(self)
