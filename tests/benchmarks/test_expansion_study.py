"""The study's methods stay inside the space and repeat themselves; its table says what was seen."""

import pytest

from benchmarks.expansion.methods import METHODS, Method, RandomSearch, Repetition, Single
from benchmarks.expansion.runs import Run
from benchmarks.expansion.space import NONE, groups, recipe_from
from benchmarks.expansion.table import attempts_to, figure, table
from rsi.domain.search import CoveragePoint, Finalist
from rsi.steps.propose import needs_pool, operators
from tests.samples import contract, digest

CONTRACT = contract()
TASKS = [digest(str(number)) for number in range(6)]


def asked(method: Method, count: int, *, has_pool: bool) -> list[tuple[str, tuple[str, ...]]]:
    """What a method asks for when every second attempt is solved."""
    found = []
    for number in range(count):
        task, recipe = method.ask(TASKS, has_pool=has_pool)
        method.tell(task, recipe, is_solved=number % 2 == 0)
        found.append((task, recipe))
    return found


@pytest.mark.parametrize("kind", METHODS.values())
def test_a_method_asks_within_the_space_and_repeats_itself(kind: type[RandomSearch]) -> None:
    if kind.__name__ == "Tpe":
        pytest.importorskip("optuna")
    known = operators(CONTRACT)
    first = asked(kind(CONTRACT, 7), 30, has_pool=False)
    assert first == asked(kind(CONTRACT, 7), 30, has_pool=False)
    for task, recipe in first:
        assert task in TASKS
        assert set(recipe) <= known.keys()
        assert not needs_pool(CONTRACT, recipe)
        assert len({known[name].group for name in recipe}) == len(recipe)


def test_every_open_task_gets_its_turn() -> None:
    counts = [task for task, _ in asked(Repetition(CONTRACT, 1), 12, has_pool=True)]
    assert sorted(counts) == sorted(TASKS * 2)


def test_a_single_contract_stays_the_same() -> None:
    method = Single(CONTRACT, 1)
    assert len({recipe for _, recipe in asked(method, 9, has_pool=True)}) == 1
    assert len(method.best()) == 1


def test_a_choice_of_nothing_is_the_base() -> None:
    assert recipe_from(dict.fromkeys(groups(CONTRACT), NONE)) == ()


def test_the_table_says_what_was_reached_and_what_never() -> None:
    curve = tuple(CoveragePoint(attempts=n, tokens=10 * n, covered=n // 2) for n in (0, 4, 10))
    finalist = Finalist(contract=digest("a"), solved=3, trials=4, invalid=0, is_chosen=True)
    run = Run("rsi", 1, 6, curve, (finalist,), finalist)
    assert attempts_to(curve, 0.5, 6) == 10
    assert attempts_to(curve, 1.0, 6) is None
    told = table([run])
    assert "5 of 6" in told
    assert "never" in told
    assert "75% [30%, 95%], n=4" in told
    drawn = figure([run])
    assert drawn.count("<polyline") == 1
    assert drawn.startswith("<svg")
