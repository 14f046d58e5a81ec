"""The tables of the ledger. Rows are added, never changed; natural keys make writes idempotent.

A row keeps the canonical JSON of its value in `document`, beside the columns that queries need.
Texts in `document` have NUL escaped (see `rsi.edges.ledger.documents`).
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

REFUSAL = "RSI01"
"""SQLSTATE of an UPDATE, DELETE or TRUNCATE on a table whose rows are never changed."""
DISCIPLINE = "RSI02"
"""SQLSTATE of a training example whose task isn't in the search split."""


def _digest(name: str, comment: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, String(64), nullable=nullable, comment=comment)


def _text(name: str, comment: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text, nullable=nullable, comment=comment)


def _number(name: str, comment: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, comment=comment, autoincrement=False)


def _document(comment: str = "Canonical JSON of the whole value, NUL escaped.") -> Column[object]:
    return Column("document", JSONB, nullable=False, comment=comment)


def _recorded() -> Column[object]:
    return Column(
        "recorded_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=func.now(),
        comment="When the row was added, by the database's clock.",
    )


def _one_of(column: str, *values: str, nullable: bool = False) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    optional = f"{column} IS NULL OR " if nullable else ""
    return CheckConstraint(f"{optional}{column} IN ({listed})", name=column)


def _refers(columns: str, target: str) -> ForeignKeyConstraint:
    table, _, names = target.partition(".")
    return ForeignKeyConstraint(
        columns.split(","), [f"{table}.{name}" for name in names.split(",")]
    )


contracts = Table(
    "contracts",
    metadata,
    _digest("digest", "SHA-256 of the canonical form."),
    _text("name", "The contract's own name."),
    _text("version", "Its version for people."),
    _text("toml", "The TOML document, whole, comments included."),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("digest"),
    comment="Harness contracts (HCP), immutable.",
)

evaluations = Table(
    "evaluations",
    metadata,
    _digest("digest", "SHA-256 of the canonical form."),
    _text("name", "The evaluation contract's own name."),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("digest"),
    comment="Evaluation contracts: suites, budgets, the gate's rule.",
)

bases = Table(
    "bases",
    metadata,
    _digest("digest", "SHA-256 of the weights file, or of a server's address and model name."),
    _text("name", "The model's name."),
    _text("format", "gguf:<quantisation> or remote."),
    _digest("derived_from", "The base that this one was converted from.", nullable=True),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("digest"),
    comment="Frozen base models.",
)

loras = Table(
    "loras",
    metadata,
    _digest("digest", "SHA-256 of the served adapter file; its name in the blob store."),
    _digest("base", "The base that it was trained on."),
    Column("slot", String(2), nullable=False, comment="L0 chat, L1 agent, L2 coding, L3 genui."),
    _digest("dataset", "What it was trained on."),
    _digest("parent", "The revision that training started from.", nullable=True),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("digest"),
    _refers("base", "bases.digest"),
    _refers("dataset", "datasets.digest"),
    _refers("parent", "loras.digest"),
    _one_of("slot", "L0", "L1", "L2", "L3"),
    comment="Revisions of LoRA weights, immutable.",
)

models = Table(
    "models",
    metadata,
    _digest("digest", "SHA-256 of the canonical form."),
    _digest("base", "The frozen base."),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("digest"),
    _refers("base", "bases.digest"),
    comment="A base and the LoRA in each slot.",
)

model_loras = Table(
    "model_loras",
    metadata,
    _digest("model", "The model."),
    Column("slot", String(2), nullable=False, comment="The slot."),
    _digest("lora", "The LoRA in that slot."),
    PrimaryKeyConstraint("model", "slot"),
    _refers("model", "models.digest"),
    _refers("lora", "loras.digest"),
    comment="Which LoRA a model holds in which slot.",
)

pairs = Table(
    "pairs",
    metadata,
    _digest("digest", "SHA-256 of the canonical form."),
    _digest("model", "The model."),
    _digest("contract", "The harness contract."),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("digest"),
    _refers("model", "models.digest"),
    _refers("contract", "contracts.digest"),
    Index(None, "contract"),
    comment="Model-harness pairs: what is evaluated, promoted, served, rolled back.",
)

families = Table(
    "families",
    metadata,
    _text("suite", "The suite that the family belongs to."),
    _text("name", "The family's name."),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("suite", "name"),
    comment="Kinds of tasks with their levels.",
)

tasks = Table(
    "tasks",
    metadata,
    _digest("digest", "SHA-256 of the canonical form."),
    _text("suite", "The suite that it comes from."),
    _text("family", "Its family."),
    Column("level", Integer, nullable=False, comment="Its level of difficulty."),
    _text("name", "org/name, as in Harbor's task.toml."),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("digest"),
    Index(None, "suite", "family", "level"),
    comment="Tasks, whole: instruction, files, verifier, reference solution.",
)

splits = Table(
    "splits",
    metadata,
    _digest("task", "The task."),
    Column("split", String(10), nullable=False, comment="search, holdout or exam, for ever."),
    _recorded(),
    PrimaryKeyConstraint("task"),
    _refers("task", "tasks.digest"),
    _one_of("split", "search", "holdout", "exam"),
    comment="The one split that a task belongs to.",
)

generations = Table(
    "generations",
    metadata,
    _number("number", "Its number, from 1."),
    _digest("champion", "The pair that it starts from."),
    _digest("evaluation", "The evaluation contract that it runs under."),
    Column("opened_at", DateTime(timezone=True), nullable=False, comment="When it was opened."),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("number"),
    _refers("champion", "pairs.digest"),
    _refers("evaluation", "evaluations.digest"),
    comment="Cycles of discovery, expansion, update and gate.",
)

generation_tasks = Table(
    "generation_tasks",
    metadata,
    _number("generation", "The generation."),
    Column("split", String(10), nullable=False, comment="What it uses the task for."),
    Column("position", Integer, nullable=False, comment="Its place in the order of use, from 0."),
    _digest("task", "The task."),
    _recorded(),
    PrimaryKeyConstraint("generation", "split", "task"),
    UniqueConstraint("generation", "split", "position"),
    _refers("generation", "generations.number"),
    _refers("task", "tasks.digest"),
    _one_of("split", "search", "holdout", "exam", "regression"),
    Index(None, "task"),
    comment="Which tasks a generation uses, and for what.",
)

stage_events = Table(
    "stage_events",
    metadata,
    _number("generation", "The generation."),
    Column("ordinal", Integer, nullable=False, comment="Place among its events, from 0."),
    Column("stage", String(10), nullable=False, comment="The stage."),
    Column("state", String(10), nullable=False, comment="What happened to it."),
    Column("at", DateTime(timezone=True), nullable=False, comment="When it happened."),
    _document("Canonical JSON of the event, with the stage's result when it finished."),
    _recorded(),
    PrimaryKeyConstraint("generation", "ordinal"),
    _refers("generation", "generations.number"),
    _one_of("stage", "discovery", "expansion", "update", "gate"),
    _one_of("state", "started", "finished", "failed"),
    comment="What happened in a generation; its state is the newest event.",
)

trials = Table(
    "trials",
    metadata,
    Column("id", BigInteger, Identity(always=True), comment="The order of recording."),
    _digest("pair", "The pair that was run."),
    _digest("task", "The task that it was run on."),
    _number("seed", "The seed of the run."),
    _number("generation", "The generation that ran it."),
    Column("outcome", String(7), nullable=False, comment="solved, failed or invalid."),
    Column("cause", String(20), nullable=True, comment="Why it failed; null otherwise."),
    _number("input_tokens", "Prompt tokens, cached ones included."),
    _number("output_tokens", "Generated tokens."),
    Column("elapsed_s", Float, nullable=False, comment="Wall time in seconds."),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("pair", "task", "seed"),
    _refers("pair", "pairs.digest"),
    _refers("task", "tasks.digest"),
    _refers("generation", "generations.number"),
    _one_of("outcome", "solved", "failed", "invalid"),
    CheckConstraint("(outcome = 'failed') = (cause IS NOT NULL)", name="cause"),
    Index(None, "generation"),
    Index(None, "task"),
    comment="One run of a pair on a task with a seed.",
)

trajectories = Table(
    "trajectories",
    metadata,
    Column("trial", BigInteger, nullable=False, autoincrement=False, comment="The trial."),
    _digest("blob", "The ATIF document in the blob store."),
    _recorded(),
    PrimaryKeyConstraint("trial"),
    _refers("trial", "trials.id"),
    comment="Where the steps of a trial are stored.",
)

candidates = Table(
    "candidates",
    metadata,
    _number("generation", "The generation whose search proposed it."),
    Column("ordinal", Integer, nullable=False, comment="Place in the order of proposals."),
    _digest("contract", "The proposed contract."),
    _digest("parent", "The contract that it was edited from.", nullable=True),
    _text("author", "operator:<name> or model:<name>."),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("generation", "contract"),
    UniqueConstraint("generation", "ordinal"),
    _refers("generation", "generations.number"),
    _refers("contract", "contracts.digest"),
    _refers("parent", "contracts.digest"),
    comment="Contracts proposed by a search.",
)

coverages = Table(
    "coverages",
    metadata,
    _number("generation", "The generation."),
    Column("tasks", Integer, nullable=False, comment="Tasks that the search was to cover."),
    Column("covered", Integer, nullable=False, comment="Tasks that some candidate solved."),
    Column("attempts", Integer, nullable=False, comment="Attempts that it took."),
    _document("Canonical JSON: curve, winner of each task, finalists."),
    _recorded(),
    PrimaryKeyConstraint("generation"),
    _refers("generation", "generations.number"),
    comment="What a search covered; never a pair's score.",
)

datasets = Table(
    "datasets",
    metadata,
    _digest("digest", "SHA-256 of the canonical form."),
    Column("size", Integer, nullable=False, comment="How many examples it has."),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("digest"),
    comment="Manifests of training examples.",
)

generation_datasets = Table(
    "generation_datasets",
    metadata,
    _number("generation", "The generation."),
    _digest("dataset", "A dataset that it curated."),
    _recorded(),
    PrimaryKeyConstraint("generation", "dataset"),
    _refers("generation", "generations.number"),
    _refers("dataset", "datasets.digest"),
    comment="Which generation curated which dataset.",
)

dataset_examples = Table(
    "dataset_examples",
    metadata,
    _digest("dataset", "The dataset."),
    Column("position", Integer, nullable=False, comment="Place in the dataset, from 0."),
    _digest("pair", "Of the trial that the example came from."),
    _digest("task", "Of the trial that the example came from; always of the search split."),
    _number("seed", "Of the trial that the example came from."),
    PrimaryKeyConstraint("dataset", "position"),
    _refers("dataset", "datasets.digest"),
    _refers("pair,task,seed", "trials.pair,task,seed"),
    comment="The trial behind each example.",
)

training_runs = Table(
    "training_runs",
    metadata,
    _number("generation", "The generation."),
    _digest("dataset", "What was trained on."),
    _digest("lora", "What came of it."),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("generation", "dataset", "lora"),
    _refers("generation", "generations.number"),
    _refers("dataset", "datasets.digest"),
    _refers("lora", "loras.digest"),
    comment="Trainings: inputs, losses, cost, fidelity of what is served.",
)

verdicts = Table(
    "verdicts",
    metadata,
    _digest("digest", "SHA-256 of the canonical form."),
    _number("generation", "The generation."),
    _digest("champion", "The pair to beat."),
    _digest("successor", "The pair that was judged."),
    Column("decision", String(7), nullable=False, comment="promote, reject or hold."),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("digest"),
    _refers("generation", "generations.number"),
    _refers("champion", "pairs.digest"),
    _refers("successor", "pairs.digest"),
    _one_of("decision", "promote", "reject", "hold"),
    Index(None, "generation"),
    comment="Comparisons of two pairs under an evaluation contract.",
)

verdict_evidence = Table(
    "verdict_evidence",
    metadata,
    _digest("verdict", "The verdict."),
    _digest("pair", "Of a trial behind its numbers."),
    _digest("task", "Of a trial behind its numbers."),
    _number("seed", "Of a trial behind its numbers."),
    PrimaryKeyConstraint("verdict", "pair", "task", "seed"),
    _refers("verdict", "verdicts.digest"),
    _refers("pair,task,seed", "trials.pair,task,seed"),
    comment="Every trial behind a verdict.",
)

promotions = Table(
    "promotions",
    metadata,
    Column(
        "ordinal",
        Integer,
        nullable=False,
        autoincrement=False,
        comment="Place in the order of promotions, from 0; the newest is the champion.",
    ),
    _digest("pair", "The pair that became champion."),
    _digest("replaced", "The champion before; null for the first.", nullable=True),
    _digest(
        "verdict",
        "The verdict that earned it; null for the first and for a rollback.",
        nullable=True,
    ),
    _document(),
    _recorded(),
    PrimaryKeyConstraint("ordinal"),
    _refers("pair", "pairs.digest"),
    _refers("replaced", "pairs.digest"),
    _refers("verdict", "verdicts.digest"),
    comment="Changes of the champion.",
)
