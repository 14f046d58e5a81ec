"""Sends what Prefect's client still holds, before the server that should get it is stopped."""

from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker

SEND_LIMIT_S = 3.0


def send_all() -> None:
    """Sends lines and events that wait, within a limit; what isn't sent by then is only shown
    nowhere: the ledger has it."""
    APILogWorker.drain_all(timeout=SEND_LIMIT_S)
    EventsWorker.drain_all(timeout=SEND_LIMIT_S)
