"""The search is deterministic, spends attempts on what is open, and learns who solves what."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from rsi.domain.search import Ask, Attempt
from rsi.steps.search import Entrant, Search
from tests.samples import digest

TASKS = {digest(f"task {n}"): f"family {n % 6}" for n in range(30)}


def entrant(name: str, families: tuple[str, ...] = (), *, warm: bool = False) -> Entrant:
    return Entrant(digest(name), name, frozenset(families), warm, ord(name[0]))


def started(seed: int = 1, *names: str) -> Search:
    search = Search(TASKS, seed, trial_seed=1000)
    for name in names or ("a", "b", "c"):
        search.enter(entrant(name))
    return search


def told(asks: tuple[Ask, ...], *, solved: bool | None = False) -> list[Attempt]:
    return [Attempt(ask=ask, is_solved=solved, tokens=10) for ask in asks]


def test_the_same_seed_and_outcomes_give_the_same_asks() -> None:
    one, two = started(5), started(5)
    for round_number in range(4):
        asks = one.ask(7)
        assert asks == two.ask(7)
        outcome = [
            Attempt(ask=ask, is_solved=(ask.ordinal + round_number) % 3 == 0, tokens=1)
            for ask in asks
        ]
        one.tell(outcome)
        two.tell(outcome)
    assert one.winners == two.winners


def test_a_covered_task_is_not_asked_for_again() -> None:
    search = started()
    first = search.ask(10)
    search.tell(told(first, solved=True))
    covered = {ask.task for ask in first}
    later = search.ask(30)
    assert covered.isdisjoint(ask.task for ask in later)
    assert set(search.winners) == covered


def test_a_greedy_candidate_tries_a_task_only_once() -> None:
    search = started(3, "a")
    seen: set[tuple[str, str]] = set()
    for _ in range(5):
        asks = search.ask(10)
        assert seen.isdisjoint((ask.task, ask.candidate) for ask in asks)
        seen |= {(ask.task, ask.candidate) for ask in asks}
        search.tell(told(asks))
    assert len(seen) == len(TASKS)
    assert search.ask(10) == ()


def test_a_random_candidate_tries_again_with_another_seed() -> None:
    search = Search(dict(list(TASKS.items())[:2]), 1, trial_seed=50)
    search.enter(entrant("w", warm=True))
    seeds = []
    for _ in range(3):
        asks = search.ask(2)
        seeds += [ask.seed for ask in asks if ask.task == digest("task 0")]
        search.tell(told(asks))
    assert seeds == [50, 51, 52]


def test_an_invalid_attempt_teaches_nothing() -> None:
    search = started(3, "a")
    before = search.belief("a")
    search.tell(told(search.ask(5), solved=None))
    assert search.belief("a") == before
    assert search.winners == {}


def test_the_search_turns_to_the_candidate_that_solves() -> None:
    search = started(2, "a", "b", "c", "d")
    good = digest("c")
    picked = 0
    for round_number in range(6):
        asks = search.ask(8)
        if round_number >= 3:
            picked += sum(ask.candidate == good for ask in asks)
        rng = random.Random(round_number)
        search.tell(
            [
                Attempt(ask=ask, is_solved=ask.candidate == good and rng.random() < 0.6, tokens=1)
                for ask in asks
            ]
        )
    assert picked >= 12


def test_a_newer_version_of_a_kind_replaces_the_older() -> None:
    search = started(1, "a")
    newer = Entrant(digest("a2"), "a", frozenset({"family 1"}), False, 9)
    search.enter(newer)
    assert search.live() == (newer,)
    assert all(ask.candidate == digest("a2") for ask in search.ask(5))


def test_the_curve_counts_each_task_once() -> None:
    search = started(4)
    search.tell(told(search.ask(6), solved=True))
    search.tell(told(search.ask(6), solved=False))
    curve = search.curve()
    assert [point.covered for point in curve] == [0, 1, 2, 3, 4, 5, 6, 6]
    assert curve[-1].attempts == 12
    assert curve[-1].tokens == 120


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.lists(st.booleans(), min_size=1))
def test_asks_are_numbered_in_order_and_name_known_things(
    seed: int, count: int, outcomes: list[bool]
) -> None:
    search = started(seed)
    expected = 0
    for solved in outcomes[:6]:
        asks = search.ask(count)
        assert len(asks) <= count
        for ask in asks:
            assert ask.ordinal == expected
            assert ask.task in TASKS
            expected += 1
        search.tell(told(asks, solved=solved))
    assert len(search.attempts) == expected
