"""The command as a person meets it: exit statuses, JSON, one message, and a quick start."""

import io
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsi.cli.answer import Answer, Table
from rsi.cli.main import main
from rsi.cli.printing import show

ROOT = Path(__file__).parent.parent
NO_DATABASE = "postgresql+psycopg://nobody:secret@127.0.0.1:1/none"
QUICK_S = 1.0
"""Processor time of a reading command. It takes less than half of it on an idle machine."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def rsi(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Runs the command in a process of its own."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("RSI_", "PYTHON"))}
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "rsi", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={**inherited, **environment},
        check=False,
    )


def imported(done: "subprocess.CompletedProcess[str]") -> set[str]:
    """The top packages that the process imported."""
    return {name.split(".")[0] for name in re.findall(r"\| +([\w.]+)$", done.stderr, re.M)}


def test_json_is_printed_without_prefect_torch_or_rich() -> None:
    done = rsi("contract", "validate", "contracts/shell.toml", "--json")
    assert json.loads(done.stdout)["valid"] is True
    assert not imported(done) & {"prefect", "torch", "rich", "alembic", "docker", "httpx"}


def test_a_dead_database_gives_one_message_and_status_3() -> None:
    done = rsi("generations", "--json", RSI_DATABASE_URL=NO_DATABASE)
    said = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert done.returncode == 3
    assert done.stdout == ""
    assert len(said) == 1
    assert said[0].startswith("rsi: could not read the ledger")
    assert "secret" not in said[0]
    assert "sqlalchemy" in imported(done)
    assert not imported(done) & {"prefect", "torch", "rich", "alembic", "docker", "httpx"}


def test_a_reading_command_starts_quickly() -> None:
    spent = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        rsi("lineage", RSI_DATABASE_URL=NO_DATABASE)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < QUICK_S


def test_a_wrong_contract_is_told_with_every_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('hcp = "1"\nname = "x"\nversion = "one"\n[agnet]\nturns = 0\n')
    assert main(["contract", "validate", str(bad), "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert told["valid"] is False
    assert len(told["faults"]) == 2
    assert main(["contract", "show", str(bad)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "rsi: " in shown.err
    assert "Traceback" not in shown.err


def test_the_bundled_contracts_are_valid_and_rendered(capsys: pytest.CaptureFixture[str]) -> None:
    contract, evaluation = (
        str(ROOT / "contracts/shell.toml"),
        str(ROOT / "contracts/evaluation.toml"),
    )
    assert main(["contract", "validate", contract]) == 0
    assert main(["contract", "check", evaluation, "--json"]) == 0
    capsys.readouterr()
    assert (
        main(["contract", "render", contract, "--instruction", "Count \x1b[31mlines", "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["messages"] == [
        {"role": "user", "text": "Count \x1b[31mlines"}
    ]


def test_no_command_prints_the_help_and_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "rollback" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["show"], ["trials", "--limit", "0"], ["nothing"]])
def test_bad_arguments_end_with_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


@given(st.text(st.characters(codec=None), max_size=60), st.booleans())
def test_no_text_drives_a_terminal(text: str, as_json: bool) -> None:
    hostile = f"{text}\x1b]0;x\x07[bold]\x9b2J\x7f"
    answer = Answer({"text": hostile}, (hostile, Table(("name", hostile), ((hostile, "x"),))))
    out = io.StringIO()
    show(answer, out, as_json=as_json)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]", out.getvalue())
    if as_json:
        assert json.loads(out.getvalue()) == {"text": hostile}


def test_a_terminal_gets_a_table_in_which_markup_is_text() -> None:
    out = Terminal()
    show(Answer({}, (Table(("name",), (("[red]x[/red]\x1b[2J",),)),)), out, as_json=False)
    assert "[red]x[/red]\ufffd[2J" in out.getvalue()
    assert "\x1b[2J" not in out.getvalue()


def test_an_empty_table_says_so() -> None:
    out = io.StringIO()
    show(Answer({}, (Table(("a",), (), "no trial matches"),)), out, as_json=False)
    assert out.getvalue() == "no trial matches\n"
