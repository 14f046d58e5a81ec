"""The page's chapter on what the old pair failed."""

from rsi.report.chapters import DiscoveryNote, HardenedNote, WeaknessNote
from rsi.report.markup import Markup, Part, joined, tag
from rsi.report.shown import cause, line, of, share
from rsi.report.tables import Column, rate_cell, table

_WEAK = (
    Column("Family"),
    Column("Level", "num"),
    Column("Failed", "wide"),
    Column("Causes"),
    Column("Invalid", "num"),
    Column("For example", "wide"),
)
_HARD = (
    Column("Family"),
    Column("Levels", "num"),
    Column("Fit of made", "num"),
    Column("Old pair solved before", "wide"),
    Column("and of the harder ones", "wide"),
)


def discovery_chapter(note: DiscoveryNote | None) -> Markup:
    """What failed, by family, level and cause; what was made harder. Empty without a note."""
    if note is None:
        return joined()
    return joined(
        tag("h2", "What the old pair failed"),
        tag(
            "p",
            f"It was run on {of('search task', note.tasks)}. These are the families and levels "
            "that it failed at, the surest weakness first.",
        ),
        table(_WEAK, [_weakness(weak) for weak in note.weaknesses])
        if note.weaknesses
        else tag("p", "It failed none of them."),
        _hardened(note),
    )


def _weakness(weak: WeaknessNote) -> tuple[Part, ...]:
    causes = ", ".join(f"{cause(each.cause)} {each.failed}" for each in weak.causes)
    example = weak.examples[0] if weak.examples else None
    return (
        weak.family,
        weak.level,
        rate_cell(weak.failure, "lost"),
        causes,
        weak.invalid,
        tag("span", line(example.instruction, 160), title=example.task) if example else None,
    )


def _hardened(note: DiscoveryNote) -> Markup:
    if not note.hardened:
        return joined()
    made = sum(entry.made for entry in note.hardened)
    fit = sum(entry.admitted for entry in note.hardened)
    return joined(
        tag("h3", "What was made harder, and how hard it measured"),
        tag(
            "p",
            f"{of('harder task', made)} made, {fit} fit: the reference solution passes and a "
            "no-op fails, each time.",
        ),
        table(_HARD, [_harder(entry) for entry in note.hardened]),
        _refused(note),
    )


def _harder(entry: HardenedNote) -> tuple[Part, ...]:
    return (
        entry.family,
        f"{entry.from_level} → {entry.to_level}",
        f"{entry.admitted} of {entry.made}",
        share(entry.before),
        rate_cell(entry.measured, "old"),
    )


def _refused(note: DiscoveryNote) -> Markup:
    reasons = [
        tag("li", f"{entry.family} level {entry.to_level}: {line(reason, 300)}")
        for entry in note.hardened
        for reason in entry.refused
    ]
    if not reasons:
        return joined()
    return tag("details", tag("summary", "Why tasks were refused"), tag("ul", *reasons))
