"""Winners and finalists get tables, and a task is used only for its own split.

Revision: 0002
"""

import sqlalchemy as sa
from alembic import op

from rsi.edges.ledger.rows import DISCIPLINE

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

REFUSE_OTHER_SPLIT = f"""
CREATE FUNCTION refuse_other_split() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    found text;
BEGIN
    SELECT split INTO found FROM splits WHERE task = NEW.task;
    IF NEW.split <> 'regression' AND found IS DISTINCT FROM NEW.split THEN
        RAISE EXCEPTION 'task % is in split %, so it can''t be used for %',
            left(NEW.task, 12), coalesce(found, 'none'), NEW.split USING ERRCODE = '{DISCIPLINE}';
    END IF;
    RETURN NEW;
END $$
"""


def upgrade() -> None:
    create_winners()
    create_finalists()
    fill()
    for table in ("winners", "finalists"):
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
        )
    op.execute(REFUSE_OTHER_SPLIT)
    op.execute(
        "CREATE TRIGGER generation_tasks_split BEFORE INSERT ON generation_tasks "
        "FOR EACH ROW EXECUTE FUNCTION refuse_other_split()"
    )


def create_winners() -> None:
    op.create_table(
        "winners",
        sa.Column(
            "generation",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="The generation.",
        ),
        sa.Column(
            "task",
            sa.String(length=64),
            nullable=False,
            comment="A task that the search covered.",
        ),
        sa.Column(
            "contract",
            sa.String(length=64),
            nullable=False,
            comment="The contract that covered it first.",
        ),
        sa.ForeignKeyConstraint(
            ["generation"], ["coverages.generation"], name=op.f("fk_winners_generation")
        ),
        sa.ForeignKeyConstraint(["task"], ["tasks.digest"], name=op.f("fk_winners_task")),
        sa.ForeignKeyConstraint(
            ["contract"], ["contracts.digest"], name=op.f("fk_winners_contract")
        ),
        sa.PrimaryKeyConstraint("generation", "task", name=op.f("pk_winners")),
        comment="The winning candidate of each covered task.",
    )


def create_finalists() -> None:
    op.create_table(
        "finalists",
        sa.Column(
            "generation",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="The generation.",
        ),
        sa.Column(
            "contract",
            sa.String(length=64),
            nullable=False,
            comment="A single contract, measured on holdout tasks.",
        ),
        sa.Column("solved", sa.Integer(), nullable=False, comment="Holdout trials that it solved."),
        sa.Column("trials", sa.Integer(), nullable=False, comment="Holdout trials that were run."),
        sa.Column(
            "invalid",
            sa.Integer(),
            nullable=False,
            comment="Of these, trials that were invalid.",
        ),
        sa.Column(
            "is_chosen", sa.Boolean(), nullable=False, comment="Whether it goes on to Update."
        ),
        sa.ForeignKeyConstraint(
            ["generation"], ["coverages.generation"], name=op.f("fk_finalists_generation")
        ),
        sa.ForeignKeyConstraint(
            ["contract"], ["contracts.digest"], name=op.f("fk_finalists_contract")
        ),
        sa.PrimaryKeyConstraint("generation", "contract", name=op.f("pk_finalists")),
        comment="Contracts among which holdout tasks chose.",
    )


def fill() -> None:
    """Takes what earlier coverages say into the new tables."""
    op.execute(
        "INSERT INTO winners (generation, task, contract) "
        "SELECT generation, won.key, won.value "
        "FROM coverages, jsonb_each_text(document -> 'winners') AS won"
    )
    op.execute(
        "INSERT INTO finalists (generation, contract, solved, trials, invalid, is_chosen) "
        "SELECT generation, one ->> 'contract', (one ->> 'solved')::int, (one ->> 'trials')::int, "
        "(one ->> 'invalid')::int, (one ->> 'is_chosen')::boolean "
        "FROM coverages, jsonb_array_elements(document -> 'finalists') AS one"
    )
