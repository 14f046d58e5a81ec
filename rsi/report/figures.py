"""Figures as SVG that keeps its line widths and letters at every width of the page.

Horizontal places are shares of the width, so that a figure needs no script to fit a phone; what
must bend with the width lies in an inner picture whose strokes don't scale. Letters are HTML.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rsi.domain.verdict import Interval
from rsi.report.markup import Markup, joined, tag
from rsi.report.shown import signed


@dataclass(frozen=True, slots=True)
class Whisker:
    """One row of a dot-and-whisker figure."""

    label: str
    told: str
    """The numbers, in words: estimate, interval and n."""
    interval: Interval | None
    tone: str = "plain"
    """`old`, `new` or `plain`."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The scale that a figure's values are placed on."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]

    def place(self, value: float) -> str:
        """The value's place from the left, in percent of the width."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{100 * share:.2f}%"


SHARES = Axis(0.0, 1.0, ((0.0, "0 %"), (0.25, "25"), (0.5, "50"), (0.75, "75"), (1.0, "100 %")))
POINTS = Axis(-1.0, 1.0, tuple((place, signed(place)) for place in (-1.0, -0.5, 0.0, 0.5, 1.0)))


def whiskers(rows: Sequence[Whisker], axis: Axis, title: str) -> Markup:
    """Estimates as dots with their intervals as lines, one row each, over one axis."""
    return tag(
        "figure",
        tag("figcaption", title),
        tag(
            "div",
            *(_row(row, axis) for row in rows),
            tag("div", *(_tick(axis, *tick) for tick in axis.ticks), class_="axis"),
            class_="whiskers",
        ),
    )


def curve(
    points: Sequence[tuple[float, float]],
    top: float,
    title: str,
    across: str,
    up: str,
    *,
    is_stepped: bool = False,
    end: str = "",
) -> Markup:
    """Points (x, y) joined from the left to the right, on a scale from zero to `top`.

    `across` and `up` name the axes; `end` is written at the last point. Empty without points.
    """
    if not points or top <= 0:
        return joined()
    last_x = max(x for x, _ in points) or 1.0
    placed = [(100 * x / last_x, 100 - 100 * min(y, top) / top) for x, y in points]
    plot = tag(
        "svg",
        *(_level(share) for share in (0, 25, 50, 75, 100)),
        _line(placed, is_stepped),
        tag("circle", cx=f"{placed[-1][0]:.2f}%", cy=f"{placed[-1][1]:.2f}%", r=4, class_="end"),
        class_="plot",
        role="img",
        aria_label=f"{title}: {end}",
    )
    return tag(
        "figure",
        tag("figcaption", title),
        tag(
            "div",
            tag("div", tag("span", _number(top)), tag("span", up), tag("span", "0"), class_="up"),
            plot,
            tag("span"),
            tag(
                "div",
                tag("span", "0"),
                tag("span", across),
                tag("span", _number(last_x)),
                class_="across",
            ),
            class_="curve",
        ),
        tag("p", end, class_="note") if end else None,
    )


def bar(interval: Interval, tone: str) -> Markup:
    """A share as a small dot and whisker, for a table's cell."""
    return tag("svg", *_whisker(interval, SHARES, tone), class_="bar", aria_hidden="true")


def _row(row: Whisker, axis: Axis) -> Markup:
    zero = tag("line", x1=axis.place(0), x2=axis.place(0), y1=0, y2="100%", class_="zero")
    drawn = _whisker(row.interval, axis, row.tone) if row.interval else ()
    return tag(
        "div",
        tag("span", row.label, class_="label"),
        tag("svg", zero, *drawn, class_="row", role="img", aria_label=f"{row.label}: {row.told}"),
        tag("span", row.told, class_="told"),
        class_="whisker-row",
    )


def _whisker(interval: Interval, axis: Axis, tone: str) -> tuple[Markup, ...]:
    low, high, dot = (
        axis.place(value) for value in (interval.low, interval.high, interval.estimate)
    )
    return (
        tag("line", x1=0, x2="100%", y1="50%", y2="50%", class_="ground"),
        tag("line", x1=low, x2=high, y1="50%", y2="50%", class_=f"whisker {tone}"),
        tag("circle", cx=dot, cy="50%", r=5, class_=f"dot {tone}"),
    )


def _tick(axis: Axis, value: float, label: str) -> Markup:
    return tag("span", label, style=f"left:{axis.place(value)}")


def _level(share: int) -> Markup:
    return tag("line", x1=0, x2="100%", y1=f"{share}%", y2=f"{share}%", class_="ground")


def _line(placed: Sequence[tuple[float, float]], is_stepped: bool) -> Markup:
    steps = [f"M{placed[0][0]:.2f} {placed[0][1]:.2f}"]
    for x, y in placed[1:]:
        steps.append(f"H{x:.2f}V{y:.2f}" if is_stepped else f"L{x:.2f} {y:.2f}")
    drawn = tag("path", d="".join(steps), class_="line", vector_effect="non-scaling-stroke")
    return tag(
        "svg",
        drawn,
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
        width="100%",
        height="100%",
        class_="stretch",
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2f}"
