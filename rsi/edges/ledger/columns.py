"""The columns and constraints that tables share, and the metadata that holds the tables."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    MetaData,
    String,
    Text,
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
"""SQLSTATE of a task that is used, or trained on, against its split."""


def digest(name: str, comment: str, *, nullable: bool = False) -> Column[str]:
    """A SHA-256 in hexadecimal."""
    return Column(name, String(64), nullable=nullable, comment=comment)


def text(name: str, comment: str, *, nullable: bool = False) -> Column[str]:
    """A text of any length."""
    return Column(name, Text, nullable=nullable, comment=comment)


def number(name: str, comment: str) -> Column[int]:
    """A whole number that the caller gives."""
    return Column(name, BigInteger, nullable=False, comment=comment, autoincrement=False)


def document(comment: str = "Canonical JSON of the whole value, NUL escaped.") -> Column[object]:
    """The value itself."""
    return Column("document", JSONB, nullable=False, comment=comment)


def recorded() -> Column[object]:
    """When the row was added."""
    return Column(
        "recorded_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=func.now(),
        comment="When the row was added, by the database's clock.",
    )


def one_of(column: str, *values: str) -> CheckConstraint:
    """A check that the column holds one of the values."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def refers(columns: str, target: str) -> ForeignKeyConstraint:
    """A foreign key: `columns` to `table.columns`, each separated by commas."""
    table, _, names = target.partition(".")
    return ForeignKeyConstraint(
        columns.split(","), [f"{table}.{name}" for name in names.split(",")]
    )
