"""Bases, LoRA revisions and models: what is frozen, what was learnt, and what is served."""

from pydantic import Field

from rsi.domain.contract import Slot
from rsi.domain.values import Digest, Value, digest_value


class Base(Value):
    """A frozen base model, by the digest of its weights file (or of its address and name)."""

    name: str
    digest: Digest
    format: str
    """`gguf:Q4_1`, `gguf:F16`, `remote`."""
    derived_from: Digest | None = None


class Recipe(Value):
    """How a LoRA is trained; together with the dataset and the parent it fixes the run."""

    rank: int = Field(ge=1)
    alpha: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    epochs: float = Field(gt=0)
    batch_size: int = Field(ge=1)
    max_steps: int = Field(ge=1)
    seconds: float = Field(gt=0)
    seed: int = 0


class Lora(Value):
    """One immutable revision of LoRA weights."""

    digest: Digest
    """SHA-256 of the served weights file; also its name in the blob store."""
    base: Digest
    slot: Slot
    dataset: Digest
    recipe: Recipe
    parent: Digest | None = None
    source: Digest | None = None
    """Blob of the trainer's own weights (safetensors), from which a child can start."""


class Model(Value):
    """A frozen base and the LoRA in each slot."""

    base: Digest
    loras: dict[Slot, Digest] = {}

    @property
    def digest(self) -> Digest:
        """SHA-256 of the canonical form."""
        return digest_value(self)


class Fidelity(Value):
    """How much a served adapter says what the trained one says, on the same prompts."""

    base: Digest
    prompts: int
    agreement: float
    """The share of prompts with the same greedy output, 0 to 1."""
    changed: float
    """The share of prompts on which the served adapter differs from the served base, 0 to 1."""


class TrainingRun(Value):
    """What one training did: its inputs, its result and what it cost."""

    generation: int
    dataset: Digest
    recipe: Recipe
    parent: Digest | None
    lora: Digest
    steps: int
    examples: int
    first_loss: float
    last_loss: float
    losses: tuple[float, ...] = ()
    tokens: int
    elapsed_s: float
    fidelity: tuple[Fidelity, ...] = ()
