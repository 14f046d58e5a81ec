"""Reading an action out of a reply, by the contract's action format."""

import json
import re
from dataclasses import dataclass

from rsi.domain.contract import ActionFormat, Contract, HookAction, ToolKind

_FENCE = re.compile(r"```([\w+-]*)[ \t]*\n(.*?)```", re.DOTALL)
_PROMPT_SIGN = re.compile(r"^(?:[\w.@~:/-]*[$#]|>>>)\s+")
_DONE = frozenset({"done", "exit", "submit"})


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """What a reply asks for: a tool's input, the end of the work, or nothing readable."""

    tool: str | None
    tool_input: str = ""
    is_done: bool = False
    fault: str = ""
    """Why nothing could be read, in words for the model."""


def parse_line(contract: Contract, reply: str) -> ParsedAction:
    """The first line that isn't empty, as one bash command."""
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    if contract.has_hook(HookAction.CLEAN_ACTION):
        lines = [clean for line in lines if (clean := _clean(line))]
    if not lines:
        return ParsedAction(tool=None, fault="The reply has no command in it.")
    if lines[0].lower().rstrip(".") in _DONE:
        return ParsedAction(tool=None, is_done=True)
    return _for_tool(contract, ToolKind.BASH, lines[0])


def parse_fence(contract: Contract, reply: str) -> ParsedAction:
    """The first fenced block; a reply without one ends the work."""
    found = _FENCE.search(reply)
    if found is None:
        return ParsedAction(tool=None, is_done=bool(reply.strip()), fault="No fenced block found.")
    is_python = found[1].lower() in {"python", "python3", "py"}
    body = found[2].strip()
    if not body:
        return ParsedAction(tool=None, fault="The fenced block is empty.")
    return _for_tool(contract, ToolKind.PYTHON if is_python else ToolKind.BASH, body)


def parse_call(contract: Contract, name: str, arguments: str) -> ParsedAction:
    """A tool call; broken arguments are a fault told to the model, never an exception."""
    tool = contract.tools.get(name)
    if tool is None or not tool.exposed:
        return ParsedAction(tool=None, fault=f"There is no tool named {name!r}.")
    try:
        document = json.loads(arguments)
    except ValueError:
        return ParsedAction(tool=None, fault="The arguments are not valid JSON.")
    text = document.get("input") if isinstance(document, dict) else None
    if not isinstance(text, str) or not text.strip():
        return ParsedAction(tool=None, fault='The arguments need a text named "input".')
    return _checked(contract, name, text)


def parse_reply(contract: Contract, reply: str) -> ParsedAction:
    """The action in a reply's text, for the formats that write actions as text."""
    if contract.agent.action is ActionFormat.FENCE:
        return parse_fence(contract, reply)
    if contract.agent.action is ActionFormat.LINE:
        return parse_line(contract, reply)
    return ParsedAction(tool=None, is_done=bool(reply.strip()), fault="The reply calls no tool.")


def _for_tool(contract: Contract, kind: ToolKind, text: str) -> ParsedAction:
    for name, tool in contract.tools.items():
        if tool.kind is kind and tool.exposed:
            return _checked(contract, name, text)
    return ParsedAction(tool=None, fault=f"There is no tool for {kind.value} here.")


def _checked(contract: Contract, name: str, text: str) -> ParsedAction:
    for word in contract.tools[name].policy.deny:
        if word in text:
            return ParsedAction(tool=None, fault=f"{word!r} is not allowed here.")
    return ParsedAction(tool=name, tool_input=text)


def _clean(line: str) -> str:
    if line.startswith("```"):
        return ""
    bare = _PROMPT_SIGN.sub("", line)
    return bare[1:-1].strip() if len(bare) > 1 and bare[0] == bare[-1] == "`" else bare
