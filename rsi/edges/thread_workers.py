"""Calls side by side, in threads of this process."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class ThreadWorkers:
    """Keeps the `Workers` port with a pool of `count` threads for each batch."""

    def __init__(self, count: int) -> None:
        self._count = count

    def map(
        self, label: str, call: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """The results in the order of items. The first error, or an interrupt, ends the batch:
        what runs may finish, what waits is dropped."""
        with ThreadPoolExecutor(self._count, thread_name_prefix=label[:24]) as pool:
            futures = [pool.submit(call, item) for item in items]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                for future in futures:
                    future.cancel()
            for future in futures:
                if future.done() and not future.cancelled():
                    future.result()
            return [future.result() for future in futures]
