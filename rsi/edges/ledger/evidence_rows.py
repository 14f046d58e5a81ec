"""The tables of what was measured, learnt from, and decided."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
)

from rsi.edges.ledger.columns import digest, document, metadata, number, one_of, recorded, refers

trials = Table(
    "trials",
    metadata,
    Column("id", BigInteger, Identity(always=True), comment="The order of recording."),
    digest("pair", "The pair that was run."),
    digest("task", "The task that it was run on."),
    number("seed", "The seed of the run."),
    number("generation", "The generation that ran it."),
    Column("outcome", String(7), nullable=False, comment="solved, failed or invalid."),
    Column("cause", String(20), nullable=True, comment="Why it failed; null otherwise."),
    number("input_tokens", "Prompt tokens, cached ones included."),
    number("output_tokens", "Generated tokens."),
    Column("elapsed_s", Float, nullable=False, comment="Wall time in seconds."),
    document(),
    recorded(),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("pair", "task", "seed"),
    refers("pair", "pairs.digest"),
    refers("task", "tasks.digest"),
    refers("generation", "generations.number"),
    one_of("outcome", "solved", "failed", "invalid"),
    CheckConstraint("(outcome = 'failed') = (cause IS NOT NULL)", name="cause"),
    Index(None, "generation"),
    Index(None, "task"),
    comment="One run of a pair on a task with a seed.",
)

trajectories = Table(
    "trajectories",
    metadata,
    Column("trial", BigInteger, nullable=False, autoincrement=False, comment="The trial."),
    digest("blob", "The ATIF document in the blob store."),
    recorded(),
    PrimaryKeyConstraint("trial"),
    refers("trial", "trials.id"),
    comment="Where the steps of a trial are stored.",
)

dataset_examples = Table(
    "dataset_examples",
    metadata,
    digest("dataset", "The dataset."),
    Column("position", Integer, nullable=False, comment="Place in the dataset, from 0."),
    digest("pair", "Of the trial that the example came from."),
    digest("task", "Of the trial that the example came from; always of the search split."),
    number("seed", "Of the trial that the example came from."),
    PrimaryKeyConstraint("dataset", "position"),
    refers("dataset", "datasets.digest"),
    refers("pair,task,seed", "trials.pair,task,seed"),
    comment="The trial behind each example.",
)

verdicts = Table(
    "verdicts",
    metadata,
    digest("digest", "SHA-256 of the canonical form."),
    number("generation", "The generation."),
    digest("champion", "The pair to beat."),
    digest("successor", "The pair that was judged."),
    Column("decision", String(7), nullable=False, comment="promote, reject or hold."),
    document(),
    recorded(),
    PrimaryKeyConstraint("digest"),
    refers("generation", "generations.number"),
    refers("champion", "pairs.digest"),
    refers("successor", "pairs.digest"),
    one_of("decision", "promote", "reject", "hold"),
    Index(None, "generation"),
    comment="Comparisons of two pairs under an evaluation contract.",
)

verdict_evidence = Table(
    "verdict_evidence",
    metadata,
    digest("verdict", "The verdict."),
    digest("pair", "Of a trial behind its numbers."),
    digest("task", "Of a trial behind its numbers."),
    number("seed", "Of a trial behind its numbers."),
    PrimaryKeyConstraint("verdict", "pair", "task", "seed"),
    refers("verdict", "verdicts.digest"),
    refers("pair,task,seed", "trials.pair,task,seed"),
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
    digest("pair", "The pair that became champion."),
    digest("replaced", "The champion before; null for the first.", nullable=True),
    digest(
        "verdict",
        "The verdict that earned it; null for the first and for a rollback.",
        nullable=True,
    ),
    document(),
    recorded(),
    PrimaryKeyConstraint("ordinal"),
    refers("pair", "pairs.digest"),
    refers("replaced", "pairs.digest"),
    refers("verdict", "verdicts.digest"),
    comment="Changes of the champion.",
)
