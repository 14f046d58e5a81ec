"""Typed edits: what a search may change, how a child comes about, and how two contracts differ."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsi.domain.contract import Contract, Edit, Example, HookAction, Skill, Tool, ToolKind
from rsi.domain.contract_rules import check_contract, event_of
from rsi.domain.edits import apply, diff, is_in_space
from rsi.domain.keys import join_key, split_key
from rsi.errors import ContractError
from tests.samples import contract
from tests.strategies import contracts, edits_for


def _faults(made: Contract, *edits: Edit) -> tuple[str, ...]:
    with pytest.raises(ContractError) as caught:
        apply(made, edits)
    return caught.value.faults


@given(st.data())
def test_an_edit_changes_the_keys_it_names_and_no_others(data: st.DataObject) -> None:
    made = data.draw(contracts())
    edits = data.draw(edits_for(made))
    changed = {change.key for change in diff(made, apply(made, edits))}
    assert changed <= {edit.key for edit in edits}


@given(contracts(), contracts())
def test_the_difference_is_empty_for_equal_contracts_only(one: Contract, other: Contract) -> None:
    assert diff(one, one) == ()
    assert (diff(one, other) == ()) == (one == other)


@given(st.data())
def test_the_differences_of_a_child_set_on_the_parent_give_the_child(data: st.DataObject) -> None:
    made = data.draw(contracts())
    child = apply(made, data.draw(edits_for(made)))
    again = apply(made, [Edit(key=change.key, value=change.new) for change in diff(made, child)])
    assert again == child


@given(st.lists(st.text(st.characters(exclude_characters='"'), min_size=1), min_size=1))
def test_a_key_split_and_joined_has_its_parts(parts: list[str]) -> None:
    assert split_key(join_key(parts)) == tuple(parts)


@pytest.mark.parametrize("key", ["", ".", "a.", ".a", "a..b", 'a."b', 'a"b"'])
def test_what_is_no_dotted_key_has_no_parts(key: str) -> None:
    assert split_key(key) == ()
    assert not is_in_space(contract(search={"space": ["*"]}), key)


def test_a_star_stands_for_one_part() -> None:
    made = contract(search={"space": ["agent.*", "skills.*.shown", "*.system"]})
    assert is_in_space(made, "agent.turns")
    assert is_in_space(made, "skills.cookbook.shown")
    assert is_in_space(made, "prompt.system")
    assert not is_in_space(made, "agent")
    assert not is_in_space(made, "skills.shown")
    assert not is_in_space(made, "model.sampling.temperature")


@pytest.mark.parametrize("key", ["search.space", "workspace.memory_mb", "hcp", "name", "version"])
def test_names_and_bounds_stay_out_of_every_space(key: str) -> None:
    assert not is_in_space(contract(search={"space": ["*", "*.*"]}), key)
    checked = check_contract({**contract().model_dump(mode="json"), "search": {"space": [key]}})
    assert "can't be searched" in checked.faults[0].text


def test_a_name_with_dots_is_one_part_in_quotes_or_not() -> None:
    tools = {"my.tool": Tool(kind=ToolKind.BASH)}
    made = contract(tools=tools, skills=(Skill(name="a.b"),))
    for key in ("tools.my.tool.exposed", 'tools."my.tool".exposed'):
        child = apply(made, [Edit(key=key, value=False)])
        assert not child.tools["my.tool"].exposed
    assert apply(made, [Edit(key="skills.a.b.shown", value=2)]).skills[0].shown == 2
    assert diff(made, child)[0].key == 'tools."my.tool".exposed'


def test_every_fault_of_an_edit_is_told_at_once() -> None:
    faults = _faults(
        contract(),
        Edit(key="workspace.pids", value=9),
        Edit(key="agent.turnz", value=3),
        Edit(key="tools.bsh.exposed", value=True),
        Edit(key="agent", value={}),
        Edit(key="skills.cookbook", value={}),
    )
    assert len(faults) == 5
    assert "outside the declared search space" in faults[0]
    assert "did you mean `turns`?" in faults[1]
    assert "did you mean `bash`?" in faults[2]
    assert "is a table" in faults[3]
    assert "is a table" in faults[4]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("agent.turns", 0),
        ("agent.turns", "3"),
        ("agent.turns", True),
        ("agent.turns", 2.5),
        ("agent.turns", None),
        ("agent.action", "yell"),
        ("model.sampling.temperature", 2.5),
        ("prompt.system", "a\0b"),
        ("prompt.system", "\ud800"),
        ("prompt.examples", [{"instruction": "x"}]),
        ("hooks", [{"event": "after_tool", "action": "list_files"}]),
    ],
)
def test_a_value_that_no_contract_may_have_is_refused(key: str, value: Any) -> None:
    assert key in _faults(contract(), Edit(key=key, value=value))[0]


def test_unset_gives_the_default_back() -> None:
    made = apply(contract(), [Edit(key="agent.turns", value=5)])
    assert apply(made, [Edit(key="agent.turns", op="unset")]) == contract()


def test_a_skill_that_comes_goes_or_moves_is_a_difference() -> None:
    one, two = Skill(name="one"), Skill(name="two", examples=(Example(instruction="i", reply="r"),))
    with_one, with_both = contract(skills=(one,)), contract(skills=(one, two))
    assert [change.key for change in diff(with_one, with_both)] == ["skills.two"]
    assert diff(with_both, with_one)[0].new is None
    (moved,) = diff(with_both, contract(skills=(two, one)))
    assert (moved.key, moved.old, moved.new) == ("skills", ["one", "two"], ["two", "one"])


@pytest.mark.parametrize("action", list(HookAction))
def test_each_hook_is_sound_at_its_own_event_only(action: HookAction) -> None:
    for event in {event_of(other) for other in HookAction}:
        hooks = [{"event": event.value, "action": action.value}]
        checked = check_contract({**contract().model_dump(mode="json"), "hooks": hooks})
        assert (checked.value is not None) == (event is event_of(action))
