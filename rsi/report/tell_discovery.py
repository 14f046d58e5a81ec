"""What Discovery found, from its recorded result."""

from collections.abc import Mapping, Sequence
from typing import Any

from rsi.domain.values import Digest
from rsi.domain.verdict import Interval
from rsi.domain.weakness import Hardened
from rsi.ports import Ledger
from rsi.report.chapters import CauseCount, DiscoveryNote, HardenedNote, TaskNote, WeaknessNote
from rsi.report.scores import share_of


def tell_discovery(
    ledger: Ledger, result: Mapping[str, Any] | None, confidence: float
) -> DiscoveryNote | None:
    """The chapter; None before the stage has finished."""
    if result is None:
        return None
    rows: Sequence[Mapping[str, Any]] = result["weaknesses"]
    wanted = sorted({task for row in rows for task in row["examples"]})
    known = ledger.tasks(wanted)
    instructions = {task.digest: task.instruction for task in known}
    weaknesses = tuple(_weakness(row, instructions) for row in rows)
    made = [Hardened.model_validate(row) for row in result["hardened"]]
    return DiscoveryNote(
        tasks=result["tasks"],
        weaknesses=weaknesses,
        hardened=tuple(_hardened(entry, weaknesses, confidence) for entry in made),
    )


def _weakness(row: Mapping[str, Any], instructions: Mapping[Digest, str]) -> WeaknessNote:
    counted = row["trials"]
    failure = Interval(estimate=row["rate"], low=row["low"], high=row["high"], n=counted)
    causes = sorted(row["causes"].items(), key=lambda entry: (-entry[1], entry[0]))
    return WeaknessNote(
        family=row["family"],
        level=row["level"],
        trials=counted,
        failed=row["failed"],
        invalid=row["invalid"],
        failure=failure if counted else None,
        causes=tuple(CauseCount(cause=cause, failed=failed) for cause, failed in causes),
        examples=tuple(
            TaskNote(task=task, instruction=instructions[task]) for task in row["examples"]
        ),
    )


def _hardened(
    entry: Hardened, weaknesses: Sequence[WeaknessNote], confidence: float
) -> HardenedNote:
    before = next(
        (
            share_of(known.trials - known.failed, known.trials, confidence)
            for known in weaknesses
            if (known.family, known.level) == (entry.family, entry.from_level)
        ),
        None,
    )
    return HardenedNote(
        family=entry.family,
        from_level=entry.from_level,
        to_level=entry.to_level,
        made=entry.made,
        admitted=entry.admitted,
        refused=entry.refused,
        before=before,
        measured=share_of(entry.champion_solved, entry.trials, confidence),
    )
