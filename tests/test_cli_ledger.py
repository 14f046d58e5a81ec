"""The commands on a real ledger in Postgres say what they say on the one in memory."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rsi.cli.main import main
from rsi.domain.generation import Stage
from rsi.edges.embedded_postgres.server import EmbeddedPostgres
from rsi.edges.ledger.postgres import PostgresLedger
from rsi.edges.ledger.schema import upgrade
from rsi.report.story import tell
from tests.report.night import Night

pytestmark = pytest.mark.postgres

EVERY = (
    ["generations"],
    ["show", "1"],
    ["pairs", "--all"],
    ["lineage"],
    ["trials", "--outcome", "invalid"],
    ["verdict"],
    ["coverage", "1"],
    ["tasks", "list"],
)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state folder whose embedded ledger holds one whole generation."""
    folder = tmp_path_factory.mktemp("state")
    server = EmbeddedPostgres(folder / "postgres")
    server.start()
    try:
        upgrade(server.url)
        with closing(PostgresLedger(server.url)) as ledger:
            Night("\x00 how many\x1b[31m lines?", ledger=ledger).play(*Stage)
        yield folder
    finally:
        server.stop()


@pytest.fixture
def here(state: Path) -> Iterator[Path]:
    """The environment of a person whose state folder that is."""
    kept = dict(os.environ)
    os.environ.pop("RSI_DATABASE_URL", None)
    os.environ["RSI_STATE_DIR"] = str(state)
    try:
        yield state
    finally:
        os.environ.clear()
        os.environ.update(kept)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("arguments", EVERY, ids=lambda arguments: arguments[0])
def test_every_reading_command_answers_in_both_forms(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert shown.strip()
    assert "\x1b" not in shown
    assert "\x00" not in shown
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("here")
def test_show_prints_the_story_that_memory_would_tell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "1", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    wanted = tell(Night("\x00 how many\x1b[31m lines?").play(*Stage), 1)
    assert shown == wanted.model_dump(mode="json")


def test_a_report_and_a_task_are_written_to_files(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.is_dir()
    assert main(["report", "1", "--out", str(tmp_path / "r.html")]) == 0
    assert main(["tasks", "list", "--split", "exam", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert main(["tasks", "show", listed["tasks"][0]["task"][:16]]) == 0
    assert (tmp_path / "r.html").stat().st_size > 10_000


def test_a_rollback_is_seen_by_the_next_command(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.is_dir()
    assert main(["lineage", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["changes"][0]["pair"]
    assert main(["rollback", first[:12], "--reason", "it forgets"]) == 0
    assert main(["rollback", first[:12], "--reason", "again"]) == 2
    capsys.readouterr()
    assert main(["lineage", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["champion"] == first
