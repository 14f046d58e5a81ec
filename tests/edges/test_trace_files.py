"""ATIF documents: strict when written, lenient when read, and nothing lost between."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsi.domain.trial import Action, Trajectory
from rsi.edges.trace_files import AtifFiles
from rsi.errors import UsageError
from tests.samples import contract

FILES = AtifFiles()
TEXT = st.text(st.characters(), max_size=20)
COUNTS = st.integers(0, 10**12)
ACTIONS = st.builds(
    Action,
    reply=TEXT,
    tool=st.none() | st.sampled_from(["bash", "python"]),
    tool_input=TEXT,
    exit_code=st.none() | st.integers(-64, 255),
    stdout=TEXT,
    stderr=TEXT,
    note=TEXT,
    input_tokens=COUNTS,
    cached_tokens=COUNTS,
    output_tokens=COUNTS,
)
ROLES = st.sampled_from(["system", "user", "assistant", "developer", "tool"])
TRAJECTORIES = st.builds(
    Trajectory,
    messages=st.lists(st.tuples(ROLES, TEXT), min_size=1, max_size=4).map(tuple),
    actions=st.lists(ACTIONS, max_size=3).map(tuple),
    answer=TEXT,
)
ONE = Trajectory(
    messages=(
        ("system", "Be brief."),
        ("user", "Count a."),
        ("assistant", "wc a"),
        ("user", "Count b."),
    ),
    actions=(
        Action(reply="wc b", tool="bash", tool_input="wc b", exit_code=1, stderr="no b"),
        Action(reply="?", tool=None, note="nothing was done"),
    ),
    answer="3\n",
)
KNOWN = {
    "root": {"schema_version", "agent", "steps", "final_metrics", "extra"},
    "step": {
        "step_id",
        "source",
        "message",
        "tool_calls",
        "observation",
        "metrics",
        "is_copied_context",
        "extra",
    },
}


@given(TRAJECTORIES)
def test_a_trajectory_comes_back_whole(trajectory: Trajectory) -> None:
    assert FILES.read(FILES.write(trajectory, contract(), "small")) == trajectory


@given(TRAJECTORIES)
def test_what_is_written_keeps_the_rules_of_the_format(trajectory: Trajectory) -> None:
    document = json.loads(FILES.write(trajectory, contract(), "small"))
    assert document["schema_version"] == "ATIF-v1.8"
    assert set(document) <= KNOWN["root"]
    steps = document["steps"]
    assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))
    assert document["final_metrics"]["total_steps"] == len(steps)
    for step in steps:
        assert set(step) <= KNOWN["step"]
        assert step["source"] in {"system", "user", "agent"}
        if step["source"] != "agent":
            assert "tool_calls" not in step
            assert "metrics" not in step
        calls = {call["tool_call_id"] for call in step.get("tool_calls", [])}
        for result in step.get("observation", {}).get("results", []):
            assert result.get("source_call_id") in {None, *calls}


def test_examples_are_marked_as_copied_and_the_agent_is_the_contract() -> None:
    document = json.loads(FILES.write(ONE, contract(), "small"))
    copied = [step["step_id"] for step in document["steps"] if step.get("is_copied_context")]
    assert copied == [2, 3]
    assert document["agent"]["name"] == "test"
    assert document["agent"]["model_name"] == "small"
    assert document["agent"]["extra"]["contract"] == contract().digest


def test_nul_and_lone_surrogates_survive_as_plain_ascii() -> None:
    odd = Trajectory(messages=(("user", "a\0b\ud800\u2028"),), actions=(), answer="\udfff\0")
    content = FILES.write(odd, contract(), "small")
    assert content.isascii()
    assert b"\0" not in content
    assert FILES.read(content) == odd


def _read(*steps: Any, **root: Any) -> Trajectory:
    return FILES.read(json.dumps({"steps": steps, **root}).encode())


def test_what_another_tool_wrote_is_kept() -> None:
    call = {"tool_call_id": "c1", "function_name": "bash", "arguments": {"cmd": "wc"}}
    trajectory = _read(
        {"step_id": 1, "source": "user", "message": [{"type": "text", "text": "Count."}]},
        {
            "step_id": 2,
            "source": "agent",
            "message": "",
            "reasoning_content": "hm",
            "tool_calls": [call],
            "observation": {
                "results": [{"source_call_id": "c1", "content": "3", "extra": {"exit_code": 0}}]
            },
            "metrics": {"prompt_tokens": 412, "completion_tokens": -1},
        },
        {"step_id": 3, "source": "agent", "message": "Done."},
        schema_version="ATIF-v1.5",
    )
    assert trajectory.messages == (("user", "Count."),)
    first, last = trajectory.actions
    assert (first.tool, first.tool_input, first.stdout, first.exit_code) == ("bash", "wc", "3", 0)
    assert (first.input_tokens, first.output_tokens) == (412, 0)
    assert (last.reply, last.tool) == ("Done.", None)


def test_two_calls_of_a_step_are_two_actions_and_loose_results_go_by_place() -> None:
    calls: list[dict[str, Any]] = [
        {"tool_call_id": "c", "function_name": "a", "arguments": {}},
        {"function_name": "b", "arguments": {}},
    ]
    results = [{"content": "1"}, {"content": "2"}]
    step = {"source": "agent", "tool_calls": calls, "observation": {"results": results}}
    assert [action.stdout for action in _read(step).actions] == ["1", "2"]


@pytest.mark.parametrize(
    "step",
    [
        None,
        1,
        {},
        {"source": "agent", "metrics": []},
        {"source": "agent", "tool_calls": {}, "observation": []},
        {"source": "agent", "tool_calls": [{"function_name": "x", "arguments": "{"}, 3]},
        {"source": 3, "message": {"a": 1}, "extra": []},
    ],
)
def test_broken_steps_are_read_as_far_as_they_go(step: Any) -> None:
    assert _read(step, {"source": "agent", "message": "end"}).actions[-1].reply == "end"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b"\xff", b'{"steps": 1}', b"[" * 99999]
)
def test_what_is_no_trace_is_refused_with_what_to_do(content: bytes) -> None:
    with pytest.raises(UsageError, match="ATIF"):
        FILES.read(content)
