"""The parts of a stage inside a Prefect run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows.progress import open_progress
from rsi import wiring
from rsi.domain.evaluation import Evaluation
from rsi.edges.thread_workers import ThreadWorkers
from rsi.report.story import find
from rsi.stages.parts import Parts

Item = TypeVar("Item")
Result = TypeVar("Result")


class TaskWorkers:
    """Keeps the `Workers` port: each batch is one Prefect task with threads inside, so that a
    thousand trials don't make a thousand lines."""

    def __init__(self, count: int) -> None:
        self._threads = ThreadWorkers(count)

    def map(
        self, label: str, call: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        results: list[Result] = []

        @task(
            name="batch",
            task_run_name=f"{label}: {len(items)}",
            persist_result=False,
            cache_policy=NO_CACHE,
        )
        def batch() -> None:
            # Each thread knows the run that it works for, so that its lines reach the run's log.
            calls = [(copy_context(), item) for item in items]
            results.extend(self._threads.map(label, lambda it: it[0].run(call, it[1]), calls))

        batch()
        return results


@contextmanager
def opened(evaluation: Evaluation) -> Iterator[Parts]:
    """Every part of a generation under the evaluation, from this process's settings."""
    chosen = wiring.settings()
    workers = TaskWorkers(chosen.workers)
    with (
        open_progress() as progress,
        wiring.open_parts(chosen, evaluation, workers, progress) as parts,
    ):
        yield parts


def evaluation_of(number: int) -> Evaluation:
    """The evaluation that a recorded generation runs under. Raises RsiError when there is none."""
    ledger = wiring.open_ledger()
    try:
        return ledger.evaluation(find(ledger, number).evaluation)
    finally:
        ledger.close()
