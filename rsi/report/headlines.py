"""The sentences that the page and the terminal have in common."""

from rsi.report.chapters import PairNote
from rsi.report.gate_notes import ArmNote, GateNote, LineageNote
from rsi.report.shown import code, duration, of, points
from rsi.report.story import GenerationStory

COVERAGE_CAVEAT = (
    "Coverage counts tasks that at least one candidate solved. It tells what the search can "
    "reach, and is never the score of a pair."
)
INVALID_CAVEAT = (
    "A trial is invalid when the machine broke, not the pair: it is counted, but it is no zero "
    "and no evidence."
)

_STATES = {
    "promoted": "The new pair is promoted",
    "rejected": "The new pair is rejected",
    "held": "The new pair is held: the evidence doesn't decide",
    "failed": "The generation has failed and can be taken up again",
}


def headline(story: GenerationStory) -> str:
    """What came of the generation, in one sentence."""
    return _STATES.get(story.state, f"The generation is at its {story.state} stage")


def summary(story: GenerationStory) -> str:
    """What that rests on: the exam of the old and the new pair, or what stops the generation."""
    gate = story.gate
    if gate is None:
        failed = [stage for stage in story.stages if stage.state == "failed"]
        return f"{failed[-1].stage} failed: {failed[-1].note}" if failed else "No verdict yet."
    old, new = champion_arm(gate), successor_arm(gate)
    if old is None or new is None or old is new:
        return "; ".join(gate.reasons)
    return (
        f"On a fresh exam the new pair solved {_of_valid(new)}, the old one {_of_valid(old)}: "
        f"a gain of {points(gate.gain)}."
    )


def totals(story: GenerationStory) -> str:
    """What the whole generation cost, in one line."""
    tokens = sum(stage.input_tokens + stage.output_tokens for stage in story.stages)
    seconds = sum(stage.elapsed_s for stage in story.stages)
    prices = [stage.usd for stage in story.stages if stage.usd is not None]
    paid = f", ${sum(prices):.2f}" if prices else ""
    trials = of("trial", story.invalid.trials)
    return (
        f"{trials}, {story.invalid.invalid} invalid; {tokens:,} tokens; {duration(seconds)}{paid}"
    )


def champion_arm(gate: GateNote) -> ArmNote | None:
    """The arm of the old pair."""
    return next((arm for arm in gate.arms if arm.is_champion), None)


def successor_arm(gate: GateNote) -> ArmNote | None:
    """The arm of the new pair."""
    return next((arm for arm in reversed(gate.arms) if arm.is_successor), None)


def arm_words(name: str) -> str:
    """An arm in words."""
    model, _, contract = name.partition("/")
    return f"{model} model, {contract} contract"


def pair_words(pair: PairNote) -> str:
    """A pair in words: what the model is made of, and the contract."""
    loras = ", ".join(f"{note.slot} {code(note.lora)}" for note in pair.loras) or "no adapter"
    return (
        f"{pair.base_name} ({pair.base_format}), {loras}; contract {pair.contract_name} "
        f"{pair.contract_version} ({code(pair.contract)})"
    )


def change_words(change: LineageNote) -> str:
    """How a pair came to be the champion."""
    if change.kind == "promotion" and change.generation is not None:
        return f"generation {change.generation}"
    return {"first": "first champion", "rollback": "rollback"}.get(change.kind, "promotion")


def _of_valid(arm: ArmNote) -> str:
    return f"{arm.solved} of {of('task', arm.solved + arm.failed)}"
