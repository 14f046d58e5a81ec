"""What every ledger promises: the one in Postgres, and the fake that other tests stand on."""

from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from rsi.domain.contract import Slot
from rsi.domain.generation import Stage, StageState
from rsi.domain.lora import Model
from rsi.domain.pair import Pair
from rsi.domain.task import Family, Split, Task
from rsi.domain.trial import Invalid, TrialKey
from rsi.domain.verdict import Decision
from rsi.errors import DatabaseError, DisciplineError, LedgerConflict
from rsi.ports import Ledger
from tests.edges import ledger_scene as scene
from tests.edges.ledger_scene import BETTER, EXAM, HOLDOUT, NEW, OLD, PLAIN, SEARCH, TASKS
from tests.fakes.ledger import FakeLedger
from tests.samples import contract, digest, task

ODD = "NUL \x00, half \ud800, private \ue000 and \ue0000000, lines \x85\u2028\r\n, end \U0001f600"


@pytest.fixture(params=["fake", pytest.param("postgres", marks=pytest.mark.postgres)])
def bare(request: pytest.FixtureRequest) -> Ledger:
    """An empty ledger."""
    if request.param == "fake":
        return FakeLedger()
    return cast(Ledger, request.getfixturevalue("ledger"))


@pytest.fixture
def ledger_at_work(bare: Ledger) -> Ledger:
    """A ledger in which generation 1 is open."""
    return scene.opened(bare)


def test_an_empty_ledger_has_nothing(bare: Ledger) -> None:
    for found in (bare.generations(), bare.promotions(), bare.verdicts(), bare.pairs()):
        assert found == ()
    for known in (bare.bases(), bare.families(), bare.trials_of(), bare.tasks([]), bare.loras([])):
        assert known == ()
    assert bare.coverage(1) is None
    assert bare.trials([]) == {}
    assert bare.split_of([]) == {}


def test_every_noun_comes_back_as_it_was(ledger_at_work: Ledger) -> None:
    ledger = ledger_at_work
    assert ledger.contract(BETTER.digest) == BETTER
    assert ledger.contract_toml(PLAIN.digest) == "# by hand\nname = 'plain'\n"
    assert ledger.evaluation(scene.EVALUATION.digest) == scene.EVALUATION
    assert ledger.bases() == (scene.BASE,)
    assert ledger.pairs() == (OLD, NEW)
    assert ledger.pair(NEW.digest) == NEW
    assert ledger.model(scene.MODEL.digest) == scene.MODEL
    assert ledger.generations() == (scene.GENERATION,)
    assert ledger.promotions() == (scene.FIRST,)


def test_adding_a_second_time_changes_nothing(ledger_at_work: Ledger) -> None:
    scene.opened(ledger_at_work)
    assert ledger_at_work.pairs() == (OLD, NEW)
    assert ledger_at_work.promotions() == (scene.FIRST,)
    assert ledger_at_work.used_tasks(1, Split.SEARCH) == tuple(each.digest for each in SEARCH)


def test_the_first_text_of_a_contract_stays(ledger_at_work: Ledger) -> None:
    ledger_at_work.add_contract(PLAIN, "another comment")
    assert ledger_at_work.contract_toml(PLAIN.digest).startswith("# by hand")


def test_tasks_come_in_the_order_asked_for(ledger_at_work: Ledger) -> None:
    asked = [TASKS[4], TASKS[0], TASKS[4]]
    assert ledger_at_work.tasks([each.digest for each in asked]) == tuple(asked)


@pytest.mark.parametrize(
    "read", ["contract", "contract_toml", "evaluation", "pair", "model", "dataset"]
)
def test_a_noun_that_is_not_there_is_a_key_error(bare: Ledger, read: str) -> None:
    with pytest.raises(KeyError):
        getattr(bare, read)(digest("nothing"))


@pytest.mark.parametrize("read", ["tasks", "loras"])
def test_one_missing_row_among_many_is_a_key_error(ledger_at_work: Ledger, read: str) -> None:
    with pytest.raises(KeyError):
        getattr(ledger_at_work, read)([TASKS[0].digest, digest("nothing")])


def test_families_are_sorted_and_a_changed_one_is_a_conflict(bare: Ledger) -> None:
    one = Family(suite="shell", name="sort", levels=(1, 2), about="Sort lines.")
    two = Family(suite="shell", name="count", levels=(1,))
    bare.add_families([one, two])
    assert bare.families() == (two, one)
    three = Family(suite="shell", name="a", levels=(1,))
    with pytest.raises(LedgerConflict):
        bare.add_families([three, one.model_copy(update={"levels": (1, 2, 3)})])
    assert bare.families() == (two, one), "what was refused left something behind"


def test_a_pair_needs_its_contract_its_base_and_its_loras(bare: Ledger) -> None:
    with pytest.raises(DatabaseError):
        bare.add_pair(OLD, scene.MODEL)
    bare.add_base(scene.BASE)
    with pytest.raises(DatabaseError):
        bare.add_pair(OLD, scene.MODEL)
    bare.add_contract(PLAIN, "")
    adapted = Model(base=scene.BASE.digest, loras={Slot.AGENT: digest("nothing")})
    with pytest.raises(DatabaseError):
        bare.add_pair(Pair(model=adapted.digest, contract=PLAIN.digest), adapted)
    assert bare.pairs() == ()


def test_a_generation_of_the_same_number_with_another_seed_is_a_conflict(
    ledger_at_work: Ledger,
) -> None:
    with pytest.raises(LedgerConflict):
        ledger_at_work.open_generation(scene.GENERATION.model_copy(update={"seed": 2}))


def test_events_come_in_order_and_one_place_holds_one_event(ledger_at_work: Ledger) -> None:
    first = scene.event(0, Stage.DISCOVERY, StageState.STARTED)
    second = scene.event(1, Stage.DISCOVERY, StageState.FINISHED, ODD)
    for each in (second, first, second):
        ledger_at_work.add_event(each)
    assert ledger_at_work.events(1) == (first, second)
    assert ledger_at_work.events(2) == ()
    with pytest.raises(LedgerConflict):
        ledger_at_work.add_event(scene.event(1, Stage.DISCOVERY, StageState.FAILED))


def test_an_event_of_an_unknown_generation_is_refused(bare: Ledger) -> None:
    with pytest.raises(DatabaseError):
        bare.add_event(scene.event(0, Stage.DISCOVERY, StageState.STARTED))


def test_one_writer_at_a_time_and_the_lock_comes_back(ledger_at_work: Ledger) -> None:
    with ledger_at_work.lock_generation():
        with pytest.raises(DatabaseError), ledger_at_work.lock_generation():
            pytest.fail("two writers")
        with pytest.raises(DatabaseError), ledger_at_work.lock_generation():
            pytest.fail("two writers")
    for _ in range(3):
        with ledger_at_work.lock_generation():
            assert ledger_at_work.generations()


def test_the_lock_comes_back_after_an_error(ledger_at_work: Ledger) -> None:
    with pytest.raises(ZeroDivisionError), ledger_at_work.lock_generation():
        raise ZeroDivisionError
    with ledger_at_work.lock_generation():
        ledger_at_work.add_promotion(scene.FIRST)


@pytest.mark.parametrize("split", [Split.SEARCH, Split.HOLDOUT, Split.EXAM])
@pytest.mark.parametrize("tasks", [SEARCH, HOLDOUT, EXAM])
def test_a_task_keeps_its_one_split_for_ever(
    ledger_at_work: Ledger, split: Split, tasks: tuple[Task, ...]
) -> None:
    ledger, before = ledger_at_work, ledger_at_work.split_of([each.digest for each in TASKS])
    fresh = task("fresh")
    ledger.add_tasks([fresh])
    wanted = [fresh.digest, *(each.digest for each in tasks)]
    if before[tasks[0].digest] is split:
        ledger.use_tasks(1, split, wanted)
        assert ledger.used_tasks(1, split)[-1] == fresh.digest
        return
    used = ledger.used_tasks(1, split)
    with pytest.raises(DisciplineError):
        ledger.use_tasks(1, split, wanted)
    assert ledger.split_of([each.digest for each in TASKS]) == before
    assert ledger.split_of([fresh.digest]) == {}, "what was refused left something behind"
    assert ledger.used_tasks(1, split) == used


def test_regression_may_use_any_task_and_gives_it_no_split(ledger_at_work: Ledger) -> None:
    fresh = task("fresh")
    ledger_at_work.add_tasks([fresh])
    wanted = [EXAM[0].digest, fresh.digest, EXAM[0].digest]
    ledger_at_work.use_tasks(1, Split.REGRESSION, wanted)
    assert ledger_at_work.used_tasks(1, Split.REGRESSION) == (EXAM[0].digest, fresh.digest)
    assert ledger_at_work.split_of(wanted) == {EXAM[0].digest: Split.EXAM}


def test_an_unknown_task_or_generation_cannot_be_used(ledger_at_work: Ledger) -> None:
    with pytest.raises(DatabaseError):
        ledger_at_work.use_tasks(1, Split.SEARCH, [digest("nothing")])
    with pytest.raises(DatabaseError):
        ledger_at_work.use_tasks(2, Split.SEARCH, [SEARCH[0].digest])


def test_the_first_trial_of_a_key_stays(ledger_at_work: Ledger) -> None:
    first = scene.run(OLD, SEARCH[0].digest, blob="trace")
    assert ledger_at_work.add_trial(first)
    assert not ledger_at_work.add_trial(first)
    assert not ledger_at_work.add_trial(scene.run(OLD, SEARCH[0].digest, solved=False))
    assert ledger_at_work.trials([first.key]) == {first.key: first}
    assert ledger_at_work.trials_of() == (first,)


def test_trials_added_at_once_are_one_row(ledger_at_work: Ledger) -> None:
    one = scene.run(OLD, SEARCH[0].digest)
    with ThreadPoolExecutor(4) as pool:
        added = list(pool.map(ledger_at_work.add_trial, [one] * 12))
    assert added.count(True) == 1
    assert ledger_at_work.trials_of() == (one,)


def test_a_trial_needs_its_pair_its_task_and_its_generation(ledger_at_work: Ledger) -> None:
    good = scene.run(OLD, SEARCH[0].digest)
    for change in (
        {"pair": digest("nothing")},
        {"task": digest("nothing")},
        {"generation": 7},
    ):
        with pytest.raises(DatabaseError):
            ledger_at_work.add_trial(good.model_copy(update=change))
    assert ledger_at_work.trials_of() == ()


def test_any_text_of_a_model_or_a_program_survives(ledger_at_work: Ledger) -> None:
    broken = scene.run(OLD, SEARCH[0].digest).model_copy(
        update={
            "outcome": Invalid(where="sandbox", reason=ODD),
            "rewards": {"\x00\ue000": 0.1 + 0.2},
        }
    )
    ledger_at_work.add_trial(broken)
    assert ledger_at_work.trials([broken.key]) == {broken.key: broken}
    assert ledger_at_work.trials_of(solved=False) == (broken,)


def test_texts_of_a_contract_survive(bare: Ledger) -> None:
    odd = contract(name="odd", prompt={"system": ODD.replace("\ud800", "")})
    bare.add_contract(odd, ODD)
    assert bare.contract(odd.digest) == odd
    assert bare.contract(odd.digest).digest == odd.digest
    assert bare.contract_toml(odd.digest) == ODD


def test_trials_are_found_by_every_filter(ledger_at_work: Ledger) -> None:
    ledger = ledger_at_work
    made = [
        scene.run(OLD, SEARCH[0].digest),
        scene.run(OLD, SEARCH[0].digest, 2**62, solved=False),
        scene.run(NEW, SEARCH[0].digest),
        scene.run(NEW, EXAM[0].digest),
        scene.run(NEW, HOLDOUT[0].digest, solved=False),
    ]
    for each in made:
        ledger.add_trial(each)
    assert ledger.trials_of() == tuple(made)
    assert ledger.trials_of(limit=2) == tuple(made[-2:])
    assert ledger.trials_of(limit=0) == ()
    assert ledger.trials_of(pair=OLD.digest) == tuple(made[:2])
    assert ledger.trials_of(task=SEARCH[0].digest, solved=True) == (made[0], made[2])
    assert ledger.trials_of(solved=False, limit=1) == (made[4],)
    assert ledger.trials_of(split=Split.EXAM) == (made[3],)
    assert ledger.trials_of(generation=1, split=Split.SEARCH, pair=NEW.digest) == (made[2],)
    assert ledger.trials_of(generation=2) == ()
    assert ledger.trials_of(split=Split.REGRESSION) == ()
    ledger.use_tasks(1, Split.REGRESSION, [EXAM[0].digest])
    assert ledger.trials_of(split=Split.REGRESSION) == (made[3],)


def test_only_the_recorded_ones_of_many_keys_are_found(ledger_at_work: Ledger) -> None:
    made = scene.run(OLD, SEARCH[0].digest, 700)
    ledger_at_work.add_trial(made)
    keys = [TrialKey(OLD.digest, SEARCH[0].digest, seed) for seed in range(1200)]
    assert ledger_at_work.trials(keys) == {made.key: made}


def test_candidates_come_in_order_and_an_order_is_given_once(ledger_at_work: Ledger) -> None:
    first = scene.candidate(0, PLAIN.digest)
    second = scene.candidate(1, BETTER.digest, PLAIN.digest)
    ledger_at_work.add_candidates(1, [second])
    ledger_at_work.add_candidates(1, [first, second])
    assert ledger_at_work.candidates(1) == (first, second)
    third = contract(name="third")
    ledger_at_work.add_contract(third, "")
    with pytest.raises(LedgerConflict):
        ledger_at_work.add_candidates(1, [scene.candidate(1, third.digest)])
    with pytest.raises(LedgerConflict):
        ledger_at_work.add_candidates(1, [scene.candidate(2, BETTER.digest)])
    with pytest.raises(DatabaseError):
        ledger_at_work.add_candidates(1, [scene.candidate(3, digest("nothing"))])
    assert ledger_at_work.candidates(1) == (first, second)


def test_a_generation_has_one_coverage(ledger_at_work: Ledger) -> None:
    made = scene.coverage()
    ledger_at_work.add_coverage(1, made)
    ledger_at_work.add_coverage(1, made)
    assert ledger_at_work.coverage(1) == made
    with pytest.raises(LedgerConflict):
        ledger_at_work.add_coverage(1, made.model_copy(update={"covered": 2}))


def test_a_dataset_keeps_its_order_and_its_digest(ledger_at_work: Ledger) -> None:
    trials = [scene.run(OLD, SEARCH[1].digest), scene.run(NEW, SEARCH[0].digest)]
    for each in trials:
        ledger_at_work.add_trial(each)
    made = scene.dataset(*trials)
    for _ in range(2):
        ledger_at_work.add_dataset(1, made)
    assert ledger_at_work.dataset(made.digest) == made
    assert ledger_at_work.dataset(made.digest).digest == made.digest
    assert ledger_at_work.datasets(1) == (made.digest,)
    assert ledger_at_work.datasets(2) == ()


@pytest.mark.parametrize("tasks", [EXAM, HOLDOUT])
def test_an_exam_or_holdout_task_never_reaches_a_dataset(
    ledger_at_work: Ledger, tasks: tuple[Task, ...]
) -> None:
    trials = [scene.run(OLD, SEARCH[0].digest), scene.run(OLD, tasks[0].digest)]
    for each in trials:
        ledger_at_work.add_trial(each)
    made = scene.dataset(*trials)
    with pytest.raises(DisciplineError):
        ledger_at_work.add_dataset(1, made)
    assert ledger_at_work.datasets(1) == ()
    with pytest.raises(KeyError):
        ledger_at_work.dataset(made.digest)


def test_an_example_needs_the_trial_that_it_came_from(ledger_at_work: Ledger) -> None:
    with pytest.raises(DatabaseError):
        ledger_at_work.add_dataset(1, scene.dataset(scene.run(OLD, SEARCH[0].digest)))


def test_loras_and_trainings_keep_their_lineage(ledger_at_work: Ledger) -> None:
    ledger, trained_on = ledger_at_work, scene.run(OLD, SEARCH[0].digest)
    ledger.add_trial(trained_on)
    made = scene.dataset(trained_on)
    ledger.add_dataset(1, made)
    first = scene.lora(made)
    with pytest.raises(DatabaseError):
        ledger.add_training_run(scene.training_run(made, first))
    ledger.add_lora(first)
    child = scene.lora(made, "child", first.digest)
    ledger.add_lora(child)
    assert ledger.loras([child.digest, first.digest]) == (child, first)
    with pytest.raises(DatabaseError):
        ledger.add_lora(scene.lora(made, "orphan", digest("nothing")))
    ledger.add_training_run(scene.training_run(made, first))
    ledger.add_training_run(scene.training_run(made, child))
    assert ledger.training_runs(1) == (
        scene.training_run(made, first),
        scene.training_run(made, child),
    )
    model = Model(base=scene.BASE.digest, loras={Slot.AGENT: child.digest})
    ledger.add_pair(Pair(model=model.digest, contract=PLAIN.digest), model)
    assert ledger.model(model.digest) == model


def test_a_verdict_and_its_promotion_are_one(ledger_at_work: Ledger) -> None:
    seen = scene.run(OLD, EXAM[0].digest)
    ledger_at_work.add_trial(seen)
    made = scene.verdict(seen.key)
    for _ in range(2):
        ledger_at_work.add_verdict(made, scene.promotion(made))
    assert ledger_at_work.verdicts(1) == ledger_at_work.verdicts() == (made,)
    assert ledger_at_work.verdicts()[0].digest == made.digest
    assert ledger_at_work.verdicts(2) == ()
    assert ledger_at_work.promotions() == (scene.FIRST, scene.promotion(made))


def test_a_verdict_whose_evidence_is_missing_leaves_nothing(ledger_at_work: Ledger) -> None:
    made = scene.verdict(TrialKey(OLD.digest, EXAM[0].digest, 5))
    with pytest.raises(DatabaseError):
        ledger_at_work.add_verdict(made, scene.promotion(made))
    assert ledger_at_work.verdicts() == ()
    assert ledger_at_work.promotions() == (scene.FIRST,)


def test_a_promotion_at_a_taken_place_leaves_no_verdict(ledger_at_work: Ledger) -> None:
    made = scene.verdict()
    with pytest.raises(LedgerConflict):
        ledger_at_work.add_verdict(made, scene.promotion(made, ordinal=0))
    assert ledger_at_work.verdicts() == ()
    with pytest.raises(LedgerConflict):
        ledger_at_work.add_promotion(scene.FIRST.model_copy(update={"reason": "because"}))
    assert ledger_at_work.promotions() == (scene.FIRST,)


def test_a_promotion_needs_its_pair_and_its_verdict(ledger_at_work: Ledger) -> None:
    held = scene.verdict(decision=Decision.HOLD)
    with pytest.raises(DatabaseError):
        ledger_at_work.add_promotion(scene.promotion(held))
    lost = scene.FIRST.model_copy(update={"ordinal": 1, "pair": digest("nothing")})
    with pytest.raises(DatabaseError):
        ledger_at_work.add_promotion(lost)
