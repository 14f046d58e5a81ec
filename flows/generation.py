"""A whole generation as a flow: opened or taken up, then its four stages as subflows."""

from prefect import flow, tags

from flows import server
from flows.discovery import discovery
from flows.expansion import expansion
from flows.gate import gate
from flows.leftovers import close_leftovers
from flows.parts import opened
from flows.update import update
from rsi import wiring
from rsi.stages.generation import begin


@flow(name="generation", flow_run_name="generation-{number}", persist_result=False)
def generation(number: int) -> None:
    """Runs the four stages of generation `number`, which must be open."""
    discovery(number, has_lock=True)
    expansion(number, has_lock=True)
    update(number, has_lock=True)
    gate(number, has_lock=True)


def run_generation() -> int:
    """The number of the generation that was opened or taken up, and run to its end.

    Raises DatabaseError when another process is at work on one.
    """
    chosen = wiring.settings()
    files = wiring.contract_files()
    evaluation = files.read_evaluation(chosen.evaluation)
    document = files.read(chosen.contract)
    ledger = wiring.open_ledger(chosen)
    try:
        with ledger.lock_generation():
            if server.is_own(chosen.state_dir / "prefect"):
                close_leftovers()
            with opened(evaluation) as parts:
                number = begin(parts, evaluation, document).number
            with tags("rsi", f"generation-{number}"):
                generation(number)
    finally:
        ledger.close()
    return number
