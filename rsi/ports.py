"""The ports: what steps and stages ask of the world. Each edge keeps one of these promises.

Whatever is not listed under "raises" comes back as a value.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from rsi.domain.contract import Contract, Edit, Slot
from rsi.domain.dataset import Dataset
from rsi.domain.evaluation import Evaluation
from rsi.domain.generation import Generation, StageEvent
from rsi.domain.lora import Base, Fidelity, Lora, Model, Recipe, TrainingRun
from rsi.domain.pair import Pair
from rsi.domain.promotion import Promotion
from rsi.domain.search import Candidate, Coverage
from rsi.domain.task import Family, Split, Task, TaskFile
from rsi.domain.trial import BoxFacts, Judgement, Trajectory, Trial, TrialKey
from rsi.domain.values import Digest
from rsi.domain.verdict import Verdict

Item = TypeVar("Item")
Result = TypeVar("Result")


# --- the model ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request; the model behind it (base and adapters) is the ChatModel's."""

    messages: tuple[tuple[str, str], ...]
    """(role, text)."""
    slot: Slot
    seed: int
    temperature: float = 0.0
    top_p: float | None = None
    max_tokens: int = 96
    stop: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model made; `arguments` is its raw text, which may be broken JSON."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatReply:
    text: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    elapsed_s: float


class ChatModel(Protocol):
    """A model (base and adapters) that answers; safe to call from several threads."""

    def chat(self, request: ChatRequest) -> ChatReply:
        """The reply. Retries 429, 5xx and time-outs with backoff inside its limit.

        Raises TrialFault("model", …) when the limit is spent, ModelError when the server is gone.
        """


class Connect(Protocol):
    """Makes a ChatModel that talks to a server."""

    def __call__(
        self,
        address: Callable[[], str],
        route: Callable[[Slot], Mapping[str, object]],
        key: str | None,
    ) -> ChatModel:
        """`address` is asked before each try; `route` gives what a slot adds to the request."""


class Engine(Protocol):
    """Serves models: a frozen base and LoRA revisions chosen by request."""

    def serve(self, model: Model, loras: Sequence[Lora]) -> ChatModel:
        """A ChatModel for the model; `loras` holds the revisions that the model names.

        Models served earlier may stop answering: ask again for each block of work.
        Raises ModelError when the base or an adapter can't be served.
        """

    def serve_all(self, models: Sequence[Model], loras: Sequence[Lora]) -> tuple[ChatModel, ...]:
        """ChatModels that answer side by side, in the order given."""

    def base(self) -> Base:
        """The base that a first model is made of."""

    def close(self) -> None:
        """Stops what was started."""


# --- the sandbox -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BoxSpec:
    """The limits of one box."""

    image: str | None = None
    context: tuple[TaskFile, ...] = field(default=(), compare=False, repr=False)
    """What the image is built from where it isn't there; its name stands for the content."""
    build_limit_s: float = field(default=600.0, compare=False)
    has_image_files: bool = True
    """Whether `workdir` begins with what the image has there, and not empty."""
    workdir: str = "/work"
    memory_mb: int = 256
    cpus: float = 1.0
    pids: int = 64
    disk_mb: int = 32
    hosts: tuple[str, ...] = ()
    """What its programs may reach through a proxy; there is no network beside it."""
    life_s: float = 120.0
    """The box removes itself after this long, whatever happens."""

    @classmethod
    def of(cls, task: Task, life_s: float, *, has_image_files: bool = True) -> "BoxSpec":
        """A box for the task, with the plain limits."""
        return cls(
            image=task.image_name,
            context=task.context,
            build_limit_s=task.build_timeout_s,
            has_image_files=has_image_files,
            workdir=task.workdir,
            life_s=life_s,
        )


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did. `exit_code` is -signal after a signal; None when it was stopped."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    is_timeout: bool = False
    is_truncated: bool = False
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class BoxFile:
    """A file to lay into a box, by absolute path; a path that ends in "/" is a folder."""

    path: str
    content: bytes
    mode: int = 0o644

    @classmethod
    def of(cls, folder: str, file: TaskFile) -> "BoxFile":
        """A task's file, laid below the folder unless its own path is absolute."""
        path = file.path if file.path.startswith("/") else f"{folder}/{file.path}"
        return cls(path, file.content, 0o755 if file.executable else 0o644)


class Box(Protocol):
    """One clean machine; used for one purpose and thrown away."""

    @property
    def facts(self) -> BoxFacts: ...

    def put(self, files: Sequence[BoxFile]) -> None:
        """Lays files; makes folders as needed. Raises TrialFault("sandbox", …)."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        output_limit_bytes: int = 65536,
        stdin: bytes = b"",
        env: Mapping[str, str] = {},
        cwd: str | None = None,
    ) -> Ran:
        """Runs a command to its end or its limit; its descendants may go on until `stop_all`.

        Raises TrialFault("sandbox", …) when the box is gone.
        """

    def python(self, code: str, *, timeout_s: float, output_limit_bytes: int = 65536) -> Ran:
        """Runs code in the box's one persistent Python namespace."""

    def stop_all(self) -> None:
        """Ends every process of the agent; the box still takes `get`."""

    def get(self, paths: Sequence[str], *, limit_bytes: int = 1 << 24) -> tuple[BoxFile, ...]:
        """The regular files and the folders at or below the absolute paths, with their modes.

        A folder is a BoxFile whose path ends in "/", without content. Links, devices, pipes and
        sockets are left out.

        Raises TrialFault("sandbox", …) when they are larger than the limit together.
        """


class Sandbox(Protocol):
    """Makes boxes; safe to call from several threads."""

    def box(self, spec: BoxSpec) -> AbstractContextManager[Box]:
        """A fresh box, removed at the end whatever happens.

        Raises TrialFault("sandbox", …) when this one box could not be made, SandboxError when
        the engine is down, DiskError when the disk floor is reached.
        """

    def check(self) -> BoxFacts:
        """What a box of this sandbox guarantees, found by trying. Raises SandboxError."""

    def close(self) -> None:
        """Removes every box of this process."""


Judge = Callable[[Task, str, Sequence[BoxFile]], Judgement]
"""(task, answer, files the agent left) -> what the verifier says.

Raises TrialFault("verifier", …) when no reward can be read.
"""


# --- records -----------------------------------------------------------------------------


class Blobs(Protocol):
    """Content-addressed bytes; writing the same content twice is one blob."""

    def put(self, content: bytes) -> Digest: ...

    def put_file(self, path: Path) -> Digest:
        """Stores a file that may be large."""

    def get(self, digest: Digest) -> bytes:
        """Raises BlobError when the blob is missing or damaged."""

    def path(self, digest: Digest) -> Path:
        """A readable local file with the content. Raises BlobError."""

    def has(self, digest: Digest) -> bool: ...


class Ledger(Protocol):
    """The record of everything; rows are added, never changed.

    Every `add_` is idempotent by the natural key, safe from several threads, and raises
    LedgerConflict when the row exists with another content, DatabaseError when Postgres is gone.
    Every reading method returns rows in a stable order.
    """

    # nouns
    def add_contract(self, contract: Contract, toml: str) -> None: ...
    def contract(self, digest: Digest) -> Contract: ...
    def contract_toml(self, digest: Digest) -> str: ...
    def add_evaluation(self, evaluation: Evaluation) -> None: ...
    def evaluation(self, digest: Digest) -> Evaluation: ...
    def add_base(self, base: Base) -> None: ...
    def bases(self) -> tuple[Base, ...]: ...
    def add_lora(self, lora: Lora) -> None: ...
    def loras(self, digests: Sequence[Digest]) -> tuple[Lora, ...]: ...
    def add_pair(self, pair: Pair, model: Model) -> None:
        """Records the pair and its model; contract, base and loras must be there."""

    def pair(self, digest: Digest) -> Pair: ...
    def pairs(self) -> tuple[Pair, ...]: ...
    def model(self, digest: Digest) -> Model: ...
    def add_families(self, families: Sequence[Family]) -> None: ...
    def families(self) -> tuple[Family, ...]: ...
    def add_tasks(self, tasks: Sequence[Task]) -> None: ...
    def tasks(self, digests: Sequence[Digest]) -> tuple[Task, ...]:
        """In the order asked for. Raises KeyError for one that isn't there."""

    # generations
    def open_generation(self, generation: Generation) -> None: ...
    def generations(self) -> tuple[Generation, ...]: ...
    def add_event(self, event: StageEvent) -> None: ...
    def events(self, generation: int) -> tuple[StageEvent, ...]: ...
    def lock_generation(self) -> AbstractContextManager[None]:
        """Holds the one writer's lock; freed by the database when the holder dies.

        Raises DatabaseError at once when another process holds it.
        """

    def use_tasks(self, generation: int, split: Split, tasks: Sequence[Digest]) -> None:
        """Records what the generation uses tasks for, in order.

        Raises DisciplineError when a task already belongs to another of search, holdout, exam.
        """

    def used_tasks(self, generation: int, split: Split) -> tuple[Digest, ...]:
        """In the order recorded."""

    def split_of(self, tasks: Sequence[Digest]) -> dict[Digest, Split]:
        """search, holdout or exam of every task that was ever given one."""

    # trials
    def add_trial(self, trial: Trial) -> bool:
        """True when it is new; False when the key is already there (the first one stays)."""

    def trials(self, keys: Sequence[TrialKey]) -> dict[TrialKey, Trial]:
        """Those of the keys that are recorded."""

    def trials_of(
        self,
        *,
        generation: int | None = None,
        pair: Digest | None = None,
        task: Digest | None = None,
        split: Split | None = None,
        solved: bool | None = None,
        limit: int | None = None,
    ) -> tuple[Trial, ...]:
        """Every filter given must hold; in the order recorded, the newest last."""

    # expansion
    def add_candidates(self, generation: int, candidates: Sequence[Candidate]) -> None: ...
    def candidates(self, generation: int) -> tuple[Candidate, ...]: ...
    def add_coverage(self, generation: int, coverage: Coverage) -> None: ...
    def coverage(self, generation: int) -> Coverage | None: ...

    # update
    def add_dataset(self, generation: int, dataset: Dataset) -> None:
        """Raises DisciplineError when an example comes from a task outside the search split."""

    def dataset(self, digest: Digest) -> Dataset: ...
    def datasets(self, generation: int) -> tuple[Digest, ...]: ...
    def add_training_run(self, run: TrainingRun) -> None: ...
    def training_runs(self, generation: int) -> tuple[TrainingRun, ...]: ...

    # gate
    def add_verdict(self, verdict: Verdict, promotion: Promotion | None) -> None:
        """Records the verdict, its evidence and the promotion in one transaction."""

    def verdicts(self, generation: int | None = None) -> tuple[Verdict, ...]: ...
    def add_promotion(self, promotion: Promotion) -> None:
        """For the first champion and for a rollback."""

    def promotions(self) -> tuple[Promotion, ...]:
        """In order; the last one names the champion."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ContractDocument:
    """A contract with the text that it was read from."""

    contract: Contract
    toml: str


class ContractFiles(Protocol):
    """Reads, edits and writes contracts as TOML documents that people also edit."""

    def read(self, path: Path) -> ContractDocument:
        """Raises ContractError with every fault, each with its line."""

    def parse(self, toml: str, source: str, folder: Path | None = None) -> ContractDocument: ...

    def read_evaluation(self, path: Path) -> Evaluation: ...

    def write(self, contract: Contract) -> ContractDocument:
        """The contract as a TOML document of its own, without comments."""

    def edit(self, document: ContractDocument, edits: Sequence[Edit]) -> ContractDocument:
        """The child document; comments and order stay.

        Raises ContractError when a key lies outside the declared search space, or the result
        isn't a valid contract.
        """


class TraceFiles(Protocol):
    """Writes trajectories in the exchange format (ATIF v1.8) and reads them back."""

    def write(self, trajectory: Trajectory, contract: Contract, model_name: str) -> bytes: ...

    def read(self, content: bytes) -> Trajectory: ...


class TaskSource(Protocol):
    """A suite: where tasks come from. Drawing is deterministic in (purpose, seed, n, levels)."""

    name: str

    def families(self) -> tuple[Family, ...]: ...

    def draw(
        self, split: Split, seed: int, n: int, levels: Mapping[str, int] = {}
    ) -> tuple[Task, ...]:
        """n tasks, spread evenly over families (or fewer, when a fixed suite has no more).

        `levels` gives the level by family; the lowest level where it names none. A fixed suite
        gives only tasks whose digest puts them into that split, whatever the seed.
        """

    def harden(self, task: Task, seed: int) -> tuple[Task, ...]:
        """Harder tasks of the same kind; empty when there are none."""


# --- training ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """One training: what to learn, how, from which parent, and how long it may take."""

    base: Base
    slot: Slot
    dataset: Dataset
    recipe: Recipe
    parent: Lora | None
    probes: tuple[tuple[tuple[str, str], ...], ...] = ()
    """Message lists whose greedy outputs are compared between the trained and the served."""
    probe_max_tokens: int = 48


@dataclass(frozen=True, slots=True)
class Trained:
    """What came of a training; the lora's files are in the blob store."""

    lora: Lora
    bases: tuple[Base, ...]
    """Bases that the adapter was checked on, the one that loses least first."""
    steps: int
    first_loss: float
    last_loss: float
    losses: tuple[float, ...]
    tokens: int
    elapsed_s: float
    fidelity: tuple[Fidelity, ...] = field(default=())


class Trainer(Protocol):
    """Trains LoRA weights, wherever the training machine is."""

    def train(self, job: TrainingJob, report: "Progress") -> Trained:
        """Raises TrainerError; within `recipe.seconds` it ends one way or the other."""


# --- the rest ----------------------------------------------------------------------------


class Clock(Protocol):
    def now(self) -> datetime:
        """The time of day, with its zone."""

    def monotonic_s(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class Workers(Protocol):
    """Runs calls side by side. The order of results is the order of items."""

    def map(
        self, label: str, call: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Raises the first call's error after those under way have ended; no new ones start."""


class Progress(Protocol):
    """Tells people how far the work is."""

    def stage(self, name: str, steps: int) -> None:
        """A stage of so many steps begins."""

    def advance(self, steps: int = 1, note: str = "") -> None: ...

    def say(self, text: str) -> None: ...
