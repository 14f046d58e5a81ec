"""Update as a flow: a LoRA trained on what worked, and the successor."""

from prefect import flow

from flows.stage import run_stage
from rsi.domain.generation import Stage
from rsi.stages.update import update as run_update


@flow(name="update", flow_run_name="update-{number}", persist_result=False)
def update(number: int, has_lock: bool = False) -> None:
    """Runs the stage of generation `number`; what is recorded already isn't done again."""
    run_stage(number, Stage.UPDATE, run_update, has_lock=has_lock)
