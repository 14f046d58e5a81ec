"""Values as people read them. Every foreign text passes through `clean` before it is shown."""

import re

from rsi.domain.values import Digest, short
from rsi.domain.verdict import Interval

UNSCORED = "unscored"

_LINES = re.compile(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
_UNSAFE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f"
    "\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\ufffe\uffff"
    "\ud800-\udfff]"
)
"""Control characters, marks that turn the direction of writing, invisible ones, and halves of
surrogate pairs: each could make a text look like another one, or drive a terminal."""
REPLACEMENT = "\ufffd"


def clean(text: str) -> str:
    """The text without anything that drives a terminal; lines stay, what was taken out shows."""
    return _UNSAFE.sub(REPLACEMENT, _LINES.sub("\n", text).replace("\t", "    "))


def line(text: str, limit: int = 120) -> str:
    """The text on one line, shortened to `limit` characters."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def code(digest: Digest | None) -> str:
    """The first 12 characters of a digest; a dash for none."""
    return short(digest) if digest else "—"


def percent(share: float) -> str:
    """A share between 0 and 1 as whole percent."""
    return f"{100 * share:.0f} %"


def share(interval: Interval | None) -> str:
    """A rate with its interval and n: `81 % [70, 89], n=64`."""
    if interval is None:
        return f"{UNSCORED} (n=0)"
    low, high = f"{100 * interval.low:.0f}", f"{100 * interval.high:.0f}"
    return f"{percent(interval.estimate)} [{low}, {high}], n={interval.n}"


def points(interval: Interval | None) -> str:
    """A difference in percentage points with its interval and n."""
    if interval is None:
        return f"{UNSCORED} (n=0)"
    low, high = signed(interval.low), signed(interval.high)
    return f"{signed(interval.estimate)} points [{low}, {high}], n={interval.n}"


def signed(share: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    value = round(100 * share)
    sign = "+" if value > 0 else "\N{MINUS SIGN}" if value < 0 else ""
    return f"{sign}{abs(value)}"


def count(number: int) -> str:
    """A whole number, with commas between thousands."""
    return f"{number:,}"


def of(noun: str, number: int, plural: str = "") -> str:
    """A number of things: `1 task`, `2 tasks`."""
    return f"{count(number)} {noun if number == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """A time as people say it: `4.2 s`, `3 min 5 s`, `2 h 10 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def cause(name: str) -> str:
    """A cause, as words."""
    return name.replace("_", " ")
