"""The parts that a stage works with, and whom it runs."""

from dataclasses import dataclass

from rsi.domain.contract import Contract
from rsi.domain.lora import Model
from rsi.domain.pair import Pair
from rsi.domain.values import Digest
from rsi.ports import (
    Blobs,
    ChatModel,
    Clock,
    ContractFiles,
    Engine,
    Ledger,
    Progress,
    Sandbox,
    TaskSource,
    TraceFiles,
    Trainer,
    Workers,
)


@dataclass(frozen=True, slots=True)
class Parts:
    """Every port that a generation needs; only `rsi.wiring` fills it with edges."""

    ledger: Ledger
    blobs: Blobs
    contract_files: ContractFiles
    traces: TraceFiles
    engine: Engine
    sandbox: Sandbox
    trainer: Trainer
    suites: tuple[TaskSource, ...]
    workers: Workers
    progress: Progress
    clock: Clock


@dataclass(frozen=True, slots=True)
class Contender:
    """A pair that is ready to run."""

    pair: Digest
    contract: Contract
    chat: ChatModel
    model: Model


def contender(parts: Parts, model: Model, contract: Contract, chat: ChatModel) -> Contender:
    """The pair of a served model and a recorded contract, recorded itself."""
    pair = Pair(model=model.digest, contract=contract.digest)
    parts.ledger.add_pair(pair, model)
    return Contender(pair.digest, contract, chat, model)


def serve(parts: Parts, *models: Model) -> tuple[ChatModel, ...]:
    """ChatModels of the models, answering side by side."""
    digests = sorted({digest for model in models for digest in model.loras.values()})
    return parts.engine.serve_all(models, parts.ledger.loras(digests))
