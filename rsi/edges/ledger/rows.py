"""The tables of the ledger. Rows are added, never changed; natural keys make writes idempotent.

A row keeps the canonical JSON of its value in `document`, beside the columns that queries need.
Texts in it are escaped (see `rsi.edges.ledger.documents`).
"""

from rsi.edges.ledger.columns import DISCIPLINE, REFUSAL, metadata
from rsi.edges.ledger.evidence_rows import (
    dataset_examples,
    promotions,
    trajectories,
    trials,
    verdict_evidence,
    verdicts,
)
from rsi.edges.ledger.night_rows import (
    candidates,
    coverages,
    datasets,
    finalists,
    generation_datasets,
    generation_tasks,
    generations,
    splits,
    stage_events,
    training_runs,
    winners,
)
from rsi.edges.ledger.noun_rows import (
    bases,
    contracts,
    evaluations,
    families,
    loras,
    model_loras,
    models,
    pairs,
    tasks,
)

__all__ = [
    "DISCIPLINE",
    "REFUSAL",
    "bases",
    "candidates",
    "contracts",
    "coverages",
    "dataset_examples",
    "datasets",
    "evaluations",
    "families",
    "finalists",
    "generation_datasets",
    "generation_tasks",
    "generations",
    "loras",
    "metadata",
    "model_loras",
    "models",
    "pairs",
    "promotions",
    "splits",
    "stage_events",
    "tasks",
    "training_runs",
    "trajectories",
    "trials",
    "verdict_evidence",
    "verdicts",
    "winners",
]
