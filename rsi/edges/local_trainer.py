"""Trains LoRA weights in a process of this machine, and checks them as they will be served."""

import errno
import hashlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

import rsi
from rsi.domain.job import TrainJob, TrainProgress, TrainResult
from rsi.domain.lora import Base, Fidelity, Lora, Model
from rsi.domain.values import Digest, short
from rsi.errors import DiskError, TrainerError, TrialFault
from rsi.ports import Blobs, ChatModel, ChatRequest, Engine, Progress, Trained, TrainingJob, Workers

WORKER_SHARE = 0.85
"""Of the recipe's seconds: then the process is killed. The checks after it get the rest."""
NEGLIGIBLE_LOSS = 0.02
"""Of agreement: the smaller quantised base is preferred when it loses no more than this."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A base with what the adapter does on it."""

    base: Base
    fidelity: Fidelity


class LocalTrainer:
    """The Trainer of one machine; `model` is the GGUF that the engine's first base is made of."""

    def __init__(
        self,
        model: Path,
        engine: Engine,
        blobs: Blobs,
        workers: Workers,
        folder: Path,
        *,
        threads: int | None = None,
    ) -> None:
        self._model = model
        self._engine = engine
        self._blobs = blobs
        self._workers = workers
        self._folder = folder
        self._threads = threads or len(os.sched_getaffinity(0))

    def train(self, job: TrainingJob, report: Progress) -> Trained:
        """The adapter, stored and checked on the quantised base and on its F16 form.

        Raises TrainerError, DiskError when there is no room, ModelError when it can't be served.
        """
        self._check(job)
        started_s = time.monotonic()
        with _foreign_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._folder, prefix="run-") as scratch:
                told = self._told(job, Path(scratch))
                result = _run(told, Path(scratch), report)
                lora = self._stored(job, result)
        checked = self._checked(job, lora, told.half, result, report)
        return Trained(
            lora=lora,
            bases=tuple(c.base for c in checked) or (job.base,),
            steps=len(result.losses),
            first_loss=result.losses[0],
            last_loss=result.losses[-1],
            losses=result.losses,
            tokens=result.tokens,
            elapsed_s=time.monotonic() - started_s,
            fidelity=tuple(c.fidelity for c in checked),
        )

    def _check(self, job: TrainingJob) -> None:
        root = self._engine.base()
        if root.digest not in (job.base.digest, job.base.derived_from):
            raise TrainerError(
                f"The base {job.base.name} ({short(job.base.digest)}, {job.base.format}) can't be "
                f"trained here: this machine has the weights of {root.name} "
                f"({short(root.digest)}) alone. Train where the base is."
            )
        if not job.dataset.examples:
            raise TrainerError("The dataset is empty: there is nothing to learn from.")
        if job.parent is not None and job.parent.source is None:
            raise TrainerError(
                f"The LoRA {short(job.parent.digest)} has no trainer's weights to start from. "
                "Train without a parent."
            )

    def _told(self, job: TrainingJob, scratch: Path) -> TrainJob:
        root = self._engine.base()
        source = job.parent.source if job.parent is not None else None
        return TrainJob(
            model=self._model,
            cache=self._folder / f"weights-{short(root.digest)}",
            half=self._model.with_name(f"{root.name}-{short(root.digest)}.F16.gguf"),
            output=scratch,
            dataset=job.dataset,
            recipe=job.recipe,
            parent=self._blobs.path(source) if source is not None else None,
            probes=job.probes,
            probe_max_tokens=job.probe_max_tokens,
            threads=self._threads,
        )

    def _stored(self, job: TrainingJob, result: TrainResult) -> Lora:
        return Lora(
            digest=self._blobs.put_file(result.adapter),
            base=job.base.digest,
            slot=job.slot,
            dataset=job.dataset.digest,
            recipe=job.recipe,
            parent=job.parent.digest if job.parent is not None else None,
            source=self._blobs.put_file(result.source),
        )

    def _checked(
        self, job: TrainingJob, lora: Lora, half: Path, result: TrainResult, report: Progress
    ) -> tuple[Checked, ...]:
        """The bases with the adapter's fidelity on each, the one that loses least first."""
        if not job.probes:
            return ()
        root = self._engine.base()
        derived = Base(
            name=root.name,
            digest=_file_digest(half),
            format="gguf:F16",
            derived_from=root.digest,
        )
        report.stage("check the served adapter", 2)
        checked = []
        for base in (root, derived):
            fidelity = self._fidelity(job, lora, base, result)
            checked.append(Checked(base, fidelity))
            report.advance(1, f"{base.format} agrees on {fidelity.agreement:.0%}")
        return least_loss_first(tuple(checked))

    def _fidelity(self, job: TrainingJob, lora: Lora, base: Base, result: TrainResult) -> Fidelity:
        models = (
            Model(base=base.digest),
            Model(base=base.digest, loras={job.slot: lora.digest}),
        )
        plain, adapted = self._engine.serve_all(models, (lora,))
        without, served = self._replies(job, plain), self._replies(job, adapted)
        fidelity = Fidelity(
            base=base.digest,
            prompts=len(job.probes),
            agreement=_equal_share(served, result.trained_outputs),
            changed=1.0 - _equal_share(served, without),
        )
        if _has_learnt(result) and fidelity.changed == 0.0:
            raise TrainerError(
                f"The adapter {short(lora.digest)} changes none of {fidelity.prompts} replies when "
                f"served over {base.format}, though it does in training: it isn't served as it was "
                "trained, and was not recorded. Check the versions of xllamacpp and gguf."
            )
        return fidelity

    def _replies(self, job: TrainingJob, model: ChatModel) -> tuple[str, ...]:
        requests = [
            ChatRequest(messages=p, slot=job.slot, seed=0, max_tokens=job.probe_max_tokens)
            for p in job.probes
        ]
        try:
            replies = self._workers.map("probe", model.chat, requests)
        except TrialFault as fault:
            raise TrainerError(f"The probes of the served adapter broke: {fault}") from fault
        return tuple(reply.text for reply in replies)


def least_loss_first(checked: Sequence[Checked]) -> tuple[Checked, ...]:
    """By agreement; an earlier base stays first unless a later one is better by more than 0.02."""
    best = max(c.fidelity.agreement for c in checked)
    first = next(c for c in checked if c.fidelity.agreement >= best - NEGLIGIBLE_LOSS)
    rest = sorted((c for c in checked if c is not first), key=lambda c: -c.fidelity.agreement)
    return (first, *rest)


def _has_learnt(result: TrainResult) -> bool:
    """True when some reply of the trained model doesn't begin as the base's does."""
    pairs = zip(result.trained_outputs, result.base_openings, strict=True)
    return any(not trained.startswith(opening) for trained, opening in pairs)


def _file_digest(path: Path) -> Digest:
    with _foreign_errors(path.parent), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _equal_share(left: Sequence[str], right: Sequence[str]) -> float:
    equal = sum(a.strip() == b.strip() for a, b in zip(left, right, strict=True))
    return equal / len(left)


def _run(job: TrainJob, scratch: Path, report: Progress) -> TrainResult:
    """Runs the training process to its end or its limit. Raises TrainerError."""
    job_file, log = scratch / "job.json", scratch / "log"
    job_file.write_text(job.model_dump_json(), "utf-8")
    limit_s = WORKER_SHARE * job.recipe.seconds
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "rsi.worker.train", str(job_file)],
            stdin=subprocess.PIPE,  # the process ends when this does
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=Path(rsi.__path__[0]).parent,
            start_new_session=True,
        )
    try:
        is_ended = _follow(process, time.monotonic() + limit_s, report)
        status = process.wait(10) if is_ended else None
    except subprocess.TimeoutExpired:
        status = None
    finally:
        _kill(process)
    if status is None:
        raise TrainerError(
            f"The training did not end within {limit_s:.0f} s (of the recipe's "
            f"{job.recipe.seconds:.0f} s). Allow more seconds or fewer steps."
        )
    if status != 0:
        raise TrainerError(_why(status, log))
    return TrainResult.model_validate_json((scratch / "result.json").read_text("utf-8"))


def _follow(process: "subprocess.Popen[bytes]", deadline_s: float, report: Progress) -> bool:
    """Reports the process's progress; true when it closed its output before the deadline."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    rest, has_begun = b"", False
    while (left_s := deadline_s - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], left_s)[0]:
            return False
        chunk = os.read(descriptor, 65536)
        if not chunk:
            return True
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            has_begun = _tell(line, has_begun, report)
    return False


def _tell(line: bytes, has_begun: bool, report: Progress) -> bool:
    """Passes one line on; whether the steps have begun."""
    progress = TrainProgress.model_validate_json(line)
    if not progress.step:
        report.say(f"Training: {progress.doing}")
        return has_begun
    if not has_begun:
        report.stage("train", progress.steps)
    report.advance(1, f"loss {progress.loss:.3f}")
    return True


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Ends the process and all that it started."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)


def _why(status: int, log: Path) -> str:
    lines = [line.strip() for line in log.read_text("utf-8", "replace").split("\n")]
    words = " | ".join([line for line in lines if line][-3:])
    if "ModuleNotFoundError" in words:
        return f"The training parts aren't installed ({words}): install rsi[train]."
    if status == -signal.SIGKILL:
        return f"The training was killed, most likely for want of memory. {words}".strip()
    return f"The training ended with status {status}: {words}"


@contextmanager
def _foreign_errors(folder: Path) -> Iterator[None]:
    """Turns what the system and pydantic raise into the project's errors."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskError(f"There is no room to train in {folder}: free 1 GB.") from error
        raise TrainerError(f"Could not train in {folder}: {error}.") from error
    except ValidationError as error:
        raise TrainerError(f"The training process answered nonsense: {error}") from error
