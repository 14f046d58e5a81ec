"""Candidates, coverage, datasets and training runs: what a generation tried and learnt."""

from collections.abc import Sequence

from sqlalchemy import select

from rsi.domain.dataset import Dataset
from rsi.domain.lora import TrainingRun
from rsi.domain.search import Candidate, Coverage
from rsi.domain.values import Digest
from rsi.edges.ledger import rows
from rsi.edges.ledger.documents import dump, escaped
from rsi.edges.ledger.store import Store, add, add_all, document_text


class Growth:
    """What Expansion proposed and Update trained."""

    _store: Store

    def add_candidates(self, generation: int, candidates: Sequence[Candidate]) -> None:
        made = [
            {
                "generation": generation,
                "ordinal": each.ordinal,
                "contract": each.contract,
                "parent": each.parent,
                "author": escaped(each.author),
                "document": dump(each),
            }
            for each in candidates
        ]
        self._store.add(rows.candidates, *made)

    def candidates(self, generation: int) -> tuple[Candidate, ...]:
        table = rows.candidates
        query = select(document_text(table)).where(table.c.generation == generation)
        return self._store.values(Candidate, query.order_by(table.c.ordinal))

    def add_coverage(self, generation: int, coverage: Coverage) -> None:
        row = {
            "generation": generation,
            "tasks": coverage.tasks,
            "covered": coverage.covered,
            "attempts": coverage.attempts,
            "document": dump(coverage),
        }
        winners = [
            {"generation": generation, "task": task, "contract": contract}
            for task, contract in coverage.winners.items()
        ]
        finalists = [
            {
                "generation": generation,
                "contract": each.contract,
                "solved": each.solved,
                "trials": each.trials,
                "invalid": each.invalid,
                "is_chosen": each.is_chosen,
            }
            for each in coverage.finalists
        ]
        with self._store.begin() as connection:
            if add(connection, rows.coverages, row):
                add_all(connection, rows.winners, winners)
                add_all(connection, rows.finalists, finalists)

    def coverage(self, generation: int) -> Coverage | None:
        table = rows.coverages
        query = select(document_text(table)).where(table.c.generation == generation)
        return next(iter(self._store.values(Coverage, query)), None)

    def add_dataset(self, generation: int, dataset: Dataset) -> None:
        digest = dataset.digest
        row = {"digest": digest, "size": len(dataset.examples), "document": dump(dataset)}
        examples = [
            {
                "dataset": digest,
                "position": place,
                "pair": example.trial_pair,
                "task": example.trial_task,
                "seed": example.trial_seed,
            }
            for place, example in enumerate(dataset.examples)
        ]
        with self._store.begin() as connection:
            if add(connection, rows.datasets, row):
                add_all(connection, rows.dataset_examples, examples)
            curated = [{"generation": generation, "dataset": digest}]
            add_all(connection, rows.generation_datasets, curated)

    def dataset(self, digest: Digest) -> Dataset:
        table = rows.datasets
        query = select(document_text(table)).where(table.c.digest == digest)
        for found in self._store.values(Dataset, query):
            return found
        raise KeyError(f"datasets has no row {digest}")

    def datasets(self, generation: int) -> tuple[Digest, ...]:
        table = rows.generation_datasets
        query = select(table.c.dataset).where(table.c.generation == generation)
        order = (table.c.recorded_at, table.c.dataset)
        return tuple(row[0] for row in self._store.fetch(query.order_by(*order)))

    def add_training_run(self, run: TrainingRun) -> None:
        row = {
            "generation": run.generation,
            "dataset": run.dataset,
            "lora": run.lora,
            "document": dump(run),
        }
        self._store.add(rows.training_runs, row)

    def training_runs(self, generation: int) -> tuple[TrainingRun, ...]:
        table = rows.training_runs
        query = select(document_text(table)).where(table.c.generation == generation)
        order = (table.c.recorded_at, table.c.lora)
        return self._store.values(TrainingRun, query.order_by(*order))
