"""`rsi tasks verify`: shows that tasks are fit to measure anything."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from rsi.cli.answer import Answer, Table, command, positive
from rsi.domain.evaluation import SuiteChoice
from rsi.domain.task import Split, Task
from rsi.domain.values import Digest
from rsi.errors import UsageError
from rsi.ports import TaskSource
from rsi.report.shown import of
from rsi.steps.verify import Admission


def add_verify(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the command."""
    about = "show that every task passes with its reference and fails with a no-op"
    one = command(commands, "verify", _verify, about, is_long=True)
    one.add_argument("--suite", default="shell", metavar="shell|FOLDER")
    one.add_argument("--per-family", type=positive, default=1, metavar="N", help="of each level")
    one.add_argument("--seed", type=int, default=0, metavar="S")


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
