"""The chapters on cost and on invalid trials, as frozen values."""

from typing import Literal

from pydantic import AwareDatetime

from rsi.domain.values import Value


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
