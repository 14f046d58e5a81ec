"""A generation whose process is killed by SIGKILL, again and again, on a real database."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rsi
from rsi.edges.ledger.postgres import PostgresLedger
from tests.fixtures.postgres import Databases

pytestmark = pytest.mark.postgres

FIRST_LIMIT_S = 1.2
"""The first run is killed after so long, while it has hardly begun; each later one lives longer."""
LONGER_S = 0.7
RUN = """
import sys
from pathlib import Path
from rsi.domain.generation import Stage, result_of
from rsi.edges.blob_files import FileBlobs
from rsi.edges.ledger.postgres import PostgresLedger
from rsi.stages.generation import run
from tests.fakes import night
ledger = PostgresLedger(sys.argv[1])
# A kill after the last stage leaves nothing to do: another run would open another generation.
if result_of(ledger.events(1), Stage.GATE) is None:
    run(night.parts(ledger, FileBlobs(Path(sys.argv[2]))), night.EVALUATION, night.document())
"""


def play(url: str, blobs: Path, limit_s: float) -> bool:
    """Runs a generation in a process of its own, killed at the limit; whether it finished."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, url, str(blobs)],
        cwd=Path(rsi.__path__[0]).parent,
        env=dict(os.environ),
        start_new_session=True,
    )
    try:
        return process.wait(limit_s) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False


def totals(url: str) -> list[tuple[str, str, int, str, int, int]]:
    ledger = PostgresLedger(url)
    try:
        return sorted(
            (
                one.pair,
                one.task,
                one.seed,
                one.outcome.kind,
                one.usage.input_tokens,
                one.usage.output_tokens,
            )
            for one in ledger.trials_of()
        )
    finally:
        ledger.close()


def test_a_killed_generation_ends_with_the_totals_of_an_unbroken_one(
    databases: Databases, migrated: str, tmp_path: Path
) -> None:
    with databases.one(migrated) as whole, databases.one(migrated) as broken:
        assert play(whole, tmp_path / "whole", 240)
        kills = 0
        while not play(broken, tmp_path / "broken", FIRST_LIMIT_S + kills * LONGER_S):
            kills += 1
            assert kills < 60
        assert kills > 0
        assert totals(broken) == totals(whole)
        ledgers = [PostgresLedger(url) for url in (whole, broken)]
        try:
            verdicts = [ledger.verdicts(1) for ledger in ledgers]
            promotions = [[one.pair for one in ledger.promotions()] for ledger in ledgers]
        finally:
            for ledger in ledgers:
                ledger.close()
        assert verdicts[0] == verdicts[1]
        assert promotions[0] == promotions[1]
        assert len(promotions[0]) == 2
