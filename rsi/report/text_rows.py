"""Headings, rows and wrapping of the plain text."""

from collections.abc import Iterable, Iterator, Sequence

from rsi.report.shown import clean, line

WIDTH = 100
ROWS = 12
"""Rows of one table; the page has them all."""


def block(lines: Iterable[str]) -> str:
    """The lines, cleaned and wrapped, as one text."""
    return "\n".join(each for text in lines for each in _wrapped(text)) + "\n"


def title(text: str) -> Iterator[str]:
    """A chapter's heading, set off by an empty line."""
    yield ""
    yield text


def rows_of(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Rows of three columns, each on one line; how many more there are, when they are many."""
    shown = [tuple(line(cell) for cell in row) for row in rows[:ROWS]]
    widths = [max((len(row[place]) for row in shown), default=0) for place in (0, 1)]
    for first, second, third in shown:
        yield f"  {first:<{widths[0]}}  {second:<{widths[1]}}  {third}".rstrip()
    if len(rows) > ROWS:
        yield f"  and {len(rows) - ROWS} more"


def _wrapped(text: str) -> Iterator[str]:
    """The text in lines of at most WIDTH columns, continued under its own indent."""
    for whole in clean(text).split("\n"):
        indent = " " * min(len(whole) - len(whole.lstrip()) + 2, WIDTH // 2)
        left = whole
        while len(left) > WIDTH:
            cut = left.rfind(" ", len(indent), WIDTH)
            cut = WIDTH if cut <= len(indent) else cut
            yield left[:cut].rstrip()
            left = indent + left[cut:].lstrip()
        yield left
