"""Trials, verdicts and promotions: what decisions are made of."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, select, tuple_
from sqlalchemy.dialects.postgresql import insert

from rsi.domain.promotion import Promotion
from rsi.domain.task import Split
from rsi.domain.trial import Failed, Trial, TrialKey
from rsi.domain.values import Digest
from rsi.domain.verdict import Verdict
from rsi.edges.ledger import rows
from rsi.edges.ledger.documents import dump
from rsi.edges.ledger.store import Store, add, add_all, document_text

KEYS_AT_ONCE = 500
"""Keys that one statement looks up."""


class Evidence:
    """What was measured, and what was decided on it."""

    _store: Store

    def add_trial(self, trial: Trial) -> bool:
        outcome = trial.outcome
        row = {
            "pair": trial.pair,
            "task": trial.task,
            "seed": trial.seed,
            "generation": trial.generation,
            "outcome": outcome.kind,
            "cause": outcome.cause.value if isinstance(outcome, Failed) else None,
            "input_tokens": trial.usage.input_tokens,
            "output_tokens": trial.usage.output_tokens,
            "elapsed_s": trial.elapsed_s,
            "document": dump(trial),
        }
        with self._store.begin() as connection:
            new = connection.execute(
                insert(rows.trials).values(row).on_conflict_do_nothing().returning(rows.trials.c.id)
            ).scalar_one_or_none()
            if new is not None and trial.trajectory is not None:
                connection.execute(
                    insert(rows.trajectories).values(trial=new, blob=trial.trajectory)
                )
        return new is not None

    def trials(self, keys: Sequence[TrialKey]) -> dict[TrialKey, Trial]:
        table = rows.trials
        wanted = list(dict.fromkeys(keys))
        found = {}
        for start in range(0, len(wanted), KEYS_AT_ONCE):
            some = [tuple(key) for key in wanted[start : start + KEYS_AT_ONCE]]
            query = select(document_text(table)).where(
                tuple_(table.c.pair, table.c.task, table.c.seed).in_(some)
            )
            for trial in self._store.values(Trial, query):
                found[trial.key] = trial
        return found

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
        query = _filtered(generation, pair, task, split, solved)
        if limit is not None:
            query = query.limit(limit)
        return tuple(reversed(self._store.values(Trial, query)))

    def add_verdict(self, verdict: Verdict, promotion: Promotion | None) -> None:
        row = {
            "digest": verdict.digest,
            "generation": verdict.generation,
            "champion": verdict.champion,
            "successor": verdict.successor,
            "decision": verdict.decision.value,
            "document": dump(verdict),
        }
        evidence = [
            {"verdict": verdict.digest, "pair": key.pair, "task": key.task, "seed": key.seed}
            for key in verdict.evidence
        ]
        with self._store.begin() as connection:
            self._store.check_lock(connection)
            if add(connection, rows.verdicts, row):
                add_all(connection, rows.verdict_evidence, evidence)
            if promotion is not None:
                add(connection, rows.promotions, _promotion_row(promotion))

    def verdicts(self, generation: int | None = None) -> tuple[Verdict, ...]:
        table = rows.verdicts
        order = (table.c.generation, table.c.recorded_at, table.c.digest)
        query = select(document_text(table)).order_by(*order)
        if generation is not None:
            query = query.where(table.c.generation == generation)
        return self._store.values(Verdict, query)

    def add_promotion(self, promotion: Promotion) -> None:
        with self._store.begin() as connection:
            self._store.check_lock(connection)
            add(connection, rows.promotions, _promotion_row(promotion))

    def promotions(self) -> tuple[Promotion, ...]:
        table = rows.promotions
        return self._store.values(Promotion, select(document_text(table)).order_by(table.c.ordinal))


def _filtered(
    generation: int | None,
    pair: Digest | None,
    task: Digest | None,
    split: Split | None,
    solved: bool | None,
) -> Select[Any]:
    """The trials that every given filter lets through, the newest first."""
    table = rows.trials
    query = select(document_text(table)).order_by(table.c.id.desc())
    if generation is not None:
        query = query.where(table.c.generation == generation)
    if pair is not None:
        query = query.where(table.c.pair == pair)
    if task is not None:
        query = query.where(table.c.task == task)
    if solved is not None:
        solves = table.c.outcome == "solved"
        query = query.where(solves if solved else ~solves)
    if split is Split.REGRESSION:
        used = rows.generation_tasks
        query = query.where(
            select(used.c.task)
            .where(
                used.c.task == table.c.task,
                used.c.generation == table.c.generation,
                used.c.split == split.value,
            )
            .exists()
        )
    elif split is not None:
        known = rows.splits
        query = query.where(
            table.c.task.in_(select(known.c.task).where(known.c.split == split.value))
        )
    return query


def _promotion_row(promotion: Promotion) -> dict[str, object]:
    return {
        "ordinal": promotion.ordinal,
        "pair": promotion.pair,
        "replaced": promotion.replaced,
        "verdict": promotion.verdict,
        "document": dump(promotion),
    }
