"""Any text and any number survive the way into JSONB and back."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from rsi.domain.trial import Action
from rsi.domain.verdict import Interval
from rsi.edges.ledger.documents import dump, escaped, load, restored, serialised

TEXTS = st.text(st.characters() | st.sampled_from("\x00\ud800\udfff\ue0000e")) | st.sampled_from(
    ["\ue000", "\ue0000000", "\ue000e000", "\\u0000", "\ue000\ue000zzzz", "\x85\u2028\u2029\x1c"]
)


@given(TEXTS)
def test_an_escaped_text_comes_back_and_postgres_takes_it(text: str) -> None:
    safe = escaped(text)
    assert restored(safe) == text
    assert "\x00" not in safe
    assert safe.encode("utf-8").decode("utf-8") == safe


@given(TEXTS, TEXTS)
def test_a_value_with_any_text_comes_back(reply: str, output: str) -> None:
    action = Action(reply=reply, tool=None, stdout=output, exit_code=-9)
    # Postgres gives JSONB out as JSON in which only what must be is escaped.
    given_out = json.dumps(json.loads(serialised(dump(action))), ensure_ascii=False)
    assert load(Action, given_out) == action


@given(st.floats(), st.integers())
def test_a_number_that_json_has_not_comes_back(number: float, count: int) -> None:
    interval = Interval(estimate=number, low=-math.inf, high=math.inf, n=count)
    found = load(Interval, serialised(dump(interval)))
    assert (found.low, found.high, found.n) == (-math.inf, math.inf, count)
    assert found.estimate == number or (math.isnan(found.estimate) and math.isnan(number))
