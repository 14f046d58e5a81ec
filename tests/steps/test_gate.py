"""The gate promotes a real gain, rejects a loss, and holds what it can't tell."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsi.domain.evaluation import GateRule
from rsi.domain.trial import Trial
from rsi.domain.verdict import Decision, Verdict
from rsi.steps.gate import ARMS, Evidence, gate
from tests.samples import digest, trial

RULE = GateRule(exam_tasks=40, min_pairs=20)

Solves = Callable[[str, int], bool | None]
"""(arm, task number) -> solved; None is an invalid trial."""


def evidence(solves: Solves, tasks: int = 40, regression: tuple[int, int] = (0, 0)) -> Evidence:
    """A night's exam over `tasks` tasks in 8 families, with (kept, lost) regression tasks."""

    def run(arm: str, number: int) -> Trial:
        outcome = solves(arm, number)
        return trial(arm, f"task {number}", solved=bool(outcome), invalid=outcome is None)

    kept, lost = regression
    again = [
        (
            trial("old/old", f"again {number}", 1, solved=True),
            trial("new/new", f"again {number}", 1, solved=number < kept),
        )
        for number in range(kept + lost)
    ]
    families = {digest(f"task {number}"): f"family {number % 8}" for number in range(tasks)}
    families |= {digest(f"again {number}"): "again" for number in range(kept + lost)}
    return Evidence(
        generation=1,
        evaluation=digest("evaluation"),
        champion=digest("old/old"),
        successor=digest("new/new"),
        arms={arm: (digest(arm), [run(arm, number) for number in range(tasks)]) for arm in ARMS},
        regression=again,
        families=families,
    )


def decided(solves: Solves, tasks: int = 40, regression: tuple[int, int] = (0, 0)) -> Verdict:
    return gate(evidence(solves, tasks, regression), RULE)


def test_a_clear_gain_is_promoted() -> None:
    verdict = decided(lambda arm, number: arm.startswith("new") and number % 2 == 0)
    assert verdict.decision is Decision.PROMOTE
    assert verdict.gain.estimate == pytest.approx(0.5)
    assert verdict.gain.low > 0


def test_a_clear_loss_is_rejected() -> None:
    verdict = decided(lambda arm, number: arm.startswith("old") and number % 2 == 0)
    assert verdict.decision is Decision.REJECT


def test_a_small_gain_is_held_and_says_how_much_more_evidence_it_needs() -> None:
    verdict = decided(lambda arm, number: arm == "new/new" and number < 2)
    assert verdict.decision is Decision.HOLD
    assert verdict.needed_pairs is not None
    assert verdict.needed_pairs > 0


def test_the_lower_bound_must_exceed_the_smallest_gain() -> None:
    solves: Solves = lambda arm, number: arm.startswith("new") and number % 3 == 0  # noqa: E731
    night = evidence(solves)
    assert gate(night, RULE).decision is Decision.PROMOTE
    low = gate(night, RULE).gain.low
    at_bound = RULE.model_copy(update={"smallest_gain": low})
    assert gate(night, at_bound).decision is Decision.HOLD


def test_one_pair_is_never_enough() -> None:
    verdict = decided(lambda arm, _: arm.startswith("new"), tasks=1)
    assert verdict.decision is Decision.HOLD
    assert verdict.gain.low < 0


def test_the_gate_holds_when_many_trials_are_invalid() -> None:
    verdict = decided(lambda arm, number: None if number % 4 == 0 else arm.startswith("new"))
    assert verdict.decision is Decision.HOLD
    assert all("invalid" in reason for reason in verdict.reasons)


def test_invalid_trials_leave_the_estimate_alone() -> None:
    whole = decided(lambda arm, number: arm.startswith("new") and number % 2 == 0)
    broken = decided(
        lambda arm, number: (
            None
            if arm == "old/old" and number in (0, 1)
            else arm.startswith("new") and number % 2 == 0
        )
    )
    assert broken.gain.estimate == pytest.approx(whole.gain.estimate)
    assert broken.gain.n == whole.gain.n - 2
    assert broken.decision is Decision.PROMOTE


def test_a_successor_that_forgot_is_rejected_whatever_it_gained() -> None:
    verdict = decided(lambda arm, _: arm.startswith("new"), regression=(4, 16))
    assert verdict.decision is Decision.REJECT
    assert verdict.regression.lost == 16
    assert verdict.regression.lost_by_family == {"again": 16}


def test_the_champion_itself_is_not_promoted() -> None:
    night = evidence(lambda arm, _: arm.startswith("new"))
    same = Evidence(
        generation=1,
        evaluation=night.evaluation,
        champion=night.champion,
        successor=night.champion,
        arms=night.arms,
        regression=(),
        families=night.families,
    )
    verdict = gate(same, RULE)
    assert verdict.decision is Decision.REJECT
    assert verdict.gain.n == 0


def test_attribution_tells_weights_from_contract() -> None:
    verdict = decided(lambda arm, number: arm.startswith("new") and number % 2 == 0)
    assert verdict.attribution.weights.estimate == pytest.approx(0.5)
    assert verdict.attribution.contract.estimate == pytest.approx(0.0)
    assert verdict.attribution.interaction.estimate == pytest.approx(0.0)


def test_attribution_finds_what_only_both_together_give() -> None:
    verdict = decided(lambda arm, _: arm == "new/new")
    assert verdict.attribution.interaction.estimate == pytest.approx(1.0)
    assert verdict.attribution.weights.estimate == pytest.approx(0.5)


def test_every_trial_behind_the_numbers_is_named() -> None:
    night = evidence(lambda arm, _: arm.startswith("new"), regression=(3, 0))
    named = set(gate(night, RULE).evidence)
    for _, trials in night.arms.values():
        assert {one.key for one in trials} <= named
    assert {one.key for pair in night.regression for one in pair} <= named


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_the_verdict_does_not_depend_on_the_order_of_trials(seed: int, shuffle: int) -> None:
    rng = random.Random(seed)
    outcomes = {(arm, n): rng.random() < 0.4 for arm in ARMS for n in range(30)}
    night = evidence(lambda arm, number: outcomes[arm, number], tasks=30)
    mixer = random.Random(shuffle)
    arms = {}
    for arm, (pair, trials) in night.arms.items():
        mixed = list(trials)
        mixer.shuffle(mixed)
        arms[arm] = (pair, mixed)
    again = Evidence(
        generation=1,
        evaluation=night.evaluation,
        champion=night.champion,
        successor=night.successor,
        arms=arms,
        regression=(),
        families=night.families,
    )
    assert gate(again, RULE).digest == gate(night, RULE).digest


def test_equal_pairs_are_seldom_promoted() -> None:
    """Two arms of the same strength: at most 5 % of 400 seeded nights promote."""
    rng = random.Random(11)
    promoted = 0
    for _ in range(400):
        hard = [rng.random() for _ in range(40)]
        night = evidence(lambda _arm, number, hard=hard: rng.random() < hard[number])  # type: ignore[misc]
        promoted += gate(night, RULE).decision is Decision.PROMOTE
    assert promoted <= 20
