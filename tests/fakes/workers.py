"""Workers that run one call after the other."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class InlineWorkers:
    """Keeps the `Workers` port in the calling thread."""

    def map(
        self, label: str, call: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        del label
        return [call(item) for item in items]
