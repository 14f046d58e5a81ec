"""`rsi tasks list | show | export | verify`: the tasks that pairs are measured on."""

import argparse
import base64
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from rsi.cli.answer import Answer, Table, command, plain, positive
from rsi.cli.digests import task_digest, used_tasks
from rsi.cli.opening import opened_ledger
from rsi.domain.evaluation import SuiteChoice
from rsi.domain.task import Split, Task, TaskFile
from rsi.domain.values import Digest, Value, short
from rsi.errors import UsageError
from rsi.ports import Ledger, TaskSource
from rsi.report.shown import line, of
from rsi.steps.verify import Admission


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
    about = "show that every task passes with its reference and fails with a no-op"
    one = command(inner, "verify", _verify, about, is_long=True)
    one.add_argument("--suite", default="shell", metavar="shell|FOLDER")
    one.add_argument("--per-family", type=positive, default=1, metavar="N", help="of each level")
    one.add_argument("--seed", type=int, default=0, metavar="S")


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
    }
    told = [
        f"{task.name}  {digest}",
        f"{task.suite}, {task.family} level {task.level}, {split.value if split else 'no split'}, "
        f"made by {task.made_by}, answer by {task.answer.value}",
        "",
        task.instruction,
    ]
    for name, files in parts.items():
        for file in files:
            told += ["", f"--- {name}/{file.path}", _text(file.content)]
    document: dict[str, JsonValue] = {
        **plain(_row(task, split)),
        "answer": task.answer.value,
        "workdir": task.workdir,
        "image": task.image,
        "artifacts": list(task.artifacts),
        "agent_timeout_s": task.agent_timeout_s,
        "verifier_timeout_s": task.verifier_timeout_s,
        **{name: [_file(file) for file in files] for name, files in parts.items()},
    }
    return Answer(document, ("\n".join(told),))


def drawn(
    source: TaskSource, per_family: int, seed: int, splits: Sequence[Split]
) -> tuple[Task, ...]:
    """Tasks of every family and level of the suite from each of the splits, each one once."""
    families = source.families()
    found: dict[Digest, Task] = {}
    for level in sorted({level for family in families for level in family.levels}):
        having = [family for family in families if level in family.levels]
        levels = {family.name: level for family in having}
        for split in splits:
            for task in source.draw(split, seed, per_family * len(families), levels):
                found.setdefault(task.digest, task)
    return tuple(found.values())


def told_admissions(admissions: Sequence[Admission]) -> Answer:
    """What the verification found; exit status 1 when a task is unfit."""
    bad = [admission for admission in admissions if not admission.is_admitted]
    families: dict[str, JsonValue] = {}
    for family in sorted({admission.task.family for admission in admissions}):
        own = [admission for admission in admissions if admission.task.family == family]
        families[family] = {
            "verified": len(own),
            "unfit": sum(not admission.is_admitted for admission in own),
        }
    listed: list[JsonValue] = [
        {
            "task": admission.task.digest,
            "name": admission.task.name,
            "family": admission.task.family,
            "level": admission.task.level,
            "faults": list(admission.faults),
        }
        for admission in bad
    ]
    table = Table(
        ("unfit task", "family", "faults"),
        tuple(
            (
                admission.task.name,
                f"{admission.task.family} L{admission.task.level}",
                "; ".join(admission.faults),
            )
            for admission in bad
        ),
        "Every one passes with its reference solution and fails with a no-op.",
    )
    told = (
        f"{of('task', len(admissions))} of {of('family', len(families), 'families')} verified, "
        f"{len(bad)} unfit"
    )
    document: dict[str, JsonValue] = {
        "verified": len(admissions),
        "unfit": listed,
        "families": families,
    }
    return Answer(document, (told, table), 1 if bad or not admissions else 0)


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


def _verify(arguments: argparse.Namespace) -> Answer:
    from rsi import wiring
    from rsi.edges.line_progress import LineProgress
    from rsi.edges.system_clock import SystemClock
    from rsi.edges.thread_workers import ThreadWorkers
    from rsi.stages.admission import verify_tasks

    chosen = wiring.settings()
    choice = _choice(arguments.suite)
    # A generator makes the same kinds of tasks for each split; a folder's tasks are divided.
    splits = (
        (Split.SEARCH,) if choice.kind == "shell" else (Split.SEARCH, Split.HOLDOUT, Split.EXAM)
    )
    tasks = drawn(wiring.suite(choice), arguments.per_family, arguments.seed, splits)
    evaluation = wiring.contract_files().read_evaluation(chosen.evaluation)
    workers = ThreadWorkers(chosen.workers)
    progress = LineProgress(wiring.say_to_stderr, SystemClock().monotonic_s)
    with wiring.open_parts(chosen, evaluation, workers, progress) as parts:
        return told_admissions(verify_tasks(parts, tasks))


def _choice(suite: str) -> SuiteChoice:
    if suite == "shell":
        return SuiteChoice(kind="shell")
    folder = Path(suite)
    if not folder.is_dir():
        raise UsageError(f"{suite!r} is neither `shell` nor a folder of tasks")
    return SuiteChoice(kind="folder", path=str(folder.resolve()))
