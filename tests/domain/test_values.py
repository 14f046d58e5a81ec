"""Identity is content: digests by their properties."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsi.domain.contract import Contract, Sampling, Tool, ToolKind
from rsi.domain.task import Task, TaskFile
from rsi.domain.values import canonical_json, digest_bytes, digest_value, short
from tests.samples import contract, task

TEXT = st.text(st.characters(codec="utf-8"))
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def _shuffled(document: object) -> object:
    if isinstance(document, dict):
        return {key: _shuffled(document[key]) for key in reversed(document)}
    if isinstance(document, list):
        return [_shuffled(item) for item in document]
    return document


@given(DOCUMENTS)
def test_the_canonical_text_says_what_the_document_says(document: object) -> None:
    assert json.loads(canonical_json(document)) == document


@given(DOCUMENTS)
def test_the_order_of_keys_never_changes_the_canonical_text(document: object) -> None:
    assert canonical_json(_shuffled(document)) == canonical_json(document)


@given(DOCUMENTS, DOCUMENTS)
def test_documents_with_one_text_are_equal(one: object, other: object) -> None:
    if canonical_json(one) == canonical_json(other):
        assert one == other


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "\ud800"])
def test_what_has_no_canonical_text_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical_json({"x": [bad]})


@given(st.binary(), st.binary(), st.booleans())
def test_every_byte_of_a_tasks_file_and_its_mode_count(
    one: bytes, other: bytes, executable: bool
) -> None:
    def made(content: bytes, mode: bool) -> Task:
        test = TaskFile(path="test.sh", content=content, executable=mode)
        return Task(name="a/b", suite="s", family="f", level=0, instruction="i", tests=(test,))

    assert (made(one, executable).digest == made(other, executable).digest) == (one == other)
    assert made(one, executable).digest != made(one, not executable).digest


@pytest.mark.parametrize("deep", [False, True])
def test_a_changed_copy_of_a_task_has_a_digest_of_its_own(deep: bool) -> None:
    first = task("one")
    assert first.digest == task("one").digest
    copied = first.model_copy(update={"instruction": "other"}, deep=deep)
    assert copied.digest != first.digest
    assert copied.model_copy(update={"instruction": first.instruction}).digest == first.digest


@given(st.permutations(["a", "b", "c"]))
def test_the_order_of_tools_changes_neither_digest_nor_behaviour(names: list[str]) -> None:
    tools = {name: Tool(kind=ToolKind.BASH) for name in names}
    made = contract(tools=tools)
    assert list(made.tools) == ["a", "b", "c"]
    assert made.digest == contract(tools=dict(sorted(tools.items()))).digest


def test_equal_values_have_equal_digests_even_for_negative_zero() -> None:
    assert Sampling(temperature=-0.0) == Sampling(temperature=0.0)
    assert digest_value(Sampling(temperature=-0.0)) == digest_value(Sampling(temperature=0.0))


def test_a_contract_read_back_from_its_json_has_its_digest() -> None:
    made = contract()
    again = Contract.model_validate_json(made.model_dump_json())
    assert again == made
    assert again.digest == made.digest


@given(st.binary())
def test_a_digest_is_64_hexadecimal_digits_and_short_its_beginning(content: bytes) -> None:
    digest = digest_bytes(content)
    assert len(digest) == 64
    assert int(digest, 16) >= 0
    assert digest.startswith(short(digest))
