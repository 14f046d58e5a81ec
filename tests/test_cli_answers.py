"""What the commands answer, from a ledger with one whole generation."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rsi.cli.answer import Answer, Table
from rsi.cli.contracts import diff_contracts, read_contract, render_contract, show_contract
from rsi.cli.generations import list_generations, show_coverage, show_generation, write_report
from rsi.cli.pairs import list_pairs, roll_back, show_lineage
from rsi.cli.tasks import list_tasks, show_task
from rsi.cli.trials import list_trials, show_verdict
from rsi.cli.verifying import drawn, told_admissions
from rsi.domain.generation import Stage
from rsi.domain.lora import Model
from rsi.domain.pair import Pair
from rsi.domain.task import Split
from rsi.edges.contract_files.files import TomlContractFiles
from rsi.errors import DatabaseError, UsageError
from rsi.ports import Ledger
from rsi.report.story import tell
from rsi.steps.verify import Admission
from rsi.suites.shell.suite import ShellSuite
from tests.fakes.ledger import FakeLedger
from tests.report.cast import NEW, OLD
from tests.report.night import Night
from tests.samples import task

NOW = datetime(2030, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def night() -> Night:
    whole = Night()
    whole.play(*Stage)
    return whole


def rows(answer: Answer) -> tuple[tuple[str, ...], ...]:
    """The rows of the answer's last table."""
    return [block for block in answer.blocks if isinstance(block, Table)][-1].rows


def test_show_prints_exactly_the_story_of_the_report(night: Night) -> None:
    answer = show_generation(night.ledger, 1)
    assert answer.document == tell(night.ledger, 1).model_dump(mode="json")


def test_generations_lists_state_and_gain(night: Night) -> None:
    (row,) = rows(list_generations(night.ledger))
    assert row[:2] == ("1", "promoted")
    assert "n=" in row[4]


def test_an_empty_ledger_says_what_to_do() -> None:
    for answer in (list_generations(FakeLedger()), show_lineage(FakeLedger())):
        (table,) = answer.blocks
        assert isinstance(table, Table)
        assert "make cycle" in table.empty
    with pytest.raises(UsageError, match="make cycle"):
        show_verdict(FakeLedger(), None)


def test_the_report_is_written_whole_and_nothing_else_is_left(night: Night, tmp_path: Path) -> None:
    target = tmp_path / "new" / "report.html"
    answer = write_report(night.ledger, 1, target)
    assert target.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert answer.document["bytes"] == target.stat().st_size
    assert list(target.parent.iterdir()) == [target]


def test_coverage_tells_the_curve_and_that_it_is_no_score(night: Night) -> None:
    answer = show_coverage(night.ledger, 1)
    assert "never the score of a pair" in str(answer.blocks[0])
    assert answer.document["covered"] == tell(night.ledger, 1).model_dump()["expansion"]["covered"]


def test_coverage_before_the_search_has_ended_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="hasn't ended"):
        show_coverage(Night().ledger, 1)


def test_pairs_show_their_roles_the_champion_first(night: Night) -> None:
    shown = rows(list_pairs(night.ledger, every=False))
    assert [row[1] for row in shown] == ["champion", "former champion", "arm", "arm"]
    assert "L1" in shown[0][3]
    assert shown[1][3] == "none"


def test_every_pair_is_listed_when_asked() -> None:
    fresh = Night()
    assert [row[1] for row in rows(list_pairs(fresh.ledger, every=True))] == [
        "champion",
        "candidate",
    ]


def test_the_newest_verdict_that_of_a_generation_and_that_of_a_digest_agree(night: Night) -> None:
    newest = show_verdict(night.ledger, None).document
    assert show_verdict(night.ledger, "1").document == newest
    assert show_verdict(night.ledger, str(newest["verdict"])[:8]).document == newest
    trials = newest["trials"]
    assert isinstance(trials, list)
    assert len(trials) == newest["evidence"]


@pytest.mark.parametrize(
    ("which", "says"),
    [("7", "no generation 7"), ("abcdef01", "no verdict has"), ("champion", "is no digest")],
)
def test_an_unknown_verdict_is_refused(night: Night, which: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        show_verdict(night.ledger, which)


def test_trials_are_filtered_by_all_filters_at_once(night: Night) -> None:
    ledger = night.ledger
    for outcome in ("solved", "failed", "invalid"):
        answer = list_trials(ledger, generation=1, outcome=outcome, limit=1000)
        found = answer.document["trials"]
        assert isinstance(found, list)
        wanted = [one for one in ledger.trials_of(generation=1) if one.outcome.kind == outcome]
        assert len(found) == len(wanted) > 0
    shown = rows(list_trials(ledger, pair=night.old[:6], split="exam", family="rename", limit=2))
    assert {(row[1], row[4][:6]) for row in shown} == {(night.old[:12], "rename")}
    assert len(shown) == 2
    assert rows(list_trials(ledger, generation=2)) == ()


def test_an_invalid_trial_shows_its_reason_and_no_cause(night: Night) -> None:
    (row,) = rows(list_trials(night.ledger, outcome="invalid", limit=1))
    assert row[5] == "invalid: sandbox: the box died"


def test_a_rollback_is_recorded_as_a_promotion_with_its_reason() -> None:
    night = Night()
    night.play(*Stage)
    roll_back(night.ledger, night.old[:10], " it forgets ", NOW)
    newest = night.ledger.promotions()[-1]
    assert (newest.pair, newest.replaced, newest.verdict) == (night.old, night.new, None)
    assert newest.reason == "rollback: it forgets"
    changes = show_lineage(night.ledger).document["changes"]
    assert isinstance(changes, list)
    assert [change["kind"] for change in changes if isinstance(change, dict)] == [
        "first",
        "promotion",
        "rollback",
    ]


def test_only_a_former_champion_can_be_rolled_back_to(night: Night) -> None:
    before = night.ledger.promotions()
    for pair, reason, says in (
        (night.new, "x", "is the champion already"),
        (night.finalist, "x", "was never the champion"),
        (night.old, " ", "needs a reason"),
        ("ffffff", "x", "no pair has"),
    ):
        with pytest.raises(UsageError, match=says):
            roll_back(night.ledger, pair, reason, NOW)
    assert night.ledger.promotions() == before


def test_a_rollback_waits_for_no_generation_that_is_being_worked_on(night: Night) -> None:
    with night.ledger.lock_generation(), pytest.raises(DatabaseError):
        roll_back(night.ledger, night.old, "x", NOW)


def test_a_recorded_contract_is_read_from_its_digest() -> None:
    files, ledger, base = TomlContractFiles(), FakeLedger(), Night().ledger.bases()[0]
    document = files.write(OLD)
    model = Model(base=base.digest)
    ledger.add_contract(OLD, document.toml)
    ledger.add_base(base)
    ledger.add_pair(Pair(model=model.digest, contract=OLD.digest), model)
    found = read_contract(files, ledger, OLD.digest[:9].upper())
    assert show_contract(found).document["digest"] == OLD.digest
    with pytest.raises(UsageError, match="no contract has"):
        read_contract(files, ledger, "ffffff")


def test_a_diff_names_keys_and_not_lines() -> None:
    answer = diff_contracts(OLD, NEW)
    assert [row[0] for row in rows(answer)] == ["version", "prompt.system"]
    assert rows(diff_contracts(OLD, OLD)) == ()


def test_a_contract_is_rendered_as_the_model_sees_it() -> None:
    one = task()
    answer = render_contract(NEW, one, "")
    assert answer.document["messages"] == [
        {"role": "system", "text": "Answer with one command."},
        {"role": "user", "text": one.instruction},
    ]
    assert answer.document["task"] == one.digest


def test_tasks_are_listed_with_their_split_and_shown_whole(night: Night) -> None:
    ledger: Ledger = night.ledger
    listed = list_tasks(ledger, generation=1, split="exam").document["tasks"]
    assert isinstance(listed, list)
    assert len(listed) == 56
    everything = list_tasks(ledger).document["tasks"]
    assert isinstance(everything, list)
    assert len(everything) == 112
    digest = ledger.used_tasks(1, Split.EXAM)[0]
    shown = show_task(ledger, digest[:12]).document
    assert shown["split"] == "exam"
    assert json.dumps(shown["tests"]).count("answer.txt") == 1


def test_every_family_and_level_of_a_suite_is_drawn_once() -> None:
    suite = ShellSuite()
    tasks = drawn(suite, 1, 3, [Split.SEARCH])
    wanted = {(family.name, level) for family in suite.families() for level in family.levels}
    assert {(one.family, one.level) for one in tasks} == wanted
    assert len({one.digest for one in tasks}) == len(tasks)


def test_an_unfit_task_makes_the_verification_fail() -> None:
    fine, bad = Admission(task("a"), ()), Admission(task("b"), ("the no-op passes",))
    assert told_admissions([fine]).exit_code == 0
    answer = told_admissions([fine, bad])
    assert answer.exit_code == 1
    assert rows(answer)[0][2] == "the no-op passes"
    assert answer.document["families"] == {"lines": {"verified": 2, "unfit": 1}}
    assert told_admissions([]).exit_code == 1
