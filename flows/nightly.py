"""Every night one generation: the flow that prefect.yaml deploys."""

from datetime import UTC, datetime, timedelta

from prefect import State, flow, runtime
from prefect.states import Completed

from flows.generation import run_generation
from flows.progress import run_log
from rsi import wiring
from rsi.provision import provision

LATEST = timedelta(hours=6)
"""A run that is due for longer belongs to a night that is over. Prefect runs all missed ones."""


@flow(name="nightly", persist_result=False)
def nightly() -> State | None:
    """Provides what is missing and runs one generation, or takes up the unfinished one."""
    due = runtime.flow_run.scheduled_start_time
    if is_over(due, datetime.now(UTC)):
        return Completed(name="Skipped", message=f"was due at {due:%Y-%m-%d %H:%M}, too long ago")
    provision(wiring.settings(), lambda text: run_log.info("%s", text))
    run_generation()
    return None


def is_over(due: datetime | None, now: datetime) -> bool:
    """Whether the night of a run is over; a run without a time was asked for by a person."""
    return due is not None and now - due > LATEST
