"""The ledger's schema: built by the migrations, checked against the rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import CheckConstraint, Connection, create_engine, text
from sqlalchemy.pool import NullPool

from rsi.edges.ledger.address import address, shown
from rsi.edges.ledger.faults import mapped
from rsi.edges.ledger.rows import metadata
from rsi.errors import DatabaseError

CONNECT_LIMIT_S = 10
UPGRADE_LOCK = 7_248_300
"""Key of the advisory lock that lets one process migrate at a time."""
UPGRADE_LOCK_LIMIT_MS = 120_000

CHECKS = text(
    "SELECT conname FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid "
    "WHERE contype = 'c' AND relnamespace = current_schema()::regnamespace"
)
APPEND_ONLY = text(
    "SELECT relname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
    "WHERE tgname = relname || '_append_only' AND tgenabled = 'O'"
)


def upgrade(url: str, revision: str = "head") -> None:
    """Brings the database to this release's schema; many processes may try at once.

    Raises DatabaseError when Postgres is gone, or when the database is at a revision that this
    release doesn't know.
    """
    with _connected(url, "migrate") as connection:
        connection.exec_driver_sql(f"SET lock_timeout = {UPGRADE_LOCK_LIMIT_MS}")
        # The end of the session frees the lock, even after a failed migration.
        connection.exec_driver_sql(f"SELECT pg_advisory_lock({UPGRADE_LOCK})")
        connection.commit()
        _refuse_unknown(connection)
        connection.commit()
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def check_head(url: str) -> None:
    """Raises DatabaseError unless the database is at this release's revision."""
    with _connected(url, "read the revision of") as connection:
        current = _refuse_unknown(connection)
    head = _scripts().get_current_head()
    if current != head:
        raise DatabaseError(
            f"the ledger is at revision {current or 'none'}, this release wants {head}; "
            "run `make setup`"
        )


def drift(url: str) -> tuple[str, ...]:
    """What differs between the migrated database and `rows`; empty when nothing does.

    Compares tables, columns, keys and comments, the names of the checks, and that every table
    refuses changes.
    """
    with _connected(url, "compare") as connection:
        options: dict[str, Any] = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        changes = [str(change) for change in compare_metadata(context, metadata)]
        checks = set(connection.execute(CHECKS).scalars())
        guarded = set(connection.execute(APPEND_ONLY).scalars())
    wanted = {
        str(constraint.name)
        for table in metadata.tables.values()
        for constraint in table.constraints
        if isinstance(constraint, CheckConstraint)
    }
    changes += [f"the check {name} is on one side only" for name in sorted(wanted ^ checks)]
    bare = sorted(set(metadata.tables) - guarded)
    return (*changes, *(f"the table {name} accepts changes of its rows" for name in bare))


def _refuse_unknown(connection: Connection) -> str | None:
    """The revision of the database; refuses one that this release doesn't know."""
    current = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in _scripts().walk_revisions()}
    if current is not None and current not in known:
        raise DatabaseError(
            f"the ledger is at revision {current}, which this release doesn't know: its newest is "
            f"{_scripts().get_current_head()}; install the release that migrated it"
        )
    return current


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(resources.files("migrations")))
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


@contextmanager
def _connected(url: str, doing: str) -> Iterator[Connection]:
    where = address(url)
    limit = {"connect_timeout": CONNECT_LIMIT_S}
    engine = create_engine(where, poolclass=NullPool, connect_args=limit)
    try:
        with mapped(doing, shown(where)), engine.connect() as connection:
            yield connection
    except CommandError as error:
        raise DatabaseError(f"could not {doing} the ledger at {shown(where)}: {error}") from error
    finally:
        engine.dispose()
