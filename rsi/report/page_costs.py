"""The page's chapters on invalid trials, cost and lineage."""

from collections.abc import Sequence

from rsi.report.cost_notes import InvalidNote, StageNote
from rsi.report.gate_notes import LineageNote
from rsi.report.headlines import INVALID_CAVEAT, change_words
from rsi.report.markup import Markup, Part, joined, tag
from rsi.report.shown import count, duration, line, of, points
from rsi.report.tables import Column, digest, pill, table

_REASONS = (Column("Where"), Column("Reason", "wide"), Column("Trials", "num"))
_COSTS = (
    Column("Stage"),
    Column("State"),
    Column("Time", "num"),
    Column("Trials", "num"),
    Column("Invalid", "num"),
    Column("Tokens in", "num"),
    Column("of them cached", "num"),
    Column("Tokens out", "num"),
    Column("Model", "num"),
    Column("Sandbox", "num"),
    Column("Verifier", "num"),
)
_LINEAGE = (
    Column("Pair"),
    Column("By"),
    Column("When"),
    Column("Gain over the one before", "wide"),
    Column("Reason", "wide"),
)


def invalid_chapter(note: InvalidNote) -> Markup:
    """How many trials say nothing, and why."""
    rows = [(row.where, line(row.reason, 300), row.trials) for row in note.reasons]
    return joined(
        tag("h2", "Invalid trials"),
        tag("p", f"{note.invalid} of {of('trial', note.trials)}. {INVALID_CAVEAT}"),
        table(_REASONS, rows),
    )


def costs_chapter(stages: Sequence[StageNote]) -> Markup:
    """What each stage cost, in time and tokens."""
    trained = [stage for stage in stages if stage.training_s or stage.training_tokens]
    return joined(
        tag("h2", "Cost"),
        table(_COSTS, [_stage(stage) for stage in stages]),
        *(
            tag(
                "p",
                f"Training took {duration(stage.training_s)} of the {stage.stage} stage, over "
                f"{count(stage.training_tokens)} tokens.",
                class_="note",
            )
            for stage in trained
        ),
        *(
            tag("p", f"The {stage.stage} stage failed: {stage.note}")
            for stage in stages
            if stage.state == "failed"
        ),
    )


def lineage_chapter(changes: Sequence[LineageNote]) -> Markup:
    """How the champion came to be, the newest change first."""
    rows = [_change(change) for change in reversed(changes)]
    return joined(tag("h2", "Lineage"), table(_LINEAGE, rows))


def _stage(stage: StageNote) -> tuple[Part, ...]:
    again = f", started {stage.starts} times" if stage.starts > 1 else ""
    paid = "" if stage.usd is None else f", ${stage.usd:.2f}"
    return (
        stage.stage,
        f"{stage.state}{again}{paid}",
        duration(stage.elapsed_s),
        count(stage.trials),
        stage.invalid,
        count(stage.input_tokens),
        count(stage.cached_tokens),
        count(stage.output_tokens),
        duration(stage.model_s),
        duration(stage.sandbox_s),
        duration(stage.verifier_s),
    )


def _change(change: LineageNote) -> tuple[Part, ...]:
    mark = pill("champion", "new") if change.is_champion else None
    return (
        joined(digest(change.pair), " ", mark),
        change_words(change),
        f"{change.at:%Y-%m-%d %H:%M}",
        points(change.gain) if change.gain else tag("span", "not measured", class_="unscored"),
        line(change.reason, 300),
    )
