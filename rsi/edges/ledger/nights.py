"""Generations, their events and tasks, candidates, coverage, datasets and training runs."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert

from rsi.domain.dataset import Dataset
from rsi.domain.generation import Generation, StageEvent
from rsi.domain.lora import TrainingRun
from rsi.domain.search import Candidate, Coverage
from rsi.domain.task import Split
from rsi.domain.values import Digest, short
from rsi.edges.ledger import rows
from rsi.edges.ledger.documents import dump, load
from rsi.edges.ledger.store import Store, add
from rsi.errors import DisciplineError


class Nights:
    """What a generation did, stage by stage."""

    _store: Store

    def open_generation(self, generation: Generation) -> None:
        row = {
            "number": generation.number,
            "champion": generation.champion,
            "evaluation": generation.evaluation,
            "opened_at": generation.opened_at,
            "document": dump(generation),
        }
        with self._store.begin() as connection:
            add(connection, rows.generations, row)

    def generations(self) -> tuple[Generation, ...]:
        query = select(rows.generations.c.document).order_by(rows.generations.c.number)
        with self._store.reading() as connection:
            return tuple(load(Generation, found) for found in connection.execute(query).scalars())

    def add_event(self, event: StageEvent) -> None:
        row = {
            "generation": event.generation,
            "ordinal": event.ordinal,
            "stage": event.stage.value,
            "state": event.state.value,
            "at": event.at,
            "document": dump(event),
        }
        with self._store.begin() as connection:
            add(connection, rows.stage_events, row)

    def events(self, generation: int) -> tuple[StageEvent, ...]:
        table = rows.stage_events
        query = (
            select(table.c.document)
            .where(table.c.generation == generation)
            .order_by(table.c.ordinal)
        )
        with self._store.reading() as connection:
            return tuple(load(StageEvent, found) for found in connection.execute(query).scalars())

    def lock_generation(self) -> AbstractContextManager[None]:
        return self._store.lock_generation()

    def use_tasks(self, generation: int, split: Split, tasks: Sequence[Digest]) -> None:
        used = rows.generation_tasks
        of_use = (used.c.generation == generation, used.c.split == split.value)
        with self._store.begin() as connection:
            if split is not Split.REGRESSION:
                for task in tasks:
                    connection.execute(
                        insert(rows.splits)
                        .values(task=task, split=split.value)
                        .on_conflict_do_nothing()
                    )
            there = set(connection.execute(select(used.c.task).where(*of_use)).scalars())
            start = connection.execute(
                select(func.coalesce(func.max(used.c.position) + 1, 0)).where(*of_use)
            ).scalar_one()
            new = [task for task in dict.fromkeys(tasks) if task not in there]
            for place, task in enumerate(new, start=start):
                connection.execute(
                    insert(used).values(
                        generation=generation, split=split.value, position=place, task=task
                    )
                )
            if split is not Split.REGRESSION:
                self._check_splits(connection, split, tasks)

    def _check_splits(self, connection: Connection, split: Split, tasks: Sequence[Digest]) -> None:
        table = rows.splits
        query = select(table.c.task, table.c.split).where(
            table.c.task.in_(list(tasks)), table.c.split != split.value
        )
        other = connection.execute(query).first()
        if other is not None:
            raise DisciplineError(
                f"task {short(other[0])} belongs to the {other[1]} split for ever, so it can't "
                f"be used for {split.value}"
            )

    def used_tasks(self, generation: int, split: Split) -> tuple[Digest, ...]:
        table = rows.generation_tasks
        query = (
            select(table.c.task)
            .where(table.c.generation == generation, table.c.split == split.value)
            .order_by(table.c.position)
        )
        with self._store.reading() as connection:
            return tuple(connection.execute(query).scalars())

    def split_of(self, tasks: Sequence[Digest]) -> dict[Digest, Split]:
        table = rows.splits
        query = select(table.c.task, table.c.split).where(table.c.task.in_(set(tasks)))
        with self._store.reading() as connection:
            return {row[0]: Split(row[1]) for row in connection.execute(query)}

    def add_candidates(self, generation: int, candidates: Sequence[Candidate]) -> None:
        with self._store.begin() as connection:
            for one in candidates:
                add(
                    connection,
                    rows.candidates,
                    {
                        "generation": generation,
                        "ordinal": one.ordinal,
                        "contract": one.contract,
                        "parent": one.parent,
                        "author": one.author,
                        "document": dump(one),
                    },
                )

    def candidates(self, generation: int) -> tuple[Candidate, ...]:
        table = rows.candidates
        query = (
            select(table.c.document)
            .where(table.c.generation == generation)
            .order_by(table.c.ordinal)
        )
        with self._store.reading() as connection:
            return tuple(load(Candidate, found) for found in connection.execute(query).scalars())

    def add_coverage(self, generation: int, coverage: Coverage) -> None:
        row = {
            "generation": generation,
            "tasks": coverage.tasks,
            "covered": coverage.covered,
            "attempts": coverage.attempts,
            "document": dump(coverage),
        }
        with self._store.begin() as connection:
            add(connection, rows.coverages, row)

    def coverage(self, generation: int) -> Coverage | None:
        table = rows.coverages
        query = select(table.c.document).where(table.c.generation == generation)
        with self._store.reading() as connection:
            found = connection.execute(query).scalar_one_or_none()
        return None if found is None else load(Coverage, found)

    def add_dataset(self, generation: int, dataset: Dataset) -> None:
        row = {"digest": dataset.digest, "size": len(dataset.examples), "document": dump(dataset)}
        with self._store.begin() as connection:
            if add(connection, rows.datasets, row):
                for place, example in enumerate(dataset.examples):
                    connection.execute(
                        insert(rows.dataset_examples).values(
                            dataset=dataset.digest,
                            position=place,
                            pair=example.trial_pair,
                            task=example.trial_task,
                            seed=example.trial_seed,
                        )
                    )
            connection.execute(
                insert(rows.generation_datasets)
                .values(generation=generation, dataset=dataset.digest)
                .on_conflict_do_nothing()
            )

    def dataset(self, digest: Digest) -> Dataset:
        query = select(rows.datasets.c.document).where(rows.datasets.c.digest == digest)
        with self._store.reading() as connection:
            found = connection.execute(query).scalar_one_or_none()
        if found is None:
            raise KeyError(f"datasets has no row {digest}")
        return load(Dataset, found)

    def datasets(self, generation: int) -> tuple[Digest, ...]:
        table = rows.generation_datasets
        query = (
            select(table.c.dataset)
            .where(table.c.generation == generation)
            .order_by(table.c.recorded_at, table.c.dataset)
        )
        with self._store.reading() as connection:
            return tuple(connection.execute(query).scalars())

    def add_training_run(self, run: TrainingRun) -> None:
        row = {
            "generation": run.generation,
            "dataset": run.dataset,
            "lora": run.lora,
            "document": dump(run),
        }
        with self._store.begin() as connection:
            add(connection, rows.training_runs, row)

    def training_runs(self, generation: int) -> tuple[TrainingRun, ...]:
        table = rows.training_runs
        query = (
            select(table.c.document)
            .where(table.c.generation == generation)
            .order_by(table.c.recorded_at, table.c.lora)
        )
        with self._store.reading() as connection:
            return tuple(load(TrainingRun, found) for found in connection.execute(query).scalars())
