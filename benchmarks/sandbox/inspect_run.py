# mypy: ignore-errors
"""Runs Inspect on tasks in its Docker sandbox; called with Inspect's own Python.

Arguments: compose file, folder of Harbor tasks, trials, trials side by side, folder for logs.
Prints `success N SECONDS`, N of them scored as failed, as they are when nothing is done.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import solver
from inspect_ai.util import sandbox


@solver
def nothing() -> Any:
    """An agent that does nothing."""

    async def solve(state: Any, _generate: Any) -> Any:
        return state

    return solve


@scorer(metrics=[accuracy()])
def verdict() -> Any:
    """The reward that the task's own test script writes."""

    async def score(state: Any, _target: Any) -> Score:
        box = sandbox()
        for path, text in state.metadata["tests"].items():
            await box.write_file(f"/tests/{path}", text)
        await box.exec(["bash", "/tests/test.sh"], timeout=60)
        reward = json.loads(await box.read_file("/logs/verifier/reward.json"))["reward"]
        return Score(value=float(reward))

    return score


def texts(folder: Path) -> dict[str, str]:
    """The files below a folder, by path."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def sample(folder: Path) -> Sample:
    """A task as Inspect has it: its files are laid by Inspect, its tests by the scorer."""
    files = texts(folder / "environment/files")
    return Sample(
        input=(folder / "instruction.md").read_text(),
        files={f"/work/{path}": text for path, text in files.items()},
        metadata={"tests": texts(folder / "tests")},
    )


def main() -> None:
    """Runs the samples and says how long they took."""
    compose, tasks, logs = sys.argv[1], Path(sys.argv[2]), sys.argv[5]
    count, width = int(sys.argv[3]), int(sys.argv[4])
    folders = sorted(tasks.iterdir())
    samples = [sample(folders[number % len(folders)]) for number in range(count)]
    work = Task(samples, solver=nothing(), scorer=verdict(), sandbox=("docker", compose))
    begun = time.perf_counter()
    (log,) = eval(
        work,
        model="mockllm/model",
        display="plain",
        max_samples=width,
        max_sandboxes=width,
        max_subprocesses=width * 2,
        log_dir=logs,
    )
    taken_s = time.perf_counter() - begun
    scores = [one for sample in log.samples or () for one in (sample.scores or {}).values()]
    failed = sum(float(score.value) == 0 for score in scores)
    print(f"{log.status} {failed} {taken_s:.2f}")  # noqa: T201


if __name__ == "__main__":
    main()
