"""Opens what a command reads from; edges are imported here and not before."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from rsi.ports import Ledger


@contextmanager
def opened_ledger() -> Iterator[Ledger]:
    """The ledger of this project. Raises DatabaseError when Postgres can't be had."""
    from rsi import wiring

    with closing(wiring.open_ledger()) as ledger:
        yield ledger
