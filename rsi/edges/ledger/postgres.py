"""The ledger in Postgres."""

from rsi.edges.ledger.evidence import Evidence
from rsi.edges.ledger.growth import Growth
from rsi.edges.ledger.nights import Nights
from rsi.edges.ledger.nouns import Nouns
from rsi.edges.ledger.store import Store


class PostgresLedger(Nouns, Nights, Growth, Evidence):
    """Keeps the `Ledger` port in the Postgres at a URL; its schema is built by the migrations.

    Nothing is connected before the first call. Raises DatabaseError when Postgres is gone,
    DiskError when its disk is full.
    """

    def __init__(self, url: str) -> None:
        self._store = Store(url)

    def close(self) -> None:
        """Gives back every connection."""
        self._store.close()
