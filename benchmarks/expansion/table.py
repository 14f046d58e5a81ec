"""The study's table and figure, written to docs/."""

import statistics
from collections.abc import Sequence

from benchmarks.expansion.runs import Run
from benchmarks.sandbox.table import grid
from rsi.domain.search import CoveragePoint
from rsi.domain.statistics import rate

SHARES = (0.5, 0.8, 0.9, 1.0)
COLOURS = ("#1f6feb", "#8a8f98", "#c2410c", "#0f766e", "#7c3aed", "#b45309")
WIDTH, HEIGHT, LEFT, BOTTOM = 720, 360, 48, 40


def attempts_to(curve: Sequence[CoveragePoint], share: float, tasks: int) -> int | None:
    """Attempts after which the share was covered; None when it never was."""
    wanted = share * tasks
    return next((point.attempts for point in curve if point.covered >= wanted - 1e-9), None)


def table(runs: Sequence[Run]) -> str:
    """One row for each method, medians over its seeds."""
    heads = (
        "method", "runs", "covered, of tasks", "attempts", "tokens",
        *(f"to {share:.0%}" for share in SHARES),
        "finalist: selected", "measured afresh",
    )  # fmt: skip
    rows = []
    for method in dict.fromkeys(run.method for run in runs):
        own = [run for run in runs if run.method == method]
        ends = [run.curve[-1] for run in own]
        covered = [f"{run.curve[-1].covered}" for run in own]
        selected = [next(one for one in run.finalists if one.is_chosen) for run in own]
        rows.append(
            (
                method,
                str(len(own)),
                f"{', '.join(covered)} of {own[0].tasks}",
                f"{statistics.median(end.attempts for end in ends):.0f}",
                f"{statistics.median(end.tokens for end in ends):,.0f}",
                *(_attempts(own, share) for share in SHARES),
                _told(sum(one.solved for one in selected), sum(one.trials for one in selected)),
                _told(sum(run.fresh.solved for run in own), sum(run.fresh.trials for run in own)),
            )
        )
    return grid(heads, rows)


def _attempts(runs: Sequence[Run], share: float) -> str:
    found = [attempts_to(run.curve, share, run.tasks) for run in runs]
    reached = [attempts for attempts in found if attempts is not None]
    if len(reached) < len(found):
        return f"{len(reached)} of {len(found)} runs" if reached else "never"
    return f"{statistics.median(reached):.0f}"


def _told(solved: int, n: int) -> str:
    interval = rate(solved, n, 0.95)
    return f"{solved / n:.0%} [{interval.low:.0%}, {interval.high:.0%}], n={n}" if n else "unscored"


def figure(runs: Sequence[Run]) -> str:
    """Coverage against attempts: a line for each run, a colour for each method."""
    methods = list(dict.fromkeys(run.method for run in runs))
    most = max(run.curve[-1].attempts for run in runs) or 1
    tasks = max(run.tasks for run in runs)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = _y(share * tasks, tasks)
        parts.append(
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - 10}" y2="{y:.1f}" stroke="#e5e7eb"/>'
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share * tasks:.0f}</text>'
        )
    for place, method in enumerate(methods):
        colour = COLOURS[place % len(COLOURS)]
        for run in runs:
            if run.method == method:
                line = " ".join(_steps(run.curve, most, tasks))
                parts.append(
                    f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
                )
        y = 20 + 16 * place
        parts.append(f'<text x="{LEFT + 12}" y="{y}" fill="{colour}">{method}</text>')
    parts.append(
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">attempts (0 to {most})</text>'
        "</svg>"
    )
    return "\n".join(parts) + "\n"


def _steps(curve: Sequence[CoveragePoint], most: int, tasks: int) -> list[str]:
    points, before = [], 0
    for point in curve:
        x = LEFT + (WIDTH - 10 - LEFT) * point.attempts / most
        points += [f"{x:.1f},{_y(before, tasks):.1f}", f"{x:.1f},{_y(point.covered, tasks):.1f}"]
        before = point.covered
    return points


def _y(covered: float, tasks: int) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 10) * covered / tasks
