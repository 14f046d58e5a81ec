"""The connection to Postgres: one pooled engine, idempotent adds, the one writer's lock."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import (
    Cast,
    Connection,
    Row,
    Select,
    Table,
    Text,
    cast,
    create_engine,
    literal,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError

from rsi.domain.values import Value
from rsi.edges.ledger.address import address, shown
from rsi.edges.ledger.documents import load, serialised
from rsi.edges.ledger.faults import Dropped, mapped
from rsi.errors import DatabaseError, LedgerConflict

CONNECT_LIMIT_S = 10
STATEMENT_LIMIT_MS = 60_000
CONNECTIONS = 8
"""Kept open; twice as many while there is much to do."""
GENERATION_LOCK = 7_248_301
"""Key of the one writer's advisory lock; any number, only never another."""
LOCK_GRACE_S = 1.0
"""Postgres needs a moment to see that a killed holder is gone."""

HOLDS_LOCK = text(
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = :pid "
    f"AND classid = 0 AND objid = {GENERATION_LOCK} AND objsubid = 1"
)

Query = Select[*tuple[Any, ...]]
Found = Row[*tuple[Any, ...]]
AnyValue = TypeVar("AnyValue", bound=Value)
Result = TypeVar("Result")


class Store:
    """A pooled connection to one ledger; safe to use from several threads."""

    def __init__(self, url: str) -> None:
        where = address(url)
        self._shown = shown(where)
        self._holder: int | None = None
        with mapped("open", self._shown):
            self._engine = create_engine(
                where,
                pool_size=CONNECTIONS,
                max_overflow=CONNECTIONS,
                pool_pre_ping=True,
                json_serializer=serialised,
                use_native_hstore=False,
                connect_args={
                    "connect_timeout": CONNECT_LIMIT_S,
                    "options": f"-c statement_timeout={STATEMENT_LIMIT_MS}",
                    "keepalives_idle": 30,
                    "keepalives_interval": 10,
                    "keepalives_count": 3,
                },
            )

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """One transaction, committed at the end."""
        with mapped("write to", self._shown), self._engine.begin() as connection:
            yield connection

    def add(self, table: Table, *rows: Mapping[str, Any]) -> None:
        """Adds the rows in one transaction, those that are there already left as they are.

        Raises LedgerConflict when a row that is there says something else.
        """

        def work() -> None:
            with self._engine.begin() as connection:
                for row in rows:
                    add(connection, table, row)

        self._twice("write to", work)

    def fetch(self, query: Query) -> Sequence[Found]:
        """Every row of the query."""

        def work() -> Sequence[Found]:
            with self._engine.connect() as connection:
                return connection.execute(query).all()

        return self._twice("read", work)

    def values(self, kind: type[AnyValue], query: Query) -> tuple[AnyValue, ...]:
        """The values of a query whose one column is `document`, as text."""
        return tuple(load(kind, row[0]) for row in self.fetch(query))

    @contextmanager
    def lock_generation(self) -> Iterator[None]:
        """Holds the one writer's lock on a connection of its own; Postgres frees it when this
        process dies. Raises DatabaseError when another process holds it."""
        with mapped("lock", self._shown):
            connection = self._engine.connect()
        try:
            with mapped("lock", self._shown):
                holder = _take_lock(connection)
            if holder is None:
                raise DatabaseError(
                    f"another process is working on a generation in the ledger at {self._shown}; "
                    "wait until it ends (`rsi generations` shows how far it is)"
                )
            self._holder = holder
            try:
                yield
            finally:
                self._holder = None
                _free_lock(connection)
        finally:
            connection.close()

    def check_lock(self, connection: Connection) -> None:
        """Raises DatabaseError when this ledger took the lock and has lost it since: another
        process may be working on the generation by now."""
        holder = self._holder
        if holder is None or connection.execute(HOLDS_LOCK, {"pid": holder}).first():
            return
        raise DatabaseError(
            f"the connection that locked the ledger at {self._shown} broke, so nothing more is "
            "decided here; run again"
        )

    def close(self) -> None:
        self._engine.dispose()

    def _twice(self, doing: str, work: Callable[[], Result]) -> Result:
        """What the work gives, tried once more after a broken connection: it must be idempotent."""
        try:
            with mapped(doing, self._shown):
                return work()
        except Dropped:
            with mapped(doing, self._shown):
                return work()


def document_text(table: Table) -> Cast[str]:
    """The table's documents as JSON texts, which are read without a detour."""
    return cast(table.c.document, Text)


def add(connection: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    """Adds the row unless its natural key is there; True when it is new.

    Raises LedgerConflict when the row that is there has another document.
    """
    # The driver's row count says nothing of an insert that may do nothing; what it returns does.
    added = insert(table).values(row).on_conflict_do_nothing().returning(literal(1))
    if connection.execute(added).first() is not None:
        return True
    keys = [column for column in table.primary_key.columns if column.name in row]
    query = select(table.c.document).where(*(column == row[column.name] for column in keys))
    there = connection.execute(query).scalar_one_or_none()
    if there != row["document"]:
        named = ", ".join(f"{column.name}={str(row[column.name])[:12]}" for column in keys)
        raise LedgerConflict(
            f"{table.name} can't take a row with {named}: one is there that says something else"
        )
    return False


def add_all(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Adds rows that are nothing but their keys; those that are there already stay."""
    if rows:
        connection.execute(insert(table).on_conflict_do_nothing(), rows)


def _take_lock(connection: Connection) -> int | None:
    """The number of the session that has taken the lock; None when another one keeps it."""
    query = text(f"SELECT pg_try_advisory_lock({GENERATION_LOCK}), pg_backend_pid()")
    deadline = time.monotonic() + LOCK_GRACE_S
    while True:
        is_taken, holder = connection.execute(query).one()
        connection.commit()
        if is_taken:
            return int(holder)
        if time.monotonic() > deadline:
            return None
        time.sleep(LOCK_GRACE_S / 10)


def _free_lock(connection: Connection) -> None:
    try:
        connection.execute(text(f"SELECT pg_advisory_unlock({GENERATION_LOCK})"))
        connection.commit()
    except SQLAlchemyError:
        # The session is broken; when it ends, so does its lock.
        connection.invalidate()
