"""task.toml as Harbor 1.4 defines it, with rsi's own keys below [metadata.rsi]."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from rsi.domain.task import Answer
from rsi.domain.values import Value

SCHEMA_VERSION = "1.4"
KNOWN_VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")

TaskName = Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")]
Seconds = Annotated[float, Field(gt=0)]
Size = Annotated[str, StringConstraints(pattern=r"^\s*\d+(\.\d+)?\s*[GgMmKk][Bb]?\s*$")]
Network = Literal["public", "no-network", "allowlist"]
Rows = tuple[dict[str, JsonValue], ...]


class RsiTable(Value):
    """What rsi needs to know and Harbor has no key for."""

    suite: str | None = None
    family: str | None = None
    level: int | None = Field(default=None, ge=0)
    answer: Answer = Answer.FILES
    artifacts: tuple[str, ...] = ()
    image: str | None = None
    made_by: str | None = None
    cases: str | None = Field(default=None, min_length=1)
    """A file below tests/ with what the solution must return or print, judged outside the box."""
    tests: tuple[str, ...] = ()
    """The order of the tests' files, where it isn't the alphabetical one."""
    solution: tuple[str, ...] = ()


class MetadataTable(Value):
    """Free in Harbor; only rsi's part is checked."""

    rsi: RsiTable = RsiTable()


class NameTable(Value):
    name: TaskName | None = None
    version: str | None = None
    description: str = ""
    authors: Rows = ()
    keywords: tuple[str, ...] = ()


class AgentTable(Value):
    timeout_sec: Seconds | None = None
    user: str | int | None = None
    network_mode: Network | None = None
    allowed_hosts: tuple[str, ...] = ()


class VerifierTable(Value):
    timeout_sec: Seconds = 600.0
    env: dict[str, str] = {}
    user: str | int | None = None
    network_mode: Network | None = None
    allowed_hosts: tuple[str, ...] = ()
    environment_mode: Literal["shared", "separate"] | None = None
    environment: dict[str, JsonValue] = {}
    collect: Rows = ()


class EnvironmentTable(Value):
    network_mode: Network = "no-network"
    allowed_hosts: tuple[str, ...] = ()
    build_timeout_sec: Seconds = 600.0
    docker_image: str | None = Field(default=None, min_length=1)
    os: Literal["linux", "windows"] = "linux"
    cpus: Seconds | None = None
    memory_mb: int | None = Field(default=None, gt=0)
    storage_mb: int | None = Field(default=None, gt=0)
    gpus: int = Field(default=0, ge=0)
    gpu_types: tuple[str, ...] = ()
    tpu: dict[str, JsonValue] = {}
    env: dict[str, str] = {}
    skills_dir: str | None = None
    workdir: str | None = None
    healthcheck: dict[str, JsonValue] = {}
    mcp_servers: Rows = ()
    memory: Size | None = None
    storage: Size | None = None
    allow_internet: bool = False


class SolutionTable(Value):
    env: dict[str, str] = {}


class HarborTask(Value):
    """The whole of task.toml."""

    schema_version: str = SCHEMA_VERSION
    version: str | None = None
    source: str | None = None
    artifacts: tuple[JsonValue, ...] = ()
    multi_step_reward_strategy: Literal["mean", "final"] | None = None
    task: NameTable = NameTable()
    metadata: MetadataTable = MetadataTable()
    agent: AgentTable = AgentTable()
    verifier: VerifierTable = VerifierTable()
    environment: EnvironmentTable = EnvironmentTable()
    solution: SolutionTable = SolutionTable()
    steps: Rows = ()


def unsupported(harbor: HarborTask) -> Iterator[tuple[str, str]]:
    """(key, why) of what rsi can't run."""
    if harbor.steps:
        yield "steps", "tasks of several steps can't be run; make each step a task"
    if harbor.environment.os != "linux":
        yield "environment.os", "only linux tasks can be run"
    if harbor.environment.gpus:
        yield "environment.gpus", "a box has no GPU"


def unused(harbor: HarborTask) -> Iterator[tuple[str, str]]:
    """(key, why) of what the task says and rsi does otherwise."""
    environment = harbor.environment
    if environment.network_mode != "no-network" or environment.allow_internet:
        yield (
            "environment.network_mode",
            "the contract's [workspace] network names what a box may reach",
        )
    for key in ("cpus", "memory_mb", "memory", "storage_mb", "storage"):
        if getattr(environment, key) is not None:
            yield f"environment.{key}", "the contract's [workspace] sets the limits"
    for key in ("env", "healthcheck", "mcp_servers", "skills_dir", "gpu_types", "tpu"):
        if getattr(environment, key):
            yield f"environment.{key}", "a box has no such thing"
    for table, value in (("agent", harbor.agent), ("verifier", harbor.verifier)):
        for key in ("user", "network_mode", "allowed_hosts"):
            if getattr(value, key):
                yield (
                    f"{table}.{key}",
                    "every box has one unprivileged user, and the contract names its network",
                )
    for key in ("env", "environment", "collect"):
        if getattr(harbor.verifier, key):
            yield f"verifier.{key}", "the verifier runs tests/test.sh in a clean box of its own"
    if harbor.verifier.environment_mode == "shared":
        reason = "the verifier runs in a box of its own; only the workdir or artifacts travel"
        yield "verifier.environment_mode", reason
    if harbor.solution.env:
        yield "solution.env", "the reference solution runs without it"
    if harbor.artifacts:
        yield "artifacts", "what travels to the verifier is named by [metadata.rsi] artifacts"
