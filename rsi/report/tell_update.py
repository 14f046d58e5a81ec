"""What the adapter was trained on and what came of it, from the ledger's runs and datasets."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rsi.domain.lora import Fidelity, TrainingRun
from rsi.ports import Ledger
from rsi.report.chapters import (
    FamilyCount,
    FidelityNote,
    FilterNote,
    SuccessorNote,
    TrainingNote,
    UpdateNote,
)
from rsi.report.naming import Naming
from rsi.report.scores import share_of


def tell_update(
    ledger: Ledger,
    number: int,
    result: Mapping[str, Any] | None,
    naming: Naming,
    confidence: float,
) -> UpdateNote | None:
    """The chapter; None before there is a dataset. What isn't known yet is left empty."""
    digests = ledger.datasets(number)
    if result is None and not digests:
        return None
    dataset = result["dataset"] if result else digests[-1]
    examples = ledger.dataset(dataset).examples
    families = Counter(example.family for example in examples)
    run = next((run for run in ledger.training_runs(number) if run.dataset == dataset), None)
    found: Mapping[str, Any] = result or {}
    return UpdateNote(
        outcome=found.get("outcome") or ("trained" if run else "under way"),
        reason=found.get("reason", ""),
        dataset=dataset,
        examples=len(examples),
        families=tuple(FamilyCount(family=f, count=n) for f, n in sorted(families.items())),
        filters=tuple(
            FilterNote(filter=row["filter"], kept=row["kept"], dropped=row["dropped"])
            for row in found.get("filters", ())
        ),
        training=_training(run, naming, confidence) if run else None,
        successors=_successors(found, naming, confidence),
    )


def _training(run: TrainingRun, naming: Naming, confidence: float) -> TrainingNote:
    return TrainingNote(
        lora=run.lora,
        parent=run.parent,
        recipe=run.recipe,
        steps=run.steps,
        first_loss=run.first_loss,
        last_loss=run.last_loss,
        losses=run.losses,
        tokens=run.tokens,
        elapsed_s=run.elapsed_s,
        fidelity=tuple(_fidelity(entry, naming, confidence) for entry in run.fidelity),
    )


def _fidelity(entry: Fidelity, naming: Naming, confidence: float) -> FidelityNote:
    base = naming.base(entry.base)
    agreed, changed = (round(share * entry.prompts) for share in (entry.agreement, entry.changed))
    return FidelityNote(
        base=entry.base,
        base_name=base.name,
        base_format=base.format,
        agreement=share_of(agreed, entry.prompts, confidence),
        changed=share_of(changed, entry.prompts, confidence),
    )


def _successors(
    found: Mapping[str, Any], naming: Naming, confidence: float
) -> tuple[SuccessorNote, ...]:
    return tuple(
        SuccessorNote(
            pair=naming.pair(row["pair"]),
            solved=row["solved"],
            trials=row["trials"],
            invalid=row["invalid"],
            rate=share_of(row["solved"], row["trials"], confidence),
            is_chosen=row["pair"] == found["successor_pair"],
        )
        for row in found.get("successors", ())
    )
