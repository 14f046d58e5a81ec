"""What is made once for whoever asks, and waited for meanwhile."""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

from rsi.errors import TrialFault

Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")


class Once(Generic[Key, Made]):
    """Keeps what was made by its key. A TrialFault is kept as well: it would come again."""

    def __init__(self, most: int = 10_000) -> None:
        """Of more than `most` the first are forgotten, and made again when asked for."""
        self._most, self._lock = most, threading.Lock()
        self._kept: dict[Key, Future[Made]] = {}

    def get(self, key: Key, make: Callable[[], Made]) -> Made:
        """What is kept, or what `make` gives now; whoever asks meanwhile waits for it."""
        with self._lock:
            kept = self._kept.get(key)
            future = self._kept.setdefault(key, Future())
            for oldest in list(self._kept)[: len(self._kept) - self._most]:
                del self._kept[oldest]
        if kept is None:
            try:
                future.set_result(make())
            except BaseException as error:
                if not isinstance(error, TrialFault):
                    with self._lock:
                        self._kept.pop(key, None)
                future.set_exception(error)
                raise
        return future.result()
