"""Estimates with intervals: closed forms, deterministic, never without their n."""

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

from rsi.domain.verdict import Interval

PSEUDO_PAIRS = 2.0
"""Agresti and Min (2005) add half an observation to each of the four cells of a paired table."""


def quantile(confidence: float) -> float:
    """The two-sided normal quantile; 1.96 for 0.95."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def rate(solved: int, n: int, confidence: float) -> Interval:
    """A share with Wilson's score interval (Wilson 1927); [0, 1] when nothing was counted."""
    if n == 0:
        return Interval(estimate=0.0, low=0.0, high=1.0, n=0)
    z = quantile(confidence)
    share = solved / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if solved == 0 else max(0.0, centre - half)
    high = 1.0 if solved == n else min(1.0, centre + half)
    return Interval(estimate=share, low=low, high=high, n=n)


def mean_contrast(
    values: Mapping[str, Sequence[float]], bound: float, confidence: float
) -> Interval:
    """The mean of paired contrasts, clustered (by family), with an interval.

    `values` holds the contrasts, each within [-bound, bound], by cluster. The interval is the
    adjusted Wald interval for paired shares (Agresti and Min 2005): two pseudo-pairs keep it from
    closing on unanimous evidence. It is widened by the design effect of the clusters where that
    is above one (Kish 1965), and the estimate is the plain mean. With no value it is the whole
    range.
    """
    flat = [value for cluster in values.values() for value in cluster]
    n = len(flat)
    if n == 0:
        return Interval(estimate=0.0, low=-bound, high=bound, n=0)
    total = n + PSEUDO_PAIRS
    mean = math.fsum(flat) / n
    centre = math.fsum(flat) / total
    square = math.fsum(value * value for value in flat) + bound * bound
    variance = max(0.0, square / total - centre * centre) / total
    half = quantile(confidence) * math.sqrt(variance * _design_effect(values, mean, n))
    low, high = max(-bound, centre - half), min(bound, centre + half)
    return Interval(estimate=mean, low=min(low, mean), high=max(high, mean), n=n)


def pairs_needed(interval: Interval, effect: float) -> int:
    """About how many more pairs would bring the interval's half-width below the effect."""
    half = (interval.high - interval.low) / 2
    if interval.n == 0 or effect <= 0:
        return 0
    wanted = interval.n * (half / effect) ** 2
    return max(1, math.ceil(wanted - interval.n))


def _design_effect(values: Mapping[str, Sequence[float]], mean: float, n: int) -> float:
    """The variance of the mean with clusters over the one without; at least 1."""
    clusters = len(values)
    plain = math.fsum((value - mean) ** 2 for cluster in values.values() for value in cluster)
    if clusters < 2 or plain == 0:
        return 1.0
    sums = (math.fsum(value - mean for value in cluster) for cluster in values.values())
    clustered = math.fsum(total * total for total in sums) * clusters / (clusters - 1)
    return max(1.0, clustered / (plain * n / max(1, n - 1)))
