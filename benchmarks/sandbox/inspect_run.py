# mypy: ignore-errors
"""Runs Inspect on no-op samples in its Docker sandbox; called with Inspect's own Python.

Arguments: compose file, samples, samples side by side, folder for logs. Prints `success N SECONDS`.
"""

import sys
import time
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import solver
from inspect_ai.util import sandbox

TEST = (
    "mkdir -p /logs/verifier\n[ -s /work/answer ] && got=1 || got=0\n"
    "echo $got > /logs/verifier/reward.txt\n"
)


@solver
def nothing() -> Any:
    """An agent that does nothing."""

    async def solve(state: Any, _generate: Any) -> Any:
        return state

    return solve


@scorer(metrics=[accuracy()])
def verdict() -> Any:
    """The reward that the test script writes."""

    async def score(_state: Any, _target: Any) -> Score:
        box = sandbox()
        await box.write_file("/tests/test.sh", TEST)
        await box.exec(["bash", "/tests/test.sh"], timeout=60)
        return Score(value=float(await box.read_file("/logs/verifier/reward.txt")))

    return score


def main() -> None:
    """Runs the samples and says how long they took."""
    compose, count, width, logs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    samples = [Sample(input="x", files={"/work/file": "one\n"}) for _ in range(count)]
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
    scored = sum(bool(sample.scores) for sample in log.samples or ())
    print(f"{log.status} {scored} {time.perf_counter() - begun:.2f}")  # noqa: T201


if __name__ == "__main__":
    main()
