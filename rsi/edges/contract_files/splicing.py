"""Changes of one key in a TOML text; every byte that isn't the key's stays as it is."""

import tomllib
from typing import Any

from rsi.domain.keys import Path
from rsi.domain.places import Places, Section, Span, Statement, places_in
from rsi.edges.contract_files.values import toml_key, toml_value


def with_value(text: str, path: Path, value: Any) -> str:
    """The text with the key set; it is added to its table where it isn't written out."""
    places = places_in(text)
    exact = _statement(places, path)
    if exact is not None:
        return _spliced(text, exact.value, toml_value(value))
    bare = without_key(text, path)
    places = places_in(bare)
    for depth in range(len(path) - 1, -1, -1):
        above, rest = path[:depth], path[depth:]
        inline = _statement(places, above)
        if inline is not None:
            return _with_inline(bare, inline, rest, value)
        if depth == 0 and len(rest) > 1:
            break
        added = _added(bare, places, above, rest, value)
        if added is not None:
            return added
    table = ".".join(toml_key(str(part)) for part in path[:-1])
    gap = "" if not bare else "\n" if bare.endswith("\n") else "\n\n"
    return f"{bare}{gap}[{table}]\n{toml_key(str(path[-1]))} = {toml_value(value)}\n"


def without_key(text: str, path: Path) -> str:
    """The text without the key and everything below it."""
    places = places_in(text)
    if any(found.is_inline and found.path[: len(path)] == path for found in places.statements):
        exact = _statement(places, path)
        if exact is None or exact.is_inline:
            return _without_inline(text, places, path)
    sections = [
        place
        for place, section in enumerate(places.sections)
        if place > 0 and section.path[: len(path)] == path
    ]
    gone = [Span(places.sections[at].start, places.sections[at].body_end) for at in sections]
    gone += [
        statement.whole
        for statement in places.statements
        if not statement.is_inline
        and statement.path[: len(path)] == path
        and statement.section not in sections
    ]
    for span in sorted(gone, key=lambda span: -span.start):
        text = _spliced(text, span, "")
    return text


def _spliced(text: str, span: Span, new: str) -> str:
    return text[: span.start] + new + text[span.end :]


def _statement(places: Places, path: Path) -> Statement | None:
    return next((found for found in places.statements if found.path == path), None)


def _inline_above(places: Places, path: Path) -> Statement | None:
    """The nearest written-out value that holds the key."""
    for depth in range(len(path) - 1, 0, -1):
        found = _statement(places, path[:depth])
        if found is not None:
            return found
    return None


def _with_inline(text: str, holder: Statement, rest: Path, value: Any) -> str:
    """Rewrites the one inline table that the key belongs to."""
    table = _parsed(text, holder)
    into = table
    for part in rest[:-1]:
        into = into.setdefault(str(part), {})
    into[str(rest[-1])] = value
    return _spliced(text, holder.value, toml_value(table))


def _without_inline(text: str, places: Places, path: Path) -> str:
    holder = _inline_above(places, path)
    assert holder is not None
    table = _parsed(text, holder)
    into = table
    *way, last = path[len(holder.path) :]
    for part in way:
        into = into.get(str(part), {})
    into.pop(str(last), None)
    return _spliced(text, holder.value, toml_value(table))


def _parsed(text: str, holder: Statement) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads(f"x = {text[holder.value.start : holder.value.end]}")["x"]
    return table


def _added(text: str, places: Places, above: Path, rest: Path, value: Any) -> str | None:
    """The text with a new line for the key in the table `above`; None when that isn't there."""
    section = _section(places, above)
    line = f"{'.'.join(toml_key(str(part)) for part in rest)} = {toml_value(value)}\n"
    if section is not None:
        return _with_line(text, section.body_end, line)
    # The table exists through dotted keys (`agent.turns = 1`): the new one joins them.
    dotted = [
        statement
        for statement in places.statements
        if not statement.is_inline and statement.path[: len(above)] == above
    ]
    if not above or not dotted:
        return None
    last = dotted[-1]
    home = places.sections[last.section]
    if len(home.path) > len(above):
        return None
    whole = (*above[len(home.path) :], *rest)
    line = f"{'.'.join(toml_key(str(part)) for part in whole)} = {toml_value(value)}\n"
    return _with_line(text, last.whole.end, line)


def _section(places: Places, path: Path) -> Section | None:
    return next((section for section in places.sections if section.path == path), None)


def _with_line(text: str, at: int, line: str) -> str:
    start = "" if at == 0 or text[at - 1] == "\n" else "\n"
    return text[:at] + start + line + text[at:]
