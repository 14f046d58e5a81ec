"""What a verifier declares: the numbers in its reward file, or a fault that is nobody's zero."""

import json
import math
import re

from rsi.errors import TrialFault

REWARD = "reward"
"""The reward that decides; a trial is solved when it is at least 1."""
_LIMIT_BYTES = 65536
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def rewards_from(reward_json: bytes | None, reward_txt: bytes | None) -> dict[str, float]:
    """The rewards by name, always with `reward` among them.

    `reward.json` counts when it is there, else `reward.txt`, as in Harbor. The first is a flat
    object of finite numbers, the second one finite number.
    Raises TrialFault("verifier", …) for everything else: what can't be read is not a zero.
    """
    if reward_json is not None:
        return _from_json(_text("reward.json", reward_json))
    if reward_txt is not None:
        text = _text("reward.txt", reward_txt)
        if not _NUMBER.fullmatch(text):
            raise _fault(f"reward.txt must be one number, but says {text[:80]!r}")
        return {REWARD: _finite("reward.txt", float(text))}
    raise _fault("the verifier wrote neither reward.json nor reward.txt in /logs/verifier")


def _from_json(text: str) -> dict[str, float]:
    try:
        document = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _fault(f"reward.json is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise _fault(f"reward.json must be an object of numbers, but is {text[:80]!r}")
    if REWARD not in document:
        names = ", ".join(sorted(document)) or "nothing"
        raise _fault(f"reward.json must name `reward`, but names {names[:200]}")
    return {name: _number(name, value) for name, value in document.items()}


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a name stands twice")
    return document


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _fault(f"reward.json: {name[:80]!r} must be a number, but is {repr(value)[:80]}")
    try:
        return _finite(f"reward.json: {name[:80]!r}", float(value))
    except OverflowError as error:
        raise _fault(f"reward.json: {name[:80]!r} is too large") from error


def _finite(what: str, value: float) -> float:
    if not math.isfinite(value):
        raise _fault(f"{what} must be finite, but is {value}")
    return value


def _text(name: str, content: bytes) -> str:
    if len(content) > _LIMIT_BYTES:
        raise _fault(f"{name} is larger than {_LIMIT_BYTES} bytes")
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise _fault(f"{name} is not UTF-8: {error}") from error
    if not text:
        raise _fault(f"{name} is empty")
    return text


def _fault(reason: str) -> TrialFault:
    return TrialFault("verifier", reason)
