"""Whose boxes are whose, and the removal of those whose owner is dead."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from requests.exceptions import RequestException

from rsi.errors import SandboxError, TrialFault

LABEL = "rsi.owner"
CALL_LIMIT_S = 30


def owner_name(pid: int) -> str:
    """This machine's boot, the process and its start: never the same for two processes."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{pid}:{_started(pid)}"


def is_alive(owner: str) -> bool:
    """Whether the process that an owner's name stands for still runs."""
    _, _, rest = owner.partition(":")
    pid, _, _ = rest.partition(":")
    return pid.isdigit() and owner == owner_name(int(pid))


def reap(url: str) -> int:
    """Removes the boxes of dead owners, and nothing else; how many there were."""
    with client(url) as api:
        found = api.containers(all=True, filters={"label": LABEL})
        dead = [one["Id"] for one in found if not is_alive(one["Labels"][LABEL])]
        _remove(api, dead)
        return len(dead)


def remove_boxes(url: str, owner: str) -> None:
    """Removes every box of the owner."""
    with client(url) as api:
        found = api.containers(all=True, filters={"label": f"{LABEL}={owner}"})
        _remove(api, [one["Id"] for one in found])


@contextmanager
def client(url: str) -> Iterator[Any]:
    """The engine's API, closed afterwards, with foreign errors mapped."""
    with foreign_errors(url):
        api = docker.APIClient(base_url=url, timeout=CALL_LIMIT_S, version="auto")
        try:
            yield api
        finally:
            api.close()


@contextmanager
def foreign_errors(url: str) -> Iterator[None]:
    """Turns Docker's and its HTTP library's errors into ours."""
    try:
        yield
    except ImageNotFound as error:
        raise SandboxError(f"the engine at {url} has no such image: {error.explanation}") from error
    except APIError as error:
        raise TrialFault("sandbox", f"the engine refused: {error.explanation}") from error
    except (DockerException, RequestException, OSError) as error:
        raise SandboxError(
            f"the Docker engine at {url} doesn't answer ({type(error).__name__}); start it, or set "
            "RSI_SANDBOX=namespaces, and run again"
        ) from error


def _remove(api: Any, containers: list[str]) -> None:
    for container in containers:
        # Gone already, or being removed just now: both are what is wanted.
        with contextlib.suppress(NotFound, APIError):
            api.remove_container(container, force=True)


def _started(pid: int) -> str:
    """The start time of a process in clock ticks; empty when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
