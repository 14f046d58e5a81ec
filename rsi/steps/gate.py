"""Gate: promote, reject or hold a successor, on fresh evidence and by the evaluation's rule.

Pure and deterministic: the same trials give the same verdict, bit for bit.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rsi.domain.evaluation import GateRule
from rsi.domain.statistics import mean_contrast, pairs_needed, rate
from rsi.domain.trial import Trial, TrialKey
from rsi.domain.values import Digest
from rsi.domain.verdict import (
    Arm,
    Attribution,
    Decision,
    FamilyResult,
    Interval,
    Regression,
    Verdict,
)

OLD_OLD, OLD_NEW, NEW_OLD, NEW_NEW = "old/old", "old/new", "new/old", "new/new"
ARMS = (OLD_OLD, OLD_NEW, NEW_OLD, NEW_NEW)
"""The model, then the contract."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The trials of one night's exam and regression check, and whose they are."""

    generation: int
    evaluation: Digest
    champion: Digest
    successor: Digest
    arms: Mapping[str, tuple[Digest, Sequence[Trial]]]
    """Arm -> (pair, its exam trials); the same tasks and seeds in each."""
    regression: Sequence[tuple[Trial, Trial]]
    """(champion, successor) on what the champion could do, in the same block."""
    families: Mapping[Digest, str]
    """Task -> family."""


@dataclass(frozen=True, slots=True)
class _Ruling:
    decision: Decision
    reasons: tuple[str, ...]
    needed_pairs: int | None = None


def gate(evidence: Evidence, rule: GateRule) -> Verdict:
    """The verdict on the successor. Invalid trials and the pairs they break are left out."""
    old = next(name for name in ARMS if evidence.arms[name][0] == evidence.champion)
    new = next(
        (name for name in reversed(ARMS) if evidence.arms[name][0] == evidence.successor), old
    )
    gain = _contrast(evidence, {new: 1.0, old: -1.0}, 1.0, rule.confidence)
    arms = tuple(_arm(name, *evidence.arms[name], rule.confidence) for name in ARMS)
    regression = _regression(evidence)
    ruling = _rule(evidence, rule, gain, arms, regression)
    return Verdict(
        generation=evidence.generation,
        champion=evidence.champion,
        successor=evidence.successor,
        evaluation=evidence.evaluation,
        decision=ruling.decision,
        reasons=ruling.reasons,
        gain=gain,
        smallest_resolvable=(gain.high - gain.low) / 2,
        needed_pairs=ruling.needed_pairs,
        arms=arms,
        attribution=attribute(evidence, rule.confidence),
        regression=regression,
        families=_by_family(evidence, old, new),
        evidence=_keys(evidence),
    )


def attribute(evidence: Evidence, confidence: float) -> Attribution:
    """The 2x2 analysis of the four arms, as paired contrasts over the same tasks and seeds."""
    contract = {OLD_OLD: -0.5, OLD_NEW: 0.5, NEW_OLD: -0.5, NEW_NEW: 0.5}
    weights = {OLD_OLD: -0.5, OLD_NEW: -0.5, NEW_OLD: 0.5, NEW_NEW: 0.5}
    interaction = {OLD_OLD: 1.0, OLD_NEW: -1.0, NEW_OLD: -1.0, NEW_NEW: 1.0}
    return Attribution(
        contract=_contrast(evidence, contract, 1.0, confidence),
        weights=_contrast(evidence, weights, 1.0, confidence),
        interaction=_contrast(evidence, interaction, 2.0, confidence),
    )


def _rule(
    evidence: Evidence,
    rule: GateRule,
    gain: Interval,
    arms: Sequence[Arm],
    regression: Regression,
) -> _Ruling:
    """The evaluation's rule, in its order: can it be told, is it safe, is it better."""
    if evidence.successor == evidence.champion:
        return _Ruling(Decision.REJECT, ("the successor is the champion: nothing new was found",))
    broken = _broken(arms, rule)
    if broken:
        return _Ruling(Decision.HOLD, broken)
    if gain.n < rule.min_pairs:
        needed = rule.min_pairs - gain.n
        reason = f"only {gain.n} valid pairs; the rule wants {rule.min_pairs}"
        return _Ruling(Decision.HOLD, (reason,), needed)
    lost = rate(regression.lost, regression.kept + regression.lost, rule.confidence)
    if lost.n and lost.low > rule.forgetting_tolerance:
        return _Ruling(Decision.REJECT, (_forgot(lost, rule),))
    said = f"gain {gain.estimate:+.3f}, interval [{gain.low:+.3f}, {gain.high:+.3f}], n={gain.n}"
    if gain.low > rule.smallest_gain:
        if lost.n and lost.estimate > rule.forgetting_tolerance:
            return _Ruling(Decision.HOLD, (said, _forgot(lost, rule)), lost.n)
        return _Ruling(Decision.PROMOTE, (f"{said}: above {rule.smallest_gain:+.3f}",))
    if gain.high <= rule.smallest_gain:
        return _Ruling(Decision.REJECT, (f"{said}: not above {rule.smallest_gain:+.3f}",))
    effect = abs(gain.estimate - rule.smallest_gain) or (gain.high - gain.low) / 4
    needed = pairs_needed(gain, effect)
    reason = f"{said}: can't be told from {rule.smallest_gain:+.3f}; about {needed} more pairs"
    return _Ruling(Decision.HOLD, (reason,), needed)


def _broken(arms: Sequence[Arm], rule: GateRule) -> tuple[str, ...]:
    reasons = []
    for arm in arms:
        count = arm.solved + arm.failed + arm.invalid
        if count and arm.invalid / count > rule.max_invalid_share:
            reasons.append(f"arm {arm.name}: {arm.invalid} of {count} trials were invalid")
    return tuple(reasons)


def _forgot(lost: Interval, rule: GateRule) -> str:
    return (
        f"forgot {lost.estimate:.3f} of {lost.n} tasks that the champion solved, interval "
        f"[{lost.low:.3f}, {lost.high:.3f}]; tolerated {rule.forgetting_tolerance:.3f}"
    )


def _contrast(
    evidence: Evidence, weights: Mapping[str, float], bound: float, confidence: float
) -> Interval:
    """A weighted sum of arms, task by task and seed by seed, over the cells that are whole."""
    if len(weights) < 2:
        return Interval(estimate=0.0, low=0.0, high=0.0, n=0)
    cells: dict[tuple[Digest, int], dict[str, float]] = defaultdict(dict)
    for name in weights:
        for trial in evidence.arms[name][1]:
            if not trial.is_invalid:
                cells[trial.task, trial.seed][name] = float(trial.is_solved)
    values: dict[str, list[float]] = defaultdict(list)
    for (task, _), cell in cells.items():
        if len(cell) == len(weights):
            contrast = sum(weights[name] * score for name, score in cell.items())
            values[evidence.families[task]].append(contrast)
    return mean_contrast(values, bound, confidence)


def _arm(name: str, pair: Digest, trials: Sequence[Trial], confidence: float) -> Arm:
    invalid = sum(trial.is_invalid for trial in trials)
    solved = sum(trial.is_solved for trial in trials)
    valid = len(trials) - invalid
    return Arm(
        name=name,
        pair=pair,
        solved=solved,
        failed=valid - solved,
        invalid=invalid,
        rate=rate(solved, valid, confidence),
    )


def _regression(evidence: Evidence) -> Regression:
    """Only tasks that the champion solved again in this block can be lost."""
    valid = [
        (old, new) for old, new in evidence.regression if not old.is_invalid and not new.is_invalid
    ]
    lost = [new for old, new in valid if old.is_solved and not new.is_solved]
    by_family: dict[str, int] = defaultdict(int)
    for trial in lost:
        by_family[evidence.families[trial.task]] += 1
    return Regression(
        tasks=len(evidence.regression),
        kept=sum(old.is_solved and new.is_solved for old, new in valid),
        lost=len(lost),
        invalid=len(evidence.regression) - len(valid),
        lost_by_family=dict(sorted(by_family.items())),
    )


def _by_family(evidence: Evidence, old: str, new: str) -> tuple[FamilyResult, ...]:
    champion = {(t.task, t.seed): t for t in evidence.arms[old][1] if not t.is_invalid}
    groups: dict[str, list[tuple[Trial, Trial]]] = defaultdict(list)
    for trial in evidence.arms[new][1]:
        other = champion.get((trial.task, trial.seed))
        if other is not None and not trial.is_invalid:
            groups[evidence.families[trial.task]].append((other, trial))
    return tuple(
        FamilyResult(
            family=family,
            pairs=len(pairs),
            old_solved=sum(before.is_solved for before, _ in pairs),
            new_solved=sum(after.is_solved for _, after in pairs),
        )
        for family, pairs in sorted(groups.items())
    )


def _keys(evidence: Evidence) -> tuple[TrialKey, ...]:
    exam = [trial.key for _, trials in evidence.arms.values() for trial in trials]
    again = [trial.key for pair in evidence.regression for trial in pair]
    return tuple(sorted(set(exam + again)))
