"""Boxes in containers: hardened, handed out once, gone with their owner."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from docker.errors import APIError, DockerException, ImageNotFound

from rsi.box_probe import limits_processor
from rsi.box_protocol import folders
from rsi.edges.docker_sandbox.base import build_base
from rsi.edges.docker_sandbox.boxes import DockerSandbox, Limits
from rsi.edges.docker_sandbox.calls import client, foreign_errors
from rsi.edges.docker_sandbox.engine import DockerEngine
from rsi.edges.docker_sandbox.owners import LABEL, is_alive, owner_name, reap
from rsi.edges.docker_sandbox.pool import available_mb, pool_size
from rsi.edges.sandbox_image.staging import BaseImage
from rsi.errors import DiskError, RsiError, SandboxError, TrialFault
from rsi.ports import BoxFile, BoxSpec
from tests.fixtures.sandbox import SANDBOXES

pytestmark = pytest.mark.docker

OWNER = """
import sys, time
from pathlib import Path
from rsi.edges.docker_sandbox.boxes import DockerSandbox, Limits
from rsi.ports import BoxSpec
url, tag, sandboxes, state = sys.argv[1:]
sandbox = DockerSandbox(url, tag, "digest", Path(sandboxes), Path(state), Limits(1, 1))
with sandbox.box(BoxSpec()) as box:
    print(sandbox._owner, flush=True)
    box.run(["sleep", "600"], timeout_s=600)
"""


@pytest.fixture
def make(
    docker_engine: DockerEngine, base_image: BaseImage, tmp_path: Path
) -> Iterator[list[DockerSandbox]]:
    """Sandboxes to be closed; the first has a pool of two."""
    made = [
        DockerSandbox(
            docker_engine.url,
            base_image.tag,
            base_image.digest,
            SANDBOXES,
            tmp_path,
            Limits(warm=2, disk_floor_mb=1),
        )
    ]
    yield made
    for one in made:
        one.close()


def containers(url: str, owner: str) -> list[Any]:
    with client(url) as api:
        found: list[Any] = api.containers(all=True, filters={"label": f"{LABEL}={owner}"})
        return found


def gone(url: str, owner: str, limit_s: float = 15) -> bool:
    """Whether the owner's boxes are all gone within the limit."""
    deadline = time.monotonic() + limit_s
    while containers(url, owner):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_a_container_may_do_next_to_nothing(
    docker_engine: DockerEngine, make: list[DockerSandbox]
) -> None:
    spec = BoxSpec(memory_mb=128, pids=40, cpus=0.5, disk_mb=8)
    with make[0].box(spec), client(docker_engine.url) as api:
        running = [
            api.inspect_container(one["Id"])
            for one in containers(docker_engine.url, owner_name(os.getpid()))
        ]
    host = next(one["HostConfig"] for one in running if one["HostConfig"]["PidsLimit"] == 40)
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert host["ReadonlyRootfs"] is True
    assert host["NetworkMode"] == "none"
    assert host["AutoRemove"] is True
    assert host["Memory"] == host["MemorySwap"] == 128 << 20
    assert host["NanoCpus"] == 500_000_000
    assert host["LogConfig"]["Type"] == "none"
    assert host["IpcMode"] == "private"
    assert not host["Binds"]
    assert not host["Devices"]
    assert not host["Privileged"]
    assert host["Tmpfs"].keys() == folders(spec).keys()
    assert any(option.startswith("no-new-privileges") for option in host["SecurityOpt"])
    assert any(option.startswith("seccomp={") for option in host["SecurityOpt"])


def test_a_box_is_handed_out_once(make: list[DockerSandbox]) -> None:
    for _ in range(6):
        with make[0].box(BoxSpec()) as box:
            assert box.run(["cat", "/tmp/used"], timeout_s=20).exit_code == 1
            box.put([BoxFile("/tmp/used", b"yes")])


def test_many_boxes_leave_nothing(docker_engine: DockerEngine, make: list[DockerSandbox]) -> None:
    for _ in range(12):
        with make[0].box(BoxSpec(pids=33)) as box:
            box.run(["bash", "-c", "sleep 600 &"], timeout_s=20)
    make[0].close()
    assert gone(docker_engine.url, owner_name(os.getpid()))


def test_a_box_whose_trial_broke_is_removed(
    docker_engine: DockerEngine, make: list[DockerSandbox]
) -> None:
    def trial() -> None:
        with make[0].box(BoxSpec(pids=34)):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        trial()
    make[0].close()
    assert gone(docker_engine.url, owner_name(os.getpid()))


def test_a_closed_sandbox_makes_no_box(make: list[DockerSandbox]) -> None:
    make[0].check()
    make[0].close()
    with pytest.raises(SandboxError, match="closed"), make[0].box(BoxSpec()):
        pass


def test_a_killed_owner_leaves_no_box(
    docker_engine: DockerEngine, base_image: BaseImage, tmp_path: Path
) -> None:
    words = [docker_engine.url, base_image.tag, str(SANDBOXES), str(tmp_path)]
    process = subprocess.Popen([sys.executable, "-c", OWNER, *words], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        owner = process.stdout.readline().decode().strip()
        assert containers(docker_engine.url, owner)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        assert process.stdout is not None
        process.stdout.close()
    assert gone(docker_engine.url, owner)


@pytest.mark.parametrize("end", ["container", "helper"])
def test_a_box_that_somebody_ends_breaks_its_own_trial_alone(
    docker_engine: DockerEngine, make: list[DockerSandbox], end: str
) -> None:
    with make[0].box(BoxSpec(pids=35)) as box, make[0].box(BoxSpec(pids=36)) as other:
        with client(docker_engine.url) as api:
            for found in map(api.inspect_container, api.containers(quiet=True)):
                if found["HostConfig"]["PidsLimit"] != 35:
                    continue
                if end == "container":
                    api.remove_container(found["Id"], force=True)
                else:
                    os.kill(found["State"]["Pid"], signal.SIGKILL)
        with pytest.raises(TrialFault, match="sandbox: the box ended"):
            box.run(["sleep", "20"], timeout_s=20)
        assert other.run(["true"], timeout_s=20).exit_code == 0


def test_only_boxes_of_dead_owners_are_reaped(
    docker_engine: DockerEngine, base_image: BaseImage
) -> None:
    mine = owner_name(os.getpid())
    dead = f"{mine.rpartition(':')[0]}:1"  # This process's id, but another start.
    elsewhere = "another-boot:4026531836:1:1"
    with client(docker_engine.url) as api:
        made = {
            owner: api.create_container(base_image.tag, ["true"], labels={LABEL: owner})["Id"]
            for owner in (mine, dead, elsewhere)
        }
        try:
            assert reap(docker_engine.url) >= 1
            left = {one["Id"] for one in api.containers(all=True, filters={"label": LABEL})}
            assert made[dead] not in left
            assert {made[mine], made[elsewhere]} <= left
        finally:
            for owner in (mine, elsewhere):
                api.remove_container(made[owner], force=True)


def test_an_owner_is_alive_until_its_process_ends() -> None:
    process = subprocess.Popen(["sleep", "60"])
    owner = owner_name(process.pid)
    assert is_alive(owner)
    process.kill()
    process.wait(10)
    assert is_alive(owner) is False
    assert is_alive("another-boot:4026531836:1:1") is None
    assert is_alive("nonsense") is None


def test_an_engine_that_is_gone_says_what_to_do(base_image: BaseImage, tmp_path: Path) -> None:
    sandbox = DockerSandbox(
        f"unix://{tmp_path}/none.sock", base_image.tag, base_image.digest, SANDBOXES, tmp_path
    )
    with pytest.raises(SandboxError, match="start it"), sandbox.box(BoxSpec()):
        pass
    with pytest.raises(SandboxError, match="start it"):
        sandbox.check()
    sandbox.close()


def test_a_base_image_that_is_gone_is_the_engines_fault(
    docker_engine: DockerEngine, tmp_path: Path
) -> None:
    sandbox = DockerSandbox(docker_engine.url, "rsi-base:none", "d", SANDBOXES, tmp_path)
    with pytest.raises(SandboxError, match="rsi-base:none"):
        sandbox.check()
    sandbox.close()


def test_too_little_disk_is_told_before_a_box_is_made(
    docker_engine: DockerEngine, base_image: BaseImage, tmp_path: Path
) -> None:
    sandbox = DockerSandbox(
        docker_engine.url,
        base_image.tag,
        base_image.digest,
        SANDBOXES,
        tmp_path,
        Limits(warm=0, disk_floor_mb=1 << 40),
    )
    with pytest.raises(DiskError, match="free some room"), sandbox.box(BoxSpec()):
        pass
    sandbox.close()


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (ImageNotFound("no"), TrialFault),
        (APIError("no", explanation="bad"), TrialFault),
        (APIError("no", explanation="write: no space left on device"), DiskError),
        (DockerException("no"), SandboxError),
        (requests.exceptions.ConnectionError("no"), SandboxError),
        (requests.exceptions.ReadTimeout("no"), SandboxError),
        (BrokenPipeError("no"), SandboxError),
    ],
)
def test_foreign_errors_become_ours(error: Exception, ours: type[RsiError]) -> None:
    with pytest.raises(ours), foreign_errors("unix:///none"):
        raise error


def test_an_engine_that_keeps_every_limit_is_isolated(
    docker_engine: DockerEngine, make: list[DockerSandbox]
) -> None:
    facts = make[0].check()
    with client(docker_engine.url) as api:
        says = api.info()
    if says["MemoryLimit"] and says["PidsLimit"] and says["CpuCfsQuota"]:
        assert (facts.level, facts.missing) == ("isolated", ())


def test_a_processor_without_a_limit_is_found(make: list[DockerSandbox]) -> None:
    with make[0].box(BoxSpec(cpus=0.5)) as box:
        assert limits_processor(box)
    with make[0].box(BoxSpec(cpus=1000)) as box:
        assert not limits_processor(box)


def test_a_runtime_that_the_engine_lacks_is_named(
    docker_engine: DockerEngine, base_image: BaseImage, tmp_path: Path
) -> None:
    limits = Limits(warm=0, disk_floor_mb=1, runtime="no-such-runtime")
    words = (docker_engine.url, base_image.tag, base_image.digest, SANDBOXES, tmp_path)
    sandbox = DockerSandbox(*words, limits)
    with pytest.raises(SandboxError, match="no-such-runtime"):
        sandbox.check()
    sandbox.close()


def test_a_box_of_another_image_says_which(
    docker_engine: DockerEngine, base_image: BaseImage, make: list[DockerSandbox]
) -> None:
    with client(docker_engine.url) as api:
        digest = api.inspect_image(base_image.tag)["Id"].removeprefix("sha256:")
    with make[0].box(BoxSpec(image=base_image.tag)) as box:
        assert box.facts.image == digest
    with make[0].box(BoxSpec()) as box:
        assert box.facts.image == base_image.digest


def test_a_base_that_cannot_be_had_says_what_to_do(docker_engine: DockerEngine) -> None:
    with pytest.raises(SandboxError, match=r"localhost:9/none.*RSI_BASE_IMAGE"):
        build_base(docker_engine.url, "localhost:9/none:1", SANDBOXES, {})


@pytest.mark.parametrize(
    ("workers", "cores", "free_mb", "size"),
    [(4, 2, 24_000, 4), (64, 2, 24_000, 4), (64, 64, 24_000, 64), (64, 64, 1024, 8), (1, 1, 10, 1)],
)
def test_the_pool_is_sized_by_cores_and_memory(
    workers: int, cores: int, free_mb: int, size: int
) -> None:
    assert pool_size(workers, cores, free_mb) == size
    assert available_mb() > 0
