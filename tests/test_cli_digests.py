"""Digests are found by their beginnings, and never guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsi.cli.digests import FEWEST, is_prefix, resolve
from rsi.errors import UsageError

DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)


@given(st.sets(DIGESTS, min_size=1, max_size=8), st.data())
def test_a_prefix_finds_the_one_that_it_fits_or_is_refused(
    known: set[str], data: st.DataObject
) -> None:
    wanted = data.draw(st.sampled_from(sorted(known)))
    prefix = wanted[: data.draw(st.integers(FEWEST, 64))]
    fitting = [digest for digest in known if digest.startswith(prefix)]
    if len(fitting) == 1:
        assert resolve(prefix, known, "pair", "rsi pairs") == wanted
    else:
        with pytest.raises(UsageError, match="give more characters"):
            resolve(prefix, known, "pair", "rsi pairs")


@pytest.mark.parametrize("text", ["", "abcde", "xyzxyz", "abcdef\n", "../../x", "a" * 65])
def test_what_is_no_digest_is_refused(text: str) -> None:
    assert not is_prefix(text)
    with pytest.raises(UsageError, match="`rsi pairs` lists them"):
        resolve(text, ["a" * 64], "pair", "rsi pairs")


def test_several_are_listed_with_enough_characters_to_choose() -> None:
    known = ["abcdef" + digit * 58 for digit in "0123456"]
    with pytest.raises(UsageError, match="7 pairs") as told:
        resolve("abcdef", known, "pair", "rsi pairs")
    assert "abcdef000000, abcdef111111" in str(told.value)
    assert "and 2 more" in str(told.value)
