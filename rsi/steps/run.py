"""Run: one trial of a contract and a model on a task, as steps that can be read afterwards."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from rsi.domain.actions import ParsedAction, parse_call, parse_reply
from rsi.domain.contract import ActionFormat, Contract, HookAction, StopRule, ToolKind
from rsi.domain.rendering import Messages, render
from rsi.domain.task import Answer, Task
from rsi.domain.trial import (
    Action,
    Cause,
    Failed,
    Judgement,
    Outcome,
    Solved,
    Trajectory,
    Usage,
)
from rsi.ports import (
    Box,
    BoxFile,
    BoxSpec,
    ChatModel,
    ChatReply,
    ChatRequest,
    Clock,
    Sandbox,
    ToolSpec,
)

FEEDBACK_LIMIT_CHARS = 800
"""How much of a command's output goes back to the model."""


Judge = Callable[[Task, str, Sequence[BoxFile]], Judgement]
"""(task, answer, files the agent left) -> judgement; raises TrialFault("verifier", …)."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A trial's outcome with the steps that led to it."""

    outcome: Outcome
    trajectory: Trajectory
    rewards: dict[str, float]
    usage: Usage


def run(
    contract: Contract,
    task: Task,
    seed: int,
    chat: ChatModel,
    sandbox: Sandbox,
    judge: Judge,
    clock: Clock,
) -> Finished:
    """The finished trial. Raises TrialFault when the machine broke, PartError when it is down."""
    with ExitStack() as stack:
        session = _Session(contract, task, seed, chat, sandbox, clock, stack)
        _play(session)
        left = _collect(session)
    if session.box is None:
        outcome: Outcome = Failed(cause=_cause(session, acted=False))
        return Finished(outcome, session.trajectory(), {}, session.usage(0.0))
    judgement = judge(task, session.answer, left)
    outcome = Solved() if judgement.is_solved else Failed(cause=_cause(session, acted=True))
    usage = session.usage(judgement.elapsed_s)
    return Finished(outcome, session.trajectory(), judgement.rewards, usage)


@dataclass(slots=True)
class _Session:
    """What changes while a trial goes on; it never leaves this module."""

    contract: Contract
    task: Task
    seed: int
    chat: ChatModel
    sandbox: Sandbox
    clock: Clock
    stack: ExitStack
    opening: Messages = ()
    messages: list[tuple[str, str]] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    box: Box | None = None
    answer: str = ""
    calls: int = 0
    model_s: float = 0.0
    sandbox_s: float = 0.0
    spent: Counter[str] = field(default_factory=Counter)
    deadline_s: float = 0.0
    hit_limit: bool = False
    is_over: bool = False
    """The model said that it is done."""

    def __post_init__(self) -> None:
        self.opening = render(self.contract, self.task)
        self.messages = list(self.opening)
        limit = min(self.contract.workspace.time_s, self.task.agent_timeout_s)
        self.deadline_s = self.clock.monotonic_s() + limit

    def left_s(self) -> float:
        return self.deadline_s - self.clock.monotonic_s()

    def open_box(self) -> Box:
        if self.box is None:
            begun = self.clock.monotonic_s()
            self.box = self.stack.enter_context(self.sandbox.box(_box_spec(self)))
            self.box.put([BoxFile.of(self.task.workdir, file) for file in self.task.files])
            self.sandbox_s += self.clock.monotonic_s() - begun
        return self.box

    def trajectory(self) -> Trajectory:
        return Trajectory(messages=self.opening, actions=tuple(self.actions), answer=self.answer)

    def usage(self, verifier_s: float) -> Usage:
        return Usage(
            input_tokens=self.spent["input"],
            cached_tokens=self.spent["cached"],
            output_tokens=self.spent["output"],
            model_calls=self.calls,
            model_s=self.model_s,
            sandbox_s=self.sandbox_s,
            verifier_s=verifier_s,
        )


def _play(session: _Session) -> None:
    """Turns until the stop rule, a limit or the model ends them."""
    agent = session.contract.agent
    turns = agent.turns + _has(session.contract, HookAction.RETRY_ON_ERROR)
    asked_again = not _has(session.contract, HookAction.REQUIRE_ANSWER)
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


def _may_retry(session: _Session, action: Action) -> bool:
    is_error = action.tool is not None and action.exit_code != 0
    return is_error and _has(session.contract, HookAction.RETRY_ON_ERROR)


def _act(session: _Session) -> Action:
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


def _vote(session: _Session) -> tuple[ChatReply, ParsedAction]:
    """The most frequent action of the contract's number of samples; the earliest wins a tie."""
    samples: list[tuple[ChatReply, ParsedAction]] = []
    for _ in range(session.contract.agent.votes):
        if samples and _is_spent(session):
            break
        reply = session.chat.chat(_request(session))
        session.calls += 1
        session.model_s += reply.elapsed_s
        session.spent["input"] += reply.input_tokens
        session.spent["cached"] += reply.cached_tokens
        session.spent["output"] += reply.output_tokens
        samples.append((reply, _parsed(session.contract, reply)))
    session.hit_limit = _is_spent(session)
    counts = Counter((parsed.tool, parsed.tool_input) for _, parsed in samples)
    return max(samples, key=lambda sample: counts[(sample[1].tool, sample[1].tool_input)])


def _is_spent(session: _Session) -> bool:
    used = session.spent["input"] + session.spent["output"]
    return used > session.contract.agent.max_total_tokens or session.left_s() <= 0


def _parsed(contract: Contract, reply: ChatReply) -> ParsedAction:
    if reply.tool_calls:
        call = reply.tool_calls[0]
        return parse_call(contract, call.name, call.arguments)
    return parse_reply(contract, reply.text)


def _request(session: _Session) -> ChatRequest:
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


def _execute(session: _Session, reply: ChatReply, parsed: ParsedAction) -> Action:
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


def _tell(session: _Session, action: Action, text: str) -> None:
    session.messages.append(("assistant", action.reply or action.tool_input))
    session.messages.append(("user", text))


def _feedback(action: Action) -> str:
    shown = (action.stderr.strip() or action.stdout.strip())[:FEEDBACK_LIMIT_CHARS]
    return f"Exit status {action.exit_code}.\n{shown}".strip()


def _collect(session: _Session) -> tuple[BoxFile, ...]:
    """The files that the verifier gets, taken after every process of the agent is gone."""
    if session.box is None:
        return ()
    begun = session.clock.monotonic_s()
    session.box.stop_all()
    paths = session.task.artifact_paths
    left = session.box.get(paths) if paths else ()
    session.sandbox_s += session.clock.monotonic_s() - begun
    return left


def _cause(session: _Session, *, acted: bool) -> Cause:
    """Why the trial failed, read from its steps."""
    if not acted and session.is_over:
        return Cause.GAVE_UP
    if not acted:
        return Cause.LIMIT_REACHED if session.hit_limit else Cause.MALFORMED_ACTION
    inputs = [action.tool_input for action in session.actions if action.tool is not None]
    if len(inputs) > 1 and len(set(inputs)) == 1:
        return Cause.LOOP
    last = session.actions[-1]
    if session.hit_limit or (last.exit_code is None and last.tool is not None):
        return Cause.LIMIT_REACHED
    if last.tool is None and not session.is_over:
        return Cause.MALFORMED_ACTION
    return Cause.TOOL_ERROR if last.exit_code else Cause.WRONG_ANSWER


def _box_spec(session: _Session) -> BoxSpec:
    room = session.contract.workspace
    return BoxSpec(
        image=session.task.image or room.image,
        workdir=session.task.workdir,
        memory_mb=room.memory_mb,
        cpus=room.cpus,
        pids=room.pids,
        disk_mb=room.disk_mb,
        life_s=min(room.time_s, session.task.agent_timeout_s) + 30,
    )


def _has(contract: Contract, action: HookAction) -> bool:
    return any(hook.action is action for hook in contract.hooks)
