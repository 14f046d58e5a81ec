"""What every stored or sent value shares: it is frozen, closed, and named by its content."""

import hashlib
import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 of a canonical form, in lower-case hexadecimal."""


class Value(BaseModel):
    """A frozen value that refuses unknown fields; bytes travel as base64 in JSON."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"
    )


def canonical_json(document: Any) -> bytes:
    """The one JSON text of a plain document: sorted keys, no spaces, UTF-8, no NaN, no -0.0.

    Raises ValueError for NaN and infinities and TypeError for what JSON can't hold.
    """
    text = json.dumps(
        _settled(document),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return text.encode("utf-8")


def _settled(document: Any) -> Any:
    """The document with 0.0 for -0.0: the two are equal, so their texts must be."""
    if isinstance(document, float):
        return document + 0.0
    if isinstance(document, dict):
        return {key: _settled(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [_settled(value) for value in document]
    return document


def digest_bytes(content: bytes) -> Digest:
    """SHA-256 of the bytes, in lower-case hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def digest_value(value: Value) -> Digest:
    """SHA-256 of the value's canonical JSON; equal values have equal digests."""
    return digest_bytes(canonical_json(value.model_dump(mode="json")))


def short(digest: Digest) -> str:
    """The first 12 characters, for people."""
    return digest[:12]
