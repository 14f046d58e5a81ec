"""Trials: one run of a pair on a task with a seed, and what came of it."""

from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import AwareDatetime, Field

from rsi.domain.values import Digest, Value


class Cause(StrEnum):
    """Why a trial failed, read from what its trajectory shows."""

    WRONG_ANSWER = "wrong_answer"
    MALFORMED_ACTION = "malformed_action"
    TOOL_ERROR = "tool_error"
    LOOP = "loop"
    GAVE_UP = "gave_up"
    LIMIT_REACHED = "limit_reached"


class Solved(Value):
    kind: Literal["solved"] = "solved"


class Failed(Value):
    kind: Literal["failed"] = "failed"
    cause: Cause


class Invalid(Value):
    """The machine broke, not the pair: never a zero and never evidence."""

    kind: Literal["invalid"] = "invalid"
    where: str
    reason: str


Outcome = Annotated[Solved | Failed | Invalid, Field(discriminator="kind")]


class Usage(Value):
    """What a trial cost."""

    input_tokens: int = 0
    """Including the cached ones."""
    cached_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0
    model_s: float = 0.0
    sandbox_s: float = 0.0
    verifier_s: float = 0.0


class BoxFacts(Value):
    """In what kind of sandbox a trial ran, and what that kind can't guarantee."""

    engine: str
    """`docker`, `namespaces` or `fake`."""
    level: Literal["isolated", "contained", "none"]
    image: str
    missing: tuple[str, ...] = ()


class Judgement(Value):
    """What the verifier said about the world that an agent left."""

    rewards: dict[str, float]
    elapsed_s: float

    @property
    def is_solved(self) -> bool:
        return self.rewards.get("reward", 0.0) >= 1.0


class TrialKey(NamedTuple):
    """The natural key of a trial."""

    pair: Digest
    task: Digest
    seed: int


class Trial(Value):
    """One run of a pair on a task with a seed."""

    pair: Digest
    task: Digest
    seed: int
    generation: int
    outcome: Outcome
    rewards: dict[str, float] = {}
    """What the verifier declared, by name; empty when it was not reached."""
    usage: Usage
    box: BoxFacts
    trajectory: Digest | None
    """Blob of the ATIF document; none when the trial broke before its first step."""
    started_at: AwareDatetime
    elapsed_s: float

    @property
    def key(self) -> TrialKey:
        return TrialKey(self.pair, self.task, self.seed)

    @property
    def is_solved(self) -> bool:
        return isinstance(self.outcome, Solved)

    @property
    def is_invalid(self) -> bool:
        return isinstance(self.outcome, Invalid)


class Action(Value):
    """What the agent did in one step, and what came back."""

    reply: str
    tool: str | None
    """None when no action could be read from the reply."""
    tool_input: str = ""
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    note: str = ""
    """What the harness added: a hook's word, a limit, a refusal."""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class Trajectory(Value):
    """The steps of a trial; stored as an ATIF v1.8 document."""

    messages: tuple[tuple[str, str], ...]
    """(role, text) of what the model was first shown."""
    actions: tuple[Action, ...]
    answer: str = ""
