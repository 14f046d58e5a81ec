"""Serves a GGUF base and LoRA adapters with llama.cpp, one child process for each base.

A child holds its base and the adapters that were asked for, each at scale 0; every request names
all of them, so that none acts that wasn't chosen. Other adapters need another child (about 1 s).
"""

import hashlib
import itertools
import json
import os
import secrets
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import rsi
from rsi.domain.contract import Slot
from rsi.domain.job import ServeJob, Serving
from rsi.domain.lora import Base, Lora, Model
from rsi.domain.values import Digest, short
from rsi.errors import ModelError
from rsi.ports import Blobs, ChatModel, Connect

_RESTARTS = 3
"""Of one child without a start of another in between; a request that kills llama.cpp ends there."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """How a child serves, and how long it may take to start and to end."""

    slots: int = 4
    """Requests that one server answers side by side."""
    context_tokens: int = 2048
    servers: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    """One for each core, of one thread each: llama.cpp's threads wait for each other in busy
    loops, so that one server of two threads slows down several times while sandboxes run."""
    start_s: float = 90.0
    stop_s: float = 5.0


class EmbeddedEngine:
    """The Engine of one machine: `model` is the first base, others lie beside it as `*.gguf`."""

    def __init__(
        self,
        model: Path,
        blobs: Blobs,
        connect: Connect,
        log: Path,
        *,
        limits: EngineLimits = EngineLimits(),
    ) -> None:
        self._model = model
        self._blobs = blobs
        self._connect = connect
        self._log = log
        self._limits = limits
        self._lock = threading.Lock()
        self._children: dict[Digest, _Servers] = {}
        self._digests: dict[Path, Digest] = {}

    def base(self) -> Base:
        """The base of the model file. Raises ModelError when the file is missing."""
        name, _, quantisation = self._model.stem.rpartition(".")
        return Base(name=name, digest=self._digest(self._model), format=f"gguf:{quantisation}")

    def serve(self, model: Model, loras: Sequence[Lora]) -> ChatModel:
        """A ChatModel for the model; see `serve_all`."""
        return self.serve_all((model,), loras)[0]

    def serve_all(self, models: Sequence[Model], loras: Sequence[Lora]) -> tuple[ChatModel, ...]:
        """ChatModels that answer side by side; those of an earlier call may raise ModelError.

        Raises ModelError when a base or an adapter is missing, damaged or can't be loaded.
        """
        _check_loras(models, loras)
        with self._lock:
            wanted = {model.base: _adapters(models, model.base) for model in models}
            for digest in [d for d in self._children if d not in wanted]:
                self._children.pop(digest).close()
            for digest, adapters in wanted.items():
                self._ensure(digest, adapters)
            return tuple(self._chat_model(self._children[m.base], m) for m in models)

    def close(self) -> None:
        """Ends every child."""
        with self._lock:
            while self._children:
                self._children.popitem()[1].close()

    def _ensure(self, digest: Digest, adapters: tuple[Digest, ...]) -> None:
        running = self._children.get(digest)
        if running is not None and set(adapters) <= set(running.adapters):
            return
        if running is not None:
            self._children.pop(digest).close()
        job = ServeJob(
            model=self._find(digest),
            loras=tuple(self._blobs.path(adapter) for adapter in adapters),
            slots=self._limits.slots,
            context_tokens=self._limits.context_tokens,
            threads=1,
            key=secrets.token_urlsafe(24),
        )
        servers = _Servers(
            tuple(
                _Child(job, adapters, self._log, self._limits) for _ in range(self._limits.servers)
            )
        )
        servers.start()
        self._children[digest] = servers

    def _chat_model(self, servers: "_Servers", model: Model) -> ChatModel:
        def route(slot: Slot) -> Mapping[str, object]:
            return servers.route(model.loras.get(slot))

        return self._connect(servers.address, route, servers.key)

    def _find(self, digest: Digest) -> Path:
        """The model file with that content."""
        beside = sorted(self._model.parent.glob("*.gguf"))
        for path in [self._model, *(p for p in beside if p != self._model)]:
            if self._digest(path) == digest:
                return path
        raise ModelError(
            f"No model file in {self._model.parent} is the base {short(digest)}: it is missing or "
            "damaged. Put the file with that SHA-256 there, or delete the damaged one and run "
            "the set-up again."
        )

    def _digest(self, path: Path) -> Digest:
        if path not in self._digests:
            with _foreign_errors(f"read the model file {path}"), path.open("rb") as file:
                self._digests[path] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._digests[path]


class _Servers:
    """The servers of one base: alike, and asked in turn."""

    def __init__(self, children: "tuple[_Child, ...]") -> None:
        self._children = children
        self._turn = itertools.cycle(children)
        self._lock = threading.Lock()

    @property
    def adapters(self) -> tuple[Digest, ...]:
        return self._children[0].adapters

    @property
    def key(self) -> str:
        return self._children[0].job.key

    def start(self) -> None:
        """Starts them side by side. Raises ModelError, with none left running."""
        with ThreadPoolExecutor(len(self._children)) as pool:
            started = [pool.submit(child.address) for child in self._children]
        try:
            for future in started:
                future.result()
        except BaseException:
            self.close()
            raise

    def address(self) -> str:
        """Where the next request goes."""
        with self._lock:
            child = next(self._turn)
        return child.address()

    def route(self, chosen: Digest | None) -> Mapping[str, object]:
        return self._children[0].route(chosen)

    def close(self) -> None:
        for child in self._children:
            child.close()


class _Child:
    """One server process with fixed adapters, started again when it died."""

    def __init__(
        self, job: ServeJob, adapters: tuple[Digest, ...], log: Path, limits: EngineLimits
    ) -> None:
        self.job = job
        self.adapters = adapters
        self._log = log
        self._limits = limits
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._url = ""
        self._starts = 0
        self._is_closed = False

    def address(self) -> str:
        """Where the living server listens. Raises ModelError when it can't be brought back."""
        with self._lock:
            if self._is_closed:
                raise ModelError("This model is no longer served: ask the engine for it again.")
            if self._process is not None and self._process.poll() is None:
                return self._url
            if self._starts > _RESTARTS:
                raise ModelError(
                    f"The model server of {self.job.model} died {self._starts} times. "
                    f"The end of its log ({self._log}): {self._last_words()}"
                )
            self._starts += 1
            self._start()
            return self._url

    def route(self, chosen: Digest | None) -> Mapping[str, object]:
        """What a request says to get the chosen adapter alone, or none."""
        scales = [
            {"id": place, "scale": 1.0 if adapter == chosen else 0.0}
            for place, adapter in enumerate(self.adapters)
        ]
        return {"lora": scales, "cache_prompt": True}

    def close(self) -> None:
        """Ends the process and waits for it."""
        with self._lock:
            self._is_closed = True
            self._stop()

    def _start(self) -> None:
        self._stop()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with _foreign_errors("start the model server"), self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rsi.worker.serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=Path(rsi.__path__[0]).parent,
                start_new_session=True,  # Ctrl-C must not reach it before the trials have ended
            )
        try:
            self._url = self._await_url(self._process)
        except BaseException:
            self._stop()
            raise

    def _await_url(self, process: "subprocess.Popen[bytes]") -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        with _foreign_errors(f"start the model server of {self.job.model}"):
            process.stdin.write(self.job.model_dump_json().encode() + b"\n")
            process.stdin.flush()
        line = _read_line(process.stdout.fileno(), self._limits.start_s)
        if line is None:
            state = f"did not start within {self._limits.start_s:.0f} s"
        elif not line.endswith(b"\n"):
            state = f"could not load its files (exit {process.wait(self._limits.stop_s)})"
        else:
            return Serving(**json.loads(line)).url
        raise ModelError(
            f"The model server of {self.job.model} with {len(self.adapters)} adapter(s) {state}. "
            f"The end of its log ({self._log}): {self._last_words()}"
        )

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            process.wait(self._limits.stop_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(self._limits.stop_s)

    def _last_words(self) -> str:
        try:
            lines = self._log.read_text("utf-8", "replace").split("\n")
        except OSError:
            return "none"
        return " | ".join([line.strip() for line in lines if line.strip()][-4:])


def _check_loras(models: Sequence[Model], loras: Sequence[Lora]) -> None:
    known = {lora.digest: lora for lora in loras}
    for model in models:
        for slot, digest in model.loras.items():
            if digest not in known:
                raise ModelError(
                    f"The model names the LoRA {short(digest)} for slot {slot}, which wasn't given."
                )


def _adapters(models: Sequence[Model], base: Digest) -> tuple[Digest, ...]:
    """The adapters that the models of a base need, in a stable order."""
    return tuple(sorted({d for m in models if m.base == base for d in m.loras.values()}))


def _read_line(descriptor: int, limit_s: float) -> bytes | None:
    """One line; without its end when the writer is gone, None when the limit has passed."""
    deadline_s = time.monotonic() + limit_s
    line = b""
    while not line.endswith(b"\n"):
        left_s = deadline_s - time.monotonic()
        if left_s <= 0 or not select.select([descriptor], [], [], left_s)[0]:
            return None
        chunk = os.read(descriptor, 65536)
        if not chunk:
            return line
        line += chunk
    return line


@contextmanager
def _foreign_errors(doing: str) -> Iterator[None]:
    """Turns what the system raises into ModelError."""
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"Could not {doing}: {error}. Run the set-up again, or set RSI_MODEL_URL to the "
            "address of an OpenAI-compatible server."
        ) from error
