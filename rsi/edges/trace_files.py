"""The TraceFiles port: trajectories as ATIF v1.8 documents.

What rsi writes is strict; what others wrote is read leniently, since many real documents break
the format's rules. ATIF has no place for a message's exact role, a command's error output or the
harness's own words; they stand in `extra`, under names that this module alone knows.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rsi.domain.contract import Contract
from rsi.domain.trial import Action, Trajectory
from rsi.errors import UsageError

VERSION = "ATIF-v1.8"
_SOURCES = {"system": "system", "developer": "system", "assistant": "agent"}
_ROLES = {"system": "system", "agent": "assistant"}


class AtifFiles:
    """Writes and reads ATIF; every character survives, NUL and lone surrogates too."""

    def write(self, trajectory: Trajectory, contract: Contract, model_name: str) -> bytes:
        """The document, as ASCII JSON; the agent is the contract, by name and version."""
        opening = [
            _message_step(place, role, text, is_last=place == len(trajectory.messages))
            for place, (role, text) in enumerate(trajectory.messages, start=1)
        ]
        acted = [
            _action_step(len(opening) + place, action)
            for place, action in enumerate(trajectory.actions, start=1)
        ]
        document = {
            "schema_version": VERSION,
            "agent": _agent(contract, model_name),
            "steps": [*opening, *acted],
            "final_metrics": {
                "total_prompt_tokens": sum(action.input_tokens for action in trajectory.actions),
                "total_completion_tokens": sum(
                    action.output_tokens for action in trajectory.actions
                ),
                "total_cached_tokens": sum(action.cached_tokens for action in trajectory.actions),
                "total_steps": len(opening) + len(acted),
            },
            "extra": {"answer": trajectory.answer},
        }
        return json.dumps(document, ensure_ascii=True, allow_nan=False).encode("ascii")

    def read(self, content: bytes) -> Trajectory:
        """The trajectory; what another tool wrote is kept as far as rsi has a place for it.

        Raises UsageError when it isn't a JSON document with steps.
        """
        try:
            document = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the trace is not JSON: {error}; export it as ATIF") from error
        steps = document.get("steps") if isinstance(document, dict) else None
        if not isinstance(steps, list):
            raise UsageError("the trace has no list of steps; export it as ATIF v1.0 to v1.8")
        rows = [step for step in steps if isinstance(step, Mapping)]
        first = next((place for place, row in enumerate(rows) if _is_act(row)), len(rows))
        return Trajectory(
            messages=tuple((_role(row), _text(row.get("message"))) for row in rows[:first]),
            actions=tuple(
                action for row in rows[first:] if _is_act(row) for action in _actions(row)
            ),
            answer=_text(_table(document.get("extra")).get("answer")),
        )


def _agent(contract: Contract, model_name: str) -> dict[str, Any]:
    return {
        "name": contract.name,
        "version": contract.version,
        "model_name": model_name,
        "extra": {"contract": contract.digest},
    }


def _message_step(place: int, role: str, text: str, *, is_last: bool) -> dict[str, Any]:
    """A message shown before the agent acts; all but system and the last one are examples."""
    step = {
        "step_id": place,
        "source": _SOURCES.get(role, "user"),
        "message": text,
        "extra": {"shown_role": role},
    }
    is_example = not is_last and step["source"] != "system"
    return {**step, "is_copied_context": True} if is_example else step


def _action_step(place: int, action: Action) -> dict[str, Any]:
    step: dict[str, Any] = {
        "step_id": place,
        "source": "agent",
        "message": action.reply,
        "metrics": {
            "prompt_tokens": action.input_tokens,
            "completion_tokens": action.output_tokens,
            "cached_tokens": action.cached_tokens,
        },
        "extra": {"note": action.note},
    }
    observed = {
        "content": action.stdout,
        "extra": {"exit_code": action.exit_code, "stderr": action.stderr},
    }
    if action.tool is not None:
        call = f"call-{place}"
        step["tool_calls"] = [
            {
                "tool_call_id": call,
                "function_name": action.tool,
                "arguments": {"input": action.tool_input},
            }
        ]
        observed["source_call_id"] = call
    step["observation"] = {"results": [observed]}
    if action.tool is None:
        step["extra"]["tool_input"] = action.tool_input
    return step


def _is_act(step: Mapping[str, Any]) -> bool:
    """Whether the agent really did it: an example or an earlier context isn't an act."""
    return step.get("source") == "agent" and not (
        step.get("is_copied_context") or "shown_role" in _table(step.get("extra"))
    )


def _role(step: Mapping[str, Any]) -> str:
    role = _table(step.get("extra")).get("shown_role")
    return role if isinstance(role, str) else _ROLES.get(str(step.get("source")), "user")


def _actions(step: Mapping[str, Any]) -> Iterator[Action]:
    """One action for each tool call; tokens and words of the step belong to the first."""
    extra = _table(step.get("extra"))
    metrics = _table(step.get("metrics"))
    calls: list[Mapping[str, Any] | None] = [
        call for call in _rows(step.get("tool_calls")) if call.get("function_name")
    ]
    results = list(_rows(_table(step.get("observation")).get("results")))
    for place, call in enumerate(calls or [None]):
        result = _result_of(call, place, results)
        told = _table(result.get("extra"))
        is_first = place == 0
        yield Action(
            reply=_text(step.get("message")) if is_first else "",
            tool=str(call["function_name"]) if call is not None else None,
            tool_input=_input(call) if call is not None else _text(extra.get("tool_input")),
            exit_code=_count(told.get("exit_code")),
            stdout=_text(result.get("content")),
            stderr=_text(told.get("stderr")),
            note=_text(extra.get("note")) if is_first else "",
            input_tokens=_tokens(metrics, "prompt_tokens") if is_first else 0,
            cached_tokens=_tokens(metrics, "cached_tokens") if is_first else 0,
            output_tokens=_tokens(metrics, "completion_tokens") if is_first else 0,
        )


def _result_of(
    call: Mapping[str, Any] | None, place: int, results: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """What came back: by the call's id, else by its place, since many documents lack the link."""
    linked = [result for result in results if call is not None and _names(result, call)]
    if linked:
        return linked[0]
    loose = results[place : place + 1]
    return loose[0] if loose and loose[0].get("source_call_id") is None else {}


def _names(result: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    name = call.get("tool_call_id")
    return name is not None and result.get("source_call_id") == name


def _input(call: Mapping[str, Any]) -> str:
    """The call's one text; other arguments as JSON."""
    arguments = call.get("arguments")
    if not isinstance(arguments, Mapping):
        return _text(arguments)
    texts = list(arguments.values())
    if len(texts) == 1 and isinstance(texts[0], str):
        return texts[0]
    return json.dumps(arguments, sort_keys=True)


def _text(value: object) -> str:
    """A text; of content parts their texts, of anything else its JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(part, Mapping) for part in value):
        return "\n".join(_text(part.get("text")) for part in value)
    return json.dumps(value)


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _rows(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (row for row in value if isinstance(row, Mapping))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _tokens(metrics: Mapping[str, Any], name: str) -> int:
    """A count of tokens; a negative or missing one is none."""
    return max(0, _count(metrics.get(name)) or 0)
