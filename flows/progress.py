"""How far a run is: bars in a terminal, lines elsewhere, and lines in the run's own log."""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from rsi.edges.line_progress import LineProgress

run_log = logging.getLogger("prefect.extra.rsi")
"""Goes to the server and nowhere else. Lines from outside a run are dropped there."""


@contextmanager
def open_progress(stream: TextIO | None = None) -> Iterator["FlowProgress"]:
    """The progress of a flow, shown on the stream (standard error when none is given)."""
    target = stream or sys.stderr
    if not target.isatty():
        yield FlowProgress(LineProgress(lambda text: _tell(target, text), time.monotonic))
        return
    with BarProgress(Console(file=target)) as bars:
        yield FlowProgress(bars)


class FlowProgress:
    """Keeps the `Progress` port for a person and for the log of the run."""

    def __init__(self, shown: "LineProgress | BarProgress") -> None:
        self._shown = shown
        self._logged = LineProgress(lambda text: run_log.info("%s", text), time.monotonic)

    def stage(self, name: str, steps: int) -> None:
        self._shown.stage(name, steps)
        self._logged.stage(name, steps)

    def advance(self, steps: int = 1, note: str = "") -> None:
        self._shown.advance(steps, note)
        self._logged.advance(steps, note)

    def say(self, text: str) -> None:
        self._shown.say(text)
        self._logged.say(text)


class BarProgress:
    """Keeps the `Progress` port with a bar for each stage and the time that is left."""

    def __init__(self, console: Console) -> None:
        self._lock = threading.Lock()
        self._bar: TaskID | None = None
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=console,
        )

    def __enter__(self) -> "BarProgress":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def stage(self, name: str, steps: int) -> None:
        with self._lock:
            if self._bar is not None:
                self._bars.stop_task(self._bar)
            self._bar = self._bars.add_task(name, total=steps, note="")

    def advance(self, steps: int = 1, note: str = "") -> None:
        with self._lock:
            if self._bar is not None:
                self._bars.update(self._bar, advance=steps, note=note)

    def say(self, text: str) -> None:
        self._bars.console.print(text, markup=False, highlight=False)


def _tell(stream: TextIO, text: str) -> None:
    stream.write(f"{text}\n")
    stream.flush()
