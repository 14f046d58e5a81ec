"""Values are compared exactly: in value, in type, at every depth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from rsi.domain.cases import is_same, is_same_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(JSON)
def test_a_value_is_the_same_as_itself_and_not_as_what_holds_it(value: JsonValue) -> None:
    assert is_same(value, value)
    assert not is_same([value], value)
    assert not is_same({"a": value}, [value])


@pytest.mark.parametrize(
    ("found", "wanted"),
    [(True, 1), (1, 1.0), (0, False), (None, 0), ("1", 1), ([1], [1, 1]), ({"a": 1}, {"b": 1}),
     ([[1]], [[1.0]]), (float("nan"), float("nan")), ({}, [])],
)  # fmt: skip
def test_a_value_of_another_type_or_shape_is_another(found: JsonValue, wanted: JsonValue) -> None:
    assert not is_same(found, wanted)
    assert not is_same(wanted, found)


@pytest.mark.parametrize(
    ("found", "wanted", "is_near"),
    [(1, 1.0, True), (0.30000000000000004, 0.3, True), ([1.0, 2], [1, 2.0], True),
     (1.1, 1.0, False), (True, 1, False), (float("nan"), 1.0, False), (float("inf"), 1, False),
     (10**400, 1.0, False)],
)  # fmt: skip
def test_a_tolerance_is_for_numbers_alone(
    found: JsonValue, wanted: JsonValue, is_near: bool
) -> None:
    assert is_same(found, wanted, 1e-9) is is_near


def test_white_space_at_the_ends_of_lines_does_not_count() -> None:
    assert is_same_text("a  \nb\n\n", "a\nb")
    assert not is_same_text(" a", "a")
    assert not is_same_text("a\n\nb", "a\nb")
