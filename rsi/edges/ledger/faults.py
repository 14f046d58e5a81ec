"""What Postgres complains of, in rsi's words."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from rsi.edges.ledger.columns import DISCIPLINE, REFUSAL
from rsi.errors import DatabaseError, DisciplineError, DiskError, LedgerConflict, RsiError

UNMIGRATED = ("42P01", "42703")
"""SQLSTATEs of a missing table and of a missing column."""
MISSING_REFERENCE = "23503"
DISK_FULL = "53100"
HINTS = {
    "08006": "start the database and run again",
    "28000": "check the user in RSI_DATABASE_URL",
    "28P01": "check the password in RSI_DATABASE_URL",
    "3D000": "create that database, or check RSI_DATABASE_URL",
    "53300": "raise max_connections, or end other clients",
    "57014": "it took too long; run again when the database is less busy",
    "57P03": "the database is starting; run again in a moment",
}


class Dropped(DatabaseError):
    """The connection broke; what only reads, or is idempotent, may be tried once more."""


@contextmanager
def mapped(doing: str, shown: str) -> Iterator[None]:
    """Turns SQLAlchemy's errors into ours; `shown` is the address without its password."""
    try:
        yield
    except DBAPIError as error:
        raise _ours(error, doing, shown) from error
    except SQLAlchemyError as error:
        said = str(error).partition("\n")[0]
        raise DatabaseError(
            f"could not {doing} the ledger at {shown}: {said}; see `rsi doctor`"
        ) from error


def _ours(error: DBAPIError, doing: str, shown: str) -> RsiError:
    state = getattr(error.orig, "sqlstate", None)
    said = " ".join(str(error.orig).split()) or type(error.orig).__name__
    if state == DISCIPLINE:
        return DisciplineError(_first_line(error))
    if state == REFUSAL:
        return LedgerConflict(_first_line(error))
    where = f"the ledger at {shown}"
    if state in UNMIGRATED:
        return DatabaseError(
            f"{where} hasn't the tables of this release ({_first_line(error)}); run `make setup`"
        )
    if state == MISSING_REFERENCE:
        return DatabaseError(f"a row for {where} names one that isn't recorded: {said}")
    if state == DISK_FULL:
        return DiskError(f"the disk of {where} is full: {said}; free some room and run again")
    if error.connection_invalidated:
        return Dropped(f"the connection to {where} broke: {said}; start the database and run again")
    hint = HINTS.get(state or "08006", "see `rsi doctor`")
    return DatabaseError(f"could not {doing} {where}: {said}; {hint}")


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).partition("\n")[0]
