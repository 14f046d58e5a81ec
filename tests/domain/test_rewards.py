"""The reward file, read strictly: what can't be read is a fault of the verifier, never a zero."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsi.domain.rewards import rewards_from
from rsi.errors import TrialFault

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**9), 10**9)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), NUMBERS), NUMBERS)
def test_a_flat_object_of_numbers_comes_back(others: dict[str, float], reward: float) -> None:
    document = {**others, "reward": reward}
    read = rewards_from(json.dumps(document).encode(), None)
    assert read == {name: float(value) for name, value in document.items()}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_text_with_one_number_is_the_reward(reward: float) -> None:
    assert rewards_from(None, f" {reward!r}\n".encode()) == {"reward": reward}


@given(st.binary(max_size=40))
def test_any_bytes_give_finite_rewards_or_a_fault_of_the_verifier(content: bytes) -> None:
    for files in ((content, None), (None, content)):
        try:
            rewards = rewards_from(*files)
        except TrialFault as fault:
            assert fault.where == "verifier"  # noqa: PT017 - either way is right
        else:
            assert all(math.isfinite(value) for value in rewards.values())
            assert "reward" in rewards


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" \n",
        b"1",
        b"[1]",
        b"null",
        b"{}",
        b'{"reward": true}',
        b'{"reward": "1"}',
        b'{"reward": null}',
        b'{"reward": NaN}',
        b'{"reward": Infinity}',
        b'{"reward": 1e400}',
        b'{"reward": 1' + b"0" * 400 + b"}",
        b'{"reward": ' + b"9" * 5000 + b"}",
        b'{"reward": [1]}',
        b'{"reward": {"reward": 1}}',
        b'{"reward": 1, "reward": 0}',
        b'{"accuracy": 1}',
        b'{"reward": 1',
        b"\xff",
        b"[" * 50000,
        b'{"reward": 1, "x": "' + b"x" * 70000 + b'"}',
    ],
)
def test_other_json_is_a_fault_of_the_verifier(content: bytes) -> None:
    with pytest.raises(TrialFault) as caught:
        rewards_from(content, b"1")
    assert caught.value.where == "verifier"


@pytest.mark.parametrize("text", ["", "yes", "nan", "inf", "1e400", "1_0", "1 1", "\u0661"])
def test_other_text_is_a_fault_of_the_verifier(text: str) -> None:
    with pytest.raises(TrialFault):
        rewards_from(None, text.encode())


def test_json_counts_before_text_and_none_of_both_is_a_fault() -> None:
    assert rewards_from(b'\xef\xbb\xbf{"reward": 0.5}', b"1") == {"reward": 0.5}
    with pytest.raises(TrialFault, match="neither"):
        rewards_from(None, None)
