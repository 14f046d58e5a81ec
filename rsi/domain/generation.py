"""Generations: one cycle of discovery, expansion, update and gate, as a list of events."""

from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, JsonValue

from rsi.domain.values import Digest, Value


class Stage(StrEnum):
    DISCOVERY = "discovery"
    EXPANSION = "expansion"
    UPDATE = "update"
    GATE = "gate"


class StageState(StrEnum):
    STARTED = "started"
    FINISHED = "finished"
    FAILED = "failed"


class GenerationState(StrEnum):
    """The state of a generation is read from its newest event; it is never edited."""

    DISCOVERY = "discovery"
    EXPANSION = "expansion"
    UPDATE = "update"
    GATE = "gate"
    PROMOTED = "promoted"
    REJECTED = "rejected"
    HELD = "held"
    FAILED = "failed"


class Generation(Value):
    """What a generation starts from; everything else about it is in its rows."""

    number: int
    champion: Digest
    """The pair that it starts from."""
    evaluation: Digest
    seed: int
    opened_at: AwareDatetime


class StageEvent(Value):
    """One thing that happened to a stage; `result` is what the stage found, when it finished."""

    generation: int
    ordinal: int
    """Its place in the order of the generation's events, from 0."""
    stage: Stage
    state: StageState
    at: AwareDatetime
    note: str = ""
    result: dict[str, JsonValue] = {}


def state_of(events: tuple[StageEvent, ...], decision: str | None) -> GenerationState:
    """The state of a generation, from its events in order and its verdict's decision."""
    if decision is not None:
        return {
            "promote": GenerationState.PROMOTED,
            "reject": GenerationState.REJECTED,
            "hold": GenerationState.HELD,
        }[decision]
    if not events:
        return GenerationState.DISCOVERY
    newest = events[-1]
    if newest.state is StageState.FAILED:
        return GenerationState.FAILED
    return GenerationState(newest.stage.value)


def result_of(events: tuple[StageEvent, ...], stage: Stage) -> dict[str, Any] | None:
    """The result of the stage's newest finished event; None when it hasn't finished."""
    for event in reversed(events):
        if event.stage is stage and event.state is StageState.FINISHED:
            return dict(event.result)
    return None
