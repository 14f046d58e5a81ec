"""Discovery as a flow: what the champion fails at, and harder tasks aimed at it."""

from prefect import flow

from flows.stage import run_stage
from rsi.domain.generation import Stage
from rsi.stages.discovery import discover


@flow(name="discovery", flow_run_name="discovery-{number}", persist_result=False)
def discovery(number: int, has_lock: bool = False) -> None:
    """Runs the stage of generation `number`; what is recorded already isn't done again."""
    run_stage(number, Stage.DISCOVERY, discover, has_lock=has_lock)
