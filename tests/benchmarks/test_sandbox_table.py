"""The table of the sandboxes' costs: ratios, goals, and why a harness has none."""

from benchmarks.sandbox.peers import Absent, row
from benchmarks.sandbox.table import Measured, document, goals, grid, text
from benchmarks.sandbox.timing import Cost


def measured() -> Measured:
    rates = {1: 60.0, 2: 100.0, 4: 90.0}
    return Measured(
        costs=[
            Cost("create, exec, remove, by the SDK", 1000, 60, rates),
            Cost("docker run and exec, by the command line", 1500, 90, rates),
            Cost("rsi, containers from the pool", 50, 5, {1: 200.0, 2: 250.0, 4: 240.0}),
        ],
        tasks_per_minute={"rsi, containers": 300.0, "Harbor": 10.0, "Inspect": "no compose"},
    )


def test_a_goal_is_a_ratio_of_one_run() -> None:
    seen = {what: (ratio, goal) for what, ratio, goal in goals(measured())}
    assert seen["a warm trial against the SDK's, while a core is idle"] == (20.0, 10)
    assert seen["trials a minute against the SDK's, with all cores busy"] == (2.5, 3)
    assert seen["a shell call against `docker exec`"] == (18.0, 15)
    assert seen["tasks a minute against the better peer"] == (30.0, 3)


def test_what_could_not_be_measured_says_why() -> None:
    def absent(_tasks: int, _width: int) -> float:
        raise Absent("no compose")

    assert row(absent, 10, 2) == "no compose"
    assert row(lambda tasks, _: tasks / 2, 10, 2) == 120.0
    shown = text(measured())
    assert "no compose" in shown
    assert "| no " in shown
    alone = measured()
    alone.tasks_per_minute["Harbor"] = "too old a Python"
    assert len(goals(alone)) == len(goals(measured())) - 1
    assert document(alone)["goals"] == goals(alone)


def test_columns_are_aligned() -> None:
    assert grid(("a", "b"), [("long", "1")]) == "| a    | b |\n| ---- | - |\n| long | 1 |"
