"""Boxes of namespaces: gone with their owner, and made whatever rights the owner has."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rsi.edges.namespace_sandbox.boxes import NamespaceSandbox, Uids
from rsi.edges.sandbox_image.staging import BaseImage
from rsi.errors import DiskError, SandboxError, TrialFault
from rsi.ports import BoxSpec
from tests.fixtures.sandbox import ROOT, SANDBOXES

pytestmark = pytest.mark.namespaces

OWNER = """
import sys
from pathlib import Path
from rsi.edges.namespace_sandbox.boxes import NamespaceSandbox
from rsi.ports import BoxSpec
root, sandboxes, state, seconds = sys.argv[1:]
sandbox = NamespaceSandbox(Path(root), "digest", Path(sandboxes), Path(state), 1)
with sandbox.box(BoxSpec()) as box:
    print(box.run(["id", "-u"], timeout_s=20).stdout.decode().strip(), flush=True)
    box.run(["bash", "-c", f"sleep {seconds} & setsid sleep {seconds}; sleep {seconds}"],
            timeout_s=float(seconds))
sandbox.close()
"""


@pytest.fixture
def own(base_image: BaseImage, tmp_path: Path) -> Iterator[NamespaceSandbox]:
    """A sandbox with a launcher of its own."""
    made = NamespaceSandbox(base_image.root, base_image.digest, SANDBOXES, tmp_path, 1)
    yield made
    made.close()


def sleepers(seconds: str) -> list[int]:
    """The processes of this machine that sleep so long."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def none_left(seconds: str) -> bool:
    deadline = time.monotonic() + 10
    while sleepers(seconds) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not sleepers(seconds)


def test_a_killed_owner_leaves_no_box(base_image: BaseImage, tmp_path: Path) -> None:
    words = [str(base_image.root), str(SANDBOXES), str(tmp_path), "4321.5"]
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, *words], stdout=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline().strip() == b"1000"
        deadline = time.monotonic() + 20
        while not sleepers("4321.5") and time.monotonic() < deadline:
            time.sleep(0.02)
        assert sleepers("4321.5")
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    assert none_left("4321.5")


def test_a_launcher_that_died_takes_its_boxes_along_and_is_started_again(
    own: NamespaceSandbox,
) -> None:
    with own.box(BoxSpec()) as box:
        box.run(["bash", "-c", "sleep 4321.25 &"], timeout_s=20)
        for path in Path("/proc").glob("[0-9]*/stat"):
            words = path.read_text().split() if path.exists() else []
            line = path.with_name("cmdline").read_bytes() if words else b""
            if words and words[3] == str(os.getpid()) and b"namespace_launcher" in line:
                os.kill(int(words[0]), signal.SIGKILL)
        assert none_left("4321.25")
        with pytest.raises(TrialFault):
            box.run(["true"], timeout_s=20)
    with own.box(BoxSpec()) as box:
        assert box.run(["true"], timeout_s=20).exit_code == 0


def test_closing_ends_every_box(own: NamespaceSandbox) -> None:
    with own.box(BoxSpec()) as box:
        box.run(["bash", "-c", "sleep 4321.75 &"], timeout_s=20)
        own.close()
        assert none_left("4321.75")
        with pytest.raises(TrialFault):
            box.run(["true"], timeout_s=20)
    with pytest.raises(SandboxError, match="closed"), own.box(BoxSpec()):
        pass


def test_too_little_disk_is_told_before_a_box_is_made(
    base_image: BaseImage, tmp_path: Path
) -> None:
    sandbox = NamespaceSandbox(base_image.root, "d", SANDBOXES, tmp_path, 1 << 40)
    with pytest.raises(DiskError, match="free some room"), sandbox.box(BoxSpec()):
        pass
    sandbox.close()


def test_a_root_that_is_not_there_says_so(tmp_path: Path) -> None:
    sandbox = NamespaceSandbox(tmp_path / "none", "d", SANDBOXES, tmp_path, 1)
    with pytest.raises(SandboxError, match="none"):
        sandbox.check()
    sandbox.close()


def test_a_launcher_that_is_not_there_says_so(base_image: BaseImage, tmp_path: Path) -> None:
    sandbox = NamespaceSandbox(base_image.root, "d", tmp_path, tmp_path, 1)
    with pytest.raises(SandboxError, match="namespace_launcher"):
        sandbox.check()
    sandbox.close()


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="rights are given up by root"
)
def test_root_without_the_right_to_namespaces_goes_on_as_anybody_would(
    base_image: BaseImage, tmp_path: Path
) -> None:
    done = subprocess.run(
        [
            *("setpriv", "--bounding-set=-sys_admin", sys.executable, "-c", OWNER),
            *(str(base_image.root), str(SANDBOXES), str(tmp_path), "0.1"),
        ],
        capture_output=True,
        timeout=60,
        check=False,
        cwd=ROOT,
    )
    if b"refuses a sandbox of namespaces" in done.stderr:
        pytest.skip("this kernel gives user namespaces to nobody")
    assert (done.returncode, done.stdout.strip()) == (0, b"1000"), done.stderr


def test_no_two_boxes_have_the_same_user_at_a_time() -> None:
    uids = Uids()
    with uids.one() as first, uids.one() as second:
        assert first != second
