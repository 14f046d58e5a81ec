"""Digests as people give them: the first characters are enough when they are unique."""

import re
from collections.abc import Iterable

from rsi.domain.task import Split
from rsi.domain.values import Digest
from rsi.errors import UsageError
from rsi.ports import Ledger

FEWEST = 6
"""Characters of a prefix, at least."""
_LISTED = 5

_PREFIX = re.compile(f"[0-9a-f]{{{FEWEST},64}}")


def is_prefix(text: str) -> bool:
    """Whether the text can be a digest or the beginning of one."""
    return bool(_PREFIX.fullmatch(text.lower()))


def resolve(text: str, known: Iterable[Digest], noun: str, where: str) -> Digest:
    """The one digest that begins with the text. Raises UsageError for none and for several.

    `where` names the command that lists them.
    """
    if not is_prefix(text):
        raise UsageError(
            f"{text!r} is no digest of a {noun}: give at least {FEWEST} hexadecimal characters; "
            f"`{where}` lists them"
        )
    prefix = text.lower()
    found = sorted({digest for digest in known if digest.startswith(prefix)})
    if not found:
        raise UsageError(f"no {noun} has a digest that begins with {prefix}; `{where}` lists them")
    if len(found) > 1:
        listed = ", ".join(digest[: len(prefix) + FEWEST] for digest in found[:_LISTED])
        more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
        raise UsageError(
            f"{len(found)} {noun}s have a digest that begins with {prefix}: {listed}{more}; "
            "give more characters"
        )
    return found[0]


def pair_digest(ledger: Ledger, text: str) -> Digest:
    """The pair that is meant."""
    return resolve(text, (pair.digest for pair in ledger.pairs()), "pair", "rsi pairs --all")


def contract_digest(ledger: Ledger, text: str) -> Digest:
    """The recorded contract that is meant."""
    known = (pair.contract for pair in ledger.pairs())
    return resolve(text, known, "contract", "rsi pairs --all")


def task_digest(ledger: Ledger, text: str) -> Digest:
    """The recorded task that is meant."""
    return resolve(text, used_tasks(ledger), "task", "rsi tasks list")


def used_tasks(ledger: Ledger) -> Iterable[Digest]:
    """Every task that a generation used."""
    for generation in ledger.generations():
        for split in Split:
            yield from ledger.used_tasks(generation.number, split)
