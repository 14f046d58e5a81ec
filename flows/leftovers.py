"""Runs that a killed process left behind as Running: who holds the lock knows they are over."""

from prefect import State
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.states import Crashed

FLOWS = ["generation", "discovery", "expansion", "update", "gate"]


def close_leftovers() -> int:
    """How many runs of a generation were marked as crashed. Call it under the one writer's lock,
    and only for a server that shows this ledger alone."""
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=FLOWS)),
            flow_run_filter=FlowRunFilter(
                state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING]))
            ),
        )
        for run in runs:
            over: State[object] = Crashed(message="Its process is gone; a later run went on.")
            client.set_flow_run_state(run.id, over, force=True)
        return len(runs)
