"""The composition root: the one place that builds edges. Imports are made where they are used, so
that a command that only reads the ledger starts at once."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rsi.domain.evaluation import Evaluation, SuiteChoice
from rsi.errors import SandboxError
from rsi.ports import (
    Blobs,
    ContractFiles,
    Engine,
    Ledger,
    Progress,
    Sandbox,
    TaskSource,
    Trainer,
    Workers,
)
from rsi.settings import Settings, current_settings
from rsi.stages.parts import Parts

if TYPE_CHECKING:
    from rsi.edges.docker_sandbox.boxes import DockerSandbox
    from rsi.edges.namespace_sandbox.boxes import NamespaceSandbox

Say = Callable[[str], None]

PUBLIC_BASE = "python:3.11-slim-bookworm"
"""What Docker's boxes are built from where this machine lacks the tools for an image."""


def settings() -> Settings:
    """The settings of this process."""
    return current_settings()


def database_url(chosen: Settings) -> str:
    """The ledger's address; the embedded server is started when it doesn't run."""
    if chosen.database_url is not None:
        return chosen.database_url.get_secret_value()
    from rsi.edges.embedded_postgres.server import EmbeddedPostgres

    server = EmbeddedPostgres(chosen.state_dir / "postgres")
    server.start()
    return server.url


def open_ledger(chosen: Settings | None = None) -> Ledger:
    """The ledger; close it afterwards. Raises DatabaseError when Postgres can't be had."""
    from rsi.edges.ledger.postgres import PostgresLedger

    return PostgresLedger(database_url(chosen or settings()))


def open_blobs(chosen: Settings | None = None) -> Blobs:
    """The blob store of the project."""
    from rsi.edges.blob_files import FileBlobs

    return FileBlobs((chosen or settings()).state_dir / "blobs")


def contract_files() -> ContractFiles:
    """Reads, edits and writes contracts."""
    from rsi.edges.contract_files.files import TomlContractFiles

    return TomlContractFiles()


def suites(evaluation: Evaluation) -> tuple[TaskSource, ...]:
    """The suites that the evaluation names, in its order."""
    return tuple(suite(choice) for choice in evaluation.suites)


def suite(choice: SuiteChoice) -> TaskSource:
    """The built-in shell suite, or a folder of Harbor tasks."""
    if choice.kind == "shell":
        from rsi.suites.shell.suite import ShellSuite

        return ShellSuite()
    from rsi.edges.task_files.source import FolderSource

    return FolderSource(Path(choice.path or "."))


@contextmanager
def open_sandbox(chosen: Settings, say: Say, disk_floor_mb: int = 512) -> Iterator[Sandbox]:
    """A sandbox: Docker where an engine answers or can be started, else namespaces.

    An engine that was started here is stopped here. Raises SandboxError when the kind that the
    settings insist on can't be had.
    """
    with ExitStack() as stack:
        url = None if chosen.sandbox == "namespaces" else _engine_url(chosen, say, stack)
        made: NamespaceSandbox | DockerSandbox
        if url is None:
            made = _namespaces(chosen, say, disk_floor_mb)
        else:
            made = _docker(chosen, url, _docker_image(chosen, url, say, stack), disk_floor_mb)
        stack.callback(made.close)
        yield made


def _namespaces(chosen: Settings, say: Say, disk_floor_mb: int) -> "NamespaceSandbox":
    from rsi.edges.namespace_sandbox.boxes import NamespaceSandbox
    from rsi.edges.sandbox_image.staging import stage

    image = stage(chosen.state_dir / "image", say)
    sandboxes = chosen.root / "sandboxes"
    return NamespaceSandbox(image.root, image.digest, sandboxes, chosen.state_dir, disk_floor_mb)


def _docker(
    chosen: Settings, url: str, image: tuple[str, str], disk_floor_mb: int
) -> "DockerSandbox":
    from rsi.edges.docker_sandbox.boxes import DockerSandbox, Limits
    from rsi.edges.docker_sandbox.pool import available_mb, pool_size

    warm = pool_size(chosen.workers, os.cpu_count() or 1, available_mb())
    limits = Limits(warm, disk_floor_mb, chosen.docker_runtime)
    return DockerSandbox(url, *image, chosen.root / "sandboxes", chosen.state_dir, limits)


def _engine_url(chosen: Settings, say: Say, stack: ExitStack) -> str | None:
    """The Docker engine's address; None when there is no engine."""
    from rsi.edges.docker_sandbox.engine import open_engine

    try:
        return stack.enter_context(open_engine(os.environ, chosen.state_dir / "docker", say)).url
    except SandboxError as error:
        if chosen.sandbox == "docker":
            raise
        say(f"Sandbox: Linux namespaces (rsi doctor says what they can't guarantee): {error}")
        return None


def _docker_image(chosen: Settings, url: str, say: Say, stack: ExitStack) -> tuple[str, str]:
    """(tag, digest) of the base image in the engine: built from the image that was chosen, else of
    this machine's own tools, else, where it lacks them, from a public one."""
    from rsi.edges.docker_sandbox.base import build_base
    from rsi.edges.docker_sandbox.images import load_image
    from rsi.edges.sandbox_image.staging import stage, write_tar
    from rsi.edges.sandbox_image.tools import STAND_INS

    chosen_base = chosen.base_image
    if chosen_base is None:
        try:
            image = stage(chosen.state_dir / "image", say)
        except SandboxError as error:
            say(f"The sandbox's image comes from {PUBLIC_BASE}: {error}")
            chosen_base = PUBLIC_BASE
    if chosen_base is not None:
        return build_base(url, chosen_base, chosen.root / "sandboxes", STAND_INS)

    def tar() -> Path:
        target = chosen.state_dir / "image" / "base.tar"
        stack.callback(partial(target.unlink, missing_ok=True))
        write_tar(image, target)
        return target

    load_image(url, image.tag, tar)
    return image.tag, image.digest


def small_model_path(chosen: Settings) -> Path:
    """Where the small model's file lies, whether it is there or not."""
    from rsi.edges.model_files import SMALL_MODEL_FILE

    return chosen.state_dir / "models" / SMALL_MODEL_FILE


def served_model_path(chosen: Settings) -> Path:
    """Where the small model's served form lies: the same weights as Q8_0, made from the file."""
    from rsi.edges.model_files import SMALL_MODEL_NAME

    return chosen.state_dir / "models" / f"{SMALL_MODEL_NAME}.Q8_0.gguf"


def open_engine(chosen: Settings, blobs: Blobs) -> Engine:
    """The model server: the one that the settings name, or the embedded one."""
    from rsi.edges.chat_http import HttpChatModel
    from rsi.edges.system_clock import SystemClock

    connect = partial(HttpChatModel, clock=SystemClock())
    if chosen.model_url is not None:
        from rsi.edges.remote_engine import RemoteEngine

        key = chosen.model_key.get_secret_value() if chosen.model_key else None
        return RemoteEngine(chosen.model_url, chosen.model_name, connect, key=key)
    from rsi.edges.embedded_engine import EmbeddedEngine

    log = chosen.state_dir / "logs" / "model.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    return EmbeddedEngine(served_model_path(chosen), blobs, connect, log)


def open_trainer(chosen: Settings, engine: Engine, blobs: Blobs, workers: Workers) -> Trainer:
    """The trainer on this machine."""
    from rsi.edges.local_trainer import LocalTrainer

    return LocalTrainer(
        served_model_path(chosen), engine, blobs, workers, chosen.state_dir / "training"
    )


@contextmanager
def open_parts(
    chosen: Settings, evaluation: Evaluation, workers: Workers, progress: Progress
) -> Iterator[Parts]:
    """Every part of a generation, built from the settings and given back at the end."""
    from rsi.edges.system_clock import SystemClock
    from rsi.edges.trace_files import AtifFiles

    with ExitStack() as stack:
        ledger = open_ledger(chosen)
        stack.callback(ledger.close)
        blobs = open_blobs(chosen)
        engine = open_engine(chosen, blobs)
        stack.callback(engine.close)
        floor_mb = evaluation.budget.disk_floor_mb
        sandbox = stack.enter_context(open_sandbox(chosen, progress.say, floor_mb))
        yield Parts(
            ledger=ledger,
            blobs=blobs,
            contract_files=contract_files(),
            traces=AtifFiles(),
            engine=engine,
            sandbox=sandbox,
            trainer=open_trainer(chosen, engine, blobs, workers),
            suites=suites(evaluation),
            workers=workers,
            progress=progress,
            clock=SystemClock(),
        )


def say_to_stderr(text: str) -> None:
    """Tells a person; standard output is for results."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201
