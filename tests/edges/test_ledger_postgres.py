"""What the ledger in Postgres promises beyond its port: the database itself keeps the rules."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from rsi.domain.contract import Slot
from rsi.domain.generation import Stage, StageState
from rsi.domain.lora import Model
from rsi.domain.pair import Pair
from rsi.domain.task import Family, Split
from rsi.domain.verdict import Decision
from rsi.edges.embedded_postgres.server import EmbeddedPostgres
from rsi.edges.ledger import rows
from rsi.edges.ledger.postgres import PostgresLedger
from rsi.edges.ledger.schema import upgrade
from rsi.errors import DatabaseError, LedgerConflict
from tests.edges import ledger_scene as scene
from tests.edges.ledger_scene import EXAM, NEW, OLD, SEARCH

pytestmark = pytest.mark.postgres

TABLES = sorted(rows.metadata.tables)


@pytest.fixture
def full(ledger: PostgresLedger) -> PostgresLedger:
    """A ledger with at least one row in every table."""
    scene.opened(ledger)
    ledger.add_families([Family(suite="shell", name="lines", levels=(1,))])
    seen = scene.run(OLD, SEARCH[0].digest, blob="trace")
    ledger.add_trial(seen)
    ledger.add_event(scene.event(0, Stage.DISCOVERY, StageState.STARTED))
    ledger.add_candidates(1, [scene.candidate(0, scene.PLAIN.digest)])
    ledger.add_coverage(1, scene.coverage())
    made = scene.dataset(seen)
    ledger.add_dataset(1, made)
    lora = scene.lora(made)
    ledger.add_lora(lora)
    model = Model(base=scene.BASE.digest, loras={Slot.AGENT: lora.digest})
    ledger.add_pair(Pair(model=model.digest, contract=scene.PLAIN.digest), model)
    ledger.add_training_run(scene.training_run(made, lora))
    verdict = scene.verdict(seen.key)
    ledger.add_verdict(verdict, scene.promotion(verdict))
    return ledger


@pytest.fixture
def beside(database_url: str) -> Iterator[Connection]:
    """A connection of somebody who goes past the edge."""
    engine = create_engine(database_url, poolclass=NullPool)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def test_every_table_has_rows_in_the_full_ledger(full: PostgresLedger, beside: Connection) -> None:
    assert full.generations()
    empty = [name for name in TABLES if not beside.execute(text(f"TABLE {name} LIMIT 1")).all()]
    assert empty == []


@pytest.mark.usefixtures("full")
def test_no_table_lets_its_rows_be_changed(beside: Connection) -> None:
    for name in TABLES:
        column = rows.metadata.tables[name].columns[1].name
        for change in (
            f"UPDATE {name} SET {column} = {column}",
            f"DELETE FROM {name}",
            f"TRUNCATE {name} CASCADE",
        ):
            with pytest.raises(DBAPIError) as refused:
                beside.execute(text(change))
            assert refused.value.orig is not None
            assert getattr(refused.value.orig, "sqlstate", "") == rows.REFUSAL, change
            beside.rollback()


def test_the_database_refuses_an_exam_task_in_a_dataset(
    full: PostgresLedger, beside: Connection
) -> None:
    seen = scene.run(OLD, EXAM[0].digest)
    full.add_trial(seen)
    dataset = full.datasets(1)[0]
    insert = rows.dataset_examples.insert().values(
        dataset=dataset, position=9, pair=seen.pair, task=seen.task, seed=seen.seed
    )
    with pytest.raises(DBAPIError) as refused:
        beside.execute(insert)
    assert getattr(refused.value.orig, "sqlstate", "") == rows.DISCIPLINE


@pytest.mark.parametrize("split", [Split.SEARCH, Split.HOLDOUT])
def test_the_database_refuses_a_task_in_a_second_split(
    full: PostgresLedger, beside: Connection, split: Split
) -> None:
    assert full.used_tasks(1, Split.EXAM)
    use = rows.generation_tasks.insert().values(
        generation=1, split=split.value, position=99, task=EXAM[0].digest
    )
    with pytest.raises(DBAPIError) as refused:
        beside.execute(use)
    assert getattr(refused.value.orig, "sqlstate", "") == rows.DISCIPLINE
    beside.rollback()
    again = rows.splits.insert().values(task=EXAM[0].digest, split=split.value)
    with pytest.raises(DBAPIError, match="pk_splits"):
        beside.execute(again)


def test_every_table_and_column_is_explained(full: PostgresLedger, beside: Connection) -> None:
    assert full.generations()
    bare = beside.execute(
        text(
            "SELECT relname, attname FROM pg_class "
            "JOIN pg_attribute ON attrelid = pg_class.oid AND attnum >= 0 "
            "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace "
            "AND relname <> 'alembic_version' AND col_description(pg_class.oid, attnum) IS NULL"
        )
    ).all()
    assert bare == []


def test_a_killed_holder_frees_the_lock(database_url: str, ledger: PostgresLedger) -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time\n"
            "from rsi.edges.ledger.postgres import PostgresLedger\n"
            "with PostgresLedger(sys.argv[1]).lock_generation():\n"
            "    print('locked', flush=True)\n"
            "    time.sleep(60)\n",
            database_url,
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(DatabaseError, match="another process"), ledger.lock_generation():
            pytest.fail("two writers")
        holder.send_signal(signal.SIGKILL)
        with ledger.lock_generation():
            assert ledger.generations() == ()
    finally:
        holder.kill()
        holder.communicate()


def test_nothing_is_decided_after_the_lock_was_lost(
    full: PostgresLedger, beside: Connection, another_ledger: Callable[[], PostgresLedger]
) -> None:
    held = scene.verdict(decision=Decision.HOLD)
    with full.lock_generation():
        full.add_verdict(scene.verdict(decision=Decision.REJECT), None)
        beside.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_locks "
                "WHERE locktype = 'advisory' AND database = "
                "(SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        )
        beside.rollback()
        with another_ledger().lock_generation():
            with pytest.raises(DatabaseError, match="nothing more is decided"):
                full.add_verdict(held, None)
            with pytest.raises(DatabaseError, match="nothing more is decided"):
                full.add_promotion(scene.promotion(held, ordinal=7))
    assert held not in full.verdicts()
    full.add_verdict(held, None)
    assert held in full.verdicts()


def test_a_broken_connection_is_replaced(full: PostgresLedger, beside: Connection) -> None:
    before = full.trials_of()
    for _ in range(3):
        beside.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
        assert full.trials_of() == before
        full.add_tasks(scene.TASKS)


def test_a_value_out_of_range_is_a_clear_error(full: PostgresLedger) -> None:
    with pytest.raises(DatabaseError, match="could not write to the ledger at postgresql"):
        full.add_trial(scene.run(NEW, SEARCH[0].digest, 2**63))


def test_the_same_contract_from_two_threads_of_two_processes_is_one_row(
    ledger: PostgresLedger, another_ledger: Callable[[], PostgresLedger]
) -> None:
    other = another_ledger()
    scene.opened(ledger)
    scene.opened(other)
    assert other.pairs() == ledger.pairs() == (OLD, NEW)
    with pytest.raises(LedgerConflict):
        other.open_generation(scene.GENERATION.model_copy(update={"seed": 9}))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://nobody:secret@127.0.0.1:1/none", "start the database"),
        ("postgres://nobody:secret@/none?host=/nonexistent", "start the database"),
        ("mysql://nobody:secret@127.0.0.1/none", "Postgres, not in mysql"),
        ("not a url", "can't be read"),
    ],
)
def test_an_address_that_cannot_be_reached_is_said_without_its_password(
    url: str, said: str
) -> None:
    with pytest.raises(DatabaseError, match=said) as error:
        PostgresLedger(url).generations()
    assert "secret" not in str(error.value)
    with pytest.raises(DatabaseError, match=said) as error:
        upgrade(url)
    assert "secret" not in str(error.value)


def test_a_database_that_is_not_there_is_named(database_url: str) -> None:
    gone = database_url.replace("rsi_test", "rsi_gone")
    with (
        closing(PostgresLedger(gone)) as ledger,
        pytest.raises(DatabaseError, match=r"rsi_gone.* does not exist"),
    ):
        ledger.generations()


def test_a_database_without_tables_asks_for_setup(empty_database_url: str) -> None:
    with (
        closing(PostgresLedger(empty_database_url)) as ledger,
        pytest.raises(DatabaseError, match="make setup"),
    ):
        ledger.generations()


def test_committed_rows_outlive_a_killed_server(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "pg")
    server.start()
    try:
        upgrade(server.url)
        with closing(PostgresLedger(server.url)) as ledger:
            scene.opened(ledger)
            made = [scene.run(OLD, SEARCH[0].digest, seed) for seed in range(40)]
            for each in made:
                ledger.add_trial(each)
            os.kill(int((tmp_path / "pg/data/postmaster.pid").read_text().split()[0]), 9)
            with pytest.raises(DatabaseError, match="start the database"):
                _read_until_it_fails(ledger)
            assert server.start()
            assert ledger.trials_of() == tuple(made)
    finally:
        server.stop()


def _read_until_it_fails(ledger: PostgresLedger) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        ledger.trials_of()


def test_reading_loads_neither_alembic_nor_another_driver() -> None:
    code = (
        "import sys, rsi.edges.ledger.postgres as p; p.PostgresLedger('postgresql://x@/y'); "
        "print(sorted({'alembic', 'prefect', 'torch', 'asyncpg', 'psycopg2'} & set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout == "[]\n"
