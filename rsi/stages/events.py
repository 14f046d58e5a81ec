"""What a stage leaves in the ledger: started, then finished with its result, or failed."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import JsonValue

from rsi.domain.generation import Generation, Stage, StageEvent, StageState, result_of
from rsi.errors import RsiError
from rsi.stages.parts import Parts

Result = Mapping[str, JsonValue]


def staged(
    parts: Parts, generation: Generation, stage: Stage, work: Callable[[], Result]
) -> dict[str, Any]:
    """The stage's result: the recorded one when it has finished before, else that of `work`.

    Rerunning after a crash does only what is missing, since `work` finds its rows in the ledger.
    An RsiError is recorded as the stage's failure and raised again.
    """
    events = parts.ledger.events(generation.number)
    done = result_of(events, stage)
    if done is not None:
        parts.progress.say(f"{stage.value}: finished before, nothing to do")
        return done
    _add(parts, generation, stage, StageState.STARTED)
    try:
        result = work()
    except RsiError as error:
        _add(parts, generation, stage, StageState.FAILED, note=str(error)[:2000])
        raise
    _add(parts, generation, stage, StageState.FINISHED, result=dict(result))
    return dict(result)


def result(parts: Parts, generation: Generation, stage: Stage) -> dict[str, Any]:
    """The result of a stage that must have finished. Raises RsiError when it hasn't."""
    found = result_of(parts.ledger.events(generation.number), stage)
    if found is None:
        raise RsiError(
            f"generation {generation.number} has no finished {stage.value} stage; run it first: "
            f"make {stage.value} GEN={generation.number}"
        )
    return found


def _add(
    parts: Parts,
    generation: Generation,
    stage: Stage,
    state: StageState,
    note: str = "",
    result: dict[str, JsonValue] | None = None,
) -> None:
    ordinal = len(parts.ledger.events(generation.number))
    parts.ledger.add_event(
        StageEvent(
            generation=generation.number,
            ordinal=ordinal,
            stage=stage,
            state=state,
            at=parts.clock.now(),
            note=note,
            result=result or {},
        )
    )
