"""Prints answers: JSON, plain text when piped, tables by rich in a terminal."""

import json
import shutil
from typing import TextIO

from rsi.cli.answer import Answer, Table
from rsi.report.shown import clean, line


def show(answer: Answer, out: TextIO, *, as_json: bool) -> None:
    """Writes the answer. No foreign text in it can drive the terminal."""
    if as_json:
        # ASCII alone: what isn't is escaped by JSON itself, and so can't reach a terminal.
        text = json.dumps(answer.document, indent=2, ensure_ascii=True, allow_nan=False)
        out.write(text.replace("\x7f", "\\u007f") + "\n")
        return
    for block in answer.blocks:
        if isinstance(block, str):
            out.write(clean(block).rstrip("\n") + "\n")
        elif not block.rows:
            out.write(f"{clean(block.empty)}\n")
        elif out.isatty():
            _rich(block, out)
        else:
            _plain(block, out)


def _plain(table: Table, out: TextIO) -> None:
    """Columns two spaces apart, under their headings; for people, grep and awk."""
    rows = [table.headings, *table.rows]
    cells = [[line(cell, 400) for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in cells) for place in range(len(table.headings))]
    for row in cells:
        padded = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        out.write("  ".join(padded).rstrip() + "\n")


def _rich(table: Table, out: TextIO) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in table.headings:
        drawn.add_column(Text(heading), overflow="fold")
    for row in table.rows:
        # A Text is never read as markup.
        drawn.add_row(*(Text(line(cell, 400)) for cell in row))
    Console(file=out, width=shutil.get_terminal_size().columns).print(drawn)
