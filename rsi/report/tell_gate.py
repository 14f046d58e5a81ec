"""What the gate decided, from its verdict; and how the champion came to be the champion."""

from collections.abc import Sequence
from typing import Literal

from rsi.domain.promotion import Promotion
from rsi.domain.verdict import Arm, FamilyResult, Regression, Verdict
from rsi.report.chapters import FamilyCount
from rsi.report.gate_notes import (
    ArmNote,
    AttributionNote,
    FamilyNote,
    GateNote,
    LineageNote,
    RegressionNote,
)
from rsi.report.scores import scored, share_of


def tell_gate(verdict: Verdict, confidence: float) -> GateNote:
    """The chapter of a verdict that was decided at this confidence."""
    return GateNote(
        verdict=verdict.digest,
        generation=verdict.generation,
        champion=verdict.champion,
        successor=verdict.successor,
        evaluation=verdict.evaluation,
        decision=verdict.decision.value,
        reasons=verdict.reasons,
        gain=scored(verdict.gain),
        smallest_resolvable=verdict.smallest_resolvable if verdict.gain.n else None,
        needed_pairs=verdict.needed_pairs,
        arms=tuple(_arm(arm, verdict) for arm in verdict.arms),
        attribution=AttributionNote(
            contract=scored(verdict.attribution.contract),
            weights=scored(verdict.attribution.weights),
            interaction=scored(verdict.attribution.interaction),
        ),
        families=tuple(_family(family, confidence) for family in verdict.families),
        regression=_regression(verdict.regression, confidence),
        evidence=len(verdict.evidence),
    )


def tell_lineage(
    promotions: Sequence[Promotion], verdicts: Sequence[Verdict]
) -> tuple[LineageNote, ...]:
    """Every change of the champion, the first one first."""
    known = {verdict.digest: verdict for verdict in verdicts}
    return tuple(
        _change(promotion, known.get(promotion.verdict or ""), promotion is promotions[-1])
        for promotion in promotions
    )


def _arm(arm: Arm, verdict: Verdict) -> ArmNote:
    return ArmNote(
        name=arm.name,
        pair=arm.pair,
        solved=arm.solved,
        failed=arm.failed,
        invalid=arm.invalid,
        rate=scored(arm.rate),
        is_champion=arm.pair == verdict.champion,
        is_successor=arm.pair == verdict.successor,
    )


def _family(family: FamilyResult, confidence: float) -> FamilyNote:
    return FamilyNote(
        family=family.family,
        pairs=family.pairs,
        old_solved=family.old_solved,
        new_solved=family.new_solved,
        old=share_of(family.old_solved, family.pairs, confidence),
        new=share_of(family.new_solved, family.pairs, confidence),
    )


def _regression(found: Regression, confidence: float) -> RegressionNote:
    lost = sorted(found.lost_by_family.items())
    return RegressionNote(
        tasks=found.tasks,
        kept=found.kept,
        lost=found.lost,
        invalid=found.invalid,
        forgotten=share_of(found.lost, found.kept + found.lost, confidence),
        lost_by_family=tuple(FamilyCount(family=family, count=count) for family, count in lost),
    )


def _change(promotion: Promotion, verdict: Verdict | None, is_champion: bool) -> LineageNote:
    kind: Literal["first", "promotion", "rollback"] = "promotion"
    if promotion.verdict is None:
        kind = "first" if promotion.replaced is None else "rollback"
    return LineageNote(
        ordinal=promotion.ordinal,
        kind=kind,
        pair=promotion.pair,
        replaced=promotion.replaced,
        reason=promotion.reason,
        at=promotion.at,
        generation=verdict.generation if verdict else None,
        gain=scored(verdict.gain) if verdict else None,
        is_champion=is_champion,
    )
