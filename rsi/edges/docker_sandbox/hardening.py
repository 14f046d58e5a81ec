"""What a container of ours may do: next to nothing."""

import json
from pathlib import Path
from typing import Any

from rsi.box_protocol import BOOTSTRAP, folders
from rsi.edges.docker_sandbox.task_images import ReadyImage
from rsi.ports import BoxSpec

AGENT_UID = 1000
INODES = "16k"
SHM_MB = 8
OPEN_FILES = 512
VOLUME_MB = 16
"""For what an image declares as a volume, which would be writable without a limit."""


def seccomp_profile(sandboxes: Path) -> str:
    """The system calls that a box may make; the engine wants the content, not a path."""
    return json.dumps(json.loads((sandboxes / "seccomp.json").read_text(encoding="utf-8")))


def container(
    api: Any, spec: BoxSpec, image: ReadyImage, cpus: float, profile: str, runtime: str | None
) -> dict[str, Any]:
    """The arguments that create a hardened container with nothing but the box helper in it."""
    return {
        "image": image.name,
        "host_config": api.create_host_config(**_host(spec, image, cpus, profile), runtime=runtime),
        "command": [*image.python, "-I", "-S", "-c", BOOTSTRAP],
        "entrypoint": [],
        "user": f"{AGENT_UID}:{AGENT_UID}",
        "working_dir": "/",
        "stdin_open": True,
        # Without networks at all the engine also saves the work of setting one up; a box with a
        # way out needs the loopback device, which is all that the network `none` has.
        "network_disabled": not spec.hosts,
        "hostname": "box",
        "healthcheck": {"test": ["NONE"]},
    }


def _host(spec: BoxSpec, image: ReadyImage, cpus: float, profile: str) -> dict[str, Any]:
    memory = spec.memory_mb << 20
    sizes_mb = dict.fromkeys(image.volumes, VOLUME_MB) | folders(spec)
    largest_file = max(sizes_mb.values()) << 20
    return {
        "auto_remove": True,
        "cap_drop": ["ALL"],
        "read_only": True,
        "network_mode": "none",
        "security_opt": ["no-new-privileges", f"seccomp={profile}"],
        "tmpfs": {path: _tmpfs(size_mb) for path, size_mb in sizes_mb.items()},
        "shm_size": f"{SHM_MB}m",
        "pids_limit": spec.pids,
        "mem_limit": memory,
        # Equal to the memory: none of it may be swapped out, and swap adds none.
        "memswap_limit": memory,
        "nano_cpus": int(cpus * 1e9),
        "ipc_mode": "private",
        "oom_score_adj": 500,
        "log_config": {"type": "none", "config": {}},
        "ulimits": [
            {"name": "nofile", "soft": OPEN_FILES, "hard": OPEN_FILES},
            {"name": "fsize", "soft": largest_file, "hard": largest_file},
            {"name": "core", "soft": 0, "hard": 0},
        ],
    }


def _tmpfs(size_mb: int) -> str:
    # runc up to 1.1.7 ignores the mode of a folder that the image has (runc issue 3911), so the
    # owner is what makes it writable.
    owner = f"uid={AGENT_UID},gid={AGENT_UID}"
    return f"rw,exec,nosuid,nodev,size={size_mb}m,nr_inodes={INODES},{owner},mode=0755"
