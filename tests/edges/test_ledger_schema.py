"""The schema that the migrations build is the one that the rows describe."""

import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from rsi.edges.ledger.postgres import PostgresLedger
from rsi.edges.ledger.rows import metadata
from rsi.edges.ledger.schema import check_head, drift, upgrade
from rsi.errors import DatabaseError
from tests.edges import ledger_scene as scene

pytestmark = pytest.mark.postgres


def execute(url: str, command: str) -> None:
    """Runs a command past the edge."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(command)
    engine.dispose()


def test_the_migrated_database_is_what_the_rows_say(database_url: str) -> None:
    assert drift(database_url) == ()
    check_head(database_url)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("ALTER TABLE trials ADD COLUMN extra int", "extra"),
        ("ALTER TABLE trials DROP COLUMN cause CASCADE", "cause"),
        ("ALTER TABLE tasks ALTER COLUMN level TYPE text", "level"),
        ("ALTER TABLE trials DROP CONSTRAINT ck_trials_outcome", "ck_trials_outcome"),
        ("ALTER TABLE dataset_examples DROP CONSTRAINT fk_dataset_examples_dataset", "dataset"),
        ("ALTER TABLE promotions DISABLE TRIGGER ALL", "promotions accepts changes"),
        ("DROP TRIGGER tasks_append_only ON tasks", "tasks accepts changes"),
        ("COMMENT ON COLUMN trials.seed IS 'something else'", "something else"),
        ("CREATE TABLE stray (id int)", "stray"),
    ],
)
def test_a_schema_that_somebody_changed_is_named(
    own_database_url: str, change: str, named: str
) -> None:
    execute(own_database_url, change)
    assert named in "\n".join(drift(own_database_url))


def test_every_constraint_has_a_name_by_the_convention() -> None:
    for table in metadata.tables.values():
        for constraint in table.constraints:
            assert re.match(rf"(pk|uq|ck|fk)_{table.name}", str(constraint.name)), constraint
        for index in table.indexes:
            assert str(index.name).startswith(f"ix_{table.name}_")


def test_names_of_constraints_are_short_enough_for_postgres() -> None:
    named = [c.name for table in metadata.tables.values() for c in table.constraints]
    assert [name for name in named if name is not None and len(str(name)) > 63] == []


def test_eight_processes_may_upgrade_at_once(empty_database_url: str) -> None:
    code = "import sys; from rsi.edges.ledger.schema import upgrade; upgrade(sys.argv[1])"
    command = [sys.executable, "-c", code, empty_database_url]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(8)]
    ended = [(one.communicate(timeout=120)[1], one.returncode) for one in started]
    assert ended == [(b"", 0)] * 8
    assert drift(empty_database_url) == ()


def test_upgrading_again_keeps_the_rows(database_url: str) -> None:
    with closing(PostgresLedger(database_url)) as ledger:
        scene.opened(ledger)
        upgrade(database_url)
        assert ledger.generations() == (scene.GENERATION,)


def test_rows_of_the_first_schema_reach_the_tables_of_the_second(empty_database_url: str) -> None:
    upgrade(empty_database_url, "0001")
    told = scene.coverage()
    with closing(PostgresLedger(empty_database_url)) as ledger:
        scene.opened(ledger)
        execute(
            empty_database_url,
            "INSERT INTO coverages (generation, tasks, covered, attempts, document) "
            f"VALUES (1, 2, 1, 5, $${told.model_dump_json()}$$)",
        )
        upgrade(empty_database_url)
        assert ledger.coverage(1) == told
    assert drift(empty_database_url) == ()
    engine = create_engine(empty_database_url, poolclass=NullPool)
    with engine.connect() as connection:
        won = connection.execute(text("SELECT task, contract FROM winners")).all()
        chosen = connection.execute(text("SELECT contract FROM finalists WHERE is_chosen")).all()
    engine.dispose()
    assert {row.task: row.contract for row in won} == told.winners
    assert [row.contract for row in chosen] == [scene.BETTER.digest]


def test_a_revision_of_a_newer_release_is_refused_by_both_names(own_database_url: str) -> None:
    execute(own_database_url, "UPDATE alembic_version SET version_num = '9999'")
    for ask in (upgrade, check_head):
        with pytest.raises(DatabaseError, match=r"(?s)9999.*000\d") as refused:
            ask(own_database_url)
        assert "install the release" in str(refused.value)


def test_an_empty_database_is_not_at_head(empty_database_url: str) -> None:
    with pytest.raises(DatabaseError, match="make setup"):
        check_head(empty_database_url)


def test_an_upgrade_that_fails_leaves_the_revision_before_it(empty_database_url: str) -> None:
    execute(empty_database_url, "CREATE TABLE finalists (in_the_way int)")
    with pytest.raises(DatabaseError, match="finalists"):
        upgrade(empty_database_url)
    with pytest.raises(DatabaseError, match="revision 0001"):
        check_head(empty_database_url)
    execute(empty_database_url, "DROP TABLE finalists")
    upgrade(empty_database_url)
    assert drift(empty_database_url) == ()


def test_the_migrations_are_part_of_what_is_installed() -> None:
    found = sorted(Path("migrations/versions").glob("r*.py"))
    assert [path.name[1:5] for path in found] == [f"{n:04}" for n in range(1, len(found) + 1)]
    for folder in ("migrations", "migrations/versions"):
        assert (Path(folder) / "__init__.py").exists()
