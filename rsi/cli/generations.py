"""`rsi generations | show | coverage | report`: what each night did."""

import argparse
import os
from pathlib import Path

from pydantic import JsonValue

from rsi.cli.answer import Answer, Table, command, plain
from rsi.cli.opening import opened_ledger
from rsi.domain.generation import Generation, state_of
from rsi.domain.values import Digest, Value, short
from rsi.domain.verdict import Interval, Verdict
from rsi.errors import DiskError, UsageError
from rsi.ports import Ledger
from rsi.report.chapters import ExpansionNote
from rsi.report.scores import scored
from rsi.report.shown import of, points
from rsi.report.story import find, tell
from rsi.report.tell_expansion import tell_expansion
from rsi.report.text import expansion_lines, render_text
from rsi.report.text_rows import block


class GenerationRow(Value):
    """One generation of the list."""

    generation: int
    state: str
    opened_at: str
    champion: Digest
    evaluation: Digest
    seed: int
    decision: str | None
    gain: Interval | None


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the commands."""
    command(commands, "generations", _generations, "list the generations and their states")
    one = command(commands, "show", _show, "everything about one generation")
    one.add_argument("generation", type=int, metavar="GEN")
    one = command(commands, "coverage", _coverage, "what a generation's search covered")
    one.add_argument("generation", type=int, metavar="GEN")
    one = command(commands, "report", _report, "write a generation's report as one HTML page")
    one.add_argument("generation", type=int, metavar="GEN")
    one.add_argument("--out", type=Path, metavar="FILE", help="default: report-GEN.html")


def list_generations(ledger: Ledger) -> Answer:
    """The generations, the newest last."""
    decided = {verdict.generation: verdict for verdict in ledger.verdicts()}
    rows = [_row(ledger, one, decided.get(one.number)) for one in ledger.generations()]
    table = Table(
        ("generation", "state", "opened", "champion", "gain"),
        tuple(
            (
                str(row.generation),
                row.state,
                row.opened_at[:16].replace("T", " "),
                short(row.champion),
                points(row.gain) if row.decision else "no verdict yet",
            )
            for row in rows
        ),
        "no generation yet; run `make cycle`",
    )
    return Answer({"generations": [plain(row) for row in rows]}, (table,))


def show_generation(ledger: Ledger, number: int) -> Answer:
    """The generation's story."""
    story = tell(ledger, number)
    return Answer(plain(story), (render_text(story),))


def show_coverage(ledger: Ledger, number: int) -> Answer:
    """What the search of a generation covered."""
    generation = find(ledger, number)
    confidence = ledger.evaluation(generation.evaluation).gate.confidence
    note = tell_expansion(ledger, number, confidence)
    if note is None:
        raise UsageError(
            f"generation {number} has no coverage yet: its expansion stage hasn't ended"
        )
    return Answer(
        {"generation": number, **plain(note)},
        (block(expansion_lines(note)).lstrip("\n"), _winners(note)),
    )


def write_report(ledger: Ledger, number: int, target: Path) -> Answer:
    """Writes the page, whole or not at all. Raises DiskError when the file can't be written."""
    from rsi.report.page import render_page

    content = render_page(tell(ledger, number)).encode("utf-8")
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_bytes(content)
        scratch.replace(target)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise DiskError(f"the report can't be written to {target}: {error}") from error
    told = f"Wrote the report of generation {number} to {target}"
    document: dict[str, JsonValue] = {
        "generation": number,
        "file": str(target),
        "bytes": len(content),
    }
    return Answer(document, (told,))


def _row(ledger: Ledger, generation: Generation, verdict: Verdict | None) -> GenerationRow:
    decision = verdict.decision.value if verdict else None
    return GenerationRow(
        generation=generation.number,
        state=state_of(ledger.events(generation.number), decision).value,
        opened_at=generation.opened_at.isoformat(),
        champion=generation.champion,
        evaluation=generation.evaluation,
        seed=generation.seed,
        decision=decision,
        gain=scored(verdict.gain) if verdict else None,
    )


def _winners(note: ExpansionNote) -> Table:
    rows = (
        (short(row.contract), row.author, of("task", row.covered_first)) for row in note.winners
    )
    return Table(("contract", "by", "covered first"), tuple(rows), "no task was covered")


def _generations(_: argparse.Namespace) -> Answer:
    with opened_ledger() as ledger:
        return list_generations(ledger)


def _show(arguments: argparse.Namespace) -> Answer:
    with opened_ledger() as ledger:
        return show_generation(ledger, arguments.generation)


def _coverage(arguments: argparse.Namespace) -> Answer:
    with opened_ledger() as ledger:
        return show_coverage(ledger, arguments.generation)


def _report(arguments: argparse.Namespace) -> Answer:
    target = arguments.out or Path(f"report-{arguments.generation}.html")
    with opened_ledger() as ledger:
        return write_report(ledger, arguments.generation, target)
