"""`python -m benchmarks.expansion`: the study, taken up where it was left.

`--short` is a small form of it. Results lie in the state folder; the table and the figure are
written to docs/.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from benchmarks.expansion.methods import METHODS, OURS
from benchmarks.expansion.runs import Run, failing, run
from benchmarks.expansion.table import figure, table
from rsi import wiring
from rsi.domain.evaluation import Evaluation
from rsi.domain.search import CoveragePoint, Finalist
from rsi.domain.task import Split, Task
from rsi.edges.embedded_postgres.server import EmbeddedPostgres
from rsi.edges.ledger.schema import upgrade
from rsi.edges.line_progress import LineProgress
from rsi.edges.system_clock import SystemClock
from rsi.edges.thread_workers import ThreadWorkers
from rsi.settings import Settings
from rsi.stages.parts import Parts
from rsi.suites.shell.suite import ShellSuite

DRAW_SEED = 2026


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the study is."""

    tasks: int = 122
    drawn: int = 148
    attempts: int = 450
    holdout: int = 74
    seeds: tuple[int, ...] = (1, 2, 3)


SHORT = Scale(tasks=12, drawn=16, attempts=32, holdout=8, seeds=(1,))


def main() -> int:
    """Runs what is missing, writes the table and the figure, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="12 tasks, 32 attempts, one seed")
    parser.add_argument("--methods", nargs="*", choices=[OURS, *METHODS], default=[OURS, *METHODS])
    parser.add_argument("--name", default="", help="keeps this run's results apart")
    given = parser.parse_args()
    scale = SHORT if given.short else Scale()
    chosen = wiring.settings().model_copy(update={"sandbox": "namespaces"})
    name = "-".join(filter(None, ("short" if given.short else "full", given.name)))
    folder = chosen.state_dir / "studies" / f"expansion-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    tasks = _tasks(chosen, scale, name)
    runs = []
    for seed in scale.seeds:
        for method in given.methods:
            kept = folder / f"{method.replace(' ', '-')}-{seed}.json"
            if not kept.exists():
                done = _run(chosen, scale, name, method, seed, tasks)
                kept.write_text(json.dumps(asdict(done), default=_plain))
            runs.append(_read(kept))
    told = table(runs)
    sys.stdout.write(f"{told}\n")
    if name == "full":
        docs = chosen.root / "docs"
        (docs / "study-expansion.svg").write_text(figure(runs))
        (docs / "study-expansion.table.md").write_text(f"{told}\n")
    return 0


def _tasks(chosen: Settings, scale: Scale, name: str) -> tuple[Task, ...]:
    """The tasks that the base pair fails in three seeds, of all families alike."""
    drawn = ShellSuite().draw(Split.SEARCH, DRAW_SEED, scale.drawn)
    with _parts(chosen, scale, f"study_{name}_tasks", 0) as (parts, evaluation, document):
        found = failing(parts, evaluation, document, drawn, scale.tasks)
    families = {task.family for task in found}
    wiring.say_to_stderr(f"{len(found)} tasks of {len(families)} families")
    return found


def _run(
    chosen: Settings, scale: Scale, name: str, method: str, seed: int, tasks: Sequence[Task]
) -> Run:
    wiring.say_to_stderr(f"--- {method}, seed {seed}")
    database = f"study_{name}_{method.replace(' ', '_').lower()}_{seed}".replace("-", "_")
    with _parts(chosen, scale, database, seed) as (parts, evaluation, document):
        return run(parts, method, evaluation, document, tasks)


@contextmanager
def _parts(
    chosen: Settings, scale: Scale, database: str, seed: int
) -> Iterator[tuple[Parts, Evaluation, Any]]:
    """Every part, with a database of the run's own."""
    database = database.replace("-", "_")
    server = EmbeddedPostgres(chosen.state_dir / "postgres")
    server.start(("rsi", database))
    url = server.url_of(database)
    upgrade(url)
    own = chosen.model_copy(update={"database_url": SecretStr(url)})
    files = wiring.contract_files()
    plain = files.read_evaluation(own.evaluation)
    rule = plain.expansion.model_copy(
        update={
            "attempts": scale.attempts,
            "patience": scale.attempts,
            "holdout_tasks": scale.holdout,
        }
    )
    evaluation = plain.model_copy(update={"expansion": rule, "seed": seed})
    clock = SystemClock()
    progress = LineProgress(wiring.say_to_stderr, clock.monotonic_s)
    workers = ThreadWorkers(own.workers)
    with wiring.open_parts(own, evaluation, workers, progress) as parts:
        yield parts, evaluation, files.read(own.contract)


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json")


def _read(kept: Path) -> Run:
    document = json.loads(kept.read_text())
    return Run(
        method=document["method"],
        seed=document["seed"],
        tasks=document["tasks"],
        curve=tuple(CoveragePoint.model_validate(point) for point in document["curve"]),
        finalists=tuple(Finalist.model_validate(one) for one in document["finalists"]),
        fresh=Finalist.model_validate(document["fresh"]),
    )


if __name__ == "__main__":
    sys.exit(main())
