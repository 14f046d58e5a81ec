"""Admission: whether every task of a suite passes with its reference and fails with a no-op."""

from collections.abc import Sequence

from rsi.domain.task import Task
from rsi.stages.discovery import admit
from rsi.stages.parts import Parts
from rsi.steps.verify import Admission


def verify_tasks(parts: Parts, tasks: Sequence[Task]) -> tuple[Admission, ...]:
    """What was found of each task, in order. Raises SandboxError when the engine is down."""
    parts.progress.stage("tasks", len(tasks))

    def one(task: Task) -> Admission:
        admission = admit(parts, task)
        parts.progress.advance()
        return admission

    return tuple(parts.workers.map("verify", one, tasks))
