"""The shell suite: every instance is sound, levels differ, and no instance is in two splits."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsi.domain.task import Answer, Split, Task
from rsi.suites.shell.kit import STEMS
from rsi.suites.shell.suite import KINDS, ShellSuite, is_in

SUITE = ShellSuite()
COOKBOOK = Path(__file__).parents[2] / "contracts/skills/cookbook.toml"
LEVELS = (1, 2, 3)


def drawn(level: int, seed: int, count: int = len(KINDS)) -> tuple[Task, ...]:
    return SUITE.draw(Split.SEARCH, seed, count, {kind.name: level for kind in KINDS})


class Room:
    """A folder that stands for the boxes: /work, /tests, /logs and /solution lie in it."""

    def __init__(self, folder: Path, task: Task) -> None:
        self.folder, self.task = folder, task
        for place, files in (
            ("work", task.files),
            ("tests", task.tests),
            ("solution", task.solution),
        ):
            (folder / place).mkdir(parents=True)
            for file in files:
                path = folder / place / file.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self._moved(file.content))
        (folder / "logs/agent").mkdir(parents=True)

    def _moved(self, script: bytes) -> bytes:
        text = script.decode()
        return re.sub(r"(?<![\w.])/(work|tests|logs)\b", f"{self.folder}/\\1", text).encode()

    def bash(self, script: Path, cwd: str = "work") -> str:
        done = subprocess.run(
            ["bash", str(script)],
            cwd=self.folder / cwd,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        return done.stdout

    def solve(self) -> None:
        said = self.bash(self.folder / "solution/solve.sh")
        self.answer(said)

    def answer(self, text: str) -> None:
        (self.folder / "logs/agent/answer.txt").write_text(text)

    def reward(self) -> str:
        self.bash(self.folder / "tests/test.sh")
        return (self.folder / "logs/verifier/reward.json").read_text().strip()


@pytest.mark.parametrize("level", LEVELS)
def test_every_reference_passes_and_a_no_op_fails(level: int, tmp_path: Path) -> None:
    for place, task in enumerate(drawn(level, seed=11)):
        solved, untouched = Room(tmp_path / f"{place}s", task), Room(tmp_path / f"{place}u", task)
        solved.solve()
        untouched.answer("")
        assert solved.reward() == '{"reward": 1.0}', task.instruction
        assert untouched.reward() == '{"reward": 0.0}', task.instruction


@pytest.mark.parametrize("level", LEVELS)
def test_no_constant_solves_a_printed_answer(level: int, tmp_path: Path) -> None:
    asked = [task for task in drawn(level, seed=12) if task.answer is Answer.STDOUT]
    for place, task in enumerate(asked):
        room = Room(tmp_path / str(place), task)
        for guess in ("0\n", task.instruction, "cat /tests/answer.txt\n"):
            room.answer(guess)
            is_zero = guess == "0\n" and room.task.tests[1].content == b"0\n"
            assert is_zero or room.reward() == '{"reward": 0.0}', task.instruction


def test_oracle_output_counts_where_there_is_no_answer(tmp_path: Path) -> None:
    task = next(task for task in drawn(1, seed=13) if task.answer is Answer.STDOUT)
    room = Room(tmp_path, task)
    said = room.bash(tmp_path / "solution/solve.sh")
    (tmp_path / "logs/agent/oracle.txt").write_text(said)
    assert room.reward() == '{"reward": 1.0}'


def test_there_are_enough_families_and_levels() -> None:
    families = SUITE.families()
    assert len(families) >= 32
    assert all(len(family.levels) >= 3 for family in families)
    assert len({family.name for family in families}) == len(families)


def test_a_draw_is_spread_evenly_and_has_no_task_twice() -> None:
    tasks = SUITE.draw(Split.EXAM, 5, 2 * len(KINDS))
    counts = {kind.name: sum(task.family == kind.name for task in tasks) for kind in KINDS}
    assert max(counts.values()) == 2
    assert sum(counts.values()) >= 2 * len(KINDS) - 2
    assert len({task.digest for task in tasks}) == len(tasks)


def test_no_split_can_draw_an_instance_of_another() -> None:
    drawn_by = {
        split: {task.digest for seed in range(6) for task in SUITE.draw(split, seed, len(KINDS))}
        for split in (Split.SEARCH, Split.HOLDOUT, Split.EXAM)
    }
    assert sum(map(len, drawn_by.values())) == len(set.union(*drawn_by.values()))


def test_hardening_goes_one_level_up_inside_the_search_split() -> None:
    for task in drawn(1, seed=14):
        harder = SUITE.harden(task, 3)
        assert harder
        assert {new.level for new in harder} == {2}
        assert {new.made_by for new in harder} == {"harden"}
        assert all(is_in(new, Split.SEARCH) for new in harder)
    assert all(SUITE.harden(task, 3) == () for task in drawn(3, seed=14))


def test_levels_ask_for_longer_commands() -> None:
    lengths = [
        sum(len(task.solution[0].content) for task in drawn(level, seed=15)) for level in LEVELS
    ]
    assert lengths == sorted(lengths)


@given(st.integers(0, 10**9), st.sampled_from(LEVELS))
def test_draws_are_fixed_by_their_seed(seed: int, level: int) -> None:
    one, two = drawn(level, seed, 5), drawn(level, seed, 5)
    assert [task.digest for task in one] == [task.digest for task in two]
    for task in one:
        assert task.instruction.strip()
        assert "\n" not in task.instruction
        assert not any(file.path.startswith("/") or ".." in file.path for file in task.files)


def test_the_cookbook_is_no_answer_book() -> None:
    """No recipe shares a run of six words or a file name with any instance."""
    recipes = tomllib.loads(COOKBOOK.read_text())["examples"]
    runs = {run for recipe in recipes for run in _runs(recipe["instruction"])}
    stems = set(re.findall(r"(\w+)\.\w+", " ".join(r["instruction"] + r["reply"] for r in recipes)))
    assert stems.isdisjoint(STEMS)
    for level in LEVELS:
        for seed in range(4):
            for task in drawn(level, seed):
                assert runs.isdisjoint(_runs(task.instruction)), task.instruction


def _runs(text: str) -> set[tuple[str, ...]]:
    words = text.lower().split()
    return {tuple(words[place : place + 6]) for place in range(len(words) - 5)}
