"""The page's chapters on the exam, the verdict and what was forgotten."""

from rsi.report.figures import POINTS, SHARES, Whisker, whiskers
from rsi.report.gate_notes import ArmNote, FamilyNote, GateNote
from rsi.report.headlines import arm_words
from rsi.report.markup import Markup, Part, joined, tag
from rsi.report.shown import of, percent, points, share
from rsi.report.story import GenerationStory
from rsi.report.tables import Column, digest, rate_cell, table

_FAMILIES = (
    Column("Family"),
    Column("Pairs", "num"),
    Column("Old pair solved", "wide"),
    Column("New pair solved", "wide"),
)
_LOST = (Column("Family"), Column("Lost", "num"))


def exam_chapter(note: GateNote | None) -> Markup:
    """The four arms and what gave the difference. Empty without a note."""
    if note is None:
        return joined()
    return joined(
        whiskers(
            [_arm(arm) for arm in note.arms],
            SHARES,
            "Share of exam tasks solved, on the same tasks and seeds",
        ),
        whiskers(
            _contrasts(note),
            POINTS,
            "Where the difference comes from, in percentage points",
        ),
    )


def verdict_chapter(story: GenerationStory) -> Markup:
    """The decision with its reasons. Empty without a verdict."""
    note = story.gate
    if note is None:
        return joined()
    told: list[Part] = [
        tag("p", tag("strong", f"Verdict: {note.decision}"), " ", digest(note.verdict)),
        *(tag("p", reason) for reason in note.reasons),
    ]
    if note.smallest_resolvable is not None:
        told.append(
            tag(
                "p",
                f"This evidence, {of('trial', note.evidence)}, could tell differences of about "
                f"{percent(note.smallest_resolvable)} apart.",
                class_="note",
            )
        )
    if note.needed_pairs is not None:
        told.append(tag("p", f"About {of('more pair', note.needed_pairs)} would decide."))
    return tag("div", *told, class_=f"verdict {story.state}")


def families_chapter(note: GateNote | None) -> Markup:
    """Old against new on the exam, by family. Empty without a note."""
    if note is None:
        return joined()
    return joined(
        tag("h2", "The exam, family by family"),
        table(_FAMILIES, [_family(family) for family in note.families]),
    )


def forgotten_chapter(note: GateNote | None) -> Markup:
    """What the old pair could do and the new one can't. Empty without a note."""
    if note is None:
        return joined()
    again = note.regression
    told = (
        f"Of {of('task', again.kept + again.lost)} that the old pair solved again in this block, "
        f"the new one lost {again.lost}: {share(again.forgotten)}. {of('task', again.tasks)} "
        f"run, {again.invalid} invalid."
        if again.tasks
        else "No task was known that the old pair could do, so forgetting is unscored (n=0)."
    )
    rows = [(row.family, row.count) for row in again.lost_by_family]
    return joined(tag("h2", "What was forgotten"), tag("p", told), table(_LOST, rows))


def _arm(arm: ArmNote) -> Whisker:
    tone = "old" if arm.is_champion else "new" if arm.is_successor else "plain"
    role = " (old pair)" if arm.is_champion else " (new pair)" if arm.is_successor else ""
    broken = f", {arm.invalid} invalid" if arm.invalid else ""
    return Whisker(f"{arm_words(arm.name)}{role}", share(arm.rate) + broken, arm.rate, tone)


def _contrasts(note: GateNote) -> list[Whisker]:
    given = note.attribution
    return [
        Whisker("Gain, new pair over old", points(note.gain), note.gain, "new"),
        Whisker("Given by the contract", points(given.contract), given.contract),
        Whisker("Given by the weights", points(given.weights), given.weights),
        Whisker("Interaction", points(given.interaction), given.interaction),
    ]


def _family(family: FamilyNote) -> tuple[Part, ...]:
    return (
        family.family,
        family.pairs,
        rate_cell(family.old, "old"),
        rate_cell(family.new, "new"),
    )
