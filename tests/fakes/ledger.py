"""A ledger in memory, held to the same contract test as the one in Postgres."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rsi.domain.contract import Contract
from rsi.domain.dataset import Dataset
from rsi.domain.evaluation import Evaluation
from rsi.domain.generation import Generation, StageEvent
from rsi.domain.lora import Base, Lora, Model, TrainingRun
from rsi.domain.pair import Pair
from rsi.domain.promotion import Promotion
from rsi.domain.search import Candidate, Coverage
from rsi.domain.task import Family, Split, Task
from rsi.domain.trial import Trial, TrialKey
from rsi.domain.values import Digest
from rsi.domain.verdict import Verdict
from rsi.errors import DatabaseError, DisciplineError, LedgerConflict

Key = TypeVar("Key")
Row = TypeVar("Row")


class FakeLedger:
    """Keeps rows in dictionaries, by their natural keys."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._writer = threading.Lock()
        self._contracts: dict[Digest, Contract] = {}
        self._tomls: dict[Digest, str] = {}
        self._evaluations: dict[Digest, Evaluation] = {}
        self._bases: dict[Digest, Base] = {}
        self._loras: dict[Digest, Lora] = {}
        self._models: dict[Digest, Model] = {}
        self._pairs: dict[Digest, Pair] = {}
        self._families: dict[tuple[str, str], Family] = {}
        self._tasks: dict[Digest, Task] = {}
        self._splits: dict[Digest, Split] = {}
        self._generations: dict[int, Generation] = {}
        self._events: dict[tuple[int, int], StageEvent] = {}
        self._uses: dict[tuple[int, Split], dict[Digest, None]] = {}
        self._trials: dict[TrialKey, Trial] = {}
        self._candidates: dict[tuple[int, Digest], Candidate] = {}
        self._coverages: dict[int, Coverage] = {}
        self._datasets: dict[Digest, Dataset] = {}
        self._curated: dict[tuple[int, Digest], None] = {}
        self._runs: dict[tuple[int, Digest, Digest], TrainingRun] = {}
        self._verdicts: dict[Digest, Verdict] = {}
        self._promotions: dict[int, Promotion] = {}

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """All of what is added inside, or nothing: a transaction."""
        with self._lock:
            tables = {name: table for name, table in vars(self).items() if isinstance(table, dict)}
            before = {name: dict(table) for name, table in tables.items()}
            try:
                yield
            except BaseException:
                vars(self).update(before)
                raise

    def _add(self, table: dict[Key, Row], key: Key, row: Row) -> bool:
        with self._lock:
            if key in table and table[key] != row:
                raise LedgerConflict(f"a row with key {key} says another thing")
            is_new = key not in table
            table.setdefault(key, row)
            return is_new

    def add_contract(self, contract: Contract, toml: str) -> None:
        self._add(self._contracts, contract.digest, contract)
        self._tomls.setdefault(contract.digest, toml)

    def contract(self, digest: Digest) -> Contract:
        return self._contracts[digest]

    def contract_toml(self, digest: Digest) -> str:
        return self._tomls[digest]

    def add_evaluation(self, evaluation: Evaluation) -> None:
        self._add(self._evaluations, evaluation.digest, evaluation)

    def evaluation(self, digest: Digest) -> Evaluation:
        return self._evaluations[digest]

    def add_base(self, base: Base) -> None:
        self._add(self._bases, base.digest, base)

    def bases(self) -> tuple[Base, ...]:
        return tuple(self._bases.values())

    def add_lora(self, lora: Lora) -> None:
        self._refer(self._bases, lora.base)
        self._refer(self._datasets, lora.dataset)
        if lora.parent is not None:
            self._refer(self._loras, lora.parent)
        self._add(self._loras, lora.digest, lora)

    def loras(self, digests: Sequence[Digest]) -> tuple[Lora, ...]:
        return tuple(self._loras[digest] for digest in digests)

    def add_pair(self, pair: Pair, model: Model) -> None:
        self._refer(self._bases, model.base)
        self._refer(self._contracts, pair.contract)
        self._refer(self._loras, *model.loras.values())
        self._add(self._models, model.digest, model)
        self._add(self._pairs, pair.digest, pair)

    def pair(self, digest: Digest) -> Pair:
        return self._pairs[digest]

    def pairs(self) -> tuple[Pair, ...]:
        return tuple(self._pairs.values())

    def model(self, digest: Digest) -> Model:
        return self._models[digest]

    def add_families(self, families: Sequence[Family]) -> None:
        with self._whole():
            for family in families:
                self._add(self._families, (family.suite, family.name), family)

    def families(self) -> tuple[Family, ...]:
        return tuple(self._families[key] for key in sorted(self._families))

    def add_tasks(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            self._add(self._tasks, task.digest, task)

    def tasks(self, digests: Sequence[Digest]) -> tuple[Task, ...]:
        return tuple(self._tasks[digest] for digest in digests)

    def open_generation(self, generation: Generation) -> None:
        self._refer(self._pairs, generation.champion)
        self._refer(self._evaluations, generation.evaluation)
        self._add(self._generations, generation.number, generation)

    def generations(self) -> tuple[Generation, ...]:
        return tuple(self._generations[number] for number in sorted(self._generations))

    def add_event(self, event: StageEvent) -> None:
        self._refer(self._generations, event.generation)
        self._add(self._events, (event.generation, event.ordinal), event)

    def events(self, generation: int) -> tuple[StageEvent, ...]:
        return tuple(self._events[key] for key in sorted(self._events) if key[0] == generation)

    @contextmanager
    def lock_generation(self) -> Iterator[None]:
        if not self._writer.acquire(blocking=False):
            raise DatabaseError("another process is working on a generation")
        try:
            yield
        finally:
            self._writer.release()

    def use_tasks(self, generation: int, split: Split, tasks: Sequence[Digest]) -> None:
        with self._lock:
            self._refer(self._generations, generation)
            for task in tasks:
                self._refer(self._tasks, task)
                known = self._splits.get(task, split)
                if split is not Split.REGRESSION and known is not split:
                    raise DisciplineError(f"task {task[:12]} belongs to the {known} split")
            for task in tasks:
                if split is not Split.REGRESSION:
                    self._splits[task] = split
                self._uses.setdefault((generation, split), {})[task] = None

    def used_tasks(self, generation: int, split: Split) -> tuple[Digest, ...]:
        return tuple(self._uses.get((generation, split), {}))

    def split_of(self, tasks: Sequence[Digest]) -> dict[Digest, Split]:
        return {task: self._splits[task] for task in tasks if task in self._splits}

    def add_trial(self, trial: Trial) -> bool:
        with self._lock:
            if trial.key not in self._trials:
                self._refer(self._pairs, trial.pair)
                self._refer(self._tasks, trial.task)
                self._refer(self._generations, trial.generation)
            is_new = trial.key not in self._trials
            self._trials.setdefault(trial.key, trial)
            return is_new

    def trials(self, keys: Sequence[TrialKey]) -> dict[TrialKey, Trial]:
        return {key: self._trials[key] for key in keys if key in self._trials}

    def trials_of(
        self,
        *,
        generation: int | None = None,
        pair: Digest | None = None,
        task: Digest | None = None,
        split: Split | None = None,
        solved: bool | None = None,
        limit: int | None = None,
    ) -> tuple[Trial, ...]:
        found = [
            trial
            for trial in self._trials.values()
            if (generation is None or trial.generation == generation)
            and (pair is None or trial.pair == pair)
            and (task is None or trial.task == task)
            and (solved is None or trial.is_solved is solved)
            and (split is None or self._is_in(trial, split))
        ]
        return tuple(found if limit is None else found[-limit:] if limit else ())

    def _is_in(self, trial: Trial, split: Split) -> bool:
        if split is Split.REGRESSION:
            return trial.task in self._uses.get((trial.generation, split), {})
        return self._splits.get(trial.task) is split

    def add_candidates(self, generation: int, candidates: Sequence[Candidate]) -> None:
        with self._whole():
            self._refer(self._generations, generation)
            for candidate in candidates:
                self._refer(self._contracts, candidate.contract)
                if candidate.parent is not None:
                    self._refer(self._contracts, candidate.parent)
                taken = [each for each in self.candidates(generation) if each != candidate]
                if candidate.ordinal in [each.ordinal for each in taken]:
                    raise LedgerConflict(f"candidate {candidate.ordinal} is another one")
                self._add(self._candidates, (generation, candidate.contract), candidate)

    def candidates(self, generation: int) -> tuple[Candidate, ...]:
        found = [row for (number, _), row in self._candidates.items() if number == generation]
        return tuple(sorted(found, key=lambda candidate: candidate.ordinal))

    def add_coverage(self, generation: int, coverage: Coverage) -> None:
        self._refer(self._generations, generation)
        self._refer(self._tasks, *coverage.winners)
        self._refer(self._contracts, *coverage.winners.values())
        self._refer(self._contracts, *(finalist.contract for finalist in coverage.finalists))
        self._add(self._coverages, generation, coverage)

    def coverage(self, generation: int) -> Coverage | None:
        return self._coverages.get(generation)

    def add_dataset(self, generation: int, dataset: Dataset) -> None:
        self._refer(self._generations, generation)
        for example in dataset.examples:
            if self._splits.get(example.trial_task) is not Split.SEARCH:
                raise DisciplineError(f"task {example.trial_task[:12]} isn't in the search split")
            key = TrialKey(example.trial_pair, example.trial_task, example.trial_seed)
            self._refer(self._trials, key)
        self._add(self._datasets, dataset.digest, dataset)
        self._curated.setdefault((generation, dataset.digest))

    def dataset(self, digest: Digest) -> Dataset:
        return self._datasets[digest]

    def datasets(self, generation: int) -> tuple[Digest, ...]:
        return tuple(digest for number, digest in self._curated if number == generation)

    def add_training_run(self, run: TrainingRun) -> None:
        self._refer(self._generations, run.generation)
        self._refer(self._datasets, run.dataset)
        self._refer(self._loras, run.lora)
        self._add(self._runs, (run.generation, run.dataset, run.lora), run)

    def training_runs(self, generation: int) -> tuple[TrainingRun, ...]:
        return tuple(run for run in self._runs.values() if run.generation == generation)

    def add_verdict(self, verdict: Verdict, promotion: Promotion | None) -> None:
        with self._whole():
            self._refer(self._generations, verdict.generation)
            self._refer(self._pairs, verdict.champion, verdict.successor)
            self._refer(self._trials, *verdict.evidence)
            self._add(self._verdicts, verdict.digest, verdict)
            if promotion is not None:
                self.add_promotion(promotion)

    def verdicts(self, generation: int | None = None) -> tuple[Verdict, ...]:
        found = sorted(self._verdicts.values(), key=lambda verdict: verdict.generation)
        return tuple(v for v in found if generation is None or v.generation == generation)

    def add_promotion(self, promotion: Promotion) -> None:
        self._refer(self._pairs, promotion.pair)
        if promotion.replaced is not None:
            self._refer(self._pairs, promotion.replaced)
        if promotion.verdict is not None:
            self._refer(self._verdicts, promotion.verdict)
        self._add(self._promotions, promotion.ordinal, promotion)

    def promotions(self) -> tuple[Promotion, ...]:
        return tuple(self._promotions[ordinal] for ordinal in sorted(self._promotions))

    def close(self) -> None:
        """Nothing to give back."""

    def _refer(self, table: dict[Key, Row], *keys: Key) -> None:
        """What foreign keys do."""
        for key in keys:
            if key not in table:
                raise DatabaseError(f"there is no row with key {key}")
