"""How far each stage is and what it cost, from events, trials and training runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from rsi.domain.evaluation import BudgetRule
from rsi.domain.generation import Stage, StageEvent, StageState
from rsi.domain.lora import TrainingRun
from rsi.domain.trial import Invalid, Trial
from rsi.report.cost_notes import InvalidNote, InvalidReason, StageNote

State = Literal["not started", "under way", "finished", "failed"]


def tell_stages(
    events: Sequence[StageEvent],
    trials: Sequence[Trial],
    runs: Sequence[TrainingRun],
    prices: BudgetRule,
) -> tuple[StageNote, ...]:
    """One note for each of the four stages, in order."""
    owned = _by_stage(events, trials)
    return tuple(
        _stage(
            stage,
            [event for event in events if event.stage is stage],
            owned[stage],
            runs if stage is Stage.UPDATE else (),
            prices,
        )
        for stage in Stage
    )


def tell_invalid(trials: Sequence[Trial]) -> InvalidNote:
    """How many trials were invalid, and of what, the most frequent reason first."""
    reasons = Counter(
        (trial.outcome.where, trial.outcome.reason)
        for trial in trials
        if isinstance(trial.outcome, Invalid)
    )
    ranked = sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))
    return InvalidNote(
        trials=len(trials),
        invalid=reasons.total(),
        reasons=tuple(
            InvalidReason(where=where, reason=reason, trials=count)
            for (where, reason), count in ranked
        ),
    )


def _by_stage(events: Sequence[StageEvent], trials: Sequence[Trial]) -> Mapping[Stage, list[Trial]]:
    """A trial belongs to the stage that had started last when it began."""
    starts = [event for event in events if event.state is StageState.STARTED]
    owned: dict[Stage, list[Trial]] = {stage: [] for stage in Stage}
    for trial in trials:
        before = [event.stage for event in starts if event.at <= trial.started_at]
        owned[before[-1] if before else Stage.DISCOVERY].append(trial)
    return owned


def _stage(
    stage: Stage,
    events: Sequence[StageEvent],
    trials: Sequence[Trial],
    runs: Sequence[TrainingRun],
    prices: BudgetRule,
) -> StageNote:
    usages = [trial.usage for trial in trials]
    spans = _spans(events, trials)
    input_tokens = sum(usage.input_tokens for usage in usages)
    output_tokens = sum(usage.output_tokens for usage in usages)
    state = _state(events)
    return StageNote(
        stage=stage.value,
        state=state,
        starts=len(spans),
        started_at=spans[0][0] if spans else None,
        ended_at=events[-1].at if state in ("finished", "failed") else None,
        elapsed_s=sum((end - start).total_seconds() for start, end in spans),
        note=events[-1].note if events else "",
        trials=len(trials),
        invalid=sum(trial.is_invalid for trial in trials),
        model_calls=sum(usage.model_calls for usage in usages),
        input_tokens=input_tokens,
        cached_tokens=sum(usage.cached_tokens for usage in usages),
        output_tokens=output_tokens,
        model_s=sum(usage.model_s for usage in usages),
        sandbox_s=sum(usage.sandbox_s for usage in usages),
        verifier_s=sum(usage.verifier_s for usage in usages),
        training_tokens=sum(run.tokens for run in runs),
        training_s=sum(run.elapsed_s for run in runs),
        usd=_usd(input_tokens, output_tokens, prices),
    )


def _state(events: Sequence[StageEvent]) -> State:
    if not events:
        return "not started"
    states: dict[StageState, State] = {
        StageState.STARTED: "under way",
        StageState.FINISHED: "finished",
        StageState.FAILED: "failed",
    }
    return states[events[-1].state]


def _spans(
    events: Sequence[StageEvent], trials: Sequence[Trial]
) -> list[tuple[datetime, datetime]]:
    """From each start to its end; a run that was killed lasted until its last trial ended."""
    spans = []
    for place, event in enumerate(events):
        if event.state is not StageState.STARTED:
            continue
        after = events[place + 1] if place + 1 < len(events) else None
        if after is not None and after.state is not StageState.STARTED:
            spans.append((event.at, after.at))
            continue
        ends = [
            trial.started_at + timedelta(seconds=trial.elapsed_s)
            for trial in trials
            if trial.started_at >= event.at and (after is None or trial.started_at < after.at)
        ]
        spans.append((event.at, max(ends, default=event.at)))
    return spans


def _usd(input_tokens: int, output_tokens: int, prices: BudgetRule) -> float | None:
    paid_in, paid_out = (
        prices.usd_per_million_input_tokens,
        prices.usd_per_million_output_tokens,
    )
    if paid_in is None or paid_out is None:
        return None
    return (input_tokens * paid_in + output_tokens * paid_out) / 1e6
