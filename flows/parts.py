"""The parts of a stage inside a Prefect run, and how its progress is shown there."""

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE

from rsi import wiring
from rsi.domain.evaluation import Evaluation
from rsi.edges.line_progress import LineProgress
from rsi.edges.thread_workers import ThreadWorkers
from rsi.report.story import find
from rsi.stages.parts import Parts

log = logging.getLogger("rsi")

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
            results.extend(self._threads.map(label, call, items))

        batch()
        return results


@contextmanager
def opened(evaluation: Evaluation) -> Iterator[Parts]:
    """Every part of a generation under the evaluation, from this process's settings."""
    chosen = wiring.settings()
    progress = LineProgress(say, time.monotonic)
    with wiring.open_parts(chosen, evaluation, TaskWorkers(chosen.workers), progress) as parts:
        yield parts


def evaluation_of(number: int) -> Evaluation:
    """The evaluation that a recorded generation runs under. Raises RsiError when there is none."""
    ledger = wiring.open_ledger()
    try:
        return ledger.evaluation(find(ledger, number).evaluation)
    finally:
        ledger.close()


def say(text: str) -> None:
    """A line for the terminal, and for the log of the run."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
    log.info("%s", text)
