"""Runs the migrations on the connection on which the caller holds the upgrade lock."""

from alembic import context

from rsi.edges.ledger.rows import metadata

LOCK_LIMIT_MS = 10_000
"""A migration that waits longer for a table gives up, so that running work isn't blocked."""
STATEMENT_LIMIT_MS = 120_000


def run() -> None:
    connection = context.config.attributes["connection"]
    connection.exec_driver_sql(f"SET lock_timeout = {LOCK_LIMIT_MS}")
    connection.exec_driver_sql(f"SET statement_timeout = {STATEMENT_LIMIT_MS}")
    # An open transaction would be taken for the one of all migrations together.
    connection.commit()
    context.configure(
        connection=connection, target_metadata=metadata, transaction_per_migration=True
    )
    with context.begin_transaction():
        context.run_migrations()


run()
