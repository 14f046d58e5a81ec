"""The tables of what trials are about, each row named by its content."""

from sqlalchemy import Column, Index, Integer, PrimaryKeyConstraint, String, Table

from rsi.edges.ledger.columns import digest, document, metadata, one_of, recorded, refers, text

contracts = Table(
    "contracts",
    metadata,
    digest("digest", "SHA-256 of the canonical form."),
    text("name", "The contract's own name."),
    text("version", "Its version for people."),
    text("toml", "The TOML document, whole, comments included."),
    document(),
    recorded(),
    PrimaryKeyConstraint("digest"),
    comment="Harness contracts (HCP), immutable.",
)

evaluations = Table(
    "evaluations",
    metadata,
    digest("digest", "SHA-256 of the canonical form."),
    text("name", "The evaluation contract's own name."),
    document(),
    recorded(),
    PrimaryKeyConstraint("digest"),
    comment="Evaluation contracts: suites, budgets, the gate's rule.",
)

bases = Table(
    "bases",
    metadata,
    digest("digest", "SHA-256 of the weights file, or of a server's address and model name."),
    text("name", "The model's name."),
    text("format", "gguf:<quantisation> or remote."),
    digest("derived_from", "The base that this one was converted from.", nullable=True),
    document(),
    recorded(),
    PrimaryKeyConstraint("digest"),
    comment="Frozen base models.",
)

loras = Table(
    "loras",
    metadata,
    digest("digest", "SHA-256 of the served adapter file; its name in the blob store."),
    digest("base", "The base that it was trained on."),
    Column("slot", String(2), nullable=False, comment="L0 chat, L1 agent, L2 coding, L3 genui."),
    digest("dataset", "What it was trained on."),
    digest("parent", "The revision that training started from.", nullable=True),
    document(),
    recorded(),
    PrimaryKeyConstraint("digest"),
    refers("base", "bases.digest"),
    refers("dataset", "datasets.digest"),
    refers("parent", "loras.digest"),
    one_of("slot", "L0", "L1", "L2", "L3"),
    comment="Revisions of LoRA weights, immutable.",
)

models = Table(
    "models",
    metadata,
    digest("digest", "SHA-256 of the canonical form."),
    digest("base", "The frozen base."),
    document(),
    recorded(),
    PrimaryKeyConstraint("digest"),
    refers("base", "bases.digest"),
    comment="A base and the LoRA in each slot.",
)

model_loras = Table(
    "model_loras",
    metadata,
    digest("model", "The model."),
    Column("slot", String(2), nullable=False, comment="The slot."),
    digest("lora", "The LoRA in that slot."),
    PrimaryKeyConstraint("model", "slot"),
    refers("model", "models.digest"),
    refers("lora", "loras.digest"),
    comment="Which LoRA a model holds in which slot.",
)

pairs = Table(
    "pairs",
    metadata,
    digest("digest", "SHA-256 of the canonical form."),
    digest("model", "The model."),
    digest("contract", "The harness contract."),
    document(),
    recorded(),
    PrimaryKeyConstraint("digest"),
    refers("model", "models.digest"),
    refers("contract", "contracts.digest"),
    Index(None, "contract"),
    comment="Model-harness pairs: what is evaluated, promoted, served, rolled back.",
)

families = Table(
    "families",
    metadata,
    text("suite", "The suite that the family belongs to."),
    text("name", "The family's name."),
    document(),
    recorded(),
    PrimaryKeyConstraint("suite", "name"),
    comment="Kinds of tasks with their levels.",
)

tasks = Table(
    "tasks",
    metadata,
    digest("digest", "SHA-256 of the canonical form."),
    text("suite", "The suite that it comes from."),
    text("family", "Its family."),
    Column("level", Integer, nullable=False, comment="Its level of difficulty."),
    text("name", "org/name, as in Harbor's task.toml."),
    document(),
    recorded(),
    PrimaryKeyConstraint("digest"),
    Index(None, "suite", "family", "level"),
    comment="Tasks, whole: instruction, files, verifier, reference solution.",
)
