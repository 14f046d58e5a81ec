"""What changes while a trial goes on."""

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from rsi.domain.contract import Contract
from rsi.domain.rendering import Messages, render
from rsi.domain.task import Task
from rsi.domain.trial import Action, Trajectory, Usage
from rsi.ports import Box, BoxFile, BoxSpec, ChatModel, Clock, Sandbox


@dataclass(slots=True)
class Session:
    """One trial under way: what was said, done and spent."""

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
            self.box = self.stack.enter_context(self.sandbox.box(self.box_spec()))
            self.box.put([BoxFile.of(self.task.workdir, file) for file in self.task.files])
            took_s = self.clock.monotonic_s() - begun
            self.sandbox_s += took_s
            # Making a box, and an image for it, is the machine's time, not the agent's.
            self.deadline_s += took_s
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

    def is_spent(self) -> bool:
        """Whether the trial has used up its tokens or its time."""
        used = self.spent["input"] + self.spent["output"]
        return used > self.contract.agent.max_total_tokens or self.left_s() <= 0

    def box_spec(self) -> BoxSpec:
        room = self.contract.workspace
        return replace(
            BoxSpec.of(self.task, min(room.time_s, self.task.agent_timeout_s) + 30),
            image=self.task.image_name or room.image,
            memory_mb=room.memory_mb,
            cpus=room.cpus,
            pids=room.pids,
            disk_mb=room.disk_mb,
            hosts=room.network,
        )
