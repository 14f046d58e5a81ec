"""Small values that many tests build on."""

from datetime import UTC, datetime

from rsi.domain.contract import Contract, Skill, Tool, ToolKind
from rsi.domain.task import Answer, Task, TaskFile
from rsi.domain.trial import BoxFacts, Cause, Failed, Invalid, Outcome, Solved, Trial, Usage
from rsi.domain.values import Digest, digest_bytes

BOX = BoxFacts(engine="fake", level="none", image="fake")
SPACE = (
    "prompt.system",
    "prompt.examples",
    "prompt.examples_shown",
    "agent.*",
    "model.sampling.*",
    "skills.*.shown",
    "tools.*.exposed",
    "hooks",
)


def digest(name: str) -> Digest:
    """A digest for a name."""
    return digest_bytes(name.encode())


def task(
    name: str = "one", family: str = "lines", level: int = 1, answer: Answer = Answer.STDOUT
) -> Task:
    """A task that is solved by printing its own name."""
    script = f'[ "$(cat /logs/agent/answer.txt)" = {name} ]'
    return Task(
        name=f"test/{name}",
        suite="test",
        family=family,
        level=level,
        instruction=f"Print the word {name}.",
        answer=answer,
        tests=(TaskFile(path="test.sh", content=script.encode()),),
        solution=(TaskFile(path="solve.sh", content=f"echo {name}\n".encode()),),
    )


def contract(**tables: object) -> Contract:
    """A contract with bash exposed, a cookbook and a search space."""
    document: dict[str, object] = {
        "hcp": "1",
        "name": "test",
        "version": "1.0.0",
        "tools": {"bash": Tool(kind=ToolKind.BASH)},
        "skills": (Skill(name="cookbook"),),
        "search": {"space": SPACE},
        **tables,
    }
    return Contract.model_validate(document)


def trial(
    pair: str = "pair",
    task: Digest | str = "task",
    seed: int = 0,
    *,
    solved: bool = False,
    invalid: bool = False,
    cause: Cause = Cause.WRONG_ANSWER,
    generation: int = 1,
    trajectory: Digest | None = None,
) -> Trial:
    """A trial; `pair` is a name or a digest, and so is `task`."""
    outcome: Outcome = Solved() if solved else Failed(cause=cause)
    if invalid:
        outcome = Invalid(where="sandbox", reason="the box died")
    return Trial(
        pair=pair if len(pair) == 64 else digest(pair),
        task=task if len(task) == 64 else digest(task),
        seed=seed,
        generation=generation,
        outcome=outcome,
        usage=Usage(input_tokens=10, output_tokens=5),
        box=BOX,
        trajectory=trajectory,
        started_at=datetime(2030, 1, 1, tzinfo=UTC),
        elapsed_s=0.5,
    )
