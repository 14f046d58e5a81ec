"""What time does: what a box that waits holds, and whether the thousandth trial is as the first."""

import os
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsi.edges.docker_sandbox.calls import client
from rsi.edges.docker_sandbox.owners import LABEL, owner_name
from rsi.ports import BoxSpec, Sandbox

BLOCK = 100
"""Trials of which one median is told."""
SETTLE_S = 1
MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Drift:
    """A long row of trials of the pool, each with one call."""

    trials: int
    medians_ms: tuple[float, ...]
    """Of each hundred trials, in order."""
    loads: tuple[float, ...]
    """The machine's load at the end of each hundred: others may be at work."""
    memory_mb: tuple[float, ...]
    """What this process holds after each hundred."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What one box that waits holds; None where it can't be read."""

    group_mb: float | None
    """By its control group."""
    holder_mb: float | None
    """Of its containerd-shim: anonymous memory, which nothing else shares."""


def drift(sandbox: Sandbox, trials: int, left_s: Callable[[], float]) -> Drift:
    """Runs the trials one after the other, or fewer when the time is up."""
    times: list[float] = []
    medians: list[float] = []
    loads: list[float] = []
    memory: list[float] = []
    while len(times) < trials and left_s() > 0:
        begun = time.perf_counter()
        with sandbox.box(BoxSpec()) as box:
            box.run(("true",), timeout_s=60)
        times.append(time.perf_counter() - begun)
        if len(times) % BLOCK == 0:
            medians.append(1000 * statistics.median(times[-BLOCK:]))
            loads.append(os.getloadavg()[0])
            memory.append(_own_mb())
    return Drift(len(times), tuple(medians), tuple(loads), tuple(memory))


def waiting(url: str, sandbox: Sandbox) -> Waiting:
    """What the boxes of this process that wait ready hold on average."""
    with sandbox.box(BoxSpec()):
        time.sleep(SETTLE_S)
        with client(url) as api:
            found = api.containers(filters={"label": f"{LABEL}={owner_name(os.getpid())}"})
            ids = [one["Id"] for one in found]
            groups = [_used_mb(api.stats(one, stream=False)) for one in ids]
        holders = [_holder_mb(path.parent, ids) for path in Path("/proc").glob("[0-9]*/cmdline")]
    return Waiting(_mean(groups), _mean(holders))


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None


def _used_mb(stats: dict[str, Any]) -> float | None:
    used = stats["memory_stats"].get("usage")
    return None if used is None else used / MB


def _holder_mb(process: Path, containers: list[str]) -> float | None:
    """What a process holds, if it is the shim of one of the containers."""
    line = _read(process / "cmdline")
    if b"containerd-shim" not in line or not any(one.encode() in line for one in containers):
        return None
    lines = _read(process / "status").decode().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


def _own_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MB


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
