"""Curation keeps what worked, balanced, and refuses what must not be trained on."""

from collections.abc import Mapping

import pytest

from rsi.domain.contract import Example
from rsi.domain.task import Split, Task
from rsi.domain.trial import Action, Trajectory, Trial
from rsi.domain.values import Digest
from rsi.errors import DisciplineError
from rsi.steps.curate import Curated, curate
from tests.samples import contract, task, trial

TASKS = [task(f"word{n}", family=f"family {n % 3}") for n in range(12)]
BY_DIGEST = {one.digest: one for one in TASKS}
SPLITS = dict.fromkeys(BY_DIGEST, Split.SEARCH)


def trajectory(one: Task, *commands: str) -> Trajectory:
    acted = commands or (f"echo {one.name}",)
    return Trajectory(
        messages=(("user", one.instruction),),
        actions=tuple(Action(reply=c, tool="bash", tool_input=c, exit_code=0) for c in acted),
    )


def curated(
    trials: list[Trial],
    commands: Mapping[Digest, tuple[str, ...]] | None = None,
    splits: dict[Digest, Split] | None = None,
    per_family: int = 9,
    limit: int = 99,
) -> Curated:
    shown = Example(instruction="x", reply="y")
    rich = contract(prompt={"system": "Be brief.", "examples": (shown,), "examples_shown": 1})
    return curate(
        trials,
        BY_DIGEST,
        splits or SPLITS,
        lambda t: trajectory(BY_DIGEST[t.task], *(commands or {}).get(t.task, ())),
        rich,
        per_family,
        limit,
    )


def test_only_solved_trials_become_examples() -> None:
    found = curated(
        [
            trial(task=TASKS[0].digest, solved=True),
            trial(task=TASKS[1].digest),
            trial(task=TASKS[2].digest, invalid=True),
        ]
    )
    assert [example.trial_task for example in found.dataset.examples] == [TASKS[0].digest]
    assert found.filters[0].dropped == 2


def test_examples_are_rendered_for_the_plain_contract() -> None:
    found = curated([trial(task=TASKS[0].digest, solved=True)]).dataset.examples[0]
    assert found.messages == (("system", "Be brief."), ("user", TASKS[0].instruction))
    assert found.completion == f"echo {TASKS[0].name}"


@pytest.mark.parametrize("split", [Split.EXAM, Split.HOLDOUT, Split.REGRESSION])
def test_a_task_outside_the_search_split_is_refused(split: Split) -> None:
    splits = {**SPLITS, TASKS[0].digest: split}
    with pytest.raises(DisciplineError, match=split.value):
        curated([trial(task=TASKS[0].digest, solved=True)], splits=splits)


def test_a_task_without_a_split_is_refused() -> None:
    with pytest.raises(DisciplineError):
        curated([trial(task=TASKS[0].digest, solved=True)], splits={TASKS[1].digest: Split.SEARCH})


def test_several_actions_teach_nothing() -> None:
    commands = {TASKS[0].digest: ("cd a", "ls")}
    found = curated([trial(task=TASKS[0].digest, solved=True)], commands)
    assert found.dataset.examples == ()
    assert found.filters[1].dropped == 1


def test_a_task_gives_one_example() -> None:
    trials = [trial(pair=f"p{n}", task=TASKS[0].digest, solved=True) for n in range(5)]
    assert len(curated(trials).dataset.examples) == 1


def test_families_are_balanced() -> None:
    trials = [trial(task=one.digest, solved=True) for one in TASKS if one.family == "family 0"]
    trials.append(trial(task=TASKS[1].digest, solved=True))
    found = curated(trials, per_family=2, limit=3).dataset.examples
    assert sorted(example.family for example in found) == ["family 0", "family 0", "family 1"]


def test_the_counts_add_up() -> None:
    trials = [
        trial(pair=f"p{n % 2}", task=one.digest, solved=n % 3 > 0) for n, one in enumerate(TASKS)
    ]
    found = curated(trials, per_family=2)
    left = len(trials)
    for count in found.filters:
        assert count.kept + count.dropped == left
        left = count.kept
    assert left == len(found.dataset.examples)
