"""What environment/ puts into a box before the agent starts: files, or an image to be built."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rsi.domain.task import TaskFile
from rsi.edges.task_files.dockerfile import NotPlain, has_from, laid_out, workdir_of

DEFAULT_WORKDIR = "/work"
_COMPOSE = frozenset({"docker-compose.yaml", "docker-compose.yml"})
_DOCKERFILE = "environment/Dockerfile"
_NAME_IT = f"{DEFAULT_WORKDIR} is used; set `workdir` below [environment] to name another"


@dataclass(slots=True)
class Environment:
    """What was found, and what was wrong with it."""

    files: tuple[TaskFile, ...] = ()
    """Of a Dockerfile that needn't be built; by absolute path."""
    context: tuple[TaskFile, ...] = ()
    """Of a Dockerfile that must be."""
    workdir: str | None = None
    faults: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def environment_of(
    beside: Sequence[TaskFile], *, docker_image: str | None, own_image: str | None, is_ours: bool
) -> Environment:
    """What the files of environment/ stand for.

    `docker_image` is Harbor's key and takes the Dockerfile's place; `own_image` is rsi's and takes
    FROM's place where nothing need be built. `is_ours` tells that the task has rsi's table.
    """
    found = Environment()
    text = _text(beside, found)
    if any(file.path in _COMPOSE for file in beside):
        found.faults.append("environment/ has a compose file; a task runs in one box only")
    elif text is None:
        if docker_image is None and own_image is None and not found.faults:
            fault = f"neither {_DOCKERFILE} nor [environment] docker_image is there"
            found.faults.append(fault)
    elif docker_image is not None:
        found.workdir = workdir_of(text)
    else:
        _take(text, beside, found, own_image, is_ours)
    return found


def workdir_or_default(named: str | None, found: Environment) -> str:
    """The folder that the agent works in; a warning says when it had to be guessed."""
    workdir = named or found.workdir
    if workdir == "/":
        found.warnings.append(f"a box can't work in /: {_NAME_IT}")
    elif workdir is None and not found.files:
        found.warnings.append(f"the image's own working folder isn't known: {_NAME_IT}")
    return DEFAULT_WORKDIR if workdir in (None, "/") else workdir


def _text(beside: Sequence[TaskFile], found: Environment) -> str | None:
    """The Dockerfile; None when there is none."""
    for file in beside:
        if file.path == "Dockerfile":
            try:
                return file.content.decode("utf-8-sig").replace("\r\n", "\n")
            except UnicodeDecodeError as error:
                found.faults.append(f"{_DOCKERFILE}: byte {error.start} is not UTF-8")
    return None


def _take(
    text: str,
    beside: Sequence[TaskFile],
    found: Environment,
    own_image: str | None,
    is_ours: bool,
) -> None:
    """Lays out a plain Dockerfile; any other is kept to be built, unless an image is named."""
    try:
        if any(file.path == ".dockerignore" for file in beside):
            raise NotPlain("a .dockerignore stands beside it")
        laid = laid_out(text, beside)
    except NotPlain as reason:
        found.workdir = workdir_of(text)
        if not has_from(text):
            found.faults.append(f"{_DOCKERFILE}: it has no FROM")
        elif own_image is None:
            found.context = tuple(beside)
        else:
            note = f"{reason}, but it isn't built: `image` below [metadata.rsi] takes its place"
            found.warnings.append(f"{_DOCKERFILE}: {note}")
        return
    found.files, found.workdir = tuple(laid.files.values()), laid.workdir or DEFAULT_WORKDIR
    if laid.has_env:
        found.warnings.append(f"{_DOCKERFILE}: ENV is not used; a box sets its own")
    if not is_ours:
        note = f"FROM {laid.image} is not used; rsi's own base image runs it instead"
        hint = "to use it, set `image` below [metadata.rsi]"
        found.warnings.append(f"{_DOCKERFILE}: {note} ({hint})")
