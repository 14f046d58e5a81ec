"""Search: which (task, candidate) to try next, from what all attempts so far tell.

Thompson sampling (Thompson 1933) over the tasks that nothing has covered yet. The chance that a
candidate solves a task is a Beta belief of the candidate's kind in the task's family; its prior
mean adds up, in log-odds, how well the kind does anywhere and how hard the family and the task
itself have been. Versions of one kind (the same edits with a larger pool of examples) share what
was learnt, but not across the line "has an example of this family": that line matters most.

The same seed, candidates and outcomes give the same asks; nothing else is remembered, so a
search that was killed goes on by telling it the recorded attempts again.
"""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rsi.domain.search import Ask, Attempt, CoveragePoint
from rsi.domain.values import Digest

PRIOR_STRENGTH = 3.0
"""How many attempts the prior of a (kind, family) cell is worth."""
SHRINK = 4.0
"""How many attempts pull a kind's or family's rate to the overall one."""
OPENING = 1.5
"""What a win is worth in a family without a verified example, next to one in a family with: it
covers its task and gives every other task of the family an example to be shown."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A candidate as the search sees it."""

    contract: Digest
    kind: str
    """What its edits do, whatever pool of examples they draw on."""
    families: frozenset[str]
    """Families of which it has a verified example to show."""
    is_random: bool
    """Whether another seed can give another outcome."""
    ordinal: int


@dataclass(frozen=True, slots=True)
class _Cell:
    """What shares evidence: a kind, and whether it has an example of the task's family."""

    kind: str
    has_example: bool


class Search:
    """An adaptive search; `ask` for attempts, run them, `tell` what came of them."""

    def __init__(self, tasks: Mapping[Digest, str], seed: int, trial_seed: int) -> None:
        """`tasks` gives each task's family; trials get seeds from `trial_seed` on."""
        self._families = dict(tasks)
        self._seed = seed
        self._trial_seed = trial_seed
        self._entrants: dict[Digest, Entrant] = {}
        self._live: dict[str, Entrant] = {}
        self._asked: Counter[tuple[Digest, Digest]] = Counter()
        self._next = 0
        self._told: list[Attempt] = []
        self._winners: dict[Digest, Digest] = {}
        self._opened: set[str] = set()
        self._wins: Counter[tuple[object, ...]] = Counter()
        self._tries: Counter[tuple[object, ...]] = Counter()

    @property
    def winners(self) -> dict[Digest, Digest]:
        """Task -> the contract that covered it first."""
        return dict(self._winners)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(self._told)

    def enter(self, entrant: Entrant) -> None:
        """Adds a candidate; an older version of the same kind retires."""
        self._entrants[entrant.contract] = entrant
        self._live[entrant.kind] = entrant
        self._opened |= entrant.families

    def ask(self, count: int) -> tuple[Ask, ...]:
        """The next attempts, `count` at most, each on another task where there are enough.

        Empty when every task is covered or no untried pair of a task and a candidate is left.
        """
        rng = random.Random(f"{self._seed}/{self._next}")
        open_tasks = [task for task in self._families if task not in self._winners]
        ranked = sorted(
            (
                (self._draw(rng, task, entrant), place, task, entrant)
                for place, task in enumerate(open_tasks)
                for entrant in self._live.values()
                if self._is_worth(task, entrant)
            ),
            key=lambda entry: (-entry[0], entry[1], entry[3].ordinal),
        )
        chosen: list[tuple[Digest, Entrant]] = []
        for spare in range(2):
            taken = Counter(task for task, _ in chosen)
            for _, _, task, entrant in ranked:
                if len(chosen) < count and taken[task] == spare and (task, entrant) not in chosen:
                    chosen.append((task, entrant))
                    taken[task] += 1
        return tuple(self._made(task, entrant) for task, entrant in chosen)

    def tell(self, attempts: Sequence[Attempt]) -> int:
        """Takes what came of attempts, in the order asked; the count of newly covered tasks.

        An invalid attempt teaches nothing; the pair can be asked for again.
        """
        covered = 0
        for attempt in attempts:
            self._told.append(attempt)
            if attempt.is_solved is None:
                continue
            self._learn(attempt)
            if attempt.is_solved and attempt.ask.task not in self._winners:
                self._opened.add(self._families[attempt.ask.task])
                self._winners[attempt.ask.task] = attempt.ask.candidate
                covered += 1
        return covered

    def curve(self) -> tuple[CoveragePoint, ...]:
        """Coverage after each attempt that covered something new, and after the last one."""
        points = [CoveragePoint(attempts=0, tokens=0, covered=0)]
        covered: set[Digest] = set()
        tokens = 0
        for place, attempt in enumerate(self._told, start=1):
            tokens += attempt.tokens
            is_new = bool(attempt.is_solved) and attempt.ask.task not in covered
            if is_new:
                covered.add(attempt.ask.task)
            if is_new or place == len(self._told):
                points.append(CoveragePoint(attempts=place, tokens=tokens, covered=len(covered)))
        return tuple(points)

    def belief(self, kind: str) -> tuple[float, int]:
        """(mean share of tasks it solves, attempts) of a kind, over all its versions."""
        tries = self._tries["kind", kind]
        return (self._wins["kind", kind] + 1) / (tries + 4), tries

    def live(self) -> tuple[Entrant, ...]:
        """The newest version of each kind."""
        return tuple(self._live.values())

    def _is_worth(self, task: Digest, entrant: Entrant) -> bool:
        return entrant.is_random or self._asked[task, entrant.contract] == 0

    def _made(self, task: Digest, entrant: Entrant) -> Ask:
        seed = self._trial_seed + self._asked[task, entrant.contract]
        self._asked[task, entrant.contract] += 1
        ask = Ask(ordinal=self._next, candidate=entrant.contract, task=task, seed=seed)
        self._next += 1
        return ask

    def _draw(self, rng: random.Random, task: Digest, entrant: Entrant) -> float:
        """One sample of what an attempt is worth: the chance that it covers the task, more where
        that would open a family."""
        family = self._families[task]
        cell = _Cell(entrant.kind, family in entrant.families)
        mean = self._prior_mean(task, family, cell)
        wins = self._wins[cell, family]
        losses = self._tries[cell, family] - wins
        chance = rng.betavariate(PRIOR_STRENGTH * mean + wins, PRIOR_STRENGTH * (1 - mean) + losses)
        return chance if family in self._opened else chance * OPENING

    def _prior_mean(self, task: Digest, family: str, cell: _Cell) -> float:
        has = cell.has_example
        overall = (self._wins[has,] + 1) / (self._tries[has,] + SHRINK)
        kind = self._shrunk((cell,), overall)
        hard = self._shrunk((has, family), overall)
        hard = hard * SHRINK / (SHRINK + self._tries[has, family, task])
        odds = _logit(kind) + _logit(hard) - _logit(overall)
        return min(0.98, max(0.02, 1 / (1 + math.exp(-odds))))

    def _shrunk(self, key: tuple[object, ...], overall: float) -> float:
        return (self._wins[key] + SHRINK * overall) / (self._tries[key] + SHRINK)

    def _learn(self, attempt: Attempt) -> None:
        entrant = self._entrants[attempt.ask.candidate]
        family = self._families[attempt.ask.task]
        has = family in entrant.families
        cell = _Cell(entrant.kind, has)
        keys: tuple[tuple[object, ...], ...] = (
            ("kind", entrant.kind),
            (has,),
            (cell,),
            (cell, family),
            (has, family),
            (has, family, attempt.ask.task),
        )
        for key in keys:
            self._tries[key] += 1
            self._wins[key] += bool(attempt.is_solved)


def _logit(share: float) -> float:
    return math.log(share / (1 - share))
