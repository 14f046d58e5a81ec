"""Tables and other small parts of the page."""

from collections.abc import Sequence
from dataclasses import dataclass

from rsi.domain.values import Digest
from rsi.domain.verdict import Interval
from rsi.report.chapters import EditNote
from rsi.report.figures import bar
from rsi.report.markup import Markup, Part, joined, tag
from rsi.report.shown import UNSCORED, code, line, share

OPEN_ROWS = 12
"""Rows of a table that are seen at once; further ones are folded away, not left out."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading, and how its cells stand: `num`, `wide` or plain."""

    name: str
    kind: str | None = None


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[Part]], chosen: Sequence[bool] = ()
) -> Markup:
    """A table that scrolls by itself where the page is narrow; empty without rows."""
    if not rows:
        return joined()
    marks = [*chosen, *[False] * (len(rows) - len(chosen))]
    written = [_row(columns, row, mark) for row, mark in zip(rows, marks, strict=True)]
    head = tag("tr", *(tag("th", column.name, class_=column.kind) for column in columns))
    kind = "short" if len(columns) < 4 else None
    first = tag("table", tag("thead", head), tag("tbody", *written[:OPEN_ROWS]), class_=kind)
    shown = tag("div", first, class_="scroll")
    rest = written[OPEN_ROWS:]
    if not rest:
        return shown
    more = tag("table", tag("thead", head), tag("tbody", *rest), class_=kind)
    label = tag("summary", f"{len(rest)} more")
    return joined(shown, tag("details", label, tag("div", more, class_="scroll")))


def digest(value: Digest | None) -> Markup:
    """A digest, shortened, whole in its title."""
    return tag("code", code(value), title=value)


def rate_cell(interval: Interval | None, tone: str = "plain") -> Markup:
    """A rate as a bar with its interval, and in words; "unscored" when nothing was counted."""
    if interval is None:
        return tag("span", f"{UNSCORED} (n=0)", class_="unscored")
    return tag("div", bar(interval, tone), tag("span", share(interval)), class_="cell")


def pill(text: str, tone: str = "") -> Markup:
    """A word that marks something."""
    return tag("span", text, class_=f"pill {tone}".strip())


def edits(notes: Sequence[EditNote]) -> Markup:
    """The edits of a candidate, one a line."""
    parts: list[Part] = []
    for note in notes:
        parts += [tag("br") if parts else None, tag("code", f"{note.key} = {line(note.value)}")]
    return joined(*parts) if parts else tag("span", "as it was", class_="note")


def facts(rows: Sequence[tuple[str, Part]]) -> Markup:
    """Names with what they stand for."""
    return tag(
        "dl", *(part for name, value in rows for part in (tag("dt", name), tag("dd", value)))
    )


def _row(columns: Sequence[Column], row: Sequence[Part], is_chosen: bool) -> Markup:
    cells = (tag("td", cell, class_=column.kind) for column, cell in zip(columns, row, strict=True))
    return tag("tr", *cells, class_="chosen" if is_chosen else None)
