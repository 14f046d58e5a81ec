"""Values to and from JSONB.

Postgres refuses NUL in JSON, UTF-8 has no lone surrogates, and JSON has no NaN: they travel
escaped, so that no output of a model or a program can break a write.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

from rsi.domain.values import Value

MARK = "\ue000"
"""A private-use character: it opens an escape, and is escaped itself."""

_UNSAFE = re.compile(f"[\x00\ud800-\udfff{MARK}]")
_ESCAPE = re.compile(f"{MARK}([0-9a-f]{{4}})")

AnyValue = TypeVar("AnyValue", bound=Value)


def dump(value: Value) -> Any:
    """The value as a plain document that JSONB can hold."""
    return _mapped(value.model_dump(mode="json"), escaped)


def load(kind: type[AnyValue], text: str) -> AnyValue:
    """The value that `dump` wrote, from the text of its JSONB."""
    value = kind.model_validate_json(text)
    if MARK not in text:
        return value
    # JSON has no lone surrogates, so texts are restored after it was read.
    return kind.model_validate(_mapped(value.model_dump(), restored))


def escaped(text: str) -> str:
    """The text with NUL, lone surrogates and the mark itself escaped."""
    return _UNSAFE.sub(lambda found: f"{MARK}{ord(found[0]):04x}", text)


def restored(text: str) -> str:
    """The text as it was before `escaped`."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


def serialised(document: Any) -> str:
    """JSON for the driver; numbers that JSON hasn't become texts that a float field reads."""
    try:
        return json.dumps(document, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(document))


def _mapped(document: Any, change: Callable[[str], str]) -> Any:
    if isinstance(document, str):
        return change(document)
    if isinstance(document, dict):
        return {_mapped(key, change): _mapped(value, change) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [_mapped(value, change) for value in document]
    return document


def _finite(document: Any) -> Any:
    if isinstance(document, float) and not math.isfinite(document):
        return str(document)
    if isinstance(document, dict):
        return {key: _finite(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [_finite(value) for value in document]
    return document
