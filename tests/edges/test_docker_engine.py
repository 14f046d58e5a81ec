"""Finding an engine, and having one of our own that leaves nothing behind."""

import gc
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from rsi.edges.docker_sandbox.boxes import DockerSandbox, Limits
from rsi.edges.docker_sandbox.engine import answers, connect, find_engine, open_engine
from rsi.edges.docker_sandbox.images import load_image
from rsi.edges.docker_sandbox.own_engine import OwnEngine
from rsi.edges.sandbox_image.staging import BaseImage, write_tar
from rsi.errors import SandboxError, TrialFault
from rsi.ports import BoxSpec
from tests.fixtures.sandbox import SANDBOXES

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("dockerd", path=f"{os.environ['PATH']}:/usr/sbin") is None,
    reason="an engine of our own needs root and dockerd",
)


def silent(_: str) -> None:
    """Nobody listens."""


def processes_of(folder: Path) -> list[int]:
    """The processes whose command line names the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(folder) in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("host", ["ssh://someone@machine", "tcp://127.0.0.1:1", "nonsense"])
def test_a_chosen_engine_that_cannot_be_used_is_not_passed_over(host: str, tmp_path: Path) -> None:
    assert find_engine({"DOCKER_HOST": host}, tmp_path) is None
    with (
        pytest.raises(SandboxError, match="unset DOCKER_HOST"),
        open_engine({"DOCKER_HOST": host}, tmp_path, silent),
    ):
        pass


@pytest.mark.parametrize("url", ["ssh://a", "tcp://a", "tcp://a:b", "", "unix:///none"])
def test_an_address_that_is_none_is_an_os_error(url: str) -> None:
    assert not answers(url)
    with pytest.raises(OSError, match=r"."):
        connect(url, 1)


def test_long_paths_get_a_short_socket(tmp_path: Path) -> None:
    long = tmp_path / ("deep" * 30)
    assert len(OwnEngine(long).url) < 107
    edge = Path("/" + "x" * 65)  # With the longest of its sockets 104 bytes.
    assert OwnEngine(edge).url == f"unix://{edge}/docker.sock"
    assert OwnEngine(edge.with_name("x" * 66)).url.startswith("unix://" + tempfile.gettempdir())
    assert OwnEngine(long).url != OwnEngine(tmp_path / ("deep" * 31)).url


def test_a_folder_that_somebody_else_made_first_is_refused(tmp_path: Path) -> None:
    engine = OwnEngine(tmp_path / ("deep" * 30))
    place = Path(engine.url.removeprefix("unix://")).parent
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    try:
        with pytest.raises(SandboxError):
            engine.start(lambda: False)
    finally:
        place.rmdir()
        engine.leave()


def test_a_process_that_only_has_the_engines_old_id_is_left_alone(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        (tmp_path / "dockerd.pid").write_text(str(process.pid))
        OwnEngine(tmp_path).leave()
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(10)


def test_leaving_an_engine_that_never_was_does_nothing(tmp_path: Path) -> None:
    OwnEngine(tmp_path / "none").leave()
    assert not (tmp_path / "none").exists()


@needs_root
@pytest.mark.docker
def test_an_engine_of_our_own_is_stopped_by_its_last_user(tmp_path: Path) -> None:
    folder = tmp_path / ("a-long-name-" * 8)
    first, second = OwnEngine(folder), OwnEngine(folder)
    first.start(lambda: answers(first.url))
    try:
        assert second.join()
        second.start(lambda: answers(second.url))
        assert len(processes_of(folder / "dockerd.pid")) == 1
        first.leave()
        assert answers(second.url)
    finally:
        first.leave()
        second.leave()
    assert not answers(second.url)
    assert not second.join()
    assert processes_of(folder) == []
    assert str(folder) not in Path("/proc/mounts").read_text()
    assert not Path(second.url.removeprefix("unix://")).parent.exists()


# The Docker SDK forgets to close its socket when an engine dies (docker-py issue 3268).
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@needs_root
@pytest.mark.docker
def test_an_engine_that_was_killed_breaks_trials_and_leaves_nothing(
    base_image: BaseImage, tmp_path: Path
) -> None:
    folder = tmp_path / "engine"
    engine = OwnEngine(folder)
    engine.start(lambda: answers(engine.url))
    sandbox = None
    try:
        tar = tmp_path / "base.tar"
        write_tar(base_image, tar)
        load_image(engine.url, base_image.tag, lambda: tar)
        sandbox = DockerSandbox(
            engine.url, base_image.tag, base_image.digest, SANDBOXES, tmp_path, Limits(1, 1)
        )
        with sandbox.box(BoxSpec()) as box:
            (pid,) = processes_of(folder / "dockerd.pid")
            os.kill(pid, signal.SIGKILL)
            begun = time.monotonic()
            with pytest.raises(TrialFault, match="the box ended"):
                box.run(["sleep", "30"], timeout_s=30)
            assert time.monotonic() - begun < 10
        with pytest.raises(SandboxError, match="doesn't answer"), sandbox.box(BoxSpec()):
            pass
        engine.start(lambda: answers(engine.url))
        with sandbox.box(BoxSpec()) as box:
            assert box.run(["true"], timeout_s=20).exit_code == 0
        (pid,) = processes_of(folder / "dockerd.pid")
        os.kill(pid, signal.SIGKILL)
    finally:
        if sandbox is not None:
            sandbox.close()
        engine.leave()
        gc.collect()
    assert str(folder) not in Path("/proc/mounts").read_text()
    deadline = time.monotonic() + 15
    while processes_of(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_of(folder) == []


@needs_root
@pytest.mark.docker
def test_an_engine_that_cannot_start_says_why_within_its_limit(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    folder.mkdir()
    (folder / "data").write_text("no folder")
    engine = OwnEngine(folder)
    begun = time.monotonic()
    with pytest.raises(SandboxError, match="dockerd didn't start"):
        engine.start(lambda: answers(engine.url))
    assert time.monotonic() - begun < 40
    assert processes_of(folder) == []
