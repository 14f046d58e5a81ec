"""What a command answers: one document for machines, and blocks for people."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from rsi.domain.values import Value


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts under headings; told in words when there are none."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: str = "nothing"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one command; `exit_code` is other than 0 when it is bad news."""

    document: Mapping[str, JsonValue]
    """What `--json` prints; its keys are documented and stay."""
    blocks: tuple[str | Table, ...]
    exit_code: int = 0


Run = Callable[[argparse.Namespace], Answer]
"""A command: parsed arguments in, answer out. Raises RsiError."""


def plain(value: Value) -> dict[str, JsonValue]:
    """The value as `--json` prints it."""
    document: dict[str, JsonValue] = value.model_dump(mode="json")
    return document


def command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Run,
    about: str,
    *,
    is_long: bool = False,
    aliases: tuple[str, ...] = (),
) -> argparse.ArgumentParser:
    """A parser for the command, to which its arguments are added; each takes `--json`.

    `is_long` marks what works for longer than a glance at the ledger.
    """
    parser = commands.add_parser(name, help=about, description=about, aliases=aliases)
    parser.set_defaults(run=run, is_long=is_long)
    parser.add_argument("--json", action="store_true", help="print JSON with stable keys")
    return parser


def positive(text: str) -> int:
    """A whole number above zero, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, but is {text!r}")
    return int(text)
