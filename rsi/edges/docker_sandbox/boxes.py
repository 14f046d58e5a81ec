"""Boxes in Docker containers, hardened, each used once, kept warm in a small pool.

A container runs nothing but the box helper as PID 1, spoken to over the attach socket. It removes
itself when the connection ends (so also when this process is killed) and when its life is over.
"""

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rsi.box_probe import PROBE_SPEC, limits_processor, probe
from rsi.box_protocol import HelperBox, helper_source
from rsi.domain.trial import BoxFacts
from rsi.edges.docker_sandbox.calls import (
    EngineFacts,
    engine_facts,
    foreign_errors,
    open_client,
    remove_container,
)
from rsi.edges.docker_sandbox.hardening import container, seccomp_profile
from rsi.edges.docker_sandbox.image_files import batches
from rsi.edges.docker_sandbox.own_python import BareBox
from rsi.edges.docker_sandbox.owners import LABEL, owner_name, reap, remove_boxes
from rsi.edges.docker_sandbox.pool import Pool
from rsi.edges.docker_sandbox.stream import AttachStream
from rsi.edges.docker_sandbox.task_images import ReadyImage, TaskImages
from rsi.errors import DiskError, SandboxError, TrialFault
from rsi.ports import Box, BoxSpec

GREET_LIMIT_S = 30


@dataclass(frozen=True, slots=True)
class Limits:
    """How many boxes of a kind wait ready, how much disk must stay free, and what runs them."""

    warm: int = 4
    disk_floor_mb: int = 512
    runtime: str | None = None
    """The engine's runtime, such as gVisor's `runsc`; None for its own default."""


class DockerSandbox:
    """Keeps the `Sandbox` port with the engine at `url`."""

    def __init__(
        self,
        url: str,
        image: str,
        image_digest: str,
        sandboxes: Path,
        state: Path,
        limits: Limits = Limits(),
    ) -> None:
        """`sandboxes` holds the helper and the seccomp profile; `state` is where the disk floor
        is measured, besides the engine's own folder. Nothing is started before the first box."""
        self._url, self._image, self._digest = url, image, image_digest
        self._helper, self._profile = helper_source(sandboxes), seccomp_profile(sandboxes)
        self._state, self._floor_mb = state, limits.disk_floor_mb
        self._runtime = limits.runtime
        self._owner = owner_name(os.getpid())
        self._lock = threading.RLock()
        self._task_images = TaskImages(url, image, self._owner, self._start)
        self._pool = Pool(self._make, limits.warm)
        self._client: Any = None
        self._engine: EngineFacts | None = None
        self._facts: BoxFacts | None = None

    @contextmanager
    def box(self, spec: BoxSpec) -> Iterator[Box]:
        """A fresh box, removed at the end whatever happens."""
        self.check()
        self._check_disk()
        # What an image needs may take minutes: not for the pool's makers to wait for.
        self._task_images.find(spec)
        self._task_images.files(spec)
        box = self._pool.take(replace(spec, life_s=0))
        try:
            box.live(spec.life_s)
            yield box
        finally:
            box.close()

    def check(self) -> BoxFacts:
        """What a box guarantees, found by trying one. Raises SandboxError."""
        with self._lock:
            if self._facts is None:
                reap(self._url)
                self._facts = self._probe()
            return self._facts

    def close(self) -> None:
        """Removes every box of this process."""
        self._pool.close()
        with contextlib.suppress(SandboxError, TrialFault):
            remove_boxes(self._url, self._owner)
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _probe(self) -> BoxFacts:
        """Tries the limits that engines drop silently, from inside a box."""
        try:
            with closing(self._make(replace(PROBE_SPEC, cpus=0.5))) as box:
                missing = list(probe(box))
                if not limits_processor(box):
                    missing.append("share of the processor")
        except TrialFault as fault:
            raise SandboxError(
                f"the Docker engine at {self._url} can't make a box ({fault.reason}); mend it, or "
                "set RSI_SANDBOX=namespaces, and run again"
            ) from fault
        level = "contained" if missing else "isolated"
        return BoxFacts.model_validate(
            {"engine": "docker", "level": level, "image": self._digest, "missing": tuple(missing)}
        )

    def _make(self, spec: BoxSpec) -> HelperBox:
        """A box with the image's own files in its workdir."""
        box = self._start(spec, self._task_images.find(spec))
        try:
            for some in batches(self._task_images.files(spec)):
                box.put(some)
        except BaseException:
            box.close()
            raise
        return box

    def _start(self, spec: BoxSpec, image: ReadyImage) -> HelperBox:
        """A container with the helper in it, attached before it starts."""
        api = self._api()
        facts = self._facts or BoxFacts(engine="docker", level="isolated", image=self._digest)
        if image.digest is not None:
            facts = facts.model_copy(update={"image": image.digest})
        cpus = min(spec.cpus, self._engine_of(api).cpus)
        with foreign_errors(self._url):
            created = api.create_container(
                **container(api, spec, image, cpus, self._profile, self._runtime),
                labels={LABEL: self._owner},
            )
        stream = None
        try:
            stream = AttachStream(self._url, created["Id"])
            with foreign_errors(self._url):
                api.start(created["Id"])
            kind = BareBox if image.is_bare else HelperBox
            box = kind(stream, facts, spec.workdir)
            box.greet(self._helper, GREET_LIMIT_S)
            box.open_network(spec.hosts)
        except BaseException:
            if stream is not None:
                stream.close()
            remove_container(api, created["Id"])
            raise
        return box

    def _api(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = open_client(self._url)
            return self._client

    def _engine_of(self, api: Any) -> EngineFacts:
        with self._lock:
            if self._engine is None:
                self._engine = engine_facts(api, self._url)
            return self._engine

    def _check_disk(self) -> None:
        folders = [self._state]
        if self._engine is not None and self._engine.data_root is not None:
            folders.append(self._engine.data_root)
        for folder in folders:
            free_mb = shutil.disk_usage(folder).free >> 20
            if free_mb < self._floor_mb:
                raise DiskError(
                    f"{free_mb} MB are free where {folder} lies and the floor is "
                    f"{self._floor_mb} MB; free some room and run again"
                )
