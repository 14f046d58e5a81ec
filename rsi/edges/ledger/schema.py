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
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from rsi.edges.ledger.rows import metadata
from rsi.errors import DatabaseError

UPGRADE_LOCK = 7_248_300
"""Key of the advisory lock that lets one process migrate at a time."""
UPGRADE_LOCK_LIMIT_MS = 120_000


def upgrade(url: str) -> None:
    """Brings the database to this release's schema; many processes may try at once.

    Raises DatabaseError when Postgres is gone, or when the database is at a revision that this
    release doesn't know.
    """
    with _connected(url) as connection:
        connection.exec_driver_sql(f"SET lock_timeout = {UPGRADE_LOCK_LIMIT_MS}")
        connection.exec_driver_sql(f"SELECT pg_advisory_lock({UPGRADE_LOCK})")
        try:
            _refuse_unknown(connection)
            connection.commit()
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
        finally:
            connection.exec_driver_sql(f"SELECT pg_advisory_unlock({UPGRADE_LOCK})")
            connection.commit()


def check_head(url: str) -> None:
    """Raises DatabaseError unless the database is at this release's revision."""
    with _connected(url) as connection:
        _refuse_unknown(connection)
        current = MigrationContext.configure(connection).get_current_revision()
    head = _scripts().get_current_head()
    if current != head:
        raise DatabaseError(
            f"the ledger is at revision {current}, this release wants {head}; run `make setup`"
        )


def drift(url: str) -> tuple[str, ...]:
    """What differs between the migrated database and `rows`; empty when nothing does."""
    with _connected(url) as connection:
        options: dict[str, Any] = {"compare_type": True, "compare_server_default": False}
        context = MigrationContext.configure(connection, opts=options)
        return tuple(str(change) for change in compare_metadata(context, metadata))


def _refuse_unknown(connection: Connection) -> None:
    current = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in _scripts().walk_revisions()}
    if current is not None and current not in known:
        raise DatabaseError(
            f"the ledger is at revision {current}, newer than this release's "
            f"{_scripts().get_current_head()}; install the release that migrated it"
        )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(resources.files("migrations")))
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


@contextmanager
def _connected(url: str) -> Iterator[Connection]:
    engine = create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": 10})
    try:
        with engine.connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        shown = engine.url.render_as_string(hide_password=True)
        said = str(getattr(error, "orig", error)).strip().splitlines()[0]
        raise DatabaseError(
            f"could not bring the ledger at {shown} up to date: {said}; "
            "start the database and run again"
        ) from error
    finally:
        engine.dispose()
