"""Images that the engine builds of files held in memory."""

import io
import re
import tarfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from docker.errors import APIError
from docker.utils.build import PatternMatcher
from requests.exceptions import Timeout
from urllib3.exceptions import HTTPError, ReadTimeoutError

from rsi.domain.task import TaskFile
from rsi.edges.docker_sandbox.images import IMAGE_LABEL
from rsi.errors import DiskError, SandboxError, TrialFault

SAID_LINES = 6
SAID_CHARACTERS = 600
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def build(
    api: Any,
    tag: str,
    context: Sequence[TaskFile],
    limit_s: float,
    *,
    kind: str = "task",
    arguments: Mapping[str, str] = {},
) -> None:
    """Builds the image, labelled as ours. A step that is silent may take as long once more.

    Raises TrialFault with the last lines of what the build said, DiskError without room.
    """
    said: deque[str] = deque(maxlen=SAID_LINES)
    deadline = time.monotonic() + limit_s
    with _faults(tag, said, limit_s):
        for line in api.build(
            fileobj=io.BytesIO(_tar(context)),
            custom_context=True,
            tag=tag,
            labels={IMAGE_LABEL: kind},
            buildargs=dict(arguments),
            pull=False,
            rm=True,
            forcerm=True,
            network_mode=_network(api),
            timeout=limit_s,
            decode=True,
        ):
            text = _ESCAPES.sub("", line.get("error") or line.get("stream") or "")
            said.extend(part for part in text.splitlines() if part.strip())
            if "error" in line:
                raise _fault(tag, said)
            if time.monotonic() > deadline:
                raise TimeoutError


@contextmanager
def _faults(tag: str, said: deque[str], limit_s: float) -> Iterator[None]:
    try:
        yield
    except (Timeout, ReadTimeoutError, TimeoutError) as error:
        said.append(f"it took over {limit_s:g} s")
        raise _fault(tag, said) from error
    except HTTPError as error:
        raise SandboxError(f"the Docker engine broke off the build of {tag}: {error}") from error
    except APIError as error:
        said.append(str(error.explanation))
        raise _fault(tag, said) from error


def _fault(tag: str, said: deque[str]) -> TrialFault | DiskError:
    text = " | ".join(said)[-SAID_CHARACTERS:]
    if "no space left" in text:
        return DiskError(f"no disk is left to build image {tag} ({text}); free some and run again")
    return TrialFault("sandbox", f"image {tag} can't be built: {text}")


def _network(api: Any) -> str | None:
    """The engine's default; none for an engine without a bridge, as our own is."""
    bridges = [one["Name"] for one in api.networks(names=["bridge"])]
    return None if "bridge" in bridges else "none"


def _tar(context: Sequence[TaskFile]) -> bytes:
    """The context with fixed owners and times: the same files give the same bytes."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for file in _kept(context):
            member = tarfile.TarInfo(file.path)
            member.size = len(file.content)
            member.mode = 0o755 if file.executable else 0o644
            tar.addfile(member, io.BytesIO(file.content))
    return whole.getvalue()


def _kept(context: Sequence[TaskFile]) -> Iterator[TaskFile]:
    """What .dockerignore doesn't leave out, which is for the engine's client to do."""
    patterns = [
        line.strip()
        for file in context
        if file.path == ".dockerignore"
        for line in file.content.decode("utf-8", "replace").splitlines()
    ]
    ignored = PatternMatcher([line for line in patterns if line and not line.startswith("#")])
    for file in context:
        # The stub wants a PathLike, which the function can't take.
        is_left_out = ignored.matches(file.path)  # type: ignore[arg-type]
        if file.path == "Dockerfile" or not is_left_out:
            yield file
