"""`rsi tasks list | show | export | verify`: the tasks that pairs are measured on."""

import argparse
import base64
from pathlib import Path

from pydantic import JsonValue

from rsi.cli.answer import Answer, Table, command, plain
from rsi.cli.digests import task_digest, used_tasks
from rsi.cli.opening import opened_ledger
from rsi.cli.verifying import add_verify
from rsi.domain.task import Split, Task, TaskFile
from rsi.domain.values import Digest, Value, short
from rsi.ports import Ledger
from rsi.report.shown import line


class TaskRow(Value):
    """One task of the list."""

    task: Digest
    name: str
    suite: str
    family: str
    level: int
    split: str | None
    made_by: str
    instruction: str


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the commands."""
    about = "list, show, export and verify tasks"
    group = commands.add_parser("tasks", help=about, description=about)
    inner = group.add_subparsers(metavar="COMMAND", required=True)
    one = command(inner, "list", _list, "list the tasks that generations used")
    one.add_argument("-g", "--generation", type=int, metavar="GEN")
    one.add_argument("--split", choices=[split.value for split in Split])
    one.add_argument("--family", metavar="NAME")
    one = command(inner, "show", _show, "one task, whole")
    one.add_argument("task", metavar="DIGEST")
    one = command(inner, "export", _export, "write a task in Harbor's directory layout")
    one.add_argument("task", metavar="DIGEST")
    one.add_argument("folder", type=Path, metavar="FOLDER")
    add_verify(inner)


def list_tasks(
    ledger: Ledger,
    *,
    generation: int | None = None,
    split: str | None = None,
    family: str | None = None,
) -> Answer:
    """The tasks that generations used, in the order of their use."""
    if generation is None and split is None:
        digests = list(dict.fromkeys(used_tasks(ledger)))
    else:
        numbers = [one.number for one in ledger.generations()]
        digests = list(
            dict.fromkeys(
                digest
                for number in numbers
                if generation in (None, number)
                for each in (Split if split is None else [Split(split)])
                for digest in ledger.used_tasks(number, each)
            )
        )
    splits = ledger.split_of(digests)
    rows = [_row(task, splits.get(task.digest)) for task in ledger.tasks(digests)]
    rows = [row for row in rows if family in (None, row.family)]
    table = Table(
        ("task", "split", "family", "by", "instruction"),
        tuple(
            (
                short(row.task),
                row.split or "",
                f"{row.family} L{row.level}",
                row.made_by,
                line(row.instruction, 80),
            )
            for row in rows
        ),
        "no task matches",
    )
    return Answer({"tasks": [plain(row) for row in rows]}, (table,))


def show_task(ledger: Ledger, text: str) -> Answer:
    """The task with its files, tests and reference solution."""
    digest = task_digest(ledger, text)
    (task,) = ledger.tasks([digest])
    split = ledger.split_of([digest]).get(digest)
    parts: dict[str, tuple[TaskFile, ...]] = {
        "files": task.files,
        "tests": task.tests,
        "solution": task.solution,
        "context": task.context,
    }
    told = [
        f"{task.name}  {digest}",
        f"{task.suite}, {task.family} level {task.level}, {split.value if split else 'no split'}, "
        f"made by {task.made_by}, answer by {task.answer.value}, "
        f"judged {'outside' if task.is_judged_outside else 'inside'} its box",
        "",
        task.instruction,
    ]
    for name, files in parts.items():
        for file in files:
            told += ["", f"--- {name}/{file.path}", _text(file.content)]
    for case in task.cases:
        told += ["", f"--- case: {line(case.model_dump_json(exclude_defaults=True), 200)}"]
    document: dict[str, JsonValue] = {
        **plain(_row(task, split)),
        "cases": [plain(case) for case in task.cases],
        "is_judged_outside": task.is_judged_outside,
        "answer": task.answer.value,
        "workdir": task.workdir,
        "image": task.image,
        "artifacts": list(task.artifacts),
        "agent_timeout_s": task.agent_timeout_s,
        "verifier_timeout_s": task.verifier_timeout_s,
        **{name: [_file(file) for file in files] for name, files in parts.items()},
    }
    return Answer(document, ("\n".join(told),))


def _row(task: Task, split: Split | None) -> TaskRow:
    return TaskRow(
        task=task.digest,
        name=task.name,
        suite=task.suite,
        family=task.family,
        level=task.level,
        split=split.value if split else None,
        made_by=task.made_by,
        instruction=task.instruction,
    )


def _file(file: TaskFile) -> JsonValue:
    try:
        body: dict[str, JsonValue] = {"text": file.content.decode("utf-8")}
    except UnicodeDecodeError:
        body = {"base64": base64.b64encode(file.content).decode("ascii")}
    return {"path": file.path, "executable": file.executable, **body}


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8").rstrip("\n")
    except UnicodeDecodeError:
        return f"({len(content)} bytes that are no text)"


def _list(arguments: argparse.Namespace) -> Answer:
    with opened_ledger() as ledger:
        return list_tasks(
            ledger,
            generation=arguments.generation,
            split=arguments.split,
            family=arguments.family,
        )


def _show(arguments: argparse.Namespace) -> Answer:
    with opened_ledger() as ledger:
        return show_task(ledger, arguments.task)


def _export(arguments: argparse.Namespace) -> Answer:
    from rsi.edges.task_files.writing import write_task

    with opened_ledger() as ledger:
        (task,) = ledger.tasks([task_digest(ledger, arguments.task)])
    write_task(task, arguments.folder)
    told = f"Wrote task {short(task.digest)} ({task.name}) to {arguments.folder}"
    return Answer({"task": task.digest, "folder": str(arguments.folder)}, (told,))
