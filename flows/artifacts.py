"""What a generation shows in the Prefect UI: tables, the coverage curve, the verdict."""

import base64

from prefect.artifacts import create_image_artifact, create_markdown_artifact

from rsi.domain.generation import Stage
from rsi.ports import Ledger
from rsi.report.shown import clean
from rsi.report.story import tell
from rsi.report.text import render_text


def show_stage(ledger: Ledger, number: int, stage: Stage) -> None:
    """The artifacts of one finished stage."""
    if stage is Stage.EXPANSION:
        show_coverage(ledger, number)
    if stage is Stage.GATE:
        show_verdict(ledger, number)
    show_story(ledger, number)


def show_story(ledger: Ledger, number: int) -> None:
    """The whole story so far, under one key, so that its versions are the generation's history."""
    text = clean(render_text(tell(ledger, number)))
    create_markdown_artifact(
        key=f"generation-{number}",
        markdown=f"```text\n{text.replace('```', '')}\n```",
        description=f"Generation {number}: what has happened so far",
    )


def show_coverage(ledger: Ledger, number: int) -> None:
    """The coverage curve as a picture."""
    coverage = ledger.coverage(number)
    if coverage is None:
        return
    points = " ".join(
        f"{20 + 560 * point.attempts / max(1, coverage.attempts):.1f},"
        f"{180 - 160 * point.covered / max(1, coverage.tasks):.1f}"
        for point in coverage.curve
    )
    title = f"{coverage.covered} of {coverage.tasks} tasks covered in {coverage.attempts} attempts"
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="210" '
        'style="background:#fff;font-family:sans-serif"><polyline fill="none" stroke="#2a6fb0" '
        f'stroke-width="2" points="{points}"/><path d="M20 20V180H580" fill="none" '
        f'stroke="#888"/><text x="20" y="202" font-size="13">{title}</text></svg>'
    )
    picture = base64.b64encode(svg.encode()).decode()
    create_image_artifact(
        key=f"coverage-{number}",
        image_url=f"data:image/svg+xml;base64,{picture}",
        description=title,
    )


def show_verdict(ledger: Ledger, number: int) -> None:
    """The four arms and the decision; also under a constant key, the champion's history."""
    verdicts = ledger.verdicts(number)
    if not verdicts:
        return
    verdict = verdicts[-1]
    rows = "\n".join(
        f"| {arm.name} | {arm.solved} of {arm.solved + arm.failed} | {arm.rate.estimate:.1%} | "
        f"{arm.rate.low:.1%} to {arm.rate.high:.1%} | {arm.invalid} |"
        for arm in verdict.arms
    )
    reasons = "\n".join(f"- {clean(reason)}" for reason in verdict.reasons)
    markdown = (
        f"# Generation {number}: {verdict.decision.value}\n\n{reasons}\n\n"
        "| model/contract | solved | share | interval | invalid |\n|---|---|---|---|---|\n"
        f"{rows}\n"
    )
    for key in (f"verdict-{number}", "champion"):
        create_markdown_artifact(key=key, markdown=markdown, description="The four arms")
