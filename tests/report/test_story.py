"""The story of a generation is whole, honest about what wasn't counted, and always tellable."""

import re
from pathlib import Path

import pytest
from pydantic import JsonValue

from rsi.domain.dataset import Dataset
from rsi.domain.generation import Stage, StageState
from rsi.domain.task import Split
from rsi.domain.values import Value
from rsi.domain.verdict import Decision
from rsi.errors import UsageError
from rsi.report import chapters, cost_notes, gate_notes
from rsi.report.page import render_page
from rsi.report.story import GenerationStory, tell
from rsi.report.text import render_text
from tests.report.cast import KINDS, NEW, OLD
from tests.report.night import Night

STAGES = tuple(Stage)


@pytest.fixture(scope="module")
def story() -> GenerationStory:
    return tell(Night().play(*STAGES), 1)


def test_a_whole_generation_has_every_chapter(story: GenerationStory) -> None:
    assert story.state == "promoted"
    assert story.discovery
    assert story.expansion
    assert story.update
    assert story.gate
    assert story.successor
    assert story.successor.loras[0].slot == "L1"
    assert [change.kind for change in story.lineage] == ["first", "promotion"]
    assert story.lineage[-1].generation == 1
    assert story.lineage[-1].is_champion


def test_the_story_survives_its_own_json(story: GenerationStory) -> None:
    assert GenerationStory.model_validate_json(story.model_dump_json()) == story


def test_trials_of_the_stages_add_up_to_those_of_the_generation(story: GenerationStory) -> None:
    assert sum(stage.trials for stage in story.stages) == story.invalid.trials
    assert sum(stage.invalid for stage in story.stages) == story.invalid.invalid
    assert {stage.stage: stage.trials for stage in story.stages}["discovery"] == 56


def test_invalid_trials_are_told_with_their_reasons(story: GenerationStory) -> None:
    assert story.invalid.invalid > 0
    assert sum(row.trials for row in story.invalid.reasons) == story.invalid.invalid


def test_the_winner_and_the_finalist_are_told_apart_from_the_champion(
    story: GenerationStory,
) -> None:
    assert story.expansion
    assert [entry.author for entry in story.expansion.finalists] == [
        "champion",
        "operator:cookbook+pool",
    ]
    assert story.expansion.finalists[1].edits[2].value == "12 entries"
    assert sum(row.covered_first for row in story.expansion.winners) == story.expansion.covered


def test_the_families_of_the_dataset_are_counted_from_its_examples(story: GenerationStory) -> None:
    assert story.update
    assert sum(row.count for row in story.update.families) == story.update.examples
    assert {row.family for row in story.update.families} <= set(KINDS)


@pytest.mark.parametrize("played", range(5))
def test_a_generation_under_way_is_told_as_far_as_it_is(played: int) -> None:
    story = tell(Night().play(*STAGES[:played]), 1)
    chapters = (story.discovery, story.expansion, story.update, story.gate)
    assert [chapter is not None for chapter in chapters] == [place < played for place in range(4)]
    wanted = ["finished"] * played + ["not started"] * (4 - played)
    assert [stage.state for stage in story.stages] == wanted


def test_a_failed_stage_keeps_its_reason() -> None:
    night = Night()
    night.play(Stage.DISCOVERY)
    night.event(Stage.EXPANSION, StageState.STARTED)
    night.event(Stage.EXPANSION, StageState.FAILED, note="the disk is full")
    story = tell(night.ledger, 1)
    assert story.state == "failed"
    assert story.stages[1].note == "the disk is full"


def test_a_killed_run_counts_its_time_until_its_last_trial() -> None:
    night = Night()
    night.event(Stage.DISCOVERY, StageState.STARTED)
    night.run(night.old, night.tasks("search", Split.SEARCH, 56), 1000, 0.5)
    story = tell(night.ledger, 1)
    assert story.stages[0].state == "under way"
    assert story.stages[0].elapsed_s == pytest.approx(7, abs=0.1)


def test_nothing_counted_is_unscored_and_not_zero() -> None:
    night = Night()
    ledger = night.play(*STAGES)
    verdict = ledger.verdicts()[0]
    empty = verdict.gain.model_copy(update={"estimate": 0.0, "n": 0})
    bare = [arm.model_copy(update={"rate": empty}) for arm in verdict.arms]
    changed = verdict.model_copy(update={"gain": empty, "arms": tuple(bare)})
    ledger.add_verdict(changed, None)
    gate = tell(ledger, 1).gate
    assert gate
    assert gate.gain is None
    assert gate.smallest_resolvable is None
    assert [arm.rate for arm in gate.arms] == [None] * 4


def test_an_unknown_generation_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(UsageError, match="no generation 9; there are 1 to 1"):
        tell(Night().ledger, 9)


def test_a_skipped_update_keeps_its_reason_and_has_no_training() -> None:
    night = Night()
    night.play(Stage.DISCOVERY, Stage.EXPANSION)
    dataset = Dataset(contract=OLD.digest, examples=())
    night.ledger.add_dataset(1, dataset)
    night.event(Stage.UPDATE, StageState.STARTED)
    told: dict[str, JsonValue] = {
        "outcome": "skipped",
        "reason": "0 examples after curation",
        "dataset": dataset.digest,
        "lora": None,
        "successor_pair": night.finalist,
        "filters": [],
    }
    night.event(Stage.UPDATE, StageState.FINISHED, result=told)
    story = tell(night.ledger, 1)
    assert story.update
    assert (story.update.outcome, story.update.training) == ("skipped", None)
    assert story.successor
    assert story.successor.contract == NEW.digest
    for shown in (render_text(story), render_page(story)):
        assert "0 examples after curation" in shown


def test_a_generation_that_found_nothing_new_says_so_and_claims_no_gain() -> None:
    night = Night()
    verdict = night.play(*Stage).verdicts()[0]
    empty = verdict.gain.model_copy(update={"estimate": 0.0, "n": 0})
    reason = "the successor is the champion: nothing new was found"
    changed = {"successor": night.old, "gain": empty, "reasons": (reason,)}
    night.ledger.add_verdict(
        verdict.model_copy(update={**changed, "decision": Decision.REJECT}), None
    )
    shown = render_text(tell(night.ledger, 1))
    assert shown.startswith(f"Generation 1: The new pair is rejected\n  {reason}\n")


def test_every_key_of_the_story_is_documented() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8")
    documented = set(re.findall(r"[`\"](\w+)[`\"]", guide))
    modules = (chapters, gate_notes, cost_notes)
    values = [GenerationStory, *(value for module in modules for value in vars(module).values())]
    keys = {
        name
        for value in values
        if isinstance(value, type) and issubclass(value, Value)
        for name in value.model_fields
    }
    assert keys - documented == set()
