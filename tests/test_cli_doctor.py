"""The doctor finds each fault, says how to mend it, and is content with what isn't needed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rsi.cli.checks import (
    TRAINING,
    Check,
    check_clock,
    check_contracts,
    check_disk,
    check_sandbox,
    check_training,
    guarded,
)
from rsi.cli.doctor import diagnosis
from rsi.domain.evaluation import BudgetRule, UpdateRule
from rsi.domain.generation import Stage
from rsi.domain.trial import BoxFacts
from rsi.errors import ModelError
from rsi.settings import Settings, read_settings
from tests.report.cast import EVALUATION, OPENED
from tests.report.night import Night
from tests.samples import BOX

FINE = Check(name="disk", status="ok", found="plenty")
WORSE = Check(name="sandbox", status="warning", found="namespaces", mend="start Docker")
BROKEN = Check(name="model", status="fault", found="no file", mend="run `make setup`")


def settings(tmp_path: Path) -> Settings:
    return read_settings({"RSI_STATE_DIR": str(tmp_path / "not" / "made")}, Path.cwd())


@pytest.mark.parametrize(
    ("checks", "status"),
    [((FINE,), 0), ((FINE, WORSE), 0), ((FINE, WORSE, BROKEN), 3)],
)
def test_only_a_fault_makes_the_doctor_fail(checks: tuple[Check, ...], status: int) -> None:
    answer = diagnosis(checks)
    assert answer.exit_code == status
    assert answer.document["well"] is (status == 0)
    for check in checks:
        assert check.mend in str(answer.blocks)


def test_an_error_becomes_a_fault_with_its_words() -> None:
    def look() -> Check:
        raise ModelError("the file is gone")

    found = guarded("model", look, "run `make setup`")
    assert (found.status, found.found, found.mend) == (
        "fault",
        "the file is gone",
        "run `make setup`",
    )


def test_the_bundled_contracts_are_in_order(tmp_path: Path) -> None:
    assert check_contracts(settings(tmp_path)).status == "ok"


def test_missing_packages_matter_only_when_training_is_on() -> None:
    def no_torch(name: str) -> bool:
        return name != "torch"

    off = EVALUATION.model_copy(update={"update": UpdateRule(enabled=False)})
    assert set(TRAINING) > {"torch"}
    assert check_training(lambda _: True, EVALUATION).status == "ok"
    assert check_training(no_torch, EVALUATION).status == "fault"
    assert check_training(no_torch, off).status == "warning"
    assert "torch" in check_training(no_torch, off).found


@pytest.mark.parametrize(("level", "status"), [("isolated", "ok"), ("contained", "warning")])
def test_the_level_of_the_sandbox_is_said_out_loud(level: str, status: str) -> None:
    facts = BoxFacts.model_validate(
        {"engine": "x", "level": level, "image": "y", "missing": ("a memory limit",)}
    )
    found = check_sandbox(facts)
    assert found.status == status
    assert level in found.found
    assert "a memory limit" in found.found


def test_no_sandbox_at_all_is_a_fault() -> None:
    assert check_sandbox(BOX).status == "fault"


def test_too_little_room_is_a_fault(tmp_path: Path) -> None:
    def floor(megabytes: int) -> str:
        budget = BudgetRule(disk_floor_mb=megabytes)
        rule = EVALUATION.model_copy(update={"budget": budget})
        return check_disk(settings(tmp_path), rule).status

    assert floor(0) == "ok"
    assert floor(10**9) == "fault"


def test_a_clock_behind_the_ledger_is_a_fault() -> None:
    ledger = Night().play(*Stage)
    assert check_clock(ledger, OPENED).status == "fault"
    assert check_clock(ledger, OPENED + timedelta(days=1)).status == "ok"
    assert check_clock(Night().ledger, datetime.now(UTC)).status == "fault"
