"""File locks that the kernel frees when the last process that holds them ends."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rsi.errors import DatabaseError

POLL_S = 0.02


@contextmanager
def locked(path: Path, *, limit_s: float) -> Iterator[int]:
    """Holds the lock on a file; a process that inherits the descriptor goes on holding it.

    Raises DatabaseError when others hold it for longer than the limit.
    """
    handle = _open(path)
    try:
        deadline = time.monotonic() + limit_s
        while not _take(handle):
            if time.monotonic() > deadline:
                raise DatabaseError(
                    f"another process has held {path} for {limit_s:g} s; end it and run again"
                )
            time.sleep(POLL_S)
        yield handle
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock."""
    handle = _open(path)
    try:
        return not _take(handle)
    finally:
        os.close(handle)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
