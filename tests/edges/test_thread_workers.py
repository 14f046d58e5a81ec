"""Workers keep the order of items, and the first error or an interrupt ends a batch."""

import threading
import time

import pytest

from rsi.edges.line_progress import LineProgress
from rsi.edges.thread_workers import ThreadWorkers


def test_results_come_in_the_order_of_items() -> None:
    def slow(n: int) -> int:
        time.sleep(0.002 * (10 - n))
        return n

    assert ThreadWorkers(4).map("slow", slow, range(10)) == list(range(10))


def test_the_first_error_drops_what_waits() -> None:
    begun: list[int] = []
    lock = threading.Lock()

    def call(n: int) -> int:
        with lock:
            begun.append(n)
        time.sleep(0.01)
        if n == 1:
            raise ZeroDivisionError
        return n

    with pytest.raises(ZeroDivisionError):
        ThreadWorkers(2).map("broken", call, range(200))
    assert len(begun) < 20


def test_an_empty_batch_is_nothing() -> None:
    assert ThreadWorkers(2).map("none", lambda n: n, []) == []


def test_progress_tells_the_time_that_is_left() -> None:
    now, said = [0.0], list[str]()
    progress = LineProgress(said.append, lambda: now[0])
    progress.stage("exam", 100)
    for _ in range(50):
        now[0] += 0.5
        progress.advance()
    assert said[0] == "exam: 100 steps"
    assert said[-1] == "exam: 40 of 100, about 30 s left"
