"""The connection to Postgres: one pooled engine, foreign errors mapped once, idempotent adds."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from rsi.edges.ledger.rows import DISCIPLINE, REFUSAL
from rsi.errors import DatabaseError, DisciplineError, LedgerConflict

CONNECT_LIMIT_S = 10
STATEMENT_LIMIT_MS = 60_000
GENERATION_LOCK = 7_248_301
"""Key of the one writer's advisory lock; any number, only never another."""


class Store:
    """A pooled connection to one ledger; safe to use from several threads."""

    def __init__(self, url: str, *, pool: int = 8) -> None:
        self._shown = _shown(url)
        with self.mapped("open"):
            self._engine: Engine = create_engine(
                url,
                pool_size=pool,
                max_overflow=pool,
                pool_pre_ping=True,
                connect_args={
                    "connect_timeout": CONNECT_LIMIT_S,
                    "options": f"-c statement_timeout={STATEMENT_LIMIT_MS}",
                },
            )
        self._lock = threading.Lock()
        self._lock_holder: Connection | None = None

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """One transaction, committed at the end."""
        with self.mapped("write to"), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read by."""
        with self.mapped("read"), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def lock_generation(self) -> Iterator[None]:
        """Holds the one writer's lock on a connection of its own; Postgres frees it when this
        process dies. Raises DatabaseError at once when another process holds it."""
        with self.mapped("lock"):
            connection = self._engine.connect()
            try:
                query = f"SELECT pg_try_advisory_lock({GENERATION_LOCK})"
                taken = connection.exec_driver_sql(query).scalar_one()
                connection.commit()
            except BaseException:
                connection.close()
                raise
        if not taken:
            connection.close()
            raise DatabaseError(
                f"another process is working on a generation in the ledger at {self._shown}; "
                "wait until it ends (`rsi generations` shows how far it is)"
            )
        try:
            yield
        finally:
            # Closing the session frees the lock; an unlock could fail on a dead connection.
            connection.invalidate()
            connection.close()

    @contextmanager
    def mapped(self, doing: str) -> Iterator[None]:
        """Turns SQLAlchemy's errors into ours."""
        try:
            yield
        except DBAPIError as error:
            state = getattr(error.orig, "sqlstate", None)
            said = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else ""
            if state == DISCIPLINE:
                raise DisciplineError(said) from error
            if state == REFUSAL:
                raise LedgerConflict(said) from error
            if state == "42P01":
                raise DatabaseError(
                    f"the ledger at {self._shown} has no tables yet; run `make setup`"
                ) from error
            hint = "start the database and run again" if _is_gone(error) else "see `rsi doctor`"
            raise DatabaseError(
                f"could not {doing} the ledger at {self._shown}: {said}; {hint}"
            ) from error
        except SQLAlchemyError as error:
            raise DatabaseError(
                f"could not {doing} the ledger at {self._shown}: {error}"
            ) from error

    def close(self) -> None:
        self._engine.dispose()


def add(
    connection: Connection, table: Table, row: Mapping[str, Any], *, compare: str = "document"
) -> bool:
    """Adds the row unless its natural key is there; True when it is new.

    Raises LedgerConflict when the row that is there says something else in column `compare`.
    """
    done = connection.execute(insert(table).values(row).on_conflict_do_nothing())
    if done.rowcount:
        return True
    keys = [column for column in table.primary_key.columns if column.name in row]
    query = select(table.c[compare]).where(*(column == row[column.name] for column in keys))
    there = connection.execute(query).scalar_one_or_none()
    if there != row[compare]:
        named = ", ".join(f"{column.name}={str(row[column.name])[:12]}" for column in keys)
        raise LedgerConflict(f"{table.name} has a row with {named} already that says another thing")
    return False


def _is_gone(error: DBAPIError) -> bool:
    return isinstance(error, OperationalError) or error.connection_invalidated


def _shown(url: str) -> str:
    """The address without the password."""
    from sqlalchemy.engine import make_url

    return make_url(url).render_as_string(hide_password=True)
