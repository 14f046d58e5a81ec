"""What Expansion covered, from the ledger's coverage and candidates."""

import json
from collections import Counter
from collections.abc import Mapping

from pydantic import JsonValue

from rsi.domain.contract import Edit
from rsi.domain.search import Candidate, Coverage, Finalist
from rsi.domain.values import Digest
from rsi.ports import Ledger
from rsi.report.chapters import EditNote, ExpansionNote, FinalistNote, PointNote, WinnerNote
from rsi.report.scores import share_of

LONGEST_VALUE = 80
"""Characters of an edit's value that are told in full."""


def tell_expansion(ledger: Ledger, number: int, confidence: float) -> ExpansionNote | None:
    """The chapter; None before the search has ended."""
    coverage = ledger.coverage(number)
    if coverage is None:
        return None
    known = {candidate.contract: candidate for candidate in ledger.candidates(number)}
    return ExpansionNote(
        tasks=coverage.tasks,
        covered=coverage.covered,
        attempts=coverage.attempts,
        tokens=coverage.tokens,
        stopped=coverage.stopped,
        curve=tuple(
            PointNote(attempts=point.attempts, tokens=point.tokens, covered=point.covered)
            for point in coverage.curve
        ),
        candidates=len(known),
        winners=_winners(coverage, known),
        finalists=tuple(_finalist(entry, known, confidence) for entry in coverage.finalists),
    )


def edit_notes(candidate: Candidate | None) -> tuple[EditNote, ...]:
    """The candidate's edits, each value short enough to be read."""
    edits = candidate.edits if candidate else ()
    return tuple(EditNote(key=edit.key, value=_value(edit)) for edit in edits)


def _winners(coverage: Coverage, known: Mapping[Digest, Candidate]) -> tuple[WinnerNote, ...]:
    counted = Counter(coverage.winners.values())
    ranked = sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(
        WinnerNote(
            contract=contract,
            author=_author(contract, known),
            edits=edit_notes(known.get(contract)),
            covered_first=covered,
        )
        for contract, covered in ranked
    )


def _finalist(
    entry: Finalist, known: Mapping[Digest, Candidate], confidence: float
) -> FinalistNote:
    return FinalistNote(
        contract=entry.contract,
        author=_author(entry.contract, known),
        edits=edit_notes(known.get(entry.contract)),
        solved=entry.solved,
        trials=entry.trials,
        invalid=entry.invalid,
        rate=share_of(entry.solved, entry.trials, confidence),
        is_chosen=entry.is_chosen,
    )


def _author(contract: Digest, known: Mapping[Digest, Candidate]) -> str:
    return known[contract].author if contract in known else "champion"


def _value(edit: Edit) -> str:
    if edit.op == "unset":
        return "unset"
    text = json.dumps(edit.value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else _size(edit.value)


def _size(value: JsonValue) -> str:
    if isinstance(value, list):
        return f"{len(value)} entries"
    return f"{len(value)} characters" if isinstance(value, str) else "a long value"
