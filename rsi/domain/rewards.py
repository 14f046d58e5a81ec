"""Reading a verifier's reward files, strictly (Harbor, schema 1.4)."""

import json
import math

from rsi.errors import TrialFault

LIMIT_BYTES = 1 << 16
"""A reward file larger than this is no reward file."""


def rewards_from(reward_json: bytes | None, reward_txt: bytes | None) -> dict[str, float]:
    """The rewards by name: of `reward.json` where there is one, else of `reward.txt`.

    The JSON is a flat object of finite numbers, the text one finite number, which counts as
    `reward`. Raises TrialFault("verifier", …) for anything else: no reward is never a zero.
    """
    if reward_json is not None:
        return _from_json(_decoded("reward.json", reward_json))
    if reward_txt is not None:
        text = _decoded("reward.txt", reward_txt).strip()
        try:
            return {"reward": _finite("reward", float(text))}
        except ValueError as error:
            raise TrialFault("verifier", f"reward.txt holds {text[:80]!r}, no number") from error
    raise TrialFault("verifier", "tests/test.sh wrote neither reward.json nor reward.txt")


def _decoded(name: str, content: bytes) -> str:
    if not content.strip():
        raise TrialFault("verifier", f"{name} is empty")
    if len(content) > LIMIT_BYTES:
        raise TrialFault("verifier", f"{name} has {len(content)} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TrialFault("verifier", f"{name} is no UTF-8 text") from error


def _from_json(text: str) -> dict[str, float]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TrialFault("verifier", f"reward.json is no JSON: {text[:80]!r}") from error
    if not isinstance(document, dict) or not document:
        raise TrialFault("verifier", "reward.json holds no object with numbers")
    rewards = {}
    for name, value in document.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TrialFault("verifier", f"reward {name[:40]!r} is {str(value)[:40]!r}, no number")
        rewards[name] = _finite(name, value)
    return rewards


def _finite(name: str, value: float) -> float:
    try:
        number = float(value)
    except OverflowError as error:
        raise TrialFault("verifier", f"reward {name[:40]!r} is too large a number") from error
    if not math.isfinite(number):
        raise TrialFault("verifier", f"reward {name[:40]!r} is {number}, no finite number")
    return number
