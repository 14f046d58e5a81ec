"""The agent loop: replies become actions until the stop rule, a limit or the model ends them."""

from collections import Counter

from rsi.domain.actions import ParsedAction, parse_call, parse_reply
from rsi.domain.contract import ActionFormat, Contract, HookAction, StopRule, ToolKind
from rsi.domain.task import Answer
from rsi.domain.trial import Action
from rsi.ports import ChatReply, ChatRequest, ToolSpec
from rsi.steps.run.session import Session

FEEDBACK_LIMIT_CHARS = 800
"""How much of a command's output goes back to the model."""


def play(session: Session) -> None:
    """Turns until the stop rule, a limit or the model ends them."""
    agent = session.contract.agent
    turns = agent.turns + session.contract.has_hook(HookAction.RETRY_ON_ERROR)
    asked_again = not session.contract.has_hook(HookAction.REQUIRE_ANSWER)
    for turn in range(turns):
        action = _act(session)
        session.actions.append(action)
        if session.is_over or session.hit_limit:
            return
        is_good = action.tool is not None and action.exit_code == 0
        if is_good and agent.stop is StopRule.ON_SUCCESS:
            if session.answer.strip() or session.task.answer is Answer.FILES or asked_again:
                return
            asked_again = True
            _tell(session, action, "The command printed nothing. Give one that prints the answer.")
        else:
            _tell(session, action, action.note or _feedback(action))
        if turn == agent.turns - 1 and not _may_retry(session, action):
            break
    session.hit_limit = agent.stop is StopRule.ON_DONE


def _may_retry(session: Session, action: Action) -> bool:
    is_error = action.tool is not None and action.exit_code != 0
    return is_error and session.contract.has_hook(HookAction.RETRY_ON_ERROR)


def _act(session: Session) -> Action:
    """One turn: a reply, with fresh samples after malformed ones, and what its action did."""
    for attempt in range(session.contract.agent.retries + 1):
        reply, parsed = _vote(session)
        is_last = attempt == session.contract.agent.retries
        if parsed.tool is not None or parsed.is_done or is_last or session.hit_limit:
            break
    if parsed.is_done and session.contract.agent.stop is StopRule.ON_DONE:
        session.is_over = True
        return _silent(reply, "done")
    if parsed.tool is None:
        return _silent(reply, parsed.fault or "nothing was done")
    return _execute(session, reply, parsed)


def _vote(session: Session) -> tuple[ChatReply, ParsedAction]:
    """The most frequent action of the contract's number of samples; the earliest wins a tie."""
    samples: list[tuple[ChatReply, ParsedAction]] = []
    for _ in range(session.contract.agent.votes):
        if samples and session.is_spent():
            break
        reply = session.chat.chat(_request(session))
        session.calls += 1
        session.model_s += reply.elapsed_s
        session.spent["input"] += reply.input_tokens
        session.spent["cached"] += reply.cached_tokens
        session.spent["output"] += reply.output_tokens
        samples.append((reply, _parsed(session.contract, reply)))
    session.hit_limit = session.is_spent()
    counts = Counter((parsed.tool, parsed.tool_input) for _, parsed in samples)
    return max(samples, key=lambda sample: counts[(sample[1].tool, sample[1].tool_input)])


def _parsed(contract: Contract, reply: ChatReply) -> ParsedAction:
    if reply.tool_calls:
        call = reply.tool_calls[0]
        return parse_call(contract, call.name, call.arguments)
    return parse_reply(contract, reply.text)


def _request(session: Session) -> ChatRequest:
    sampling = session.contract.model.sampling
    specs = _tool_specs(session.contract)
    return ChatRequest(
        messages=tuple(session.messages),
        slot=session.contract.model.slot,
        seed=session.seed * 1000 + session.calls,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        max_tokens=sampling.max_tokens,
        stop=sampling.stop,
        tools=specs,
    )


def _tool_specs(contract: Contract) -> tuple[ToolSpec, ...]:
    if contract.agent.action is not ActionFormat.TOOL_CALL:
        return ()
    about = {ToolKind.BASH: "Runs one bash command.", ToolKind.PYTHON: "Runs Python code."}
    schema = {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
    }
    return tuple(
        ToolSpec(name, about[tool.kind], schema)
        for name, tool in contract.tools.items()
        if tool.exposed
    )


def _execute(session: Session, reply: ChatReply, parsed: ParsedAction) -> Action:
    assert parsed.tool is not None
    tool = session.contract.tools[parsed.tool]
    box = session.open_box()
    limit_s = max(0.1, min(tool.timeout_s, session.left_s()))
    begun = session.clock.monotonic_s()
    if tool.kind is ToolKind.PYTHON and session.contract.session.repl:
        ran = box.python(
            parsed.tool_input, timeout_s=limit_s, output_limit_bytes=tool.output_limit_bytes
        )
    else:
        program = "bash" if tool.kind is ToolKind.BASH else "python3"
        ran = box.run(
            [program, "-c", parsed.tool_input],
            timeout_s=limit_s,
            output_limit_bytes=tool.output_limit_bytes,
            cwd=session.task.workdir,
        )
    session.sandbox_s += session.clock.monotonic_s() - begun
    session.answer = ran.stdout.decode("utf-8", "replace")
    note = "stopped at its time limit" if ran.is_timeout else ""
    return Action(
        reply=reply.text,
        tool=parsed.tool,
        tool_input=parsed.tool_input,
        exit_code=ran.exit_code,
        stdout=session.answer,
        stderr=ran.stderr.decode("utf-8", "replace"),
        note=note,
        input_tokens=reply.input_tokens,
        cached_tokens=reply.cached_tokens,
        output_tokens=reply.output_tokens,
    )


def _silent(reply: ChatReply, note: str) -> Action:
    return Action(
        reply=reply.text,
        tool=None,
        note=note,
        input_tokens=reply.input_tokens,
        cached_tokens=reply.cached_tokens,
        output_tokens=reply.output_tokens,
    )


def _tell(session: Session, action: Action, text: str) -> None:
    session.messages.append(("assistant", action.reply or action.tool_input))
    session.messages.append(("user", text))


def _feedback(action: Action) -> str:
    shown = (action.stderr.strip() or action.stdout.strip())[:FEEDBACK_LIMIT_CHARS]
    return f"Exit status {action.exit_code}.\n{shown}".strip()
