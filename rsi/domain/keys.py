"""Dotted keys of a document, such as `skills.cookbook.shown`, and the schema that they run through.

A part that has a dot in it is written in quotes, as in TOML: `tools."my.tool".exposed`. In a
list of named tables the name stands for the place.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

from rsi.domain.values import Value

Path = tuple[str | int, ...]
"""The way into a document: keys of tables and places in lists."""

_PART = re.compile(r'"([^"]*)"|([^."]+)')
_PLAIN = re.compile(r"[A-Za-z0-9_*-]+")


def split_key(key: str) -> tuple[str, ...]:
    """The parts of a dotted key; () when it isn't one."""
    parts: list[str] = []
    at = 0
    while found := _PART.match(key, at):
        parts.append(found[1] if found[1] is not None else found[2])
        at = found.end()
        if at == len(key):
            return tuple(parts)
        if key[at] != ".":
            break
        at += 1
    return ()


def join_key(parts: Iterable[str | int]) -> str:
    """The dotted key of the parts, quoted where needed."""
    return ".".join(str(part) if _PLAIN.fullmatch(str(part)) else f'"{part}"' for part in parts)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant; None when none is near."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def type_at(kind: Any, path: Sequence[str | int]) -> Any:
    """The type that the schema of `kind` has at the path; None when there is no such key."""
    for part in path:
        if _is_value(kind):
            field = kind.model_fields.get(part)
            kind = field.annotation if field is not None else None
        elif get_origin(kind) is tuple and isinstance(part, int):
            kind = get_args(kind)[0]
        elif get_origin(kind) is dict:
            kind = get_args(kind)[1]
        else:
            return None
    return kind


def is_table(kind: Any) -> bool:
    """Whether keys stand below it: a table, tables by name, or a list of named tables."""
    return _is_value(kind) or get_origin(kind) is dict or is_named_list(kind)


def is_named_list(kind: Any) -> bool:
    """Whether it is a list of tables that are addressed by their `name`."""
    if get_origin(kind) is not tuple:
        return False
    element = get_args(kind)[0]
    return _is_value(element) and "name" in element.model_fields


def fields_at(kind: Any, path: Sequence[str | int]) -> tuple[str, ...]:
    """The known keys of the table at the path."""
    found = type_at(kind, path)
    return tuple(found.model_fields) if _is_value(found) else ()


def schema_keys(kind: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key that a document of this kind may have, with `*` for names."""
    if _is_value(kind):
        for name, field in kind.model_fields.items():
            yield (*above, name)
            yield from schema_keys(field.annotation, (*above, name))
    elif get_origin(kind) is dict:
        yield (*above, "*")
        yield from schema_keys(get_args(kind)[1], (*above, "*"))
    elif is_named_list(kind):
        yield (*above, "*")
        yield from schema_keys(get_args(kind)[0], (*above, "*"))


def matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether the pattern names the key; `*` stands for any one part."""
    return len(pattern) == len(parts) and all(
        want in ("*", part) for want, part in zip(pattern, parts, strict=True)
    )


def place_of(rows: object, name: str) -> int | None:
    """The place of the table called `name` in a list of tables."""
    if isinstance(rows, list):
        for place, row in enumerate(rows):
            if isinstance(row, Mapping) and row.get("name") == name:
                return place
    return None


def _is_value(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Value)
