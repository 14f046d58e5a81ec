"""What was measured, as a table and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.sandbox.endurance import Drift, Waiting
from benchmarks.sandbox.timing import WIDTHS, Cost
from benchmarks.sandbox.ways import CLI, POOL, SDK

HARBOR, INSPECT = "Harbor", "Inspect"
PEERS = (HARBOR, INSPECT)
NONE = "-"


@dataclass(frozen=True, slots=True)
class Goal:
    """A ratio of two figures of one run, and what it should at least be."""

    what: str
    ratio: float
    wanted: float

    @property
    def is_reached(self) -> bool:
        return self.ratio >= self.wanted


@dataclass(slots=True)
class Measured:
    """All that one run found; what there was no time for is not there."""

    costs: dict[str, Cost] = field(default_factory=dict)
    """By way."""
    tasks_per_minute: dict[str, float] = field(default_factory=dict)
    """By way or harness, with an agent that does nothing, at the width that is best for it."""
    notes: dict[str, str] = field(default_factory=dict)
    """By way or harness: why there is no figure, or how it was had."""
    loads: list[float] = field(default_factory=list)
    """The machine's load when each step began."""
    waiting: Waiting | None = None
    drift: Drift | None = None


def goals(found: Measured) -> list[Goal]:
    """The goals whose figures are there."""
    told: list[Goal] = []
    if not {SDK, CLI, POOL} - set(found.costs):
        sdk, cli, pool = (found.costs[name] for name in (SDK, CLI, POOL))
        most = [max(cost.per_minute.values()) for cost in (pool, sdk)]
        told += [
            Goal("a warm trial against the SDK's, a core idle", sdk.paced_ms / pool.paced_ms, 10),
            Goal("trials a minute against the SDK's, all cores busy", most[0] / most[1], 3),
            Goal("a shell call against `docker exec`", cli.call_ms / pool.call_ms, 15),
            Goal("a shell call against the SDK's exec", sdk.call_ms / pool.call_ms, 15),
        ]
    rates = [found.tasks_per_minute[name] for name in PEERS if name in found.tasks_per_minute]
    if rates and POOL in found.tasks_per_minute:
        ratio = found.tasks_per_minute[POOL] / max(rates)
        told.append(Goal("tasks a minute against the better of Harbor and Inspect", ratio, 3))
    return told


def text(found: Measured) -> str:
    """The table for people, and the goals below it."""
    heads = (
        "way",
        "trial, ms",
        "SDK's / it",
        "call, ms",
        *(f"trials/min, {n}" for n in WIDTHS),
        "no-op tasks/min",
        "note",
    )
    names = [*found.costs, *(name for name in PEERS if _is_told(found, name))]
    parts = [
        grid(heads, [_row(found, name) for name in names]),
        "\n".join(_lines(found)),
        "\n".join(_goal_line(goal) for goal in goals(found)),
    ]
    return "\n\n".join(part for part in parts if part)


def document(found: Measured) -> dict[str, Any]:
    """The same for machines."""
    told = [asdict(goal) | {"is_reached": goal.is_reached} for goal in goals(found)]
    return {**asdict(found), "goals": told}


def grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, its columns aligned."""
    widths = [max(len(row[place]) for row in (heads, *rows)) for place in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(heads), line(["-" * width for width in widths]), *map(line, rows)])


def _is_told(found: Measured, name: str) -> bool:
    return name in found.tasks_per_minute or name in found.notes


def _row(found: Measured, name: str) -> tuple[str, ...]:
    cost, sdk = found.costs.get(name), found.costs.get(SDK)
    tasks = found.tasks_per_minute.get(name)
    figures = [NONE] * (3 + len(WIDTHS))
    if cost is not None:
        figures = [
            f"{cost.paced_ms:.0f}",
            NONE if sdk is None else f"{sdk.paced_ms / cost.paced_ms:.1f}x",
            f"{cost.call_ms:.1f}",
            *(f"{cost.per_minute[width]:.0f}" for width in WIDTHS),
        ]
    return (name, *figures, NONE if tasks is None else f"{tasks:.0f}", found.notes.get(name, ""))


def _lines(found: Measured) -> list[str]:
    loads = [f"{load:.1f}" for load in found.loads]
    told = [f"- The machine's load as each step began: {', '.join(loads)}."] if loads else []
    return told + _waiting_lines(found.waiting) + _drift_lines(found.drift)


def _waiting_lines(waiting: Waiting | None) -> list[str]:
    if waiting is None:
        return []
    group, holder = (
        "can't be read" if mb is None else f"{mb:.1f} MB"
        for mb in (waiting.group_mb, waiting.holder_mb)
    )
    return [f"- A container that waits: control group {group}, its containerd-shim {holder}."]


def _drift_lines(drift: Drift | None) -> list[str]:
    if drift is None:
        return []
    if not drift.medians_ms:
        return [f"- Time for {drift.trials} trials in a row alone: too few to tell a drift."]
    first, last = drift.medians_ms[0], drift.medians_ms[-1]
    return [
        f"- {drift.trials} trials of the pool in a row, median of 100: the first {first:.0f} ms, "
        f"the last {last:.0f} ms ({last / first:.2f}x), between {min(drift.medians_ms):.0f} and "
        f"{max(drift.medians_ms):.0f} ms on the way; the machine's load between "
        f"{min(drift.loads):.1f} and {max(drift.loads):.1f}.",
        f"- This process held {drift.memory_mb[0]:.1f} MB after 100 of them and "
        f"{drift.memory_mb[-1]:.1f} MB at the end.",
    ]


def _goal_line(goal: Goal) -> str:
    word = "reached" if goal.is_reached else "not reached"
    return f"- {word}: {goal.what} is {goal.ratio:.1f}x; {goal.wanted:g}x was wanted"
