"""What Discovery finds: weaknesses of the champion, and the harder tasks aimed at them."""

from rsi.domain.trial import Cause
from rsi.domain.values import Digest, Value
from rsi.domain.verdict import Interval


class Weakness(Value):
    """How often the champion fails at a family and level, and of what."""

    family: str
    level: int
    trials: int
    """Valid trials."""
    failed: int
    invalid: int
    failure: Interval
    causes: dict[Cause, int]
    examples: tuple[Digest, ...]
    """Tasks that it failed, at most three."""


class Hardened(Value):
    """Harder tasks made for one weakness, and how hard they came out."""

    family: str
    from_level: int
    to_level: int
    made: int
    admitted: int
    refused: tuple[str, ...] = ()
    """Why tasks were not admitted, one reason each."""
    trials: int = 0
    """Valid trials of the champion on the admitted ones."""
    champion_solved: int = 0
