"""Contracts, evaluations, bases, loras, models, pairs, families and tasks."""

from collections.abc import Sequence

from sqlalchemy import Table, select

from rsi.domain.contract import Contract
from rsi.domain.evaluation import Evaluation
from rsi.domain.lora import Base, Lora, Model
from rsi.domain.pair import Pair
from rsi.domain.task import Family, Task
from rsi.domain.values import Digest
from rsi.edges.ledger import rows
from rsi.edges.ledger.documents import dump, load
from rsi.edges.ledger.store import Store, add


class Nouns:
    """What trials are about; each by its digest."""

    _store: Store

    def add_contract(self, contract: Contract, toml: str) -> None:
        row = {
            "digest": contract.digest,
            "name": contract.name,
            "version": contract.version,
            "toml": toml.replace("\x00", ""),
            "document": dump(contract),
        }
        with self._store.begin() as connection:
            add(connection, rows.contracts, row)

    def contract(self, digest: Digest) -> Contract:
        return load(Contract, self._one(rows.contracts, digest, "document"))

    def contract_toml(self, digest: Digest) -> str:
        return str(self._one(rows.contracts, digest, "toml"))

    def add_evaluation(self, evaluation: Evaluation) -> None:
        row = {"digest": evaluation.digest, "name": evaluation.name, "document": dump(evaluation)}
        with self._store.begin() as connection:
            add(connection, rows.evaluations, row)

    def evaluation(self, digest: Digest) -> Evaluation:
        return load(Evaluation, self._one(rows.evaluations, digest, "document"))

    def add_base(self, base: Base) -> None:
        row = {
            "digest": base.digest,
            "name": base.name,
            "format": base.format,
            "derived_from": base.derived_from,
            "document": dump(base),
        }
        with self._store.begin() as connection:
            add(connection, rows.bases, row)

    def bases(self) -> tuple[Base, ...]:
        query = select(rows.bases.c.document).order_by(
            rows.bases.c.recorded_at, rows.bases.c.digest
        )
        with self._store.reading() as connection:
            return tuple(load(Base, found) for found in connection.execute(query).scalars())

    def add_lora(self, lora: Lora) -> None:
        row = {
            "digest": lora.digest,
            "base": lora.base,
            "slot": lora.slot.value,
            "dataset": lora.dataset,
            "parent": lora.parent,
            "document": dump(lora),
        }
        with self._store.begin() as connection:
            add(connection, rows.loras, row)

    def loras(self, digests: Sequence[Digest]) -> tuple[Lora, ...]:
        found = self._many(rows.loras, digests)
        return tuple(load(Lora, found[digest]) for digest in digests)

    def add_pair(self, pair: Pair, model: Model) -> None:
        row = {
            "digest": pair.digest,
            "model": pair.model,
            "contract": pair.contract,
            "document": dump(pair),
        }
        with self._store.begin() as connection:
            add(
                connection,
                rows.models,
                {"digest": model.digest, "base": model.base, "document": dump(model)},
            )
            for slot, lora in model.loras.items():
                add(
                    connection,
                    rows.model_loras,
                    {"model": model.digest, "slot": slot.value, "lora": lora},
                    compare="lora",
                )
            add(connection, rows.pairs, row)

    def pair(self, digest: Digest) -> Pair:
        return load(Pair, self._one(rows.pairs, digest, "document"))

    def pairs(self) -> tuple[Pair, ...]:
        query = select(rows.pairs.c.document).order_by(
            rows.pairs.c.recorded_at, rows.pairs.c.digest
        )
        with self._store.reading() as connection:
            return tuple(load(Pair, found) for found in connection.execute(query).scalars())

    def model(self, digest: Digest) -> Model:
        return load(Model, self._one(rows.models, digest, "document"))

    def add_families(self, families: Sequence[Family]) -> None:
        with self._store.begin() as connection:
            for family in families:
                add(
                    connection,
                    rows.families,
                    {"suite": family.suite, "name": family.name, "document": dump(family)},
                )

    def families(self) -> tuple[Family, ...]:
        table = rows.families
        query = select(table.c.document).order_by(table.c.suite, table.c.name)
        with self._store.reading() as connection:
            return tuple(load(Family, found) for found in connection.execute(query).scalars())

    def add_tasks(self, tasks: Sequence[Task]) -> None:
        with self._store.begin() as connection:
            for task in tasks:
                add(
                    connection,
                    rows.tasks,
                    {
                        "digest": task.digest,
                        "suite": task.suite,
                        "family": task.family,
                        "level": task.level,
                        "name": task.name,
                        "document": dump(task),
                    },
                )

    def tasks(self, digests: Sequence[Digest]) -> tuple[Task, ...]:
        found = self._many(rows.tasks, digests)
        read = {digest: load(Task, document) for digest, document in found.items()}
        return tuple(read[digest] for digest in digests)

    def _one(self, table: Table, digest: Digest, column: str) -> object:
        query = select(table.c[column]).where(table.c.digest == digest)
        with self._store.reading() as connection:
            found = connection.execute(query).scalar_one_or_none()
        if found is None:
            raise KeyError(f"{table.name} has no row {digest}")
        return found

    def _many(self, table: Table, digests: Sequence[Digest]) -> dict[Digest, object]:
        query = select(table.c.digest, table.c.document).where(table.c.digest.in_(set(digests)))
        with self._store.reading() as connection:
            found: dict[Digest, object] = {row[0]: row[1] for row in connection.execute(query)}
        missing = [digest for digest in digests if digest not in found]
        if missing:
            raise KeyError(f"{table.name} has no row {missing[0]}")
        return found
