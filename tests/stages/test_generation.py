"""A generation end to end on fakes: it gets better, resumes after any kill, and is fair."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from rsi.domain.generation import GenerationState, Stage, StageState, result_of, state_of
from rsi.domain.lora import Base, Model
from rsi.domain.task import Split
from rsi.domain.trial import Invalid, Trial
from rsi.domain.verdict import Decision
from rsi.errors import DatabaseError, ModelError, RsiError, SandboxError, UsageError
from rsi.ports import ChatRequest, Ledger
from rsi.stages.generation import run
from tests.fakes import night
from tests.fakes.blobs import FakeBlobs
from tests.fakes.ledger import FakeLedger
from tests.fakes.model import FAKE_BASE, FakeEngine
from tests.fakes.sandbox import FakeSandbox


class Killed(BaseException):
    """What a SIGKILL does: nothing catches it."""


class MortalLedger(FakeLedger):
    """A ledger whose process is killed right after its n-th new trial."""

    def __init__(self) -> None:
        super().__init__()
        self.dies_after: int | None = None
        self.recorded = 0

    def add_trial(self, trial: Trial) -> bool:
        is_new = super().add_trial(trial)
        self.recorded += is_new
        if self.recorded == self.dies_after:
            raise Killed
        return is_new


def generation(ledger: Ledger, blobs: FakeBlobs) -> None:
    run(night.parts(ledger, blobs), night.EVALUATION, night.document())


def totals(ledger: Ledger) -> list[tuple[str, str, int, str, int]]:
    return sorted(
        (trial.pair, trial.task, trial.seed, trial.outcome.kind, trial.usage.input_tokens)
        for trial in ledger.trials_of()
    )


@pytest.fixture
def blobs(tmp_path: Path) -> FakeBlobs:
    return FakeBlobs(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FakeLedger:
    ledger = FakeLedger()
    generation(ledger, FakeBlobs(tmp_path_factory.mktemp("blobs")))
    return ledger


def test_a_pair_that_can_learn_is_promoted(finished: FakeLedger) -> None:
    (verdict,) = finished.verdicts(1)
    assert verdict.decision is Decision.PROMOTE
    assert verdict.gain.low > 0.2
    assert {arm.name: arm.solved for arm in verdict.arms}["old/old"] == 0
    assert [promotion.pair for promotion in finished.promotions()][-1] == verdict.successor
    assert state_of(finished.events(1), verdict.decision) is GenerationState.PROMOTED


def test_every_stage_leaves_its_result(finished: FakeLedger) -> None:
    events = finished.events(1)
    found = {stage: result_of(events, stage) for stage in Stage}
    assert all(found.values())
    assert found[Stage.DISCOVERY]["tasks"] == 12  # type: ignore[index]
    assert found[Stage.DISCOVERY]["hardened"]  # type: ignore[index]
    assert found[Stage.UPDATE]["outcome"] == "trained"  # type: ignore[index]
    coverage = finished.coverage(1)
    assert coverage is not None
    assert coverage.covered > 0.6 * coverage.tasks
    assert sum(finalist.is_chosen for finalist in coverage.finalists) == 1


def test_no_task_is_in_two_splits_and_no_example_outside_search(finished: FakeLedger) -> None:
    splits = [
        set(finished.used_tasks(1, split)) for split in (Split.SEARCH, Split.HOLDOUT, Split.EXAM)
    ]
    assert sum(map(len, splits)) == len(set.union(*splits))
    (digest,) = finished.datasets(1)
    tasks = {example.trial_task for example in finished.dataset(digest).examples}
    assert tasks <= splits[0]


def test_the_exam_runs_four_arms_on_the_same_tasks_and_seeds(finished: FakeLedger) -> None:
    (verdict,) = finished.verdicts(1)
    exam = set(finished.used_tasks(1, Split.EXAM))
    cells = [
        {
            (key.task, key.seed)
            for key in verdict.evidence
            if key.pair == arm.pair and key.task in exam
        }
        for arm in verdict.arms
    ]
    assert all(cell == cells[0] for cell in cells)
    assert len(cells[0]) == len(exam)


def test_the_second_generation_starts_from_the_promoted_pair(blobs: FakeBlobs) -> None:
    ledger = FakeLedger()
    generation(ledger, blobs)
    generation(ledger, blobs)
    first, second = ledger.generations()
    assert second.champion == ledger.verdicts(1)[0].successor
    assert second.champion != first.champion
    assert ledger.used_tasks(2, Split.REGRESSION)
    mastered = {task.level for task in ledger.tasks(ledger.used_tasks(2, Split.EXAM))}
    assert 2 in mastered


@pytest.mark.parametrize("dies_after", [1, 11, 14, 29, 40, 61, 90, 120, 170, 200, 240])
def test_a_killed_generation_ends_with_the_totals_of_an_unbroken_one(
    dies_after: int, finished: FakeLedger, blobs: FakeBlobs
) -> None:
    ledger = MortalLedger()
    ledger.dies_after = dies_after
    with pytest.raises(Killed):
        generation(ledger, blobs)
    ledger.dies_after = None
    generation(ledger, blobs)
    assert totals(ledger) == totals(finished)
    assert ledger.verdicts(1) == finished.verdicts(1)
    assert len(ledger.generations()) == 1


def test_a_recorded_trial_is_not_run_again(blobs: FakeBlobs) -> None:
    """Killed right after a trial was recorded: the model is asked as often as in one go."""
    asked: list[int] = []
    for dies_after in (None, 77):
        calls: list[ChatRequest] = []
        ledger = MortalLedger()
        ledger.dies_after = dies_after

        def counted(model: Model, request: ChatRequest, calls: list[ChatRequest] = calls) -> str:
            calls.append(request)
            return night.copying(model, request)

        parts = night.parts(ledger, blobs, answer=counted)
        if dies_after:
            with pytest.raises(Killed):
                run(parts, night.EVALUATION, night.document())
            ledger.dies_after = None
        run(parts, night.EVALUATION, night.document())
        asked.append(len(calls))
    assert asked[0] == asked[1]


def test_a_generation_survives_a_kill_at_each_tenth_trial(
    finished: FakeLedger, blobs: FakeBlobs
) -> None:
    ledger = MortalLedger()
    kills = 0
    while not ledger.verdicts(1):
        ledger.dies_after = ledger.recorded + 10
        try:
            generation(ledger, blobs)
        except Killed:
            kills += 1
    assert kills > 15
    assert totals(ledger) == totals(finished)


def test_a_dead_engine_ends_the_stage_and_the_next_run_goes_on(
    finished: FakeLedger, blobs: FakeBlobs
) -> None:
    ledger, sandbox = FakeLedger(), FakeSandbox()
    sandbox.is_down = True
    broken = night.parts(ledger, blobs, sandbox=sandbox)
    with pytest.raises(SandboxError, match="start it"):
        run(broken, night.EVALUATION, night.document())
    assert ledger.events(1)[-1].state is StageState.FAILED
    assert ledger.trials_of() == ()
    generation(ledger, blobs)
    assert totals(ledger) == totals(finished)


def test_a_dead_model_server_records_nothing_for_the_trials_it_broke(blobs: FakeBlobs) -> None:
    ledger = FakeLedger()
    answered = 0

    def dying(model: object, request: ChatRequest) -> str:
        nonlocal answered
        answered += 1
        if answered > 20:
            raise ModelError("the model server is gone; start it")
        return night.copying(model, request)  # type: ignore[arg-type]

    with pytest.raises(ModelError):
        run(night.parts(ledger, blobs, answer=dying), night.EVALUATION, night.document())
    assert 0 < len(ledger.trials_of()) <= 20
    assert not any(trial.is_invalid for trial in ledger.trials_of())


def test_a_box_that_dies_twice_makes_its_trial_invalid_and_nothing_else(blobs: FakeBlobs) -> None:
    ledger = FakeLedger()
    sandbox = FakeSandbox(broken_runs=(3, 4))
    run(night.parts(ledger, blobs, sandbox=sandbox), night.EVALUATION, night.document())
    invalid = [trial for trial in ledger.trials_of() if trial.is_invalid]
    assert len(invalid) == 1
    assert isinstance(invalid[0].outcome, Invalid)
    assert invalid[0].outcome.reason == "the box died"


def test_a_box_that_dies_once_costs_nothing(finished: FakeLedger, blobs: FakeBlobs) -> None:
    ledger = FakeLedger()
    sandbox = FakeSandbox(broken_runs=(3,))
    run(night.parts(ledger, blobs, sandbox=sandbox), night.EVALUATION, night.document())
    assert totals(ledger) == totals(finished)


def test_an_unknown_fault_makes_the_trial_invalid(blobs: FakeBlobs) -> None:
    ledger = FakeLedger()
    faults = iter([True] * 2)

    def odd(model: object, request: ChatRequest) -> str:
        if next(faults, False):
            raise ZeroDivisionError("a bug nobody foresaw")
        return night.copying(model, request)  # type: ignore[arg-type]

    run(night.parts(ledger, blobs, answer=odd), night.EVALUATION, night.document())
    (invalid,) = [trial for trial in ledger.trials_of() if trial.is_invalid]
    assert isinstance(invalid.outcome, Invalid)
    assert "ZeroDivisionError" in invalid.outcome.reason


def test_a_model_that_cannot_learn_is_not_promoted(blobs: FakeBlobs) -> None:
    ledger = FakeLedger()
    mute: Callable[[object, ChatRequest], str] = lambda model, request: "I don't know."  # noqa: E731, ARG005
    run(night.parts(ledger, blobs, answer=mute), night.EVALUATION, night.document())
    (verdict,) = ledger.verdicts(1)
    assert verdict.decision is Decision.REJECT
    update = result_of(ledger.events(1), Stage.UPDATE)
    assert update is not None
    assert update["outcome"] == "skipped"
    assert "examples" in str(update["reason"])


def test_two_processes_do_not_work_at_once(blobs: FakeBlobs) -> None:
    ledger = FakeLedger()
    with ledger.lock_generation(), pytest.raises(DatabaseError, match="another process"):
        generation(ledger, blobs)


def test_a_stage_alone_needs_the_one_before(blobs: FakeBlobs) -> None:
    from rsi.stages.gate import decide
    from rsi.stages.generation import begin

    parts = night.parts(FakeLedger(), blobs)
    opened = begin(parts, night.EVALUATION, night.document())
    with pytest.raises(RsiError, match="make update GEN=1"):
        decide(parts, opened)


def test_a_spent_budget_ends_the_search_and_leaves_a_verdict(blobs: FakeBlobs) -> None:
    ledger = FakeLedger()
    frugal = night.EVALUATION.model_copy(
        update={"budget": night.EVALUATION.budget.model_copy(update={"tokens": 700})}
    )
    run(night.parts(ledger, blobs), frugal, night.document())
    coverage = ledger.coverage(1)
    assert coverage is not None
    assert coverage.stopped == "budget spent"
    assert coverage.attempts < night.EVALUATION.expansion.attempts
    assert len(ledger.verdicts(1)) == 1


def test_a_money_budget_without_prices_is_refused_before_anything_is_spent(
    blobs: FakeBlobs,
) -> None:
    ledger = FakeLedger()
    vague = night.EVALUATION.model_copy(
        update={"budget": night.EVALUATION.budget.model_copy(update={"usd": 1.0})}
    )
    with pytest.raises(UsageError, match="no prices"):
        run(night.parts(ledger, blobs), vague, night.document())
    assert ledger.generations() == ()


def test_a_model_behind_an_address_is_searched_but_not_trained(blobs: FakeBlobs) -> None:
    ledger = FakeLedger()
    far = Base(name="far", digest=FAKE_BASE.digest, format="remote")
    parts = night.parts(ledger, blobs)
    there = dataclasses.replace(parts, engine=FakeEngine(night.copying, (far,)))
    run(there, night.EVALUATION, night.document())
    update = result_of(ledger.events(1), Stage.UPDATE)
    assert update is not None
    assert "behind an address" in str(update["reason"])
    assert ledger.verdicts(1)[0].decision is Decision.PROMOTE
