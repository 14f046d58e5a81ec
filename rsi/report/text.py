"""The story as plain text, for a terminal or a mail; every line fits 100 columns or wraps."""

from collections.abc import Iterator, Sequence

from rsi.report.chapters import DiscoveryNote, ExpansionNote, TrainingNote, UpdateNote
from rsi.report.cost_notes import StageNote
from rsi.report.gate_notes import GateNote, LineageNote
from rsi.report.headlines import (
    COVERAGE_CAVEAT,
    arm_words,
    change_words,
    headline,
    pair_words,
    summary,
    totals,
)
from rsi.report.shown import cause, code, count, duration, line, of, points, share
from rsi.report.story import GenerationStory
from rsi.report.text_rows import ROWS, block, rows_of, title


def render_text(story: GenerationStory) -> str:
    """The story in plain text, safe for a terminal."""
    lines = [
        f"Generation {story.generation}: {headline(story)}",
        f"  {summary(story)}",
        f"  old  {code(story.champion.pair)}  {pair_words(story.champion)}",
    ]
    if story.successor:
        lines.append(f"  new  {code(story.successor.pair)}  {pair_words(story.successor)}")
    lines.append(f"  {totals(story)}; intervals at {100 * story.confidence:g} %")
    for chapter in (
        _discovery(story.discovery),
        expansion_lines(story.expansion),
        _update(story.update),
        verdict_lines(story.gate),
        _invalid(story),
        _cost(story.stages),
        _lineage(story.lineage),
    ):
        lines += chapter
    return block(lines)


def _discovery(note: DiscoveryNote | None) -> Iterator[str]:
    if note is None:
        return
    yield from title(f"What the old pair failed ({of('task', note.tasks)})")
    rows = [
        (
            f"{weak.family} L{weak.level}",
            f"failed {share(weak.failure)}",
            ", ".join(f"{cause(each.cause)} {each.failed}" for each in weak.causes),
        )
        for weak in note.weaknesses
    ]
    yield from rows_of(rows or [("nothing", "", "")])
    if note.hardened:
        yield from title("What was made harder")
    yield from rows_of(
        [
            (
                f"{hard.family} L{hard.from_level} to L{hard.to_level}",
                f"{hard.admitted} of {hard.made} fit",
                f"old pair solved {share(hard.measured)}; before {share(hard.before)}",
            )
            for hard in note.hardened
        ]
    )


def expansion_lines(note: ExpansionNote | None) -> Iterator[str]:
    """The chapter on the search; nothing without a note."""
    if note is None:
        return
    yield from title("What the search covered")
    yield (
        f"  {note.covered} of {of('task', note.tasks)} in {of('attempt', note.attempts)} by "
        f"{of('candidate', note.candidates)}, {count(note.tokens)} tokens; ended: {note.stopped}"
    )
    yield f"  {_spark(note)}"
    yield f"  {COVERAGE_CAVEAT}"
    yield from rows_of(
        [
            (
                f"{code(entry.contract)}{' chosen' if entry.is_chosen else ''}",
                f"holdout {share(entry.rate)}, invalid {entry.invalid}",
                entry.author,
            )
            for entry in note.finalists
        ]
    )


def _spark(note: ExpansionNote) -> str:
    """The coverage curve in one line."""
    bars = " ▁▂▃▄▅▆▇█"
    points_shown = note.curve[:: max(1, len(note.curve) // 60)]
    top = max(1, note.tasks)
    return "".join(bars[min(8, round(8 * point.covered / top))] for point in points_shown)


def _update(note: UpdateNote | None) -> Iterator[str]:
    if note is None:
        return
    yield from title("What the adapter was trained on")
    why = f": {note.reason}" if note.reason else ""
    families = of("family", len(note.families), "families")
    yield f"  {note.outcome}{why}; {of('example', note.examples)}, {families}, {code(note.dataset)}"
    yield from rows_of(
        [(row.filter, f"kept {row.kept}", f"dropped {row.dropped}") for row in note.filters]
    )
    if note.training:
        yield from _training(note.training)
    yield from rows_of(
        [
            (
                f"{code(entry.pair.pair)}{' chosen' if entry.is_chosen else ''}",
                f"holdout {share(entry.rate)}, invalid {entry.invalid}",
                pair_words(entry.pair),
            )
            for entry in note.successors
        ]
    )


def _training(note: TrainingNote) -> Iterator[str]:
    yield (
        f"  adapter {code(note.lora)}: {of('step', note.steps)}, loss {note.first_loss:.3f} to "
        f"{note.last_loss:.3f}, {count(note.tokens)} tokens, {duration(note.elapsed_s)}"
    )
    for entry in note.fidelity:
        yield (
            f"  served on {entry.base_format}: agrees with the trained one {share(entry.agreement)}"
            f"; changes the base {share(entry.changed)}"
        )


def verdict_lines(note: GateNote | None) -> Iterator[str]:
    """The chapters on the exam and the verdict; nothing without a note."""
    if note is None:
        return
    yield from title("The exam: four arms on the same tasks and seeds")
    marks = [(arm.is_champion, arm.is_successor) for arm in note.arms]
    names = ["old pair" if old else "new pair" if new else "" for old, new in marks]
    yield from rows_of(
        [
            (arm_words(arm.name), f"{share(arm.rate)}, invalid {arm.invalid}", name)
            for arm, name in zip(note.arms, names, strict=True)
        ]
    )
    given = note.attribution
    yield from rows_of(
        [
            ("gain, new pair over old", points(note.gain), ""),
            ("given by the contract", points(given.contract), ""),
            ("given by the weights", points(given.weights), ""),
            ("interaction", points(given.interaction), ""),
        ]
    )
    yield from title("What was forgotten")
    again = note.regression
    lost = ", ".join(f"{row.family} {row.count}" for row in again.lost_by_family)
    yield (
        f"  lost {again.lost} of {again.kept + again.lost} that the old pair solved again "
        f"({share(again.forgotten)}); run {again.tasks}, invalid {again.invalid}"
        f"{f'; lost: {lost}' if lost else ''}"
    )
    yield from title(f"Verdict {code(note.verdict)}: {note.decision}")
    for reason in note.reasons:
        yield f"  {reason}"
    if note.needed_pairs is not None:
        yield f"  about {of('more pair', note.needed_pairs)} would decide"


def _invalid(story: GenerationStory) -> Iterator[str]:
    if story.invalid.invalid:
        yield from title(f"Invalid trials: {story.invalid.invalid} of {story.invalid.trials}")
    yield from rows_of(
        [
            (row.where, of("trial", row.trials), line(row.reason, 70))
            for row in story.invalid.reasons
        ]
    )


def _cost(stages: Sequence[StageNote]) -> Iterator[str]:
    yield from title("Cost")
    yield from rows_of(
        [
            (
                stage.stage,
                stage.state if stage.starts < 2 else f"{stage.state}, started {stage.starts} times",
                f"{of('trial', stage.trials)}, {count(stage.input_tokens)} in, "
                f"{count(stage.output_tokens)} out, {duration(stage.elapsed_s)}",
            )
            for stage in stages
        ]
    )


def _lineage(changes: Sequence[LineageNote]) -> Iterator[str]:
    yield from title("Lineage")
    yield from rows_of(
        [
            (
                f"{code(change.pair)}{' champion' if change.is_champion else ''}",
                change_words(change),
                points(change.gain) if change.gain else line(change.reason, 70),
            )
            for change in changes[-ROWS:]
        ]
    )
