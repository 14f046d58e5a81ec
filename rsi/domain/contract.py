"""The harness contract (HCP, version 1): everything around the model, as one frozen value.

This is the semantic form, with texts already read from the files beside the contract.
Reading and editing the TOML document is the work of `rsi.edges.contract_files`.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints, field_validator

from rsi.domain.values import Digest, Value, digest_value

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
Semver = Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")]


class Slot(StrEnum):
    """A place for LoRA weights: what the session is about."""

    CHAT = "L0"
    AGENT = "L1"
    CODING = "L2"
    GENUI = "L3"


class ActionFormat(StrEnum):
    """How a reply becomes an action."""

    LINE = "line"
    FENCE = "fence"
    TOOL_CALL = "tool_call"


class StopRule(StrEnum):
    """When an agent loop ends: after the first command that succeeds, or when the model says so."""

    ON_SUCCESS = "on_success"
    ON_DONE = "on_done"


class ExamplePick(StrEnum):
    """Which examples are shown: the first ones, or the nearest by shared words."""

    FIRST = "first"
    NEAREST = "nearest"


class ToolKind(StrEnum):
    """What runs a tool's input."""

    BASH = "bash"
    PYTHON = "python"


class HookEvent(StrEnum):
    """The moment at which a hook acts."""

    BEFORE_MODEL = "before_model"
    AFTER_MODEL = "after_model"
    AFTER_TOOL = "after_tool"
    BEFORE_STOP = "before_stop"


class HookAction(StrEnum):
    """What a hook does; the set is closed, so that a contract never carries code."""

    LIST_FILES = "list_files"
    """before_model: the names of the files in the work folder are added to the instruction."""
    CLEAN_ACTION = "clean_action"
    """after_model: prompt signs, fences and back-quotes around a command are removed."""
    RETRY_ON_ERROR = "retry_on_error"
    """after_tool: a command that fails is shown to the model, which tries once more."""
    REQUIRE_ANSWER = "require_answer"
    """before_stop: an empty answer is refused once."""


class Example(Value):
    """A worked example, shown as one turn of the user and one of the agent."""

    instruction: str
    reply: str
    origin: Digest | None = None
    """The task that it was solved on; never shown to a trial on that task."""


class Sampling(Value):
    temperature: float = Field(default=0.0, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int = Field(default=96, ge=1, le=32768)
    stop: tuple[str, ...] = ()


class ModelTable(Value):
    slot: Slot = Slot.AGENT
    sampling: Sampling = Sampling()


class PromptTable(Value):
    system: str = ""
    examples: tuple[Example, ...] = ()
    examples_shown: int = Field(default=0, ge=0, le=32)
    examples_pick: ExamplePick = ExamplePick.NEAREST


class AgentTable(Value):
    action: ActionFormat = ActionFormat.LINE
    stop: StopRule = StopRule.ON_SUCCESS
    turns: int = Field(default=1, ge=1, le=200)
    retries: int = Field(default=0, ge=0, le=16)
    """Fresh samples allowed after a malformed action."""
    votes: int = Field(default=1, ge=1, le=16)
    """Samples of each action; the most frequent one acts."""
    max_total_tokens: int = Field(default=8192, ge=1)


class ToolPolicy(Value):
    deny: tuple[str, ...] = ()
    """Words that no input of this tool may contain; the model is told, and tries again."""


class Tool(Value):
    kind: ToolKind
    exposed: bool = True
    timeout_s: float = Field(default=10, gt=0, le=3600)
    output_limit_bytes: int = Field(default=16384, ge=1, le=16777216)
    policy: ToolPolicy = ToolPolicy()


class Skill(Value):
    """A resource that the harness can show: a text in the system prompt, examples as turns."""

    name: Name
    description: str = ""
    text: str = ""
    in_system: bool = False
    examples: tuple[Example, ...] = ()
    shown: int = Field(default=0, ge=0, le=32)
    """How many of its examples are shown, the nearest to the instruction first."""


class Hook(Value):
    event: HookEvent
    action: HookAction


class McpServer(Value):
    name: Name
    transport: Literal["stdio", "sse", "streamable-http"] = "stdio"
    command: str | None = None
    args: tuple[str, ...] = ()
    url: str | None = None


class SessionTable(Value):
    memory: bool = False
    repl: bool = False
    """The Python tool keeps one namespace over the calls of a trial."""
    carries_over: tuple[str, ...] = ()


Host = Annotated[
    str, StringConstraints(pattern=r"^(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?$")
]


class WorkspaceTable(Value):
    image: str | None = None
    """An image by name; none stands for rsi's own base image."""
    memory_mb: int = Field(default=256, ge=64, le=1048576)
    cpus: float = Field(default=1.0, gt=0, le=1024)
    pids: int = Field(default=64, ge=8, le=65536)
    disk_mb: int = Field(default=32, ge=1, le=1048576)
    network: tuple[Host, ...] = ()
    """Hosts that the agent's commands may reach, by HTTP and HTTPS: `name` or `*.name`, with
    `:port` or for ports 80 and 443. None stands for no network at all."""
    time_s: float = Field(default=60, gt=0, le=86400)
    """The hard end of a whole trial."""


class SearchTable(Value):
    space: tuple[str, ...] = ()
    """Dotted keys that the search may edit; `*` stands for one part."""


class Contract(Value):
    """One harness, whole; named by the SHA-256 of its canonical form."""

    hcp: Literal["1"]
    name: Name
    version: Semver
    model: ModelTable = ModelTable()
    prompt: PromptTable = PromptTable()
    agent: AgentTable = AgentTable()
    tools: dict[Name, Tool] = {}
    skills: tuple[Skill, ...] = ()
    hooks: tuple[Hook, ...] = ()
    mcp_servers: tuple[McpServer, ...] = ()
    session: SessionTable = SessionTable()
    workspace: WorkspaceTable = WorkspaceTable()
    search: SearchTable = SearchTable()

    @field_validator("tools")
    @classmethod
    def _in_order(cls, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Sorted by name: the digest doesn't know their order, so nothing may hang on it."""
        return dict(sorted(tools.items()))

    @property
    def digest(self) -> Digest:
        """SHA-256 of the canonical form; comments, order and line ends don't change it."""
        return digest_value(self)

    def has_hook(self, action: HookAction) -> bool:
        """Whether one of the hooks does this."""
        return any(hook.action is action for hook in self.hooks)


class Edit(Value):
    """One typed change: a dotted key set to a value, or unset to its default.

    Tables in a list are addressed by name: `skills.cookbook.shown`. Lists without names
    (`prompt.examples`, `hooks`, `model.sampling.stop`) are set whole.
    """

    key: str
    op: Literal["set", "unset"] = "set"
    value: JsonValue = None
