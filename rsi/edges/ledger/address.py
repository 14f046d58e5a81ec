"""Where the ledger is: a Postgres URL in any of its common spellings."""

from sqlalchemy import URL
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from rsi.errors import DatabaseError


def address(url: str) -> URL:
    """The URL with the driver that rsi uses, whatever driver it names.

    Raises DatabaseError for another database than Postgres, without showing the password.
    """
    try:
        given = make_url(url)
    except ArgumentError as error:
        raise DatabaseError(
            "the ledger's address can't be read; it looks like postgresql://user@host/database "
            "(RSI_DATABASE_URL)"
        ) from error
    kind = given.drivername.partition("+")[0]
    if kind not in ("postgres", "postgresql"):
        raise DatabaseError(
            f"the ledger lives in Postgres, not in {kind}: {shown(given)} (RSI_DATABASE_URL)"
        )
    return given.set(drivername="postgresql+psycopg")


def shown(url: URL) -> str:
    """The address without its password."""
    return url.render_as_string(hide_password=True)
