"""The story as one self-contained HTML page: no script, nothing from elsewhere."""

from rsi.report.headlines import headline, pair_words, summary, totals
from rsi.report.markup import Markup, Part, tag
from rsi.report.page_costs import costs_chapter, invalid_chapter, lineage_chapter
from rsi.report.page_discovery import discovery_chapter
from rsi.report.page_expansion import expansion_chapter
from rsi.report.page_gate import exam_chapter, families_chapter, forgotten_chapter, verdict_chapter
from rsi.report.page_update import update_chapter
from rsi.report.story import GenerationStory
from rsi.report.style import CSS
from rsi.report.tables import digest, facts

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render_page(story: GenerationStory) -> str:
    """The whole page, ready to be written to a file; every foreign text in it is escaped."""
    title = f"Generation {story.generation}: {headline(story)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Markup(CSS)),
    )
    page = tag("html", head, tag("body", tag("main", *_chapters(story))), lang="en")
    return f"<!DOCTYPE html>\n{page.text}\n"


def _chapters(story: GenerationStory) -> tuple[Part, ...]:
    return (
        tag("p", f"Generation {story.generation} · opened {_day(story)}", class_="over"),
        tag("h1", headline(story)),
        tag("p", summary(story), class_="lead"),
        exam_chapter(story.gate),
        verdict_chapter(story),
        _pairs(story),
        discovery_chapter(story.discovery),
        expansion_chapter(story.expansion),
        update_chapter(story.update),
        families_chapter(story.gate),
        forgotten_chapter(story.gate),
        invalid_chapter(story.invalid),
        costs_chapter(story.stages),
        lineage_chapter(story.lineage),
        tag(
            "footer",
            f"Evaluation contract {story.evaluation_name} ",
            digest(story.evaluation),
            f", seed {story.seed}. Intervals are at {100 * story.confidence:g} % confidence; n is "
            "what was counted. The same facts: ",
            tag("code", f"rsi show {story.generation} --json"),
        ),
    )


def _pairs(story: GenerationStory) -> Markup:
    rows: list[tuple[str, Part]] = [("Old pair", pair_words(story.champion))]
    if story.successor:
        rows.append(("New pair", pair_words(story.successor)))
    return facts([*rows, ("In all", totals(story))])


def _day(story: GenerationStory) -> str:
    return f"{story.opened_at:%Y-%m-%d %H:%M %Z}"
