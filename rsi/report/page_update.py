"""The page's chapter on what the adapter was trained on."""

from rsi.report.chapters import FidelityNote, SuccessorNote, TrainingNote, UpdateNote
from rsi.report.figures import curve
from rsi.report.headlines import pair_words
from rsi.report.markup import Markup, Part, joined, tag
from rsi.report.shown import count, duration, of
from rsi.report.tables import Column, digest, facts, pill, rate_cell, table

_FILTERS = (Column("Filter"), Column("Kept", "num"), Column("Dropped", "num"))
_FIDELITY = (
    Column("Served on"),
    Column("Says what the trained one says", "wide"),
    Column("Changes what the base says", "wide"),
)
_SUCCESSORS = (
    Column("Pair"),
    Column("Holdout tasks solved", "wide"),
    Column("Invalid", "num"),
    Column("What it is", "wide"),
)


def update_chapter(note: UpdateNote | None) -> Markup:
    """The dataset, the training and the candidates for succession. Empty without a note."""
    if note is None:
        return joined()
    families = of("family", len(note.families), "families")
    told = (
        f"{of('verified solution', note.examples)} of {families}, rendered under the plain "
        "contract; dataset "
    )
    return joined(
        tag("h2", "What the adapter was trained on"),
        tag("p", f"No adapter was trained: {note.reason}") if note.reason else None,
        tag("p", told, digest(note.dataset), "."),
        tag(
            "ul",
            *(tag("li", f"{family.family} {family.count}") for family in note.families),
            class_="families",
        ),
        table(_FILTERS, [(row.filter, row.kept, row.dropped) for row in note.filters]),
        _training(note.training) if note.training else None,
        tag("h3", "Who might succeed, on holdout tasks") if note.successors else None,
        table(
            _SUCCESSORS,
            [_successor(entry) for entry in note.successors],
            [entry.is_chosen for entry in note.successors],
        ),
    )


def _training(note: TrainingNote) -> Markup:
    recipe = note.recipe
    points = [(float(step), loss) for step, loss in enumerate(note.losses, start=1)]
    end = f"{note.first_loss:.3f} at first, {note.last_loss:.3f} at last"
    top = max((loss for _, loss in points), default=0.0)
    return joined(
        tag("h3", "The training"),
        curve(points, top, f"Loss over {of('step', note.steps)}", "steps", "loss", end=end),
        facts(
            [
                ("Adapter", digest(note.lora)),
                ("Grown from", digest(note.parent) if note.parent else "nothing"),
                (
                    "Recipe",
                    f"rank {recipe.rank}, alpha {recipe.alpha}, learning rate "
                    f"{recipe.learning_rate:g}, {recipe.epochs:g} epochs of batches of "
                    f"{recipe.batch_size}, seed {recipe.seed}",
                ),
                ("Cost", f"{count(note.tokens)} tokens, {duration(note.elapsed_s)}"),
            ]
        ),
        table(_FIDELITY, [_fidelity(entry) for entry in note.fidelity]),
    )


def _fidelity(entry: FidelityNote) -> tuple[Part, ...]:
    return (
        f"{entry.base_name} ({entry.base_format})",
        rate_cell(entry.agreement),
        rate_cell(entry.changed),
    )


def _successor(entry: SuccessorNote) -> tuple[Part, ...]:
    return (
        joined(digest(entry.pair.pair), " ", pill("chosen", "new") if entry.is_chosen else None),
        rate_cell(entry.rate, "new" if entry.is_chosen else "old"),
        entry.invalid,
        pair_words(entry.pair),
    )
