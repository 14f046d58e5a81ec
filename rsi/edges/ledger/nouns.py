"""Contracts, evaluations, bases, loras, models, pairs, families and tasks."""

from collections.abc import Sequence
from typing import TypeVar

from sqlalchemy import ColumnElement, Table, select

from rsi.domain.contract import Contract
from rsi.domain.evaluation import Evaluation
from rsi.domain.lora import Base, Lora, Model
from rsi.domain.pair import Pair
from rsi.domain.task import Family, Task
from rsi.domain.values import Digest, Value
from rsi.edges.ledger import rows
from rsi.edges.ledger.documents import dump, escaped, load, restored
from rsi.edges.ledger.store import Store, add, add_all, document_text

AT_ONCE = 500
"""Digests that one statement looks up."""

AnyValue = TypeVar("AnyValue", bound=Value)


class Nouns:
    """What trials are about; each by its digest."""

    _store: Store

    def add_contract(self, contract: Contract, toml: str) -> None:
        row = {
            "digest": contract.digest,
            "name": contract.name,
            "version": contract.version,
            "toml": escaped(toml),
            "document": dump(contract),
        }
        self._store.add(rows.contracts, row)

    def contract(self, digest: Digest) -> Contract:
        return self._one(Contract, rows.contracts, digest)

    def contract_toml(self, digest: Digest) -> str:
        return restored(self._cell(rows.contracts, rows.contracts.c.toml, digest))

    def add_evaluation(self, evaluation: Evaluation) -> None:
        row = {"digest": evaluation.digest, "name": evaluation.name, "document": dump(evaluation)}
        self._store.add(rows.evaluations, row)

    def evaluation(self, digest: Digest) -> Evaluation:
        return self._one(Evaluation, rows.evaluations, digest)

    def add_base(self, base: Base) -> None:
        row = {
            "digest": base.digest,
            "name": escaped(base.name),
            "format": escaped(base.format),
            "derived_from": base.derived_from,
            "document": dump(base),
        }
        self._store.add(rows.bases, row)

    def bases(self) -> tuple[Base, ...]:
        table = rows.bases
        order = (table.c.recorded_at, table.c.digest)
        return self._store.values(Base, select(document_text(table)).order_by(*order))

    def add_lora(self, lora: Lora) -> None:
        row = {
            "digest": lora.digest,
            "base": lora.base,
            "slot": lora.slot.value,
            "dataset": lora.dataset,
            "parent": lora.parent,
            "document": dump(lora),
        }
        self._store.add(rows.loras, row)

    def loras(self, digests: Sequence[Digest]) -> tuple[Lora, ...]:
        return self._many(Lora, rows.loras, digests)

    def add_pair(self, pair: Pair, model: Model) -> None:
        row = {
            "digest": pair.digest,
            "model": pair.model,
            "contract": pair.contract,
            "document": dump(pair),
        }
        model_row = {"digest": model.digest, "base": model.base, "document": dump(model)}
        loras = [
            {"model": model.digest, "slot": slot.value, "lora": lora}
            for slot, lora in model.loras.items()
        ]
        with self._store.begin() as connection:
            add(connection, rows.models, model_row)
            add_all(connection, rows.model_loras, loras)
            add(connection, rows.pairs, row)

    def pair(self, digest: Digest) -> Pair:
        return self._one(Pair, rows.pairs, digest)

    def pairs(self) -> tuple[Pair, ...]:
        table = rows.pairs
        order = (table.c.recorded_at, table.c.digest)
        return self._store.values(Pair, select(document_text(table)).order_by(*order))

    def model(self, digest: Digest) -> Model:
        return self._one(Model, rows.models, digest)

    def add_families(self, families: Sequence[Family]) -> None:
        made = [
            {"suite": escaped(each.suite), "name": escaped(each.name), "document": dump(each)}
            for each in families
        ]
        self._store.add(rows.families, *made)

    def families(self) -> tuple[Family, ...]:
        table = rows.families
        order = (table.c.suite, table.c.name)
        return self._store.values(Family, select(document_text(table)).order_by(*order))

    def add_tasks(self, tasks: Sequence[Task]) -> None:
        self._store.add(rows.tasks, *map(_task_row, tasks))

    def tasks(self, digests: Sequence[Digest]) -> tuple[Task, ...]:
        return self._many(Task, rows.tasks, digests)

    def _one(self, kind: type[AnyValue], table: Table, digest: Digest) -> AnyValue:
        return load(kind, self._cell(table, document_text(table), digest))

    def _cell(self, table: Table, column: ColumnElement[str], digest: Digest) -> str:
        found = self._store.fetch(select(column).where(table.c.digest == digest))
        if not found:
            raise KeyError(f"{table.name} has no row {digest}")
        return str(found[0][0])

    def _many(
        self, kind: type[AnyValue], table: Table, digests: Sequence[Digest]
    ) -> tuple[AnyValue, ...]:
        """In the order asked for. Raises KeyError for one that isn't there."""
        wanted = list(dict.fromkeys(digests))
        found: dict[Digest, AnyValue] = {}
        for start in range(0, len(wanted), AT_ONCE):
            some = table.c.digest.in_(wanted[start : start + AT_ONCE])
            query = select(table.c.digest, document_text(table)).where(some)
            found |= {row[0]: load(kind, row[1]) for row in self._store.fetch(query)}
        for digest in wanted:
            if digest not in found:
                raise KeyError(f"{table.name} has no row {digest}")
        return tuple(found[digest] for digest in digests)


def _task_row(task: Task) -> dict[str, object]:
    return {
        "digest": task.digest,
        "suite": escaped(task.suite),
        "family": escaped(task.family),
        "level": task.level,
        "name": escaped(task.name),
        "document": dump(task),
    }
