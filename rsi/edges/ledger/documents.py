"""Values to and from JSONB. Postgres refuses NUL in JSON text, so it travels escaped."""

import json
import re
from typing import Any, TypeVar

from rsi.domain.values import Value

MARK = "\ue000"
"""A private-use character: it opens an escape, and is escaped itself."""

_UNSAFE = re.compile(f"[\x00\ud800-\udfff{MARK}]")
_ESCAPE = re.compile(f"{MARK}([0-9a-f]{{4}})")

AnyValue = TypeVar("AnyValue", bound=Value)


def dump(value: Value) -> Any:
    """The value as a plain document that JSONB can hold."""
    return escaped(value.model_dump(mode="json"))


def load(kind: type[AnyValue], document: Any) -> AnyValue:
    """The value that `dump` wrote."""
    return kind.model_validate_json(json.dumps(restored(document)))


def escaped(document: Any) -> Any:
    """The document with NUL, lone surrogates and the mark itself escaped in every text."""
    return _mapped(document, lambda text: _UNSAFE.sub(lambda m: f"{MARK}{ord(m[0]):04x}", text))


def restored(document: Any) -> Any:
    """The document as it was before `escaped`."""
    return _mapped(document, lambda text: _ESCAPE.sub(lambda m: chr(int(m[1], 16)), text))


def _mapped(document: Any, change: Any) -> Any:
    if isinstance(document, str):
        return change(document)
    if isinstance(document, dict):
        return {change(key): _mapped(value, change) for key, value in document.items()}
    if isinstance(document, list):
        return [_mapped(value, change) for value in document]
    return document
