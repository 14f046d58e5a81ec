"""The table of the sandboxes' costs: ratios, goals, and why a harness has none."""

import pytest

from benchmarks.sandbox.endurance import Drift, Waiting
from benchmarks.sandbox.installing import Absent, last_line
from benchmarks.sandbox.peers import row, seconds_of
from benchmarks.sandbox.table import HARBOR, INSPECT, Measured, document, goals, grid, text
from benchmarks.sandbox.timing import Cost
from benchmarks.sandbox.ways import CLI, POOL, SDK


def measured() -> Measured:
    rates = {1: 60.0, 2: 100.0, 4: 90.0}
    costs = [
        Cost(SDK, 1000, 60, rates),
        Cost(CLI, 1500, 90, rates),
        Cost(POOL, 50, 5, {1: 200.0, 2: 250.0, 4: 240.0}),
    ]
    return Measured(
        costs={cost.name: cost for cost in costs},
        tasks_per_minute={POOL: 300.0, HARBOR: 10.0},
        notes={INSPECT: "no compose"},
    )


def test_a_goal_is_a_ratio_of_one_run() -> None:
    seen = {goal.what: (goal.ratio, goal.is_reached) for goal in goals(measured())}
    assert seen["a warm trial against the SDK's, a core idle"] == (20.0, True)
    assert seen["trials a minute against the SDK's, all cores busy"] == (2.5, False)
    assert seen["a shell call against `docker exec`"] == (18.0, True)
    assert seen["tasks a minute against the better of Harbor and Inspect"] == (30.0, True)


def test_a_goal_just_missed_is_not_rounded_up() -> None:
    found = measured()
    found.costs[POOL].paced_ms = 1000 / 9.99
    assert not goals(found)[0].is_reached


def test_the_better_peer_counts() -> None:
    found = measured()
    found.tasks_per_minute[INSPECT] = 150.0
    assert goals(found)[-1].ratio == 2.0


def test_what_could_not_be_measured_says_why() -> None:
    def absent(_trials: int, _width: int) -> float:
        raise Absent("no compose")

    assert row(absent, 10, 2) == "no compose"
    assert row(lambda trials, _: trials / 2, 10, 2) == 120.0
    shown = text(measured())
    assert "no compose" in shown
    assert "- not reached: trials a minute" in shown
    alone = measured()
    del alone.tasks_per_minute[HARBOR]
    assert len(goals(alone)) == len(goals(measured())) - 1


def test_a_run_that_was_cut_off_tells_what_it_has() -> None:
    found = Measured(costs={SDK: measured().costs[SDK]})
    assert goals(found) == []
    assert SDK in text(found)
    assert document(found)["goals"] == []


def test_drift_and_memory_are_told_with_the_load() -> None:
    found = measured()
    found.drift = Drift(300, (90.0, 130.0, 99.0), (1.0, 3.5, 2.0), (44.0, 45.0, 45.5))
    found.waiting = Waiting(6.0, None)
    found.loads = [0.5, 7.25]
    shown = text(found)
    assert "as each step began: 0.5, 7.2" in shown
    assert "the first 90 ms, the last 99 ms (1.10x), between 90 and 130 ms" in shown
    assert "44.0 MB after 100 of them and 45.5 MB at the end" in shown
    assert "its containerd-shim can't be read" in shown


def test_a_job_of_harbor_counts_when_all_of_it_was_judged() -> None:
    result = {
        "started_at": "2026-01-01T00:00:00.000000",
        "finished_at": "2026-01-01T00:00:30.500000",
        "stats": {
            "n_errored_trials": 0,
            "evals": {"nop": {"reward_stats": {"reward": {"0.0": ["a", "b"]}}}},
        },
    }
    assert seconds_of(result, 2) == 30.5
    with pytest.raises(Absent, match="2 of 3"):
        seconds_of(result, 3)


def test_the_last_thing_said_is_the_reason() -> None:
    assert last_line("one\n│ two │\n\n") == "two"
    assert last_line("") == "nothing was said"


def test_columns_are_aligned() -> None:
    assert grid(("a", "b"), [("long", "1")]) == "| a    | b |\n| ---- | - |\n| long | 1 |"
