"""Promotions: recorded changes of the champion."""

from pydantic import AwareDatetime

from rsi.domain.values import Digest, Value


class Promotion(Value):
    """A pair became the champion: the first one, by a verdict, or by a rollback."""

    ordinal: int
    """Its place in the order of promotions, from 0; the newest is the champion."""
    pair: Digest
    replaced: Digest | None
    verdict: Digest | None
    """None for the first champion and for a rollback."""
    reason: str
    at: AwareDatetime
