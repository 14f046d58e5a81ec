"""Generations, what happened in them, and which tasks they use."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from sqlalchemy import Connection, func, select

from rsi.domain.generation import Generation, StageEvent
from rsi.domain.task import Split
from rsi.domain.values import Digest, short
from rsi.edges.ledger import rows
from rsi.edges.ledger.documents import dump
from rsi.edges.ledger.store import Store, add, add_all, document_text
from rsi.errors import DisciplineError


class Nights:
    """A generation as it goes on."""

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
            self._store.check_lock(connection)
            add(connection, rows.generations, row)

    def generations(self) -> tuple[Generation, ...]:
        table = rows.generations
        query = select(document_text(table)).order_by(table.c.number)
        return self._store.values(Generation, query)

    def add_event(self, event: StageEvent) -> None:
        row = {
            "generation": event.generation,
            "ordinal": event.ordinal,
            "stage": event.stage.value,
            "state": event.state.value,
            "at": event.at,
            "document": dump(event),
        }
        self._store.add(rows.stage_events, row)

    def events(self, generation: int) -> tuple[StageEvent, ...]:
        table = rows.stage_events
        query = select(document_text(table)).where(table.c.generation == generation)
        return self._store.values(StageEvent, query.order_by(table.c.ordinal))

    def lock_generation(self) -> AbstractContextManager[None]:
        return self._store.lock_generation()

    def use_tasks(self, generation: int, split: Split, tasks: Sequence[Digest]) -> None:
        wanted = list(dict.fromkeys(tasks))
        with self._store.begin() as connection:
            if split is not Split.REGRESSION:
                given = [{"task": task, "split": split.value} for task in wanted]
                add_all(connection, rows.splits, given)
                _check_splits(connection, split, wanted)
            used = rows.generation_tasks
            of_use = (used.c.generation == generation, used.c.split == split.value)
            there = set(connection.execute(select(used.c.task).where(*of_use)).scalars())
            start = connection.execute(
                select(func.coalesce(func.max(used.c.position) + 1, 0)).where(*of_use)
            ).scalar_one()
            new = [task for task in wanted if task not in there]
            key = {"generation": generation, "split": split.value}
            placed = [
                {**key, "position": place, "task": task} for place, task in enumerate(new, start)
            ]
            if placed:
                connection.execute(used.insert(), placed)

    def used_tasks(self, generation: int, split: Split) -> tuple[Digest, ...]:
        table = rows.generation_tasks
        query = (
            select(table.c.task)
            .where(table.c.generation == generation, table.c.split == split.value)
            .order_by(table.c.position)
        )
        return tuple(row[0] for row in self._store.fetch(query))

    def split_of(self, tasks: Sequence[Digest]) -> dict[Digest, Split]:
        table = rows.splits
        query = select(table.c.task, table.c.split).where(table.c.task.in_(set(tasks)))
        return {row[0]: Split(row[1]) for row in self._store.fetch(query)}


def _check_splits(connection: Connection, split: Split, tasks: Sequence[Digest]) -> None:
    table = rows.splits
    query = select(table.c.task, table.c.split).where(
        table.c.task.in_(tasks), table.c.split != split.value
    )
    other = connection.execute(query.order_by(table.c.task)).first()
    if other is not None:
        raise DisciplineError(
            f"task {short(other[0])} belongs to the {other[1]} split for ever, so it can't be "
            f"used for {split.value}; draw another task"
        )
