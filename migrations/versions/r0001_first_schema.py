"""The first schema: every noun of the glossary, append-only.

Revision: 0001
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from rsi.edges.ledger.rows import DISCIPLINE, REFUSAL

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    "bases",
    "contracts",
    "datasets",
    "evaluations",
    "families",
    "tasks",
    "loras",
    "models",
    "splits",
    "model_loras",
    "pairs",
    "generations",
    "candidates",
    "coverages",
    "generation_datasets",
    "generation_tasks",
    "stage_events",
    "training_runs",
    "trials",
    "verdicts",
    "dataset_examples",
    "promotions",
    "trajectories",
    "verdict_evidence",
)

REFUSE_CHANGE = f"""
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'table % is append-only: % is refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = '{REFUSAL}';
END $$
"""

REFUSE_UNSEARCHED = f"""
CREATE FUNCTION refuse_unsearched_example() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    found text;
BEGIN
    SELECT split INTO found FROM splits WHERE task = NEW.task;
    IF found IS DISTINCT FROM 'search' THEN
        RAISE EXCEPTION 'task % is in split %, so nothing may be trained on it',
            left(NEW.task, 12), coalesce(found, 'none') USING ERRCODE = '{DISCIPLINE}';
    END IF;
    RETURN NEW;
END $$
"""


def upgrade() -> None:
    create_tables()
    op.execute(REFUSE_CHANGE)
    for table in TABLES:
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
        )
    op.execute(REFUSE_UNSEARCHED)
    op.execute(
        "CREATE TRIGGER dataset_examples_searched BEFORE INSERT ON dataset_examples "
        "FOR EACH ROW EXECUTE FUNCTION refuse_unsearched_example()"
    )


def create_tables() -> None:
    op.create_table(
        "bases",
        sa.Column(
            "digest",
            sa.String(length=64),
            nullable=False,
            comment="SHA-256 of the weights file, or of a server's address and model name.",
        ),
        sa.Column("name", sa.Text(), nullable=False, comment="The model's name."),
        sa.Column("format", sa.Text(), nullable=False, comment="gguf:<quantisation> or remote."),
        sa.Column(
            "derived_from",
            sa.String(length=64),
            nullable=True,
            comment="The base that this one was converted from.",
        ),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_bases")),
        comment="Frozen base models.",
    )
    op.create_table(
        "contracts",
        sa.Column(
            "digest", sa.String(length=64), nullable=False, comment="SHA-256 of the canonical form."
        ),
        sa.Column("name", sa.Text(), nullable=False, comment="The contract's own name."),
        sa.Column("version", sa.Text(), nullable=False, comment="Its version for people."),
        sa.Column(
            "toml",
            sa.Text(),
            nullable=False,
            comment="The TOML document, whole, comments included.",
        ),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_contracts")),
        comment="Harness contracts (HCP), immutable.",
    )
    op.create_table(
        "datasets",
        sa.Column(
            "digest", sa.String(length=64), nullable=False, comment="SHA-256 of the canonical form."
        ),
        sa.Column("size", sa.Integer(), nullable=False, comment="How many examples it has."),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_datasets")),
        comment="Manifests of training examples.",
    )
    op.create_table(
        "evaluations",
        sa.Column(
            "digest", sa.String(length=64), nullable=False, comment="SHA-256 of the canonical form."
        ),
        sa.Column("name", sa.Text(), nullable=False, comment="The evaluation contract's own name."),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_evaluations")),
        comment="Evaluation contracts: suites, budgets, the gate's rule.",
    )
    op.create_table(
        "families",
        sa.Column(
            "suite", sa.Text(), nullable=False, comment="The suite that the family belongs to."
        ),
        sa.Column("name", sa.Text(), nullable=False, comment="The family's name."),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.PrimaryKeyConstraint("suite", "name", name=op.f("pk_families")),
        comment="Kinds of tasks with their levels.",
    )
    op.create_table(
        "tasks",
        sa.Column(
            "digest", sa.String(length=64), nullable=False, comment="SHA-256 of the canonical form."
        ),
        sa.Column("suite", sa.Text(), nullable=False, comment="The suite that it comes from."),
        sa.Column("family", sa.Text(), nullable=False, comment="Its family."),
        sa.Column("level", sa.Integer(), nullable=False, comment="Its level of difficulty."),
        sa.Column("name", sa.Text(), nullable=False, comment="org/name, as in Harbor's task.toml."),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_tasks")),
        comment="Tasks, whole: instruction, files, verifier, reference solution.",
    )
    op.create_index(
        op.f("ix_tasks_suite_family_level"), "tasks", ["suite", "family", "level"], unique=False
    )
    op.create_table(
        "loras",
        sa.Column(
            "digest",
            sa.String(length=64),
            nullable=False,
            comment="SHA-256 of the served adapter file; its name in the blob store.",
        ),
        sa.Column(
            "base", sa.String(length=64), nullable=False, comment="The base that it was trained on."
        ),
        sa.Column(
            "slot",
            sa.String(length=2),
            nullable=False,
            comment="L0 chat, L1 agent, L2 coding, L3 genui.",
        ),
        sa.Column(
            "dataset", sa.String(length=64), nullable=False, comment="What it was trained on."
        ),
        sa.Column(
            "parent",
            sa.String(length=64),
            nullable=True,
            comment="The revision that training started from.",
        ),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.CheckConstraint("slot IN ('L0', 'L1', 'L2', 'L3')", name=op.f("ck_loras_slot")),
        sa.ForeignKeyConstraint(["base"], ["bases.digest"], name=op.f("fk_loras_base")),
        sa.ForeignKeyConstraint(["dataset"], ["datasets.digest"], name=op.f("fk_loras_dataset")),
        sa.ForeignKeyConstraint(["parent"], ["loras.digest"], name=op.f("fk_loras_parent")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_loras")),
        comment="Revisions of LoRA weights, immutable.",
    )
    op.create_table(
        "models",
        sa.Column(
            "digest", sa.String(length=64), nullable=False, comment="SHA-256 of the canonical form."
        ),
        sa.Column("base", sa.String(length=64), nullable=False, comment="The frozen base."),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.ForeignKeyConstraint(["base"], ["bases.digest"], name=op.f("fk_models_base")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_models")),
        comment="A base and the LoRA in each slot.",
    )
    op.create_table(
        "splits",
        sa.Column("task", sa.String(length=64), nullable=False, comment="The task."),
        sa.Column(
            "split",
            sa.String(length=10),
            nullable=False,
            comment="search, holdout or exam, for ever.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.CheckConstraint("split IN ('search', 'holdout', 'exam')", name=op.f("ck_splits_split")),
        sa.ForeignKeyConstraint(["task"], ["tasks.digest"], name=op.f("fk_splits_task")),
        sa.PrimaryKeyConstraint("task", name=op.f("pk_splits")),
        comment="The one split that a task belongs to.",
    )
    op.create_table(
        "model_loras",
        sa.Column("model", sa.String(length=64), nullable=False, comment="The model."),
        sa.Column("slot", sa.String(length=2), nullable=False, comment="The slot."),
        sa.Column("lora", sa.String(length=64), nullable=False, comment="The LoRA in that slot."),
        sa.ForeignKeyConstraint(["lora"], ["loras.digest"], name=op.f("fk_model_loras_lora")),
        sa.ForeignKeyConstraint(["model"], ["models.digest"], name=op.f("fk_model_loras_model")),
        sa.PrimaryKeyConstraint("model", "slot", name=op.f("pk_model_loras")),
        comment="Which LoRA a model holds in which slot.",
    )
    op.create_table(
        "pairs",
        sa.Column(
            "digest", sa.String(length=64), nullable=False, comment="SHA-256 of the canonical form."
        ),
        sa.Column("model", sa.String(length=64), nullable=False, comment="The model."),
        sa.Column(
            "contract", sa.String(length=64), nullable=False, comment="The harness contract."
        ),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.ForeignKeyConstraint(["contract"], ["contracts.digest"], name=op.f("fk_pairs_contract")),
        sa.ForeignKeyConstraint(["model"], ["models.digest"], name=op.f("fk_pairs_model")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_pairs")),
        comment="Model-harness pairs: what is evaluated, promoted, served, rolled back.",
    )
    op.create_index(op.f("ix_pairs_contract"), "pairs", ["contract"], unique=False)
    op.create_table(
        "generations",
        sa.Column(
            "number",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="Its number, from 1.",
        ),
        sa.Column(
            "champion",
            sa.String(length=64),
            nullable=False,
            comment="The pair that it starts from.",
        ),
        sa.Column(
            "evaluation",
            sa.String(length=64),
            nullable=False,
            comment="The evaluation contract that it runs under.",
        ),
        sa.Column(
            "opened_at", sa.DateTime(timezone=True), nullable=False, comment="When it was opened."
        ),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.ForeignKeyConstraint(
            ["champion"], ["pairs.digest"], name=op.f("fk_generations_champion")
        ),
        sa.ForeignKeyConstraint(
            ["evaluation"], ["evaluations.digest"], name=op.f("fk_generations_evaluation")
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_generations")),
        comment="Cycles of discovery, expansion, update and gate.",
    )
    op.create_table(
        "candidates",
        sa.Column(
            "generation",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="The generation whose search proposed it.",
        ),
        sa.Column(
            "ordinal", sa.Integer(), nullable=False, comment="Place in the order of proposals."
        ),
        sa.Column(
            "contract", sa.String(length=64), nullable=False, comment="The proposed contract."
        ),
        sa.Column(
            "parent",
            sa.String(length=64),
            nullable=True,
            comment="The contract that it was edited from.",
        ),
        sa.Column("author", sa.Text(), nullable=False, comment="operator:<name> or model:<name>."),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.ForeignKeyConstraint(
            ["contract"], ["contracts.digest"], name=op.f("fk_candidates_contract")
        ),
        sa.ForeignKeyConstraint(
            ["generation"], ["generations.number"], name=op.f("fk_candidates_generation")
        ),
        sa.ForeignKeyConstraint(
            ["parent"], ["contracts.digest"], name=op.f("fk_candidates_parent")
        ),
        sa.PrimaryKeyConstraint("generation", "contract", name=op.f("pk_candidates")),
        sa.UniqueConstraint("generation", "ordinal", name=op.f("uq_candidates_generation_ordinal")),
        comment="Contracts proposed by a search.",
    )
    op.create_table(
        "coverages",
        sa.Column(
            "generation",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="The generation.",
        ),
        sa.Column(
            "tasks", sa.Integer(), nullable=False, comment="Tasks that the search was to cover."
        ),
        sa.Column(
            "covered", sa.Integer(), nullable=False, comment="Tasks that some candidate solved."
        ),
        sa.Column("attempts", sa.Integer(), nullable=False, comment="Attempts that it took."),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON: curve, winner of each task, finalists.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.ForeignKeyConstraint(
            ["generation"], ["generations.number"], name=op.f("fk_coverages_generation")
        ),
        sa.PrimaryKeyConstraint("generation", name=op.f("pk_coverages")),
        comment="What a search covered; never a pair's score.",
    )
    op.create_table(
        "generation_datasets",
        sa.Column(
            "generation",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="The generation.",
        ),
        sa.Column(
            "dataset", sa.String(length=64), nullable=False, comment="A dataset that it curated."
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.ForeignKeyConstraint(
            ["dataset"], ["datasets.digest"], name=op.f("fk_generation_datasets_dataset")
        ),
        sa.ForeignKeyConstraint(
            ["generation"], ["generations.number"], name=op.f("fk_generation_datasets_generation")
        ),
        sa.PrimaryKeyConstraint("generation", "dataset", name=op.f("pk_generation_datasets")),
        comment="Which generation curated which dataset.",
    )
    op.create_table(
        "generation_tasks",
        sa.Column(
            "generation",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="The generation.",
        ),
        sa.Column(
            "split", sa.String(length=10), nullable=False, comment="What it uses the task for."
        ),
        sa.Column(
            "position",
            sa.Integer(),
            nullable=False,
            comment="Its place in the order of use, from 0.",
        ),
        sa.Column("task", sa.String(length=64), nullable=False, comment="The task."),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.CheckConstraint(
            "split IN ('search', 'holdout', 'exam', 'regression')",
            name=op.f("ck_generation_tasks_split"),
        ),
        sa.ForeignKeyConstraint(
            ["generation"], ["generations.number"], name=op.f("fk_generation_tasks_generation")
        ),
        sa.ForeignKeyConstraint(["task"], ["tasks.digest"], name=op.f("fk_generation_tasks_task")),
        sa.PrimaryKeyConstraint("generation", "split", "task", name=op.f("pk_generation_tasks")),
        sa.UniqueConstraint(
            "generation",
            "split",
            "position",
            name=op.f("uq_generation_tasks_generation_split_position"),
        ),
        comment="Which tasks a generation uses, and for what.",
    )
    op.create_index(op.f("ix_generation_tasks_task"), "generation_tasks", ["task"], unique=False)
    op.create_table(
        "stage_events",
        sa.Column(
            "generation",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="The generation.",
        ),
        sa.Column(
            "ordinal", sa.Integer(), nullable=False, comment="Place among its events, from 0."
        ),
        sa.Column("stage", sa.String(length=10), nullable=False, comment="The stage."),
        sa.Column("state", sa.String(length=10), nullable=False, comment="What happened to it."),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, comment="When it happened."),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the event, with the stage's result when it finished.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.CheckConstraint(
            "stage IN ('discovery', 'expansion', 'update', 'gate')",
            name=op.f("ck_stage_events_stage"),
        ),
        sa.CheckConstraint(
            "state IN ('started', 'finished', 'failed')", name=op.f("ck_stage_events_state")
        ),
        sa.ForeignKeyConstraint(
            ["generation"], ["generations.number"], name=op.f("fk_stage_events_generation")
        ),
        sa.PrimaryKeyConstraint("generation", "ordinal", name=op.f("pk_stage_events")),
        comment="What happened in a generation; its state is the newest event.",
    )
    op.create_table(
        "training_runs",
        sa.Column(
            "generation",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="The generation.",
        ),
        sa.Column("dataset", sa.String(length=64), nullable=False, comment="What was trained on."),
        sa.Column("lora", sa.String(length=64), nullable=False, comment="What came of it."),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.ForeignKeyConstraint(
            ["dataset"], ["datasets.digest"], name=op.f("fk_training_runs_dataset")
        ),
        sa.ForeignKeyConstraint(
            ["generation"], ["generations.number"], name=op.f("fk_training_runs_generation")
        ),
        sa.ForeignKeyConstraint(["lora"], ["loras.digest"], name=op.f("fk_training_runs_lora")),
        sa.PrimaryKeyConstraint("generation", "dataset", "lora", name=op.f("pk_training_runs")),
        comment="Trainings: inputs, losses, cost, fidelity of what is served.",
    )
    op.create_table(
        "trials",
        sa.Column(
            "id",
            sa.BigInteger(),
            sa.Identity(always=True),
            nullable=False,
            comment="The order of recording.",
        ),
        sa.Column("pair", sa.String(length=64), nullable=False, comment="The pair that was run."),
        sa.Column(
            "task", sa.String(length=64), nullable=False, comment="The task that it was run on."
        ),
        sa.Column(
            "seed",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="The seed of the run.",
        ),
        sa.Column(
            "generation",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="The generation that ran it.",
        ),
        sa.Column(
            "outcome", sa.String(length=7), nullable=False, comment="solved, failed or invalid."
        ),
        sa.Column(
            "cause", sa.String(length=20), nullable=True, comment="Why it failed; null otherwise."
        ),
        sa.Column(
            "input_tokens",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="Prompt tokens, cached ones included.",
        ),
        sa.Column(
            "output_tokens",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="Generated tokens.",
        ),
        sa.Column("elapsed_s", sa.Float(), nullable=False, comment="Wall time in seconds."),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.CheckConstraint(
            "(outcome = 'failed') = (cause IS NOT NULL)", name=op.f("ck_trials_cause")
        ),
        sa.CheckConstraint(
            "outcome IN ('solved', 'failed', 'invalid')", name=op.f("ck_trials_outcome")
        ),
        sa.ForeignKeyConstraint(
            ["generation"], ["generations.number"], name=op.f("fk_trials_generation")
        ),
        sa.ForeignKeyConstraint(["pair"], ["pairs.digest"], name=op.f("fk_trials_pair")),
        sa.ForeignKeyConstraint(["task"], ["tasks.digest"], name=op.f("fk_trials_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trials")),
        sa.UniqueConstraint("pair", "task", "seed", name=op.f("uq_trials_pair_task_seed")),
        comment="One run of a pair on a task with a seed.",
    )
    op.create_index(op.f("ix_trials_generation"), "trials", ["generation"], unique=False)
    op.create_index(op.f("ix_trials_task"), "trials", ["task"], unique=False)
    op.create_table(
        "verdicts",
        sa.Column(
            "digest", sa.String(length=64), nullable=False, comment="SHA-256 of the canonical form."
        ),
        sa.Column(
            "generation",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="The generation.",
        ),
        sa.Column("champion", sa.String(length=64), nullable=False, comment="The pair to beat."),
        sa.Column(
            "successor", sa.String(length=64), nullable=False, comment="The pair that was judged."
        ),
        sa.Column(
            "decision", sa.String(length=7), nullable=False, comment="promote, reject or hold."
        ),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.CheckConstraint(
            "decision IN ('promote', 'reject', 'hold')", name=op.f("ck_verdicts_decision")
        ),
        sa.ForeignKeyConstraint(["champion"], ["pairs.digest"], name=op.f("fk_verdicts_champion")),
        sa.ForeignKeyConstraint(
            ["generation"], ["generations.number"], name=op.f("fk_verdicts_generation")
        ),
        sa.ForeignKeyConstraint(
            ["successor"], ["pairs.digest"], name=op.f("fk_verdicts_successor")
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_verdicts")),
        comment="Comparisons of two pairs under an evaluation contract.",
    )
    op.create_index(op.f("ix_verdicts_generation"), "verdicts", ["generation"], unique=False)
    op.create_table(
        "dataset_examples",
        sa.Column("dataset", sa.String(length=64), nullable=False, comment="The dataset."),
        sa.Column(
            "position", sa.Integer(), nullable=False, comment="Place in the dataset, from 0."
        ),
        sa.Column(
            "pair",
            sa.String(length=64),
            nullable=False,
            comment="Of the trial that the example came from.",
        ),
        sa.Column(
            "task",
            sa.String(length=64),
            nullable=False,
            comment="Of the trial that the example came from; always of the search split.",
        ),
        sa.Column(
            "seed",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="Of the trial that the example came from.",
        ),
        sa.ForeignKeyConstraint(
            ["dataset"], ["datasets.digest"], name=op.f("fk_dataset_examples_dataset")
        ),
        sa.ForeignKeyConstraint(
            ["pair", "task", "seed"],
            ["trials.pair", "trials.task", "trials.seed"],
            name=op.f("fk_dataset_examples_pair_task_seed"),
        ),
        sa.PrimaryKeyConstraint("dataset", "position", name=op.f("pk_dataset_examples")),
        comment="The trial behind each example.",
    )
    op.create_table(
        "promotions",
        sa.Column(
            "ordinal",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the order of promotions, from 0; the newest is the champion.",
        ),
        sa.Column(
            "pair", sa.String(length=64), nullable=False, comment="The pair that became champion."
        ),
        sa.Column(
            "replaced",
            sa.String(length=64),
            nullable=True,
            comment="The champion before; null for the first.",
        ),
        sa.Column(
            "verdict",
            sa.String(length=64),
            nullable=True,
            comment="The verdict that earned it; null for the first and for a rollback.",
        ),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="Canonical JSON of the whole value, NUL escaped.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.ForeignKeyConstraint(["pair"], ["pairs.digest"], name=op.f("fk_promotions_pair")),
        sa.ForeignKeyConstraint(
            ["replaced"], ["pairs.digest"], name=op.f("fk_promotions_replaced")
        ),
        sa.ForeignKeyConstraint(
            ["verdict"], ["verdicts.digest"], name=op.f("fk_promotions_verdict")
        ),
        sa.PrimaryKeyConstraint("ordinal", name=op.f("pk_promotions")),
        comment="Changes of the champion.",
    )
    op.create_table(
        "trajectories",
        sa.Column(
            "trial", sa.BigInteger(), autoincrement=False, nullable=False, comment="The trial."
        ),
        sa.Column(
            "blob",
            sa.String(length=64),
            nullable=False,
            comment="The ATIF document in the blob store.",
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the row was added, by the database's clock.",
        ),
        sa.ForeignKeyConstraint(["trial"], ["trials.id"], name=op.f("fk_trajectories_trial")),
        sa.PrimaryKeyConstraint("trial", name=op.f("pk_trajectories")),
        comment="Where the steps of a trial are stored.",
    )
    op.create_table(
        "verdict_evidence",
        sa.Column("verdict", sa.String(length=64), nullable=False, comment="The verdict."),
        sa.Column(
            "pair", sa.String(length=64), nullable=False, comment="Of a trial behind its numbers."
        ),
        sa.Column(
            "task", sa.String(length=64), nullable=False, comment="Of a trial behind its numbers."
        ),
        sa.Column(
            "seed",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="Of a trial behind its numbers.",
        ),
        sa.ForeignKeyConstraint(
            ["pair", "task", "seed"],
            ["trials.pair", "trials.task", "trials.seed"],
            name=op.f("fk_verdict_evidence_pair_task_seed"),
        ),
        sa.ForeignKeyConstraint(
            ["verdict"], ["verdicts.digest"], name=op.f("fk_verdict_evidence_verdict")
        ),
        sa.PrimaryKeyConstraint(
            "verdict", "pair", "task", "seed", name=op.f("pk_verdict_evidence")
        ),
        comment="Every trial behind a verdict.",
    )
