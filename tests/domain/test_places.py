"""Places in a TOML text: every value's span says the value, and lines are those that people see."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsi.domain.keys import Path
from rsi.domain.places import places_in
from tests.strategies import TEXTS

TEXT = '''\
# a comment with a = 1 and [x]
a = 1 # one
"quoted.key" = """
[not.a.table]
b = 2 \\" """
c . d = [ # list
  "x, ]", 'y # }', # more
  { e = 1979-05-27 07:32:00, "f g" = {} },
]
[t]
[[t.rows]]
n = 1
[[t.rows]]
n = 2
  [t.rows.deep]
  m = """four quotes """"
[u.v]
w = { x.y = [1, [2, 3]], z = "" }
'''


def _at(document: Any, path: Path) -> Any:
    for part in path:
        document = document[part]
    return document


def test_every_span_says_its_value() -> None:
    document = tomllib.loads(TEXT)
    places = places_in(TEXT)
    assert len(places.statements) == 18
    for place in places.statements:
        said = TEXT[place.value.start : place.value.end]
        assert tomllib.loads(f"x = {said}")["x"] == _at(document, place.path)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a",), 2),
        (("quoted.key",), 3),
        (("c", "d", 2, "f g"), 8),
        (("t",), 10),
        (("t", "rows", 1, "n"), 14),
        (("t", "rows", 1, "deep", "m"), 16),
        (("u", "v", "w", "x", "y", 1, 0), 18),
        (("u", "v", "missing"), 17),
        (("missing",), None),
    ],
)
def test_a_line_is_the_keys_own_or_that_of_the_table_above(path: Path, line: int | None) -> None:
    assert places_in(TEXT).line_of(path) == line


@given(st.dictionaries(st.sampled_from("abc"), st.lists(TEXTS), min_size=1))
def test_no_text_is_taken_for_structure(document: dict[str, list[str]]) -> None:
    text = "".join(
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in document.items()
    )
    text = text.replace("\x7f", "\\u007f")
    places = places_in(text)
    outer = [place.path for place in places.statements if not place.is_inline]
    assert outer == [(key,) for key in document]
    for place in places.statements:
        said = text[place.value.start : place.value.end]
        assert tomllib.loads(f"x = {said}")["x"] == _at(document, place.path)
