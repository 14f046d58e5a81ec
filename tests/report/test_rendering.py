"""The page and the text show the whole story, and let no foreign text through unescaped."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rsi.domain.generation import Stage, StageState
from rsi.report.page import render_page
from rsi.report.story import GenerationStory, tell
from rsi.report.text import render_text
from rsi.report.text_rows import WIDTH
from tests.report.night import Night

STAGES = tuple(Stage)
HOSTILE = '\x00\x1b[31m<script>alert("1")</script>&[bold]\u202e\x9b2J\ud800</style>\'">'
DRIVES = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Whatever may not reach a terminal; a line feed may."""


class Reading(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def story() -> GenerationStory:
    return tell(Night().play(*STAGES), 1)


def test_the_page_is_one_file_that_asks_for_nothing_and_is_well_nested(
    story: GenerationStory,
) -> None:
    page = render_page(story)
    reading = Reading(page)
    assert reading.open == []
    assert "script" not in reading.tags
    assert not reading.attributes & {"src", "href", "onload", "onclick"}
    assert "url(" not in page
    assert "@import" not in page
    assert reading.tags.count("svg") > 10


@pytest.mark.parametrize("render", [render_page, render_text])
def test_every_chapter_is_shown(render: object, story: GenerationStory) -> None:
    assert callable(render)
    shown = render(story)
    for wanted in (
        "What the old pair failed",
        "What was made harder",
        "What the search covered",
        "never the score of a pair",
        "What the adapter was trained on",
        "What was forgotten",
        "nvalid trials",
        "Cost",
        "Lineage",
        "promote",
        "interaction",
        "operator:cookbook+pool",
    ):
        assert wanted.lower() in shown.lower(), wanted


def test_every_rate_stands_with_its_interval_and_n(story: GenerationStory) -> None:
    assert story.gate
    shown = render_text(story)
    for arm in story.gate.arms:
        assert arm.rate
        assert f"n={arm.rate.n}" in shown
    for found in re.finditer(r"\d+ %(?! \[| confidence|$)", shown, re.M):
        assert "intervals at" in shown[found.start() - 15 : found.end()], found


@pytest.mark.parametrize("played", range(5))
def test_a_generation_under_way_can_be_shown(played: int) -> None:
    night = Night()
    night.play(*STAGES[:played])
    if played < 4:
        night.event(STAGES[played], StageState.STARTED)
        night.event(STAGES[played], StageState.FAILED, note="the engine is down")
    story = tell(night.ledger, 1)
    assert Reading(render_page(story)).open == []
    assert ("the engine is down" in render_text(story)) is (played < 4)


def test_what_was_not_counted_is_called_unscored(story: GenerationStory) -> None:
    assert story.gate
    bare = story.gate.regression.model_copy(
        update={"tasks": 0, "kept": 0, "lost": 0, "forgotten": None}
    )
    changed = story.model_copy(
        update={"gate": story.gate.model_copy(update={"gain": None, "regression": bare})}
    )
    assert "unscored (n=0)" in render_text(changed)
    assert "unscored (n=0)" in render_page(changed)


def test_hostile_texts_reach_neither_browser_nor_terminal() -> None:
    _check(HOSTILE)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(st.characters(codec=None), max_size=200))
def test_any_text_is_shown_escaped(text: str) -> None:
    _check(f"{text}<b>&\x00\x1b[2J")


def _check(text: str) -> None:
    """The text stands in for an instruction, an edit, a refusal and a failure's note."""
    night = Night(text.encode("utf-8", "replace").decode())
    night.play(Stage.DISCOVERY, Stage.EXPANSION)
    night.event(Stage.UPDATE, StageState.STARTED)
    night.event(Stage.UPDATE, StageState.FAILED, note=text)
    story = tell(night.ledger, 1)
    page, shown = render_page(story), render_text(story)
    reading = Reading(page)
    assert reading.open == []
    assert not {"script", "b"} & set(reading.tags)
    assert not DRIVES.search(page)
    assert not DRIVES.search(shown)
    assert max(len(line) for line in shown.splitlines()) <= WIDTH
