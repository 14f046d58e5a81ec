"""The tables of a generation: its tasks, events, candidates, coverage and trainings."""

from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
)

from rsi.edges.ledger.columns import (
    digest,
    document,
    metadata,
    number,
    one_of,
    recorded,
    refers,
    text,
)

splits = Table(
    "splits",
    metadata,
    digest("task", "The task."),
    Column("split", String(10), nullable=False, comment="search, holdout or exam, for ever."),
    recorded(),
    PrimaryKeyConstraint("task"),
    refers("task", "tasks.digest"),
    one_of("split", "search", "holdout", "exam"),
    comment="The one split that a task belongs to.",
)

generations = Table(
    "generations",
    metadata,
    number("number", "Its number, from 1."),
    digest("champion", "The pair that it starts from."),
    digest("evaluation", "The evaluation contract that it runs under."),
    Column("opened_at", DateTime(timezone=True), nullable=False, comment="When it was opened."),
    document(),
    recorded(),
    PrimaryKeyConstraint("number"),
    refers("champion", "pairs.digest"),
    refers("evaluation", "evaluations.digest"),
    comment="Cycles of discovery, expansion, update and gate.",
)

generation_tasks = Table(
    "generation_tasks",
    metadata,
    number("generation", "The generation."),
    Column("split", String(10), nullable=False, comment="What it uses the task for."),
    Column("position", Integer, nullable=False, comment="Its place in the order of use, from 0."),
    digest("task", "The task."),
    recorded(),
    PrimaryKeyConstraint("generation", "split", "task"),
    UniqueConstraint("generation", "split", "position"),
    refers("generation", "generations.number"),
    refers("task", "tasks.digest"),
    one_of("split", "search", "holdout", "exam", "regression"),
    Index(None, "task"),
    comment="Which tasks a generation uses, and for what.",
)

stage_events = Table(
    "stage_events",
    metadata,
    number("generation", "The generation."),
    Column("ordinal", Integer, nullable=False, comment="Place among its events, from 0."),
    Column("stage", String(10), nullable=False, comment="The stage."),
    Column("state", String(10), nullable=False, comment="What happened to it."),
    Column("at", DateTime(timezone=True), nullable=False, comment="When it happened."),
    document("Canonical JSON of the event, with the stage's result when it finished."),
    recorded(),
    PrimaryKeyConstraint("generation", "ordinal"),
    refers("generation", "generations.number"),
    one_of("stage", "discovery", "expansion", "update", "gate"),
    one_of("state", "started", "finished", "failed"),
    comment="What happened in a generation; its state is the newest event.",
)

candidates = Table(
    "candidates",
    metadata,
    number("generation", "The generation whose search proposed it."),
    Column("ordinal", Integer, nullable=False, comment="Place in the order of proposals."),
    digest("contract", "The proposed contract."),
    digest("parent", "The contract that it was edited from.", nullable=True),
    text("author", "operator:<name> or model:<name>."),
    document(),
    recorded(),
    PrimaryKeyConstraint("generation", "contract"),
    UniqueConstraint("generation", "ordinal"),
    refers("generation", "generations.number"),
    refers("contract", "contracts.digest"),
    refers("parent", "contracts.digest"),
    comment="Contracts proposed by a search.",
)

coverages = Table(
    "coverages",
    metadata,
    number("generation", "The generation."),
    Column("tasks", Integer, nullable=False, comment="Tasks that the search was to cover."),
    Column("covered", Integer, nullable=False, comment="Tasks that some candidate solved."),
    Column("attempts", Integer, nullable=False, comment="Attempts that it took."),
    document("Canonical JSON: curve, winner of each task, finalists."),
    recorded(),
    PrimaryKeyConstraint("generation"),
    refers("generation", "generations.number"),
    comment="What a search covered; never a pair's score.",
)

winners = Table(
    "winners",
    metadata,
    number("generation", "The generation."),
    digest("task", "A task that the search covered."),
    digest("contract", "The contract that covered it first."),
    PrimaryKeyConstraint("generation", "task"),
    refers("generation", "coverages.generation"),
    refers("task", "tasks.digest"),
    refers("contract", "contracts.digest"),
    comment="The winning candidate of each covered task.",
)

finalists = Table(
    "finalists",
    metadata,
    number("generation", "The generation."),
    digest("contract", "A single contract, measured on holdout tasks."),
    Column("solved", Integer, nullable=False, comment="Holdout trials that it solved."),
    Column("trials", Integer, nullable=False, comment="Holdout trials that were run."),
    Column("invalid", Integer, nullable=False, comment="Of these, trials that were invalid."),
    Column("is_chosen", Boolean, nullable=False, comment="Whether it goes on to Update."),
    PrimaryKeyConstraint("generation", "contract"),
    refers("generation", "coverages.generation"),
    refers("contract", "contracts.digest"),
    comment="Contracts among which holdout tasks chose.",
)

datasets = Table(
    "datasets",
    metadata,
    digest("digest", "SHA-256 of the canonical form."),
    Column("size", Integer, nullable=False, comment="How many examples it has."),
    document(),
    recorded(),
    PrimaryKeyConstraint("digest"),
    comment="Manifests of training examples.",
)

generation_datasets = Table(
    "generation_datasets",
    metadata,
    number("generation", "The generation."),
    digest("dataset", "A dataset that it curated."),
    recorded(),
    PrimaryKeyConstraint("generation", "dataset"),
    refers("generation", "generations.number"),
    refers("dataset", "datasets.digest"),
    comment="Which generation curated which dataset.",
)

training_runs = Table(
    "training_runs",
    metadata,
    number("generation", "The generation."),
    digest("dataset", "What was trained on."),
    digest("lora", "What came of it."),
    document(),
    recorded(),
    PrimaryKeyConstraint("generation", "dataset", "lora"),
    refers("generation", "generations.number"),
    refers("dataset", "datasets.digest"),
    refers("lora", "loras.digest"),
    comment="Trainings: inputs, losses, cost, fidelity of what is served.",
)
