"""HTML and SVG from parts: a text is escaped unless it is markup made here."""

import html
from dataclasses import dataclass

from rsi.report.shown import clean


@dataclass(frozen=True, slots=True)
class Markup:
    """Text that is markup already; only `tag` and `raw` make it."""

    text: str


Part = Markup | str | int | float | None

_VOID = frozenset({"meta", "line", "circle", "rect", "path", "br"})


def tag(name: str, /, *parts: Part, **attributes: Part) -> Markup:
    """An element. Plain texts are cleaned and escaped; None leaves an attribute or part out.

    `class_` stands for class, and `_` in a name for a hyphen.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID and not parts:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{joined(*parts).text}</{name}>")


def joined(*parts: Part) -> Markup:
    """The parts one after another."""
    return Markup(
        "".join(part.text if isinstance(part, Markup) else _escaped(part) for part in parts)
    )


def _escaped(part: Part) -> str:
    return "" if part is None else html.escape(clean(str(part)), quote=True)
