"""A Harbor task directory read into a task: strict about values, lenient about what is unknown."""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rsi.domain.cases import Case, CaseFile
from rsi.domain.faults import Fault, check
from rsi.domain.keys import join_key
from rsi.domain.places import places_in
from rsi.domain.task import Task, TaskFile
from rsi.edges.task_files.environment import Environment, environment_of, workdir_or_default
from rsi.edges.task_files.folders import FolderFault, files_below, one_file, path_fault
from rsi.edges.task_files.harbor import (
    KNOWN_VERSIONS,
    SCHEMA_VERSION,
    HarborTask,
    unsupported,
    unused,
)
from rsi.errors import TaskError

DEFAULT_AGENT_TIMEOUT_S = 600.0
"""For tasks that name none; the contract's own limit is shorter as a rule."""
BUILD_TIMEOUT_S = 600.0
"""Harbor's own; of no matter to a task whose image needn't be built."""
_LEVELS = {"easy": 1, "medium": 2, "hard": 3}
_NOT_IN_SLUG = re.compile(r"[^\w.-]+")

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class TaskRead:
    """A task, and what its directory says that rsi doesn't do."""

    task: Task
    warnings: tuple[str, ...]


@dataclass(slots=True)
class _Reading:
    """One directory under reading: what was found wrong, and what was passed over."""

    folder: Path
    suite: str
    faults: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)


def read_task(folder: Path, suite: str = "folder") -> TaskRead:
    """The task of a Harbor directory. Raises TaskError with every fault.

    `suite` names the suite of a task that names none.
    """
    reading = _Reading(folder, suite)
    harbor = _harbor(reading)
    instruction = _instruction(reading)
    tests = _files(reading, "tests", harbor.metadata.rsi.tests)
    solution = _files(reading, "solution", harbor.metadata.rsi.solution)
    case_file = harbor.metadata.rsi.cases
    cases = _cases(reading, tests, case_file)
    tests = tuple(file for file in tests if file.path != case_file)
    if case_file is None and not any(file.path == "test.sh" for file in tests):
        reading.faults.append("tests/test.sh is missing; it must write the reward")
    found = _environment(reading, harbor)
    if reading.faults:
        raise _error(folder, reading.faults)
    rsi = harbor.metadata.rsi
    workdir = workdir_or_default(harbor.environment.workdir, found)
    reading.warnings += found.warnings
    own = f"{workdir.rstrip('/')}/"
    task = Task(
        name=harbor.task.name or f"local/{_slug(folder.name)}",
        suite=rsi.suite or suite,
        family=rsi.family or _family(reading.metadata),
        level=rsi.level if rsi.level is not None else _level(reading.metadata),
        instruction=instruction,
        answer=rsi.answer,
        workdir=workdir,
        files=tuple(
            file.model_copy(update={"path": file.path.removeprefix(own)}) for file in found.files
        ),
        tests=tests,
        cases=cases,
        solution=solution,
        artifacts=rsi.artifacts,
        image=rsi.image or harbor.environment.docker_image,
        context=found.context,
        build_timeout_s=harbor.environment.build_timeout_sec if found.context else BUILD_TIMEOUT_S,
        agent_timeout_s=harbor.agent.timeout_sec or DEFAULT_AGENT_TIMEOUT_S,
        verifier_timeout_s=harbor.verifier.timeout_sec,
        made_by=rsi.made_by or rsi.suite or suite,
    )
    return TaskRead(task, tuple(reading.warnings))


def _harbor(reading: _Reading) -> HarborTask:
    text = _text(reading, "task.toml")
    document = _document(reading, text)
    metadata = document.get("metadata")
    if isinstance(metadata, dict):
        reading.metadata = metadata
        # Harbor leaves metadata free, so only rsi's own part is checked.
        document["metadata"] = {"rsi": metadata["rsi"]} if "rsi" in metadata else {}
    checked = check(HarborTask, document)
    unknown = [fault for fault in checked.faults if fault.is_unknown_key]
    strict = [fault for fault in unknown if fault.path[:2] == ("metadata", "rsi")]
    lenient = [fault for fault in unknown if fault not in strict]
    reading.warnings += _listed(text, lenient)
    if lenient:
        for fault in lenient:
            _remove(document, fault)
        checked = check(HarborTask, document)
    reading.faults += _listed(text, checked.faults)
    harbor = checked.value or HarborTask()
    reading.faults += [f"task.toml: {key}: {why}" for key, why in unsupported(harbor)]
    reading.warnings += [f"task.toml: {key} is not used: {why}" for key, why in unused(harbor)]
    version = harbor.version or harbor.schema_version
    if version not in KNOWN_VERSIONS:
        note = f"task.toml: schema_version {version!r} is unknown; read as {SCHEMA_VERSION}"
        reading.warnings.append(note)
    reading.faults += [f"task.toml: {fault}" for fault in _place_faults(harbor)]
    return harbor


def _place_faults(harbor: HarborTask) -> Iterator[str]:
    workdir = harbor.environment.workdir
    if workdir is not None and (not workdir.startswith("/") or workdir == "/"):
        yield f"environment.workdir must be absolute and below /, but is {workdir!r}"
    for place in (workdir, *harbor.metadata.rsi.artifacts):
        fault = path_fault(place, may_be_absolute=True) if place not in (None, "/") else None
        if fault is not None:
            yield fault


def _document(reading: _Reading, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        reading.faults.append("task.toml: is nested too deeply")
    except ValueError as error:
        reading.faults.append(f"task.toml: is not valid TOML: {error}")
    return {}


def _remove(document: dict[str, Any], fault: Fault) -> None:
    table: Any = document
    for part in fault.path[:-1]:
        table = table[part]
    table.pop(fault.path[-1], None)


def _listed(text: str, faults: tuple[Fault, ...] | list[Fault]) -> Iterator[str]:
    for fault in faults:
        line = places_in(text).line_of(fault.path)
        place = f"task.toml line {line}" if line else "task.toml"
        yield f"{place}: {join_key(fault.path)}: {fault.text}"


def _instruction(reading: _Reading) -> str:
    """The instruction without its file's last line end."""
    text = _text(reading, "instruction.md").removesuffix("\n")
    if "\0" in text:
        reading.faults.append("instruction.md holds a NUL character; take it out")
    return text


def _text(reading: _Reading, name: str) -> str:
    """A required text file, with LF line ends and without a byte-order mark."""
    try:
        content = one_file(reading.folder, name)
        if content is None:
            reading.faults.append(f"{name} is missing")
        return (content or b"").decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        reading.faults.append(f"{name}: byte {error.start} is not UTF-8")
    except FolderFault as fault:
        reading.faults.append(str(fault))
    except OSError as error:
        reading.faults.append(f"{name} can't be read: {error.strerror}")
    return ""


def _files(reading: _Reading, name: str, order: tuple[str, ...] = ()) -> tuple[TaskFile, ...]:
    """The files of a part; those that `order` names come first, the others by the alphabet."""
    try:
        files = files_below(reading.folder / name)
    except FolderFault as fault:
        reading.faults.append(f"{name}/: {fault}")
        return ()
    except OSError as error:
        reading.faults.append(f"{name}/ can't be read: {error.strerror}")
        return ()
    places = {path: place for place, path in enumerate(order)}
    return tuple(sorted(files, key=lambda file: (places.get(file.path, len(places)), file.path)))


def _cases(reading: _Reading, tests: Sequence[TaskFile], name: str | None) -> tuple[Case, ...]:
    """The cases of the file that `[metadata.rsi] cases` names."""
    if name is None:
        return ()
    place = f"tests/{name}"
    content = next((file.content for file in tests if file.path == name), None)
    if content is None:
        reading.faults.append(f"{place} is missing, which [metadata.rsi] cases names")
        return ()
    try:
        document = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        reading.faults.append(f"{place}: is not valid JSON: {error}")
        return ()
    if not isinstance(document, dict):
        reading.faults.append(f"{place}: must be an object with `cases`")
        return ()
    checked = check(CaseFile, document)
    for fault in checked.faults:
        key = join_key((*fault.path[:2], *fault.path[3:]))  # Without the kind of case.
        reading.faults.append(f"{place}: {key}: {fault.text}")
    if checked.value is None:
        return ()
    if not checked.value.cases:
        reading.faults.append(f"{place}: cases: is empty; name at least one")
    return checked.value.cases


def _environment(reading: _Reading, harbor: HarborTask) -> Environment:
    found = environment_of(
        _files(reading, "environment"),
        docker_image=harbor.environment.docker_image,
        own_image=harbor.metadata.rsi.image,
        is_ours="rsi" in reading.metadata,
    )
    reading.faults += found.faults
    return found


def _family(metadata: dict[str, Any]) -> str:
    for key in ("family", "category"):
        name = metadata.get(key)
        if isinstance(name, str) and _slug(name):
            return _slug(name)
    return "default"


def _level(metadata: dict[str, Any]) -> int:
    difficulty = metadata.get("difficulty")
    return _LEVELS.get(difficulty, 1) if isinstance(difficulty, str) else 1


def _slug(name: str) -> str:
    return _NOT_IN_SLUG.sub("-", name).strip("-")


def _error(folder: Path, faults: list[str]) -> TaskError:
    listed = "\n".join(f"  {fault}" for fault in faults)
    return TaskError(f"task {folder} has {len(faults)} fault(s):\n{listed}")
