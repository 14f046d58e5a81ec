"""Expansion as a flow: the harness searched with the model frozen."""

from prefect import flow

from flows.stage import run_stage
from rsi.domain.generation import Stage
from rsi.stages.expansion import expand


@flow(name="expansion", flow_run_name="expansion-{number}", persist_result=False)
def expansion(number: int, has_lock: bool = False) -> None:
    """Runs the stage of generation `number`; what is recorded already isn't done again."""
    run_stage(number, Stage.EXPANSION, expand, has_lock=has_lock)
