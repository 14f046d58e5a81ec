"""The vocabulary of Expansion: candidates, attempts, coverage, finalists."""

from rsi.domain.contract import Edit
from rsi.domain.values import Digest, Value


class Candidate(Value):
    """A contract proposed by the search, with the edit that made it from its parent."""

    contract: Digest
    parent: Digest | None
    """None for the contract that the search started from."""
    edits: tuple[Edit, ...]
    author: str
    """`operator:<name>` or `model:<name>`."""
    ordinal: int
    """Its place in the order of proposals of one generation, from 0."""


class Ask(Value):
    """One attempt that the search asks for."""

    ordinal: int
    """Its place in the order of attempts of one generation, from 0."""
    candidate: Digest
    """The candidate's contract."""
    task: Digest
    seed: int


class Attempt(Value):
    """An ask and what came of it; `is_solved` is None when the trial was invalid."""

    ask: Ask
    is_solved: bool | None
    tokens: int


class CoveragePoint(Value):
    """How many tasks were covered after so many attempts."""

    attempts: int
    tokens: int
    covered: int


class Finalist(Value):
    """A single contract measured on holdout tasks, which chose it among others."""

    contract: Digest
    solved: int
    trials: int
    invalid: int
    is_chosen: bool

    @property
    def share(self) -> float:
        """Solved of valid trials; 0 where none was valid, since nothing speaks for it then."""
        return self.solved / self.trials if self.trials else 0.0


class Coverage(Value):
    """What a search covered. It is never a pair's score."""

    tasks: int
    covered: int
    attempts: int
    tokens: int
    stopped: str
    """`all covered`, `budget spent` or `gains ended`."""
    curve: tuple[CoveragePoint, ...]
    winners: dict[Digest, Digest]
    """Task -> the contract that covered it first."""
    finalists: tuple[Finalist, ...] = ()
