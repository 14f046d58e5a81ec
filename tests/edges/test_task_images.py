"""Images of tasks: built where they must be, with what they have, and with a Python if need be."""

import contextlib
import io
import os
import tarfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from docker.errors import APIError

from rsi.domain.task import Task, TaskFile
from rsi.edges.docker_sandbox.boxes import DockerSandbox, Limits
from rsi.edges.docker_sandbox.builds import build
from rsi.edges.docker_sandbox.calls import client
from rsi.edges.docker_sandbox.engine import DockerEngine
from rsi.edges.docker_sandbox.image_files import batches, folder_files
from rsi.edges.docker_sandbox.images import IMAGE_LABEL, find_image, remove_old, touch
from rsi.edges.docker_sandbox.once import Once
from rsi.edges.docker_sandbox.owners import LABEL, owner_name
from rsi.edges.sandbox_image.staging import BaseImage
from rsi.edges.system_clock import SystemClock
from rsi.edges.task_files.reading import read_task
from rsi.errors import TrialFault
from rsi.ports import BoxFile, BoxSpec, Sandbox
from rsi.steps.judge.judge import judge
from rsi.steps.verify import Admission, verify
from tests.fixtures.sandbox import SANDBOXES

pytestmark = pytest.mark.docker

TEST_LABEL = f"rsi.test={os.getpid()}"

TOML = '[task]\nname = "acme/made"\n[agent]\ntimeout_sec = 60\n[verifier]\ntimeout_sec = 30\n'
DOCKERFILE = """\
FROM {base} AS first
LABEL {label}
ENV GREETING=hello
WORKDIR /app
RUN echo one > /one

FROM first
COPY given.txt /app/given.txt
COPY run.sh /app/bin/run.sh
RUN echo "$GREETING" > /app/made && cat /one >> /app/made && mkdir /app/empty \\
    && ln -s made /app/link && ln /app/made /app/same
VOLUME /data
ENTRYPOINT ["/bin/false"]
"""
TEST = """\
[ "$(cat made)" = "$(printf 'hello\\none')" ] && [ ! -e given.txt ] && [ "$GREETING" = hello ] \\
    && [ "$(cat out)" = given ] && got=1 || got=0
echo $got > /logs/verifier/reward.txt
"""
SOLUTION = "bin/run.sh > out && rm given.txt\n"


@pytest.fixture
def sandbox(
    docker_engine: DockerEngine, base_image: BaseImage, tmp_path: Path
) -> Iterator[DockerSandbox]:
    made = DockerSandbox(
        docker_engine.url,
        base_image.tag,
        base_image.digest,
        SANDBOXES,
        tmp_path,
        Limits(warm=1, disk_floor_mb=1),
    )
    yield made
    made.close()


@pytest.fixture(scope="module", autouse=True)
def no_images_left(docker_engine: DockerEngine) -> Iterator[None]:
    """Removes what these tests made; what is derived of an image has its labels too."""
    yield
    with client(docker_engine.url) as api:
        for image in api.images(filters={"label": TEST_LABEL}):
            with contextlib.suppress(APIError):  # A parent of others goes with them.
                api.remove_image(image["Id"], force=True)


@pytest.fixture(scope="module")
def bare(docker_engine: DockerEngine, base_image: BaseImage) -> str:
    """An image of the base image's programs, without Python."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for path in sorted(base_image.root.rglob("*")):
            name = str(path.relative_to(base_image.root))
            if not name.startswith("usr/local/"):
                tar.add(path, arcname=name, recursive=False)
    with client(docker_engine.url) as api:
        import_image(api, "rsi-test-bare:1", whole.getvalue())
    return "rsi-test-bare:1"


@pytest.fixture
def folder(base_image: BaseImage, tmp_path: Path) -> Path:
    """A task's directory whose image must be built."""
    made = tmp_path / "task"
    for name, text in {
        "task.toml": TOML,
        "instruction.md": "Say what is given, and take it away.\n",
        "environment/Dockerfile": DOCKERFILE.format(base=base_image.tag, label=TEST_LABEL),
        "environment/given.txt": "given\n",
        "environment/run.sh": "#!/bin/sh\ncat given.txt\n",
        "tests/test.sh": TEST,
        "solution/solve.sh": SOLUTION,
    }.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if name.endswith(".sh") else 0o644)
    return made


def admitted(task: Task, sandbox: Sandbox) -> Admission:
    def judged(task: Task, answer: str, left: Any) -> Any:
        return judge(task, answer, left, sandbox, SystemClock())

    return verify(task, sandbox, judged, repeats=1)


def import_image(api: Any, name: str, tar: bytes, *labels: str) -> None:
    repository, _, tag = name.partition(":")
    changes = [f"LABEL {label}" for label in (TEST_LABEL, *labels)]
    api.import_image_from_data(tar, repository=repository, tag=tag, changes=changes)


def built(base: BaseImage, *lines: str, **files: str) -> BoxSpec:
    """A box of an image that these lines make."""
    text = "\n".join((f"FROM {base.tag}", "WORKDIR /app", *lines, f"LABEL {TEST_LABEL}"))
    context = [TaskFile(path=name, content=text.encode()) for name, text in files.items()]
    context.append(TaskFile(path="Dockerfile", content=f"{text}\n".encode()))
    task = Task(
        name="test/built",
        suite="test",
        family="built",
        level=1,
        instruction="",
        workdir="/app",
        tests=(),
        context=tuple(context),
    )
    return BoxSpec.of(task, 60)


def test_a_harbor_directory_runs_as_it_is(folder: Path, sandbox: DockerSandbox) -> None:
    read = read_task(folder)
    assert read.warnings == ()
    assert read.task.workdir == "/app"
    assert admitted(read.task, sandbox).faults == ()


def test_what_the_image_has_in_the_workdir_is_the_agents(
    folder: Path, sandbox: DockerSandbox
) -> None:
    task = read_task(folder).task
    with sandbox.box(BoxSpec.of(task, 60)) as box:
        ran = box.run(["bash", "-c", "find . | sort; touch made bin/x; bin/run.sh"], timeout_s=20)
        assert ran.exit_code == 0
        found = ["./bin", "./bin/run.sh", "./empty", "./given.txt", "./made", "./same", "given"]
        assert ran.stdout.decode().split() == [".", *found]
        assert box.run(["cp", "made", "/data"], timeout_s=20).exit_code == 0
        full = box.run(["dd", "if=/dev/zero", "of=/data/x", "bs=1M", "count=24"], timeout_s=20)
        assert full.exit_code != 0
    with sandbox.box(BoxSpec.of(task, 60, has_image_files=False)) as box:
        assert box.run(["ls"], timeout_s=20).stdout == b""


def test_an_image_is_built_once_for_all_who_ask(
    docker_engine: DockerEngine, base_image: BaseImage, sandbox: DockerSandbox
) -> None:
    spec = built(base_image, f"RUN sleep 1; echo {time.time()} > /app/when")

    def one(_: int) -> bytes:
        with sandbox.box(spec) as box:
            return box.run(["cat", "when"], timeout_s=20).stdout

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(one, range(4)))) == 1
    with client(docker_engine.url) as api:
        image = find_image(api, str(spec.image))
        assert image["Config"]["Labels"][IMAGE_LABEL] == "task"


def test_a_build_that_fails_breaks_its_own_task_alone(
    base_image: BaseImage, sandbox: DockerSandbox
) -> None:
    for spec, said in (
        (built(base_image, "RUN echo trouble; exit 3"), "trouble.* returned a non-zero code: 3"),
        (built(base_image, "NONSENSE"), "can't be built: .*NONSENSE"),
        (built(base_image, "COPY none /none"), "can't be built: .*none"),
        (built(base_image, "FROM localhost:9/none:1"), "can't be built: .*localhost:9"),
    ):
        for _ in range(2):
            begun = time.monotonic()
            with pytest.raises(TrialFault, match=f"(?s){said}"), sandbox.box(spec):
                pass
        assert time.monotonic() - begun < 0.5
    with sandbox.box(BoxSpec()) as box:
        assert box.run(["true"], timeout_s=20).exit_code == 0


def test_a_build_has_a_time_limit(docker_engine: DockerEngine, base_image: BaseImage) -> None:
    for line in ("RUN sleep 30", "RUN while true; do echo on; sleep 0.2; done"):
        context = built(base_image, line).context
        with (
            client(docker_engine.url) as api,
            pytest.raises(TrialFault, match="it took over 1 s"),
        ):
            build(api, "rsi-task:slow", context, 1)


def test_ignored_files_stay_out_of_the_build(base_image: BaseImage, sandbox: DockerSandbox) -> None:
    files = {".dockerignore": "# none of\nsecret*\n\nDockerfile\n", "secret.txt": "x", "open": "y"}
    with sandbox.box(built(base_image, "COPY . /app", **files)) as box:
        said = box.run(["ls", "-A"], timeout_s=20).stdout.split()
    assert b"open" in said
    assert b"secret.txt" not in said


def test_more_than_a_box_can_hold_is_told(base_image: BaseImage, sandbox: DockerSandbox) -> None:
    spec = built(base_image, "RUN head -c 40000000 /dev/zero > big")
    with (
        pytest.raises(TrialFault, match="has 39 MB in /app, where a box has room for 32 MB"),
        sandbox.box(spec),
    ):
        pass
    spec = built(base_image, "RUN head -c 70000000 /dev/zero > big")
    with pytest.raises(TrialFault, match="has over 64 MB"), sandbox.box(spec):
        pass


def test_an_image_without_python_runs_boxes(bare: str, sandbox: DockerSandbox) -> None:
    with sandbox.box(BoxSpec(image=bare)) as box:
        assert box.run(["bash", "-c", "echo $(( 6 * 7 ))"], timeout_s=20).stdout == b"42\n"
        ran = box.python("print(1)", timeout_s=20)
        assert (ran.exit_code, ran.stdout) == (127, b"")
        assert b"python3" in ran.stderr
        box.put([BoxFile("/work/a", b"1")])
        assert [file.path for file in box.get(["/work"])] == ["/work/", "/work/a"]
        names = {line.partition(b"=")[0] for line in box.run(["env"], timeout_s=9).stdout.split()}
        assert not {name for name in names if name.startswith((b"PYTHON", b"LD_"))}
        box.run(["bash", "-c", "sleep 60 & sleep 60 &"], timeout_s=20)
        box.stop_all()


def test_a_shell_task_runs_in_an_image_without_python(
    bare: str, folder: Path, sandbox: DockerSandbox
) -> None:
    text = (folder / "environment/Dockerfile").read_text()
    lines = text.replace(text.split()[1], bare)
    (folder / "environment/Dockerfile").write_text(lines)
    assert admitted(read_task(folder).task, sandbox).faults == ()


def test_python_of_ours_is_used_where_the_images_own_is_of_no_use(
    base_image: BaseImage, sandbox: DockerSandbox
) -> None:
    broken = "#!/bin/sh\nexit 3\n"
    lines = ("COPY python3 /usr/bin/python3", "ENV PATH=/usr/bin", "RUN chmod 755 /usr/bin/python3")
    with sandbox.box(built(base_image, *lines, python3=broken)) as box:
        assert box.run(["python3"], timeout_s=20).exit_code == 3


def test_old_images_of_ours_are_removed_and_no_others(docker_engine: DockerEngine) -> None:
    kind = f"test-{os.getpid()}"
    names = ("rsi-task:test-old", "rsi-run:test-used", "rsi-task:test-other", "somebody-else:1")
    labels = [f"{IMAGE_LABEL}={one}" for one in (kind, kind, "other", kind)]

    def left() -> list[bool]:
        return [find_image(api, name) is not None for name in names]

    with client(docker_engine.url) as api:
        for place, name in enumerate(names):
            whole = io.BytesIO()
            with tarfile.open(fileobj=whole, mode="w") as tar:
                tar.addfile(tarfile.TarInfo(f"file{place}"))
            import_image(api, name, whole.getvalue(), labels[place])
        remove_old(api, kind)
        assert left() == [True, True, True, True]
        time.sleep(3)
        touch(api, names[1])
        remove_old(api, kind, keep_s=2)
        assert left() == [False, True, True, True]


def test_reading_an_image_leaves_no_container(
    docker_engine: DockerEngine, base_image: BaseImage
) -> None:
    owner = owner_name(os.getpid())
    with client(docker_engine.url) as api:
        assert folder_files(api, base_image.tag, "/no/such/folder", owner) == ()
        assert folder_files(api, base_image.tag, "/etc", owner) != ()
        assert not api.containers(all=True, filters={"label": f"{LABEL}={owner}"})


def test_files_travel_in_portions() -> None:
    files = tuple(BoxFile(f"/work/{n}", b"x" * (3 << 20)) for n in range(3))
    assert [len(some) for some in batches(files)] == [1, 1, 1]
    assert [len(some) for some in batches(files[:1] * 1 + (BoxFile("/work/a", b""),))] == [2]
    assert list(batches(())) == []


def test_what_is_asked_for_at_once_is_made_once() -> None:
    once: Once[str, int] = Once()
    made: list[int] = []
    gate = threading.Event()

    def make() -> int:
        gate.wait(10)
        made.append(1)
        return len(made)

    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(once.get, "a", make) for _ in range(3)]
        gate.set()
        assert [one.result() for one in asked] == [1, 1, 1]

    def broken(error: Exception) -> int:
        made.append(0)
        raise error

    for error, count in ((TrialFault("sandbox", "no"), 1), (ValueError("no"), 2)):
        before = len(made)
        for _ in range(2):
            with pytest.raises(type(error)):
                once.get(str(error), lambda error=error: broken(error))  # type: ignore[misc]
        assert len(made) - before == count


def test_the_first_of_too_many_is_made_again() -> None:
    once: Once[int, int] = Once(most=2)
    assert [once.get(key, lambda key=key: key) for key in range(3)] == [0, 1, 2]  # type: ignore[misc]
    assert [once.get(key, lambda: 9) for key in (1, 2, 0)] == [1, 2, 9]
