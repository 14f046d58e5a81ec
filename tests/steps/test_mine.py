"""Mining groups failures, and hardening aims at the surest weaknesses without crowding."""

from rsi.domain.task import Task
from rsi.domain.trial import Cause
from rsi.steps.harden import harden
from rsi.steps.mine import mine
from tests.samples import task, trial

TASKS = [task(f"t{n}", family="abc"[n % 3], level=1) for n in range(12)]
KNOWN = {one.digest: one for one in TASKS}


def test_failures_are_grouped_by_family_and_cause() -> None:
    trials = [
        trial(
            task=one.digest,
            solved=one.family == "a",
            cause=Cause.LOOP if n < 3 else Cause.TOOL_ERROR,
        )
        for n, one in enumerate(TASKS)
    ]
    found = mine(trials, KNOWN)
    assert {weakness.family for weakness in found} == {"b", "c"}
    assert found[0].causes == {Cause.LOOP: 1, Cause.TOOL_ERROR: 3}


def test_invalid_trials_are_no_evidence_of_weakness() -> None:
    trials = [trial(task=one.digest, invalid=one.family == "a") for one in TASKS]
    found = mine(trials, KNOWN)
    assert {weakness.family for weakness in found} == {"b", "c"}
    assert all(weakness.invalid == 0 for weakness in found)


def test_the_surest_weakness_comes_first() -> None:
    trials = [
        trial(task=one.digest, seed=seed, solved=one.family == "a" and seed > 0)
        for one in TASKS
        for seed in range(3)
    ]
    assert mine(trials, KNOWN)[-1].family == "a"


def harder(one: Task, seed: int) -> tuple[Task, ...]:
    return (task(f"{one.name}-{seed % 2}", family=one.family, level=one.level + 1),)


def test_hardening_takes_turns_over_families_and_ends_at_the_limit() -> None:
    weaknesses = mine([trial(task=one.digest) for one in TASKS], KNOWN)
    made = [
        new for children in harden(weaknesses, KNOWN, harder, 5, 0).values() for new in children
    ]
    assert len(made) == 5
    assert len({new.digest for new in made}) == 5
    assert {new.family for new in made} == {"a", "b", "c"}
    assert all(new.level == 2 for new in made)


def test_hardening_ends_when_nothing_new_can_be_made() -> None:
    weaknesses = mine([trial(task=one.digest) for one in TASKS], KNOWN)
    assert harden(weaknesses, KNOWN, lambda one, _: (one,), 100, 0) == {}
