"""Calls to the engine's API, with foreign errors turned into ours."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound
from requests.exceptions import RequestException

from rsi.edges.docker_sandbox.engine import answers
from rsi.errors import DiskError, SandboxError, TrialFault

CALL_LIMIT_S = 60
CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What an engine says of itself."""

    cpus: float
    data_root: Path | None
    """Where its boxes' disk is, if that is on this machine."""


def open_client(url: str) -> Any:
    """The engine's API; close it afterwards. Raises SandboxError."""
    with foreign_errors(url):
        if not answers(url):  # The SDK leaves its socket open when it can't connect.
            raise ConnectionRefusedError
        return docker.APIClient(
            base_url=url, timeout=CALL_LIMIT_S, version="auto", num_pools=CONNECTIONS
        )


@contextmanager
def client(url: str) -> Iterator[Any]:
    """The engine's API, closed afterwards."""
    api = open_client(url)
    try:
        with foreign_errors(url):
            yield api
    finally:
        api.close()


def engine_facts(api: Any, url: str) -> EngineFacts:
    """What the engine says of itself; what it says of its limits is not relied on."""
    with foreign_errors(url):
        info = api.info()
    root = Path(str(info.get("DockerRootDir", "")))
    return EngineFacts(
        cpus=float(info.get("NCPU") or 1),
        data_root=root if url.startswith("unix:") and root.is_dir() else None,
    )


def remove_container(api: Any, container: str) -> None:
    """Removes a container, if it is still there."""
    # Gone already, or being removed just now: both are what is wanted.
    with contextlib.suppress(APIError, RequestException):
        api.remove_container(container, force=True)


@contextmanager
def foreign_errors(url: str) -> Iterator[None]:
    """Turns Docker's and its HTTP library's errors into ours."""
    try:
        yield
    except ImageNotFound as error:
        raise TrialFault("sandbox", f"the engine has no such image: {error.explanation}") from error
    except APIError as error:
        said = str(error.explanation)
        if "no space left" in said:
            raise DiskError(
                f"the Docker engine at {url} has no disk left ({said}); free some room "
                "(docker system prune) and run again"
            ) from error
        raise TrialFault("sandbox", f"the engine refused: {said}") from error
    except (DockerException, RequestException, OSError) as error:
        raise SandboxError(
            f"the Docker engine at {url} doesn't answer ({type(error).__name__}); start it, or set "
            "RSI_SANDBOX=namespaces, and run again"
        ) from error
