"""A task written as a Harbor directory, so that it reads back with the same digest."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomlkit

from rsi.domain.cases import CaseFile
from rsi.domain.task import Task, TaskFile
from rsi.edges.task_files.dockerfile import copy_line
from rsi.edges.task_files.folders import path_fault
from rsi.edges.task_files.harbor import SCHEMA_VERSION
from rsi.edges.task_files.reading import read_task
from rsi.errors import TaskError

BASE_IMAGE = "python:3.11-slim-bookworm"
"""What a task without an image of its own is built from outside rsi."""
CASES = "cases.json"
_PLAIN_WORKDIR = re.compile(r"(/[\w.@%+=:,~-]+)+", re.ASCII)
_PLAIN_PATH = re.compile(r"[\w ./@%+=:,~-]+")


def write_task(task: Task, folder: Path) -> None:
    """Writes the task's directory, whole or not at all; the same task again changes nothing.

    Raises TaskError when the task can't be told in Harbor's layout, when something else stands
    there, or when the folder can't be written.
    """
    digest = _digest(task)
    if folder.exists():
        if read_task(folder).task.digest != digest:
            raise TaskError(f"{folder} holds another task; choose a new folder or remove it")
        return
    _check_paths(task)
    with _new_folder(folder) as fresh:
        _lay(task, fresh)
        if read_task(fresh).task.digest != digest:
            reason = "its texts or names change when they are written and read"
            raise TaskError(f"task {task.name!r} can't be written: {reason}")


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder that gets its name when it is complete."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name[:40]}.", dir=folder.parent))
        try:
            yield fresh
            fresh.chmod(0o755)
            os.replace(fresh, folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise TaskError(f"the task folder {folder} can't be written: {error}") from error


def _digest(task: Task) -> str:
    try:
        return task.digest
    except ValueError as error:
        raise TaskError(f"task {task.name!r} can't be written: {error}") from error


def _check_paths(task: Task) -> None:
    faults = [
        fault
        for file in task.files
        if (fault := path_fault(file.path, may_be_absolute=True)) is not None
    ]
    for part in (task.context, task.tests, task.solution):
        faults += [fault for file in part if (fault := path_fault(file.path)) is not None]
    for files in (task.files, task.context, task.tests, task.solution):
        if len({file.path for file in files}) != len(files):
            faults.append("a path stands twice")
    if task.context and (task.files or task.image):
        faults.append("an image to be built leaves no place for other files or another image")
    if not _PLAIN_WORKDIR.fullmatch(task.workdir):
        faults.append(f"the workdir {task.workdir!r} must be absolute, of plain characters")
    if faults:
        raise TaskError(f"task {task.name!r} can't be written: {'; '.join(faults)}")


def _lay(task: Task, folder: Path) -> None:
    (folder / "task.toml").write_text(tomlkit.dumps(_toml(task)), "utf-8", newline="\n")
    (folder / "instruction.md").write_text(f"{task.instruction}\n", "utf-8", newline="\n")
    for name, files in (("tests", task.tests), ("solution", task.solution)):
        for file in files:
            _put(folder / name / file.path, file)
    if task.cases:
        document = CaseFile(cases=task.cases).model_dump(mode="json", exclude_defaults=True)
        text = json.dumps(document, indent=1, ensure_ascii=False)
        _put(folder / "tests" / CASES, TaskFile(path=CASES, content=f"{text}\n".encode()))
    if task.context:
        for file in task.context:
            _put(folder / "environment" / file.path, file)
    else:
        _lay_plain(task, folder)


def _lay_plain(task: Task, folder: Path) -> None:
    """A Dockerfile that only copies the task's files."""
    lines = [f"FROM {task.image or BASE_IMAGE}", f"WORKDIR {task.workdir}"]
    for place, file in enumerate(task.files):
        source = f"files/{file.path.lstrip('/')}"
        if not _PLAIN_PATH.fullmatch(source) or source.endswith(" ") or file.path.startswith("/"):
            source = f"numbered/{place:04}"
        _put(folder / "environment" / source, file)
        target = file.path if file.path.startswith("/") else f"{task.workdir}/{file.path}"
        lines.append(copy_line(source, target))
    dockerfile = folder / "environment" / "Dockerfile"
    dockerfile.parent.mkdir(exist_ok=True)
    dockerfile.write_text("\n".join(lines) + "\n", "utf-8", newline="\n")


def _put(path: Path, file: TaskFile) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.content)
    path.chmod(0o755 if file.executable else 0o644)


def _toml(task: Task) -> dict[str, Any]:
    rsi = {
        "suite": task.suite,
        "family": task.family,
        "level": task.level,
        "answer": task.answer.value,
        "artifacts": list(task.artifacts),
        "made_by": task.made_by,
    }
    if task.cases:
        rsi["cases"] = CASES
    if task.image is not None:
        rsi["image"] = task.image
    for name, files in (("tests", task.tests), ("solution", task.solution)):
        order = _order(files)
        if order != sorted(order):
            rsi[name] = order
    environment: dict[str, Any] = {"network_mode": "no-network", "workdir": task.workdir}
    if task.context:
        environment["build_timeout_sec"] = task.build_timeout_s
    return {
        "schema_version": SCHEMA_VERSION,
        "task": {"name": task.name},
        "metadata": {"rsi": rsi},
        "environment": environment,
        "agent": {"timeout_sec": task.agent_timeout_s},
        "verifier": {"timeout_sec": task.verifier_timeout_s},
    }


def _order(files: Sequence[TaskFile]) -> list[str]:
    return [file.path for file in files]
