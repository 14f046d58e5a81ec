"""Ways to search: each is asked for (task, recipe) pairs and told what came of them."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from benchmarks.expansion.space import NONE, groups, random_recipe, recipe_from
from rsi.domain.contract import Contract
from rsi.domain.values import Digest
from rsi.steps.propose import Recipe, needs_pool

BEST_OF_N: Recipe = ("warm",)


class Method(Protocol):
    """A search over recipes."""

    def ask(self, open_tasks: Sequence[Digest], *, has_pool: bool) -> tuple[Digest, Recipe]:
        """What to try next; `has_pool` says whether a verified solution is there to show."""

    def tell(self, task: Digest, recipe: Recipe, *, is_solved: bool) -> None:
        """What came of it."""

    def best(self) -> tuple[Recipe, ...]:
        """Recipes by what they have shown, the best first."""


class Shares:
    """How often each recipe solved what it was tried on."""

    def __init__(self) -> None:
        self._wins: Counter[Recipe] = Counter()
        self._tries: Counter[Recipe] = Counter()

    def tell(self, task: Digest, recipe: Recipe, *, is_solved: bool) -> None:
        del task
        self._tries[recipe] += 1
        self._wins[recipe] += is_solved

    def best(self) -> tuple[Recipe, ...]:
        """By the share with a prior of 1 in 4, so that one lucky try isn't the best."""
        shares = {r: (self._wins[r] + 1) / (n + 4) for r, n in self._tries.items()}
        return tuple(sorted(shares, key=lambda recipe: (-shares[recipe], recipe)))


class Rounds:
    """The open tasks in turn, in a seeded order."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._given: Counter[Digest] = Counter()

    def next(self, open_tasks: Sequence[Digest]) -> Digest:
        least = min(self._given[task] for task in open_tasks)
        task = self._rng.choice([one for one in open_tasks if self._given[one] == least])
        self._given[task] += 1
        return task


class RandomSearch(Shares):
    """Every choice drawn evenly."""

    def __init__(self, contract: Contract, seed: int) -> None:
        super().__init__()
        self._contract, self._rng = contract, random.Random(f"random/{seed}")
        self._rounds = Rounds(self._rng)

    def ask(self, open_tasks: Sequence[Digest], *, has_pool: bool) -> tuple[Digest, Recipe]:
        recipe = random_recipe(self._contract, self._rng)
        while needs_pool(self._contract, recipe) and not has_pool:
            recipe = random_recipe(self._contract, self._rng)
        return self._rounds.next(open_tasks), recipe


class Repetition(Shares):
    """The base contract again and again, sampled: what mere repetition gives."""

    def __init__(self, contract: Contract, seed: int) -> None:
        del contract
        super().__init__()
        self._rounds = Rounds(random.Random(f"repeat/{seed}"))

    def ask(self, open_tasks: Sequence[Digest], *, has_pool: bool) -> tuple[Digest, Recipe]:
        del has_pool
        return self._rounds.next(open_tasks), BEST_OF_N


class Single(Shares):
    """One contract on every task: the recipe of a search's start with the most examples."""

    def __init__(self, contract: Contract, seed: int) -> None:
        super().__init__()
        shows = [name for name in groups(contract).get("skill", ()) if name != NONE]
        self._recipe: Recipe = (shows[-1],) if shows else BEST_OF_N
        self._rounds = Rounds(random.Random(f"single/{seed}"))

    def ask(self, open_tasks: Sequence[Digest], *, has_pool: bool) -> tuple[Digest, Recipe]:
        del has_pool
        return self._rounds.next(open_tasks), self._recipe


class Tpe(Shares):
    """Optuna's tree-structured Parzen estimator over the groups; a trial is one attempt."""

    def __init__(self, contract: Contract, seed: int) -> None:
        import optuna

        super().__init__()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._groups = groups(contract)
        self._rounds = Rounds(random.Random(f"tpe/{seed}"))
        self._open: dict[tuple[Digest, Recipe], list[Any]] = {}

    def ask(self, open_tasks: Sequence[Digest], *, has_pool: bool) -> tuple[Digest, Recipe]:
        trial = self._study.ask()
        names = {
            group: trial.suggest_categorical(group, list(choices))
            for group, choices in self._groups.items()
        }
        # Without a solution to show, the choice of how many shows nothing yet.
        recipe = recipe_from(names if has_pool else {**names, "pool": NONE})
        task = self._rounds.next(open_tasks)
        self._open.setdefault((task, recipe), []).append(trial)
        return task, recipe

    def tell(self, task: Digest, recipe: Recipe, *, is_solved: bool) -> None:
        super().tell(task, recipe, is_solved=is_solved)
        self._study.tell(self._open[task, recipe].pop(), float(is_solved))


METHODS: Mapping[str, type[RandomSearch] | type[Repetition] | type[Single] | type[Tpe]] = {
    "single contract": Single,
    "best of n": Repetition,
    "random search": RandomSearch,
    "Optuna TPE": Tpe,
}
OURS = "rsi"
