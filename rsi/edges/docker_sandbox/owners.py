"""Whose boxes are whose, and the removal of those whose owner is dead."""

import os
import time
from pathlib import Path
from typing import Any

from rsi.edges.docker_sandbox.calls import client, remove_container

LABEL = "rsi.owner"
FOREIGN_AGE_S = 3600
"""A stopped box of an owner that can't be looked up from here is removed when it is so old."""


def owner_name(pid: int) -> str:
    """This machine's boot, the process space, the process and its start: never twice the same."""
    return f"{_space()}:{pid}:{_started(pid)}"


def is_alive(owner: str) -> bool | None:
    """Whether an owner's process still runs; None when that can't be seen from here."""
    space, _, rest = owner.rpartition(":")[0].rpartition(":")
    if space != _space() or not rest.isdigit():
        return None
    return owner == owner_name(int(rest))


def reap(url: str) -> int:
    """Removes the boxes of dead owners, and nothing else; how many there were."""
    with client(url) as api:
        found = api.containers(all=True, filters={"label": LABEL})
        dead = [one["Id"] for one in found if _is_dead(one)]
        for container in dead:
            remove_container(api, container)
        return len(dead)


def remove_boxes(url: str, owner: str) -> None:
    """Removes every box of the owner."""
    with client(url) as api:
        for one in api.containers(all=True, filters={"label": f"{LABEL}={owner}"}):
            remove_container(api, one["Id"])


def _is_dead(container: Any) -> bool:
    alive = is_alive(container["Labels"][LABEL])
    if alive is None:
        # Another machine or container uses this engine too. Its running boxes end with their
        # connection; what never ran stays behind.
        age_s = time.time() - float(container["Created"])
        return container["State"] != "running" and age_s > FOREIGN_AGE_S
    return not alive


def _space() -> str:
    """This boot of this machine, and the process ids that can be seen from here."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{os.readlink('/proc/self/ns/pid')[5:-1]}"


def _started(pid: int) -> str:
    """The start time of a process in clock ticks; empty when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
