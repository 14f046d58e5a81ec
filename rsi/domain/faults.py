"""Checking a plain document against a kind of value, with every fault found at once."""

import json
import math
from dataclasses import dataclass
from datetime import date, time
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rsi.domain.keys import Path, fields_at, join_key, nearest, schema_keys
from rsi.domain.values import Value

Kind = TypeVar("Kind", bound=Value)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, and the way to it from the root of the document."""

    path: Path
    text: str
    is_unknown_key: bool = False


@dataclass(frozen=True, slots=True)
class Checked(Generic[Kind]):
    """A value, or the reasons why there is none."""

    value: Kind | None
    faults: tuple[Fault, ...]


def check(kind: type[Kind], document: dict[str, Any]) -> Checked[Kind]:
    """The document as a value of the kind; types are exact: "5" and true are no numbers."""
    faults: list[Fault] = []
    plain = _plain(document, (), faults)
    broken = {fault.path for fault in faults}
    try:
        value = kind.model_validate_json(json.dumps(plain), strict=True)
    except ValidationError as error:
        found = (_fault(kind, details) for details in error.errors(include_url=False))
        faults += [fault for fault in found if fault.path not in broken]
        return Checked(None, tuple(faults))
    return Checked(None if faults else value, tuple(faults))


def _plain(value: Any, path: Path, faults: list[Fault]) -> Any:
    """The value as JSON can hold it; what JSON or the database can't hold becomes a fault."""
    if isinstance(value, dict):
        return {key: _plain(item, (*path, key), faults) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, (*path, place), faults) for place, item in enumerate(value)]
    if isinstance(value, float):
        if not math.isfinite(value):
            faults.append(Fault(path, f"must be a finite number, but is {value}"))
            return 0.0
        # -0.0 equals 0.0, so it must not give another digest.
        return value + 0.0
    if isinstance(value, date | time):
        faults.append(Fault(path, f"is a date or time ({value}); write it as a text in quotes"))
        return ""
    if isinstance(value, str) and (problem := _text_problem(value)):
        faults.append(Fault(path, problem))
        return ""
    return value


def _text_problem(text: str) -> str | None:
    if "\0" in text:
        return "holds a NUL character, which can't be stored; take it out"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which is no character; take it out"
    return None


def _fault(kind: type[Value], details: ErrorDetails) -> Fault:
    path = tuple(details["loc"])
    if path and path[-1] == "[key]":
        return Fault(path[:-1], f"{path[-2]!r} can't be a name: {_words(details)}")
    if details["type"] == "extra_forbidden":
        return Fault(path, _unknown(kind, path), is_unknown_key=True)
    if details["type"] == "missing":
        return Fault(path, "is missing")
    shown = json.dumps(details["input"], ensure_ascii=False)
    if len(shown) > 60:
        shown = shown[:57] + "..."
    return Fault(path, f"{_words(details)}, but is {shown}")


def _words(details: ErrorDetails) -> str:
    message = details["msg"].removeprefix("Input ")
    pattern = details.get("ctx", {}).get("pattern")
    return f"should match {pattern}" if pattern else message


def _unknown(kind: type[Value], path: Path) -> str:
    name = str(path[-1])
    known = fields_at(kind, path[:-1])
    if near := nearest(name, known):
        return f"is no known key; did you mean `{near}`?"
    elsewhere = [key for key in schema_keys(kind) if key[-1] == name]
    if elsewhere:
        return f"is no known key here; did you mean `{join_key(elsewhere[0])}`?"
    listed = ", ".join(known)
    return f"is no known key; known here: {listed}" if listed else "is no known key"
