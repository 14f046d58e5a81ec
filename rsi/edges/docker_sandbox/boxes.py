"""Boxes in Docker containers, hardened, each used once, kept warm in a small pool.

A container runs nothing but the box helper as PID 1, spoken to over the attach socket. It removes
itself when the connection ends (so also when this process is killed) and when its life is over.
"""

import contextlib
import json
import os
import shutil
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError
from requests.exceptions import RequestException

from rsi.box_protocol import BOOTSTRAP, FORK_PROBE, MEMORY_PROBE, HelperBox, folders
from rsi.domain.trial import BoxFacts
from rsi.edges.docker_sandbox.owners import LABEL, foreign_errors, owner_name, reap, remove_boxes
from rsi.edges.docker_sandbox.stream import AttachStream
from rsi.errors import DiskError, SandboxError, TrialFault
from rsi.ports import Box, BoxSpec

CALL_LIMIT_S = 30
GREET_LIMIT_S = 30
AGENT_UID = 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """How many boxes wait ready, and how much disk must stay free."""

    warm: int = 4
    disk_floor_mb: int = 512


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
        is measured. Nothing is started before the first box."""
        self._url, self._image, self._digest = url, image, image_digest
        self._sandboxes, self._state, self._limits = sandboxes, state, limits
        self._owner = owner_name(os.getpid())
        self._lock = threading.Lock()
        self._ready: dict[BoxSpec, deque[Future[HelperBox]]] = {}
        self._makers = ThreadPoolExecutor(2, thread_name_prefix="boxes")
        self._client: Any = None
        self._facts: BoxFacts | None = None
        self._closed = False

    @contextmanager
    def box(self, spec: BoxSpec) -> Iterator[Box]:
        """A fresh box, removed at the end whatever happens."""
        self._check_disk()
        box = self._take(replace(spec, life_s=0))
        try:
            box.live(spec.life_s)
            yield box
        finally:
            box.close()

    def check(self) -> BoxFacts:
        """What a box guarantees, found by trying one. Raises SandboxError."""
        with self._lock:
            if self._facts is not None:
                return self._facts
        reap(self._url)
        facts = self._probe()
        with self._lock:
            self._facts = facts
        return facts

    def close(self) -> None:
        """Removes every box of this process."""
        with self._lock:
            self._closed = True
            waiting = [future for line in self._ready.values() for future in line]
            self._ready.clear()
        for future in waiting:
            if not future.cancel():
                with contextlib.suppress(TrialFault, SandboxError):
                    future.result(GREET_LIMIT_S).close()
        self._makers.shutdown(cancel_futures=True)
        with contextlib.suppress(SandboxError):
            remove_boxes(self._url, self._owner)

    def _take(self, key: BoxSpec) -> HelperBox:
        """A ready box, or one made now; the pool is filled up behind it."""
        with self._lock:
            line = self._ready.setdefault(key, deque())
            future = line.popleft() if line else None
            while not self._closed and len(line) < self._limits.warm:
                line.append(self._makers.submit(self._make, key))
        if future is not None:
            # A box that waited may have died, and one that could not be made earlier may succeed
            # now: both only cost a fresh try.
            with contextlib.suppress(TrialFault, SandboxError):
                box = future.result(GREET_LIMIT_S * 2)
                box.live(CALL_LIMIT_S)
                return box
        return self._make(key)

    def _make(self, spec: BoxSpec) -> HelperBox:
        """A container with the helper in it, attached before it starts."""
        facts = self._facts or BoxFacts(engine="docker", level="isolated", image=self._digest)
        api = self._api()
        with foreign_errors(self._url):
            created = api.create_container(**self._config(api, spec))
            container = created["Id"]
        stream = None
        try:
            stream = AttachStream(self._url, container)
            with foreign_errors(self._url):
                api.start(container)
            box = HelperBox(stream, facts, spec.workdir)
            box.greet((self._sandboxes / "box_helper.py").read_bytes(), GREET_LIMIT_S)
        except BaseException:
            if stream is not None:
                stream.close()
            with contextlib.suppress(APIError, RequestException):
                api.remove_container(container, force=True)
            raise
        return box

    def _config(self, api: Any, spec: BoxSpec) -> dict[str, Any]:
        """What the container may do: next to nothing."""
        memory = spec.memory_mb << 20
        mounts = {
            path: f"rw,exec,nosuid,nodev,size={size}m,nr_inodes=16k,"
            f"uid={AGENT_UID},gid={AGENT_UID},mode=0755"
            for path, size in folders(spec).items()
        }
        profile = json.dumps(json.loads((self._sandboxes / "seccomp.json").read_text()))
        host = api.create_host_config(
            auto_remove=True,
            cap_drop=["ALL"],
            read_only=True,
            network_mode="none",
            security_opt=["no-new-privileges", f"seccomp={profile}"],
            tmpfs=mounts,
            shm_size="8m",
            pids_limit=spec.pids,
            mem_limit=memory,
            memswap_limit=memory,
            nano_cpus=int(min(spec.cpus, os.cpu_count() or 1) * 1e9),
            ipc_mode="private",
            oom_score_adj=500,
            log_config={"type": "none", "config": {}},
            ulimits=[
                {"name": "nofile", "soft": 512, "hard": 512},
                {"name": "fsize", "soft": 64 << 20, "hard": 64 << 20},
                {"name": "core", "soft": 0, "hard": 0},
            ],
        )
        return {
            "image": spec.image or self._image,
            "host_config": host,
            "command": ["python3", "-I", "-S", "-c", BOOTSTRAP],
            "entrypoint": [],
            "user": f"{AGENT_UID}:{AGENT_UID}",
            "working_dir": "/",
            "stdin_open": True,
            "environment": {},
            "network_disabled": True,
            "hostname": "box",
            "labels": {LABEL: self._owner},
        }

    def _probe(self) -> BoxFacts:
        """Tries the limits that engines drop silently, from inside a box."""
        spec = BoxSpec(pids=32, memory_mb=128)
        missing = []
        box = self._make(spec)
        try:
            forked = box.run(["python3", "-c", FORK_PROBE], timeout_s=20)
            box.stop_all()
            if int(forked.stdout or b"0") >= 64:
                missing.append("number of processes")
            eaten = box.run(["python3", "-c", MEMORY_PROBE], timeout_s=20)
            if b"held" in eaten.stdout:
                missing.append("memory of all processes together")
        finally:
            box.close()
        level = "contained" if missing else "isolated"
        return BoxFacts.model_validate(
            {"engine": "docker", "level": level, "image": self._digest, "missing": missing}
        )

    def _api(self) -> Any:
        with self._lock:
            if self._client is None:
                with foreign_errors(self._url):
                    self._client = docker.APIClient(
                        base_url=self._url,
                        timeout=CALL_LIMIT_S,
                        version="auto",
                        num_pools=16,
                    )
            return self._client

    def _check_disk(self) -> None:
        free_mb = shutil.disk_usage(self._state).free >> 20
        if free_mb < self._limits.disk_floor_mb:
            raise DiskError(
                f"{free_mb} MB are free where {self._state} lies and the floor is "
                f"{self._limits.disk_floor_mb} MB; free some room and run again"
            )
