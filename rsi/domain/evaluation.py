"""The evaluation contract: suites, budgets and the gate's rule. Candidates can't change it."""

from typing import Literal

from pydantic import Field

from rsi.domain.contract import Name
from rsi.domain.values import Digest, Value, digest_value


class SuiteChoice(Value):
    """A source of tasks: the built-in shell suite, or a folder of Harbor tasks."""

    kind: Literal["shell", "folder"]
    path: str | None = None
    """The folder, from the place of the evaluation contract; only with kind `folder`."""


class DiscoveryRule(Value):
    tasks: int = Field(ge=1)
    """Search tasks on which the champion is run."""
    hardened: int = Field(ge=0)
    """Harder tasks to make, at most."""
    repeats: int = Field(default=1, ge=1)
    """Seeds that each task is run with."""


class ExpansionRule(Value):
    attempts: int = Field(ge=1)
    """(task, candidate) attempts, at most."""
    round_size: int = Field(default=16, ge=1)
    """Attempts that are asked for, run and told together."""
    patience: int = Field(default=96, ge=1)
    """Attempts without a newly covered task after which gains have ended."""
    tokens: int | None = None
    seconds: float | None = None
    holdout_tasks: int = Field(ge=1)
    finalists: int = Field(default=2, ge=1)
    reference_solutions_shown: bool = False
    """Whether reference solutions may become examples."""


class UpdateRule(Value):
    enabled: bool = True
    harvest_tasks: int = Field(default=0, ge=0)
    """Further search tasks on which the finalist is run, for more verified solutions."""
    min_examples: int = Field(default=16, ge=1)
    max_examples: int = Field(default=512, ge=1)
    per_family: int = Field(default=12, ge=1)
    rank: int = Field(default=16, ge=1, le=256)
    alpha: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=5e-4, gt=0)
    epochs: float = Field(default=3, gt=0)
    batch_size: int = Field(default=8, ge=1)
    max_steps: int = Field(default=60, ge=1)
    seconds: float = Field(default=3600, gt=0)


class GateRule(Value):
    exam_tasks: int = Field(ge=1)
    seeds: int = Field(default=1, ge=1)
    regression_tasks: int = Field(default=32, ge=0)
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    smallest_gain: float = Field(default=0.0, ge=0, le=1)
    """The interval's lower bound must lie above it to promote."""
    forgetting_tolerance: float = Field(default=0.1, ge=0, le=1)
    """The share of regression tasks that may be lost."""
    min_pairs: int = Field(default=20, ge=2)
    max_invalid_share: float = Field(default=0.1, ge=0, le=1)


class BudgetRule(Value):
    tokens: int | None = None
    seconds: float | None = None
    usd: float | None = None
    disk_floor_mb: int = Field(default=1024, ge=0)
    """New work is refused when less than this is free."""
    usd_per_million_input_tokens: float | None = None
    usd_per_million_output_tokens: float | None = None


class Evaluation(Value):
    """The external yardstick of a generation; named by the SHA-256 of its canonical form."""

    evaluation: Literal["1"]
    name: Name
    seed: int = 0
    suites: tuple[SuiteChoice, ...]
    discovery: DiscoveryRule
    expansion: ExpansionRule
    update: UpdateRule = UpdateRule()
    gate: GateRule
    budget: BudgetRule = BudgetRule()

    @property
    def digest(self) -> Digest:
        """SHA-256 of the canonical form."""
        return digest_value(self)
