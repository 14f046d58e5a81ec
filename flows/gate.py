"""Gate as a flow: a fresh exam, a verdict, maybe a promotion."""

from prefect import flow

from flows.stage import run_stage
from rsi.domain.generation import Stage
from rsi.stages.gate import decide


@flow(name="gate", flow_run_name="gate-{number}", persist_result=False)
def gate(number: int, has_lock: bool = False) -> None:
    """Runs the stage of generation `number`; what is recorded already isn't done again."""
    run_stage(number, Stage.GATE, decide, has_lock=has_lock)
