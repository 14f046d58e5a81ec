"""Control groups of boxes: found, felt, removed with their owner, and done without."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from rsi.edges.namespace_sandbox.boxes import NamespaceSandbox
from rsi.edges.sandbox_image.staging import BaseImage
from rsi.errors import TrialFault
from rsi.ports import BoxSpec
from tests.edges.test_namespace_sandbox import OWNER
from tests.fixtures.sandbox import ROOT, SANDBOXES

MISSING = {"memory of all processes together", "share of the processor"}


def load() -> ModuleType:
    """The module as the launcher has it."""
    sys.path.insert(0, str(SANDBOXES))
    try:
        spec = importlib.util.spec_from_file_location("box_cgroup", SANDBOXES / "box_cgroup.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SANDBOXES))
    return module


CGROUP = load()

Make = Callable[..., NamespaceSandbox]


@pytest.fixture
def make(base_image: BaseImage, tmp_path: Path) -> Iterator[Make]:
    """Makes sandboxes, each with a launcher of its own."""
    with contextlib.ExitStack() as stack:

        def one(process: Path = Path("/proc/self")) -> NamespaceSandbox:
            made = NamespaceSandbox(
                base_image.root, base_image.digest, SANDBOXES, tmp_path, 1, process
            )
            stack.callback(made.close)
            return made

        yield one


@pytest.fixture
def limited(namespace_sandbox: NamespaceSandbox) -> NamespaceSandbox:
    """A sandbox on a machine that lets control groups be made."""
    able = {one for place in CGROUP.Groups().places for one in place.controllers}
    if able != {"memory", "pids", "cpu"}:
        pytest.skip(f"control groups can be made for {sorted(able) or 'nothing'} here")
    assert namespace_sandbox.check().missing == ()
    return namespace_sandbox


def launchers(parent: int) -> set[int]:
    """The launchers that the process has started."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            is_launcher = b"namespace_launcher" in path.with_name("cmdline").read_bytes()
            if is_launcher and path.read_text().rpartition(")")[2].split()[1] == str(parent):
                found.add(int(path.parent.name))
    return found


def launched(sandbox: NamespaceSandbox) -> int:
    """The launcher that the sandbox starts now."""
    before = launchers(os.getpid())
    sandbox.check()
    (pid,) = launchers(os.getpid()) - before
    return pid


def groups_of(launcher: int) -> list[Path]:
    """The control groups that have the launcher's name."""
    return [
        Path(folder, name)
        for mount in CGROUP.find_mounts("/proc/self")
        for folder, names, _ in os.walk(mount.folder)
        for name in names
        if (match := CGROUP.NAME.fullmatch(name)) and int(match[2]) == launcher
    ]


def are_gone(launcher: int) -> bool:
    deadline = time.monotonic() + 10
    while groups_of(launcher) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not groups_of(launcher)


def told(folder: Path, mounts: str, groups: str) -> Path:
    """A folder that tells a process's mounts and control groups as /proc/self does."""
    folder.mkdir(exist_ok=True)
    (folder / "mountinfo").write_text(mounts)
    (folder / "cgroup").write_text(groups)
    return folder


@pytest.mark.namespaces
def test_files_in_memory_count_as_the_boxs_memory(limited: NamespaceSandbox) -> None:
    with limited.box(BoxSpec(memory_mb=64, disk_mb=128)) as box:
        codes = [
            box.run(["bash", "-c", f"exec head -c {size} /dev/zero > big"], timeout_s=30).exit_code
            for size in ("30M", "100M")
        ]
    assert codes == [0, -9]


@pytest.mark.namespaces
def test_all_processes_together_get_the_share_of_the_processor(limited: NamespaceSandbox) -> None:
    code = (
        "import os, time\n"
        "end = time.monotonic() + 1\n"
        "children = [pid for pid in (os.fork() for _ in range(3)) if pid]\n"
        "while time.monotonic() < end: pass\n"
        "if len(children) < 3: os._exit(0)\n"
        "for _ in children: os.wait()\n"
        "print(sum(os.times()[:4]))\n"
    )
    with limited.box(BoxSpec(cpus=0.2)) as box:
        used_s = float(box.run(["python3", "-I", "-S", "-c", code], timeout_s=30).stdout)
    assert used_s < 0.6


@pytest.mark.namespaces
def test_address_space_is_not_taken_for_memory(limited: NamespaceSandbox) -> None:
    code = "import mmap; print(len(mmap.mmap(-1, 4 << 30)) >> 30)"
    with limited.box(BoxSpec(memory_mb=64)) as box:
        assert box.run(["python3", "-c", code], timeout_s=20).stdout == b"4\n"


@pytest.mark.namespaces
def test_a_box_does_not_see_where_its_group_is(limited: NamespaceSandbox) -> None:
    with limited.box(BoxSpec()) as box:
        said = box.run(["cat", "/proc/self/cgroup", "/proc/1/cgroup"], timeout_s=20).stdout.decode()
    assert {line.split(":", 2)[2] for line in said.splitlines()} == {"/"}


@pytest.mark.namespaces
def test_a_box_whose_limits_cannot_be_set_is_refused(limited: NamespaceSandbox) -> None:
    with pytest.raises(TrialFault, match="Invalid argument"), limited.box(BoxSpec(memory_mb=-9)):
        pass
    with limited.box(BoxSpec()) as box:
        assert box.run(["true"], timeout_s=20).exit_code == 0


@pytest.mark.namespaces
@pytest.mark.usefixtures("limited")
def test_a_group_goes_with_its_box(make: Make) -> None:
    sandbox = make()
    launcher = launched(sandbox)
    with sandbox.box(BoxSpec()) as box:
        box.run(["bash", "-c", "sleep 100 & setsid sleep 100 & true"], timeout_s=20)
        assert groups_of(launcher)
    assert are_gone(launcher)


@pytest.mark.namespaces
@pytest.mark.usefixtures("limited")
def test_the_groups_of_a_killed_launcher_go_with_the_next_and_no_others(
    make: Make, words: list[str]
) -> None:
    sandbox = make()
    killed = launched(sandbox)
    with sandbox.box(BoxSpec()):
        os.kill(killed, signal.SIGKILL)
    assert groups_of(killed)
    with owner_with_box(words) as owner:
        assert are_gone(killed)
        (other,) = launchers(owner.pid)
        with sandbox.box(BoxSpec()):
            assert groups_of(other)


@pytest.mark.namespaces
@pytest.mark.usefixtures("limited")
def test_the_groups_of_a_killed_runner_go_with_its_launcher(words: list[str]) -> None:
    with owner_with_box(words) as owner:
        (launcher,) = launchers(owner.pid)
        assert groups_of(launcher)
        owner.kill()
        assert are_gone(launcher)


@pytest.fixture
def words(base_image: BaseImage, tmp_path: Path) -> list[str]:
    """The arguments of `OWNER`."""
    return [str(base_image.root), str(SANDBOXES), str(tmp_path), "30"]


@contextlib.contextmanager
def owner_with_box(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Another process with a sandbox of its own and a box in it."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, *words], stdout=subprocess.PIPE, cwd=ROOT
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == b"1000"
            yield process
        finally:
            process.kill()


@pytest.mark.namespaces
@pytest.mark.parametrize("folder", ["none", "no-hierarchy"])
def test_without_groups_boxes_are_made_and_say_what_is_missing(
    make: Make, tmp_path: Path, folder: str
) -> None:
    (tmp_path / "no-hierarchy").mkdir()
    mounts = f"32 31 0:29 / {tmp_path}/{folder} rw - cgroup cgroup rw,memory,pids,cpu\n"
    sandbox = make(told(tmp_path / "process", mounts, "4:memory,pids,cpu:/\n"))
    assert set(sandbox.check().missing) >= MISSING
    with sandbox.box(BoxSpec()) as box:
        assert box.run(["id", "-u"], timeout_s=20).stdout == b"1000\n"
        room = "import resource; print(resource.getrlimit(resource.RLIMIT_AS)[0] > 0)"
        assert box.run(["python3", "-c", room], timeout_s=20).stdout == b"True\n"
    assert list((tmp_path / "no-hierarchy").iterdir()) == []


@pytest.mark.namespaces
def test_a_process_that_cannot_tell_its_mounts_has_no_groups(make: Make, tmp_path: Path) -> None:
    assert set(make(tmp_path / "nothing").check().missing) >= MISSING


@pytest.mark.parametrize("version", [1, 2])
def test_a_process_enters_the_group_by_the_door_of_its_version(version: int) -> None:
    mounts = [one for one in CGROUP.find_mounts("/proc/self") if one.version == version]
    able = [one for one in mounts if os.access(one.folder, os.W_OK)]
    if not able or os.geteuid() != 0:
        pytest.skip(f"no control groups of version {version} can be made here")
    group = CGROUP.Group(f"rsi-test-{os.getpid()}", [CGROUP.Place(version, able[0].folder, ())])
    os.mkdir(group.folders[0])
    try:
        code = "import box_cgroup as c, sys; g = c.Group(sys.argv[1], [c.Place(int(sys.argv[2]), "
        code += "sys.argv[3], ())]); g.open(); g.enter(); print(open('/proc/self/cgroup').read())"
        words = [group.folders[0].rpartition("/")[2], str(version), able[0].folder]
        done = subprocess.run(
            [sys.executable, "-c", code, *words], cwd=SANDBOXES, capture_output=True, check=True
        )
        assert f"/{words[0]}\n".encode() in done.stdout
    finally:
        assert group.remove()
