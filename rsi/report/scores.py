"""Intervals that say "unscored" where nothing was counted."""

from rsi.domain.statistics import rate
from rsi.domain.verdict import Interval


def scored(interval: Interval) -> Interval | None:
    """The interval; None when nothing was counted, so that it can't be read as a zero."""
    return interval if interval.n else None


def share_of(part: int, whole: int, confidence: float) -> Interval | None:
    """The share with its interval; None when nothing was counted."""
    return rate(part, whole, confidence) if whole else None
