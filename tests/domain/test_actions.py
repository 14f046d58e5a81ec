"""Replies become actions by the contract's format; what can't be read is said, never raised."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsi.domain.actions import parse_call, parse_reply
from rsi.domain.contract import ActionFormat, HookAction, HookEvent, Tool, ToolKind, ToolPolicy
from tests.samples import contract

CLEANING = ({"event": HookEvent.AFTER_MODEL, "action": HookAction.CLEAN_ACTION},)


def test_a_line_is_one_command() -> None:
    found = parse_reply(contract(), "\n  wc -l < a.txt  \nSome talk.")
    assert (found.tool, found.tool_input) == ("bash", "wc -l < a.txt")


@pytest.mark.parametrize("reply", ["", "   \n\t\n"])
def test_an_empty_reply_is_malformed(reply: str) -> None:
    found = parse_reply(contract(), reply)
    assert found.tool is None
    assert found.fault


@pytest.mark.parametrize(
    "reply",
    ["$ wc -l a.txt", "`wc -l a.txt`", "```bash\nwc -l a.txt\n```", "user@box:~$ wc -l a.txt"],
)
def test_a_hook_cleans_the_command(reply: str) -> None:
    assert parse_reply(contract(hooks=CLEANING), reply).tool_input == "wc -l a.txt"


def test_a_fence_is_taken_whole_and_names_its_tool() -> None:
    fenced = contract(
        agent={"action": ActionFormat.FENCE},
        tools={"bash": Tool(kind=ToolKind.BASH), "python": Tool(kind=ToolKind.PYTHON)},
    )
    assert parse_reply(fenced, "Here:\n```bash\na\nb\n```").tool_input == "a\nb"
    assert parse_reply(fenced, "```python\nprint(1)\n```").tool == "python"
    assert parse_reply(fenced, "All is done.").is_done


def test_a_tool_that_is_not_exposed_is_not_there() -> None:
    hidden = contract(tools={"bash": Tool(kind=ToolKind.BASH, exposed=False)})
    assert parse_reply(hidden, "ls").tool is None
    assert parse_call(hidden, "bash", '{"input": "ls"}').tool is None


@pytest.mark.parametrize("arguments", ['{"input": "l', "[]", '{"input": 3}', "", '{"input": " "}'])
def test_broken_arguments_are_told_to_the_model(arguments: str) -> None:
    found = parse_call(contract(), "bash", arguments)
    assert found.tool is None
    assert found.fault


def test_a_denied_word_is_refused() -> None:
    tool = Tool(kind=ToolKind.BASH, policy=ToolPolicy(deny=("curl",)))
    found = parse_reply(contract(tools={"bash": tool}), "curl example")
    assert found.tool is None
    assert "curl" in found.fault


@given(st.text(), st.sampled_from(ActionFormat))
def test_any_reply_is_read_without_an_exception(reply: str, action: ActionFormat) -> None:
    found = parse_reply(contract(agent={"action": action}, hooks=CLEANING), reply)
    assert found.tool is None or found.tool_input


@given(st.text())
def test_any_call_is_read_as_it_was_written(text: str) -> None:
    found = parse_call(contract(), "bash", json.dumps({"input": text}))
    assert found.tool_input == (text if text.strip() else "")
