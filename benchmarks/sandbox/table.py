"""What was measured, as a table and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.sandbox.timing import WIDTHS, Cost


@dataclass(slots=True)
class Measured:
    """All that one run found."""

    costs: list[Cost] = field(default_factory=list)
    """The SDK's first: the others are told as ratios to it."""
    tasks_per_minute: dict[str, float | str] = field(default_factory=dict)
    """By harness, with an agent that does nothing; a text says why there is none."""
    waiting_mb: float = 0.0
    drift: dict[str, float] = field(default_factory=dict)


def goals(found: Measured) -> list[tuple[str, float, float]]:
    """(what, ratio, goal): reached where the ratio is at least the goal."""
    sdk, *others = found.costs
    cli = next(cost for cost in others if cost.name.startswith("docker run"))
    pool = next(cost for cost in others if cost.name.startswith("rsi, containers"))
    peers = [rate for name, rate in found.tasks_per_minute.items() if not name.startswith("rsi")]
    rates = [rate for rate in peers if isinstance(rate, float)]
    told = [
        ("a warm trial against the SDK's, while a core is idle", sdk.paced_ms / pool.paced_ms, 10),
        (
            "trials a minute against the SDK's, with all cores busy",
            max(pool.per_minute.values()) / max(sdk.per_minute.values()),
            3,
        ),
        ("a shell call against `docker exec`", cli.call_ms / pool.call_ms, 15),
        ("a shell call against the SDK's exec", sdk.call_ms / pool.call_ms, 15),
    ]
    ours = found.tasks_per_minute.get("rsi, containers")
    if rates and isinstance(ours, float):
        told.append(("tasks a minute against the better peer", ours / max(rates), 3))
    return [(what, round(ratio, 1), goal) for what, ratio, goal in told]


def text(found: Measured) -> str:
    """The tables for people."""
    sdk = found.costs[0]
    heads = ("way", "trial, ms", "to SDK", "call, ms", *(f"trials/min, {n}" for n in WIDTHS))
    rows = [
        (
            cost.name,
            f"{cost.paced_ms:.0f}",
            f"{sdk.paced_ms / cost.paced_ms:.1f}x",
            f"{cost.call_ms:.1f}",
            *(f"{cost.per_minute[width]:.0f}" for width in WIDTHS),
        )
        for cost in found.costs
    ]
    harnesses = [
        (name, rate if isinstance(rate, str) else f"{rate:.0f}")
        for name, rate in found.tasks_per_minute.items()
    ]
    reached = [
        (what, f"{ratio:g}x", f"{goal:g}x", "yes" if ratio >= goal else "no")
        for what, ratio, goal in goals(found)
    ]
    drift = [(name, f"{value:.1f}") for name, value in found.drift.items()]
    parts = [
        grid(heads, rows),
        grid(("harness, agent that does nothing", "tasks/min"), harnesses),
        f"A waiting container takes {found.waiting_mb:.1f} MB.",
        grid(("over the trials of the pool", "value"), drift),
        grid(("goal", "seen", "wanted", "reached"), reached),
    ]
    return "\n\n".join(parts)


def document(found: Measured) -> dict[str, Any]:
    """The same for machines."""
    return {**asdict(found), "goals": goals(found)}


def grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, its columns aligned."""
    widths = [max(len(row[place]) for row in (heads, *rows)) for place in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(heads), line(["-" * width for width in widths]), *map(line, rows)])
