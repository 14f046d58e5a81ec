"""Jobs: what a worker process is told and what it answers, as one JSON document each way."""

from pathlib import Path

from pydantic import Field

from rsi.domain.dataset import Dataset
from rsi.domain.lora import Recipe
from rsi.domain.rendering import Messages
from rsi.domain.values import Value


class ServeJob(Value):
    """What a server process serves: one base, its adapters at scale 0, and how."""

    model: Path
    loras: tuple[Path, ...] = ()
    slots: int = Field(ge=1)
    """Requests answered side by side."""
    context_tokens: int = Field(ge=64)
    """Per slot, prompt and reply together."""
    threads: int = Field(ge=1)
    key: str
    """Bearer key that every request must carry."""


class Serving(Value):
    """Where a server process listens."""

    url: str


class TrainJob(Value):
    """What a training process does; every path is one that it can read or write."""

    model: Path
    """The GGUF of the base."""
    cache: Path
    """Folder for the base's weights as safetensors, filled on first use."""
    half: Path
    """The same base as F16 GGUF, written on first use."""
    output: Path
    """Folder for the adapter's files."""
    dataset: Dataset
    recipe: Recipe
    parent: Path | None = None
    """Safetensors of the adapter to start from."""
    probes: tuple[Messages, ...] = ()
    probe_max_tokens: int = 48
    threads: int = Field(ge=1)


class TrainProgress(Value):
    """How far a training process is."""

    doing: str
    step: int = 0
    steps: int = 0
    loss: float = 0.0


class TrainResult(Value):
    """What a training process made."""

    adapter: Path
    """GGUF, for serving."""
    source: Path
    """Safetensors, for a child to start from."""
    stopped: str
    """`epochs done`, `max_steps reached` or `time spent`."""
    losses: tuple[float, ...]
    """One per step: the mean over the completion tokens of the batch."""
    tokens: int
    """Prompt and completion tokens that went through the model."""
    elapsed_s: float
    base_openings: tuple[str, ...] = ()
    """The first tokens of the base's greedy replies to the probes, in their order."""
    trained_outputs: tuple[str, ...] = ()
    """The greedy replies of the base with the adapter."""
