"""One stage as a flow: it opens the parts, calls the stage, and shows what the ledger recorded."""

from collections.abc import Callable

from flows.artifacts import show_stage
from flows.parts import evaluation_of, opened
from rsi.domain.generation import Generation, Stage
from rsi.report.story import find
from rsi.stages.parts import Parts


def run_stage(
    number: int, stage: Stage, work: Callable[[Parts, Generation], None], *, has_lock: bool
) -> None:
    """Runs the stage of a recorded generation under the one writer's lock, which a caller that
    runs several stages holds already."""
    with opened(evaluation_of(number)) as parts:
        if has_lock:
            work(parts, find(parts.ledger, number))
        else:
            with parts.ledger.lock_generation():
                work(parts, find(parts.ledger, number))
        show_stage(parts.ledger, number, stage)
