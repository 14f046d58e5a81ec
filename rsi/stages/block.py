"""Blocks of trials: what is recorded already is not run again; what is run is recorded at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rsi.domain.generation import Generation
from rsi.domain.task import Task
from rsi.domain.trial import (
    BoxFacts,
    Invalid,
    Judgement,
    Trajectory,
    Trial,
    TrialKey,
    Usage,
)
from rsi.errors import PartError, TrialFault
from rsi.ports import BoxFile
from rsi.stages.parts import Contender, Parts
from rsi.steps.judge.judge import judge
from rsi.steps.run.trial import Finished, run

TRIES = 2
"""A broken machine gets one more chance; then the trial is invalid."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One trial to be had."""

    contender: Contender
    task: Task
    seed: int

    @property
    def key(self) -> TrialKey:
        return TrialKey(self.contender.pair, self.task.digest, self.seed)


def trial_seed(generation: Generation, index: int) -> int:
    """Seeds of one generation never meet those of another, so no baseline is reused."""
    return generation.number * 1000 + index


def run_block(
    parts: Parts, generation: Generation, label: str, plan: Sequence[Planned]
) -> list[Trial]:
    """The trials of the plan, in its order; only those that the ledger lacks are run.

    Raises PartError when a part is down: nothing is recorded for the trials it broke.
    """
    recorded = parts.ledger.trials([planned.key for planned in plan])
    missing = {item.key: item for item in plan if item.key not in recorded}
    parts.progress.advance(len(plan) - len(missing))
    if missing:
        facts = parts.sandbox.check()
        call = partial(_run_and_record, parts, generation, facts)
        for trial in parts.workers.map(label, call, list(missing.values())):
            recorded[trial.key] = trial
    return [recorded[planned.key] for planned in plan]


def _run_and_record(
    parts: Parts, generation: Generation, facts: BoxFacts, planned: Planned
) -> Trial:
    started_at, begun_s = parts.clock.now(), parts.clock.monotonic_s()
    finished = _finished(parts, planned)
    trial = Trial(
        pair=planned.contender.pair,
        task=planned.task.digest,
        seed=planned.seed,
        generation=generation.number,
        outcome=finished.outcome,
        rewards=finished.rewards,
        usage=finished.usage,
        box=finished.box or facts,
        trajectory=_store(parts, planned, finished),
        started_at=started_at,
        elapsed_s=parts.clock.monotonic_s() - begun_s,
    )
    is_new = parts.ledger.add_trial(trial)
    parts.progress.advance()
    return trial if is_new else parts.ledger.trials([trial.key])[trial.key]


def _finished(parts: Parts, planned: Planned) -> Finished:
    fault = TrialFault("harness", "never tried")
    for _ in range(TRIES):
        try:
            return run(
                planned.contender.contract,
                planned.task,
                planned.seed,
                planned.contender.chat,
                parts.sandbox,
                partial(_judge, parts),
                parts.clock,
            )
        except TrialFault as broken:
            fault = broken
        except PartError:
            raise
        # The trial boundary: a fault that nobody foresaw says nothing about the pair.
        except Exception as unknown:  # noqa: BLE001
            fault = TrialFault("harness", f"{type(unknown).__name__}: {unknown}"[:500])
    outcome = Invalid(where=fault.where, reason=fault.reason[:500])
    return Finished(outcome, Trajectory(messages=(), actions=()), {}, Usage())


def _judge(parts: Parts, task: Task, answer: str, left: Sequence[BoxFile]) -> Judgement:
    return judge(task, answer, left, parts.sandbox, parts.clock)


def _store(parts: Parts, planned: Planned, finished: Finished) -> str | None:
    if isinstance(finished.outcome, Invalid):
        return None
    content = parts.traces.write(
        finished.trajectory, planned.contender.contract, planned.contender.model.digest
    )
    return parts.blobs.put(content)
