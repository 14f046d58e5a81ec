"""The page's chapter on what the search covered."""

from rsi.report.chapters import ExpansionNote, FinalistNote, WinnerNote
from rsi.report.figures import curve
from rsi.report.headlines import COVERAGE_CAVEAT
from rsi.report.markup import Markup, Part, joined, tag
from rsi.report.shown import count, of
from rsi.report.tables import Column, digest, edits, pill, rate_cell, table

_WINNERS = (
    Column("Contract"),
    Column("By"),
    Column("Tasks covered first", "num"),
    Column("What it changes", "wide"),
)
_FINALISTS = (
    Column("Contract"),
    Column("By"),
    Column("Holdout tasks solved", "wide"),
    Column("Invalid", "num"),
    Column("What it changes", "wide"),
)


def expansion_chapter(note: ExpansionNote | None) -> Markup:
    """The coverage curve, the winners and the finalists. Empty without a note."""
    if note is None:
        return joined()
    told = (
        f"{note.covered} of {of('task', note.tasks)} covered after {of('attempt', note.attempts)} "
        f"by {of('candidate', note.candidates)}, {count(note.tokens)} tokens; the search ended: "
        f"{note.stopped}."
    )
    points = [(0.0, 0.0), *((float(p.attempts), float(p.covered)) for p in note.curve)]
    drawn = curve(
        points, note.tasks, "Tasks covered", "attempts", "tasks", is_stepped=True, end=told
    )
    return joined(
        tag("h2", "What the search covered"),
        tag(
            "p",
            "The model is frozen; only the contract around it is searched, on tasks that "
            "the old pair doesn't solve.",
        ),
        drawn,
        tag("p", COVERAGE_CAVEAT, class_="caveat"),
        tag("h3", "Finalists: single contracts on holdout tasks that no search saw"),
        table(
            _FINALISTS,
            [_finalist(entry) for entry in note.finalists],
            [entry.is_chosen for entry in note.finalists],
        ),
        tag("h3", "Which candidates covered tasks first") if note.winners else None,
        table(_WINNERS, [_winner(entry) for entry in note.winners]),
    )


def _finalist(entry: FinalistNote) -> tuple[Part, ...]:
    return (
        joined(digest(entry.contract), " ", pill("chosen", "new") if entry.is_chosen else None),
        entry.author,
        rate_cell(entry.rate, "new" if entry.is_chosen else "old"),
        entry.invalid,
        edits(entry.edits),
    )


def _winner(entry: WinnerNote) -> tuple[Part, ...]:
    return (digest(entry.contract), entry.author, entry.covered_first, edits(entry.edits))
