"""Harbor task directories: what rsi writes reads back the same; what others wrote is judged."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsi.domain.cases import CallCase, RunCase
from rsi.domain.task import Answer, Split, Task, TaskFile
from rsi.edges.task_files.dockerfile import NotPlain, laid_out, workdir_of
from rsi.edges.task_files.reading import TaskRead, read_task
from rsi.edges.task_files.source import FolderSource, split_of
from rsi.edges.task_files.writing import write_task
from rsi.errors import TaskError
from tests.samples import task

TOML = """\
schema_version = "1.4"

[task]
name = "acme/csv-row-count"
version = "1.0.0"

[metadata]
difficulty = "hard"
category = "data work"

[environment]
network_mode = "no-network"
workdir = "/work"

[agent]
timeout_sec = 120.0

[verifier]
timeout_sec = 60
"""
DOCKERFILE = "FROM python:3.11-slim-bookworm\nWORKDIR /work\nCOPY in.csv /work/in.csv\n"


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A task directory as another tool writes it."""
    folder = tmp_path / "suite" / "csv-row-count"
    for name, text in {
        "task.toml": TOML,
        "instruction.md": "Count the rows.\n",
        "environment/Dockerfile": DOCKERFILE,
        "environment/in.csv": "a,b\n1,2\n",
        "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
        "solution/solve.sh": "echo 1\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def _with(folder: Path, name: str, text: str | bytes) -> TaskRead:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_task(folder)


def _faults(folder: Path) -> str:
    with pytest.raises(TaskError) as caught:
        read_task(folder)
    return str(caught.value)


# --- what others wrote


def test_a_foreign_task_is_read_without_building_its_image(foreign: Path) -> None:
    read = read_task(foreign, "acme")
    assert read.task.name == "acme/csv-row-count"
    assert (read.task.suite, read.task.family, read.task.level) == ("acme", "data-work", 3)
    assert read.task.instruction == "Count the rows."
    assert read.task.files == (TaskFile(path="in.csv", content=b"a,b\n1,2\n"),)
    assert (read.task.workdir, read.task.image) == ("/work", None)
    assert (read.task.agent_timeout_s, read.task.verifier_timeout_s) == (120, 60)
    (warning,) = read.warnings
    assert "python:3.11-slim-bookworm" in warning


def test_unknown_keys_are_warned_of_with_the_nearest_one_and_the_line(foreign: Path) -> None:
    text = TOML.replace("[environment]", "[enviroment]").replace("[agent]\n", "[agent]\nuse = 1\n")
    read = _with(foreign, "task.toml", text)
    assert any(
        warning.startswith("task.toml line 11: enviroment: ") and "`environment`" in warning
        for warning in read.warnings
    )
    assert any(warning.startswith("task.toml line 16: agent.use: ") for warning in read.warnings)


def test_what_rsi_does_otherwise_is_said(foreign: Path) -> None:
    text = TOML.replace('"no-network"', '"public"\nmemory_mb = 512\nmemory = "2G"')
    told = "\n".join(_with(foreign, "task.toml", text).warnings)
    assert "environment.network_mode is not used" in told
    assert "environment.memory_mb is not used" in told
    assert "environment.memory is not used" in told


def test_every_wrong_value_is_told_at_once_with_its_line(foreign: Path) -> None:
    (foreign / "task.toml").write_text(
        '[task]\nname = "noslash"\n[agent]\ntimeout_sec = nan\n[verifier]\ntimeout_sec = "60"\n'
        '[environment]\nos = "windows"\nmemory = "lots"\nworkdir = "../x"\n'
        '[metadata.rsi]\nlevel = -1\nanser = "files"\n[[steps]]\nname = "a"\n'
    )
    (foreign / "tests" / "test.sh").unlink()
    (foreign / "instruction.md").write_bytes(b"a\xff")
    told = _faults(foreign)
    for wanted in (
        "line 2: task.name",
        "line 4: agent.timeout_sec: must be a finite number",
        "line 6: verifier.timeout_sec",
        "line 9: environment.memory",
        "line 12: metadata.rsi.level",
        "line 13: metadata.rsi.anser: is no known key; did you mean `answer`?",
        "instruction.md: byte 1 is not UTF-8",
        "tests/test.sh is missing",
    ):
        assert wanted in told, told
    (foreign / "task.toml").write_text('[[steps]]\nname = "a"\n[environment]\nos = "windows"\n')
    assert "tasks of several steps" in _faults(foreign)
    assert "only linux" in _faults(foreign)


def test_cases_stand_in_the_place_of_a_script(foreign: Path) -> None:
    (foreign / "tests/test.sh").unlink()
    (foreign / "task.toml").write_text(f'{TOML}\n[metadata.rsi]\ncases = "c.json"\n')
    assert "tests/c.json is missing" in _faults(foreign)
    cases = foreign / "tests/c.json"
    for text, wanted in {
        "{": "is not valid JSON",
        "[]": "must be an object",
        '{"cases": []}': "cases: is empty",
        '{"cases": [{"call": "no"}]}': "cases.0.call: should match",
        '{"cases": [{"run": ["true"], "prints": "", "x": 1}]}': "cases.0.x: is no known key",
    }.items():
        cases.write_text(text)
        assert wanted in _faults(foreign), text
    cases.write_text('{"cases": [{"call": "s.py:f", "returns": 1}, {"run": ["a"], "prints": ""}]}')
    read = read_task(foreign).task
    assert read.cases == (CallCase(call="s.py:f", returns=1), RunCase(run=("a",), prints=""))
    assert read.tests == ()
    assert read.is_judged_outside


def test_marks_and_line_ends_do_not_change_the_task(foreign: Path) -> None:
    before = read_task(foreign).task.digest
    for name in ("task.toml", "instruction.md", "environment/Dockerfile"):
        text = (foreign / name).read_text().replace("\n", "\r\n")
        (foreign / name).write_bytes(b"\xef\xbb\xbf" + text.encode().removesuffix(b"\r\n"))
    assert read_task(foreign).task.digest == before


@pytest.mark.parametrize(
    "value",
    ["nan", "-inf", "1e400", str(2**64), str(-(2**63) - 1), "2024-01-01T00:00:00Z", '"\\u0000"'],
)
def test_odd_values_in_metadata_pass(foreign: Path, value: str) -> None:
    read = _with(foreign, "task.toml", TOML.replace("[metadata]", f"[metadata]\nodd = {value}"))
    assert read.task.family == "data-work"


@pytest.mark.parametrize("text", ["[a", "x = " + "9" * 5000, "x = " + "[" * 5000, "\0"])
def test_a_broken_task_toml_is_a_fault(foreign: Path, text: str) -> None:
    (foreign / "task.toml").write_text(text)
    assert "task.toml: is" in _faults(foreign)


@settings(max_examples=40)
@given(st.text(max_size=60))
def test_any_task_toml_is_a_task_or_a_task_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "task.toml").write_text(text, "utf-8", "surrogatepass")
    with pytest.raises(TaskError):
        read_task(folder)


def test_links_and_pipes_are_refused(foreign: Path) -> None:
    os.symlink("/etc/hostname", foreign / "tests" / "link")
    os.symlink("/etc", foreign / "solution" / "etc")
    os.mkfifo(foreign / "environment" / "pipe")
    told = _faults(foreign)
    assert "tests/: link is a link" in told
    assert "solution/: etc is a link" in told
    assert "environment/: pipe is no regular file" in told


def test_a_linked_part_is_refused(foreign: Path) -> None:
    shutil.rmtree(foreign / "tests")
    os.symlink("/etc", foreign / "tests")
    (foreign / "instruction.md").unlink()
    os.symlink("/etc/hostname", foreign / "instruction.md")
    told = _faults(foreign)
    assert "tests/: tests must be a folder" in told
    assert "instruction.md is a link" in told


def test_more_than_the_limit_is_refused(foreign: Path) -> None:
    with (foreign / "environment" / "huge").open("wb") as file:
        file.truncate((16 << 20) + 1)
    assert "larger than 16 MiB" in _faults(foreign)


def test_an_image_that_must_be_built_is_kept_with_all_beside_it(foreign: Path) -> None:
    built = DOCKERFILE + "RUN apt-get install jq\nWORKDIR sub\n"
    (foreign / "task.toml").write_text(TOML.replace('workdir = "/work"', "build_timeout_sec = 9"))
    (foreign / "environment/setup.sh").write_text("true\n")
    (foreign / "environment/setup.sh").chmod(0o755)
    read = _with(foreign, "environment/Dockerfile", built)
    made = read.task
    assert read.warnings == ()
    assert (made.files, made.image, made.workdir) == ((), None, "/work/sub")
    assert [(file.path, file.executable) for file in made.context] == [
        ("Dockerfile", False),
        ("in.csv", False),
        ("setup.sh", True),
    ]
    assert made.build_timeout_s == 9
    assert made.image_name is not None
    assert made.image_name.startswith("rsi-task:")
    again = _with(foreign, "environment/in.csv", "a,b\n3,4\n").task
    assert again.digest != made.digest
    assert again.image_name != made.image_name
    assert made.model_copy(update={"context": again.context}).image_name == again.image_name


def test_an_image_that_is_named_is_not_built(foreign: Path) -> None:
    (foreign / "environment/Dockerfile").write_text(f"{DOCKERFILE}RUN true\nWORKDIR /srv\n")
    plain = TOML.replace('workdir = "/work"\n', "")
    text = plain.replace("[environment]", '[environment]\ndocker_image = "acme:1"')
    read = _with(foreign, "task.toml", text)
    assert (read.task.image, read.task.files, read.task.context) == ("acme:1", (), ())
    assert (read.task.workdir, read.warnings) == ("/srv", ())
    (warning,) = _with(foreign, "task.toml", f'{plain}[metadata.rsi]\nimage = "own:1"\n').warnings
    assert "it isn't built: `image` below [metadata.rsi]" in warning
    assert read_task(foreign).task.context == ()


def test_a_working_folder_that_is_not_known_is_told(foreign: Path) -> None:
    shutil.rmtree(foreign / "environment")
    text = TOML.replace('workdir = "/work"', 'docker_image = "acme:1"')
    read = _with(foreign, "task.toml", text)
    assert read.task.workdir == "/work"
    assert "isn't known: /work is used; set `workdir`" in "".join(read.warnings)
    (foreign / "task.toml").write_text(TOML.replace('workdir = "/work"', ""))
    read = _with(foreign, "environment/Dockerfile", "FROM x\nRUN true\nWORKDIR /\n")
    assert read.task.workdir == "/work"
    assert "can't work in /" in "".join(read.warnings)
    (foreign / "task.toml").write_text(TOML.replace('"/work"', '"/"'))
    assert "must be absolute and below /" in _faults(foreign)


def test_a_dockerfile_that_makes_no_image_is_a_fault(foreign: Path) -> None:
    (foreign / "environment/Dockerfile").write_text("RUN true\n")
    assert "it has no FROM" in _faults(foreign)
    (foreign / "environment/Dockerfile").write_bytes(b"FROM x\nRUN \xff\n")
    assert "byte 11 is not UTF-8" in _faults(foreign)


def test_ignored_files_leave_the_building_to_the_engine(foreign: Path) -> None:
    read = _with(foreign, "environment/.dockerignore", "secret\n")
    assert len(read.task.context) == 3


def test_a_task_without_an_environment_is_refused(foreign: Path) -> None:
    shutil.rmtree(foreign / "environment")
    assert "docker_image is there" in _faults(foreign)


# --- Dockerfiles

CONTEXT = tuple(
    TaskFile(path=path, content=path.encode())
    for path in ("Dockerfile", "a.txt", "b.txt", "data/c.csv", "data/deep/d.csv")
)


@pytest.mark.parametrize(
    ("lines", "paths"),
    [
        ("COPY a.txt /x/y.txt", ["/x/y.txt"]),
        ("COPY a.txt .", ["/w/a.txt"]),
        ("COPY a.txt /w", ["/w/a.txt"]),
        ("COPY ./a.txt ./sub/", ["/w/sub/a.txt"]),
        ("COPY *.txt /x/", ["/x/a.txt", "/x/b.txt"]),
        ("COPY data /x", ["/x/c.csv", "/x/deep/d.csv"]),
        ("COPY data/deep/d.csv up/../d", ["/w/d"]),
        ('copy ["a.txt", "/x y/"]', ["/x y/a.txt"]),
        ("ADD a.txt \\\n  # why\n  b.txt /x/", ["/x/a.txt", "/x/b.txt"]),
        (
            "COPY . /x",
            ["/x/Dockerfile", "/x/a.txt", "/x/b.txt", "/x/data/c.csv", "/x/data/deep/d.csv"],
        ),
        ("COPY a.txt /x\nCOPY b.txt /x", ["/x"]),
        ('CMD ["bash"]\nLABEL a=b\nENV A=1\nWORKDIR sub\nCOPY a.txt .', ["/w/sub/a.txt"]),
    ],
)
def test_a_plain_dockerfile_lays_out_files(lines: str, paths: list[str]) -> None:
    laid = laid_out(f"FROM x AS y\nWORKDIR /w\n{lines}\n", CONTEXT)
    assert list(laid.files) == paths


@pytest.mark.parametrize(
    "lines",
    [
        "RUN true",
        "USER root",
        "FROM y",
        "COPY --from=x a b",
        "COPY ../a.txt /x",
        "COPY none /x",
        "COPY $A /x",
        "COPY a.txt $A",
        "COPY a.txt",
        "COPY *.txt /x",
        "COPY <<EOF /x",
        "ADD https://example.org/x /x",
        "ADD x.tar.gz /x",
        "COPY [1, 2]",
        "COPY [",
        "WORKDIR a b",
        "WORKDIR",
        "COPY a.txt \\",
        "# escape=`",
    ],
)
def test_any_other_dockerfile_must_be_built(lines: str) -> None:
    with pytest.raises(NotPlain):
        laid_out(f"FROM x\n{lines}\n", CONTEXT)


@pytest.mark.parametrize(
    ("lines", "workdir"),
    [
        ("FROM x\nRUN true\nWORKDIR /a", "/a"),
        ("FROM x\nWORKDIR /a/../b/\nWORKDIR c", "/b/c"),
        ("FROM x AS one\nWORKDIR /a\nFROM y\nRUN true", None),
        ("FROM x as One\nWORKDIR /a\nFROM one\nWORKDIR b", "/a/b"),
        ("ARG V=1\nFROM --platform=linux x:$V\nWORKDIR /a\nUSER me", "/a"),
        ("FROM x\nWORKDIR a", None),
        ("FROM x\nWORKDIR /a\nWORKDIR $HOME", None),
        ("FROM x\nWORKDIR $HOME\nWORKDIR /a", "/a"),
        ("FROM x\nWORKDIR", None),
        ("FROM x\nWORKDIR /a\nRUN \\", None),
        ("FROM", None),
        ("", None),
    ],
)
def test_the_working_folder_of_an_image_is_read_where_the_text_tells(
    lines: str, workdir: str | None
) -> None:
    assert workdir_of(lines) == workdir


@given(st.text(max_size=60))
def test_any_dockerfile_is_plain_or_not(text: str) -> None:
    for lines in (text, f"FROM x\nCOPY {text} /x", f"FROM x\nCOPY {text}"):
        workdir_of(lines)
        try:
            laid_out(lines, CONTEXT)
        except NotPlain as reason:
            assert str(reason)  # noqa: PT017 - either way is right


# --- what rsi writes

PARTS = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8
).filter(lambda part: part not in (".", ".."))
PATHS = st.lists(PARTS, min_size=1, max_size=2).map(
    lambda parts: "d/" * (len(parts) - 1) + "/".join(parts[:1])
)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=30).filter(
    lambda text: not text.startswith("\ufeff")
)


JSON = st.none() | st.booleans() | st.integers(-9, 9) | TEXT | st.floats(-1, 1).map(abs)
CASES = st.builds(
    CallCase,
    call=st.just("a.py:f"),
    args=st.lists(JSON | st.lists(JSON, max_size=2), max_size=2).map(tuple),
    returns=JSON,
    tolerance=st.sampled_from([0.0, 0.5]),
) | st.builds(RunCase, run=st.tuples(TEXT), stdin=TEXT, prints=TEXT, exit_code=st.integers(0, 2))


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    def files(*first: str) -> tuple[TaskFile, ...]:
        paths = [
            *first,
            *draw(st.lists(PATHS.map(lambda path: f"p/{path}"), max_size=3, unique=True)),
        ]
        return tuple(
            TaskFile(path=path, content=draw(st.binary(max_size=9)), executable=draw(st.booleans()))
            for path in draw(st.permutations(paths))
        )

    is_built = draw(st.booleans())
    context = sorted(files(), key=lambda file: file.path) if is_built else []
    dockerfile = TaskFile(path="Dockerfile", content=b"FROM x\nRUN true\n")

    return Task(
        name=draw(st.from_regex(r"[a-z]{1,5}/[a-z0-9._-]{1,5}", fullmatch=True)),
        suite=draw(TEXT.filter(bool)),
        family=draw(TEXT.filter(bool)),
        level=draw(st.integers(0, 9)),
        instruction=draw(TEXT),
        answer=draw(st.sampled_from(Answer)),
        workdir=draw(st.sampled_from(["/work", "/srv/a-b"])),
        files=() if is_built else files(),
        context=(dockerfile, *context) if is_built else (),
        build_timeout_s=draw(st.floats(0.1, 1e9)) if is_built else 600,
        tests=files("test.sh"),
        cases=draw(st.lists(CASES, max_size=2).map(tuple)),
        solution=files(),
        artifacts=draw(st.sampled_from([(), ("out.txt",), ("/work/a", "b/c")])),
        image=None if is_built else draw(st.sampled_from([None, "acme/base:1"])),
        agent_timeout_s=draw(st.floats(0.1, 1e9)),
        verifier_timeout_s=draw(st.floats(0.1, 1e9)),
        made_by=draw(TEXT.filter(bool)),
    )


@settings(max_examples=40)
@given(tasks())
def test_a_written_task_reads_back_with_its_digest(
    tmp_path_factory: pytest.TempPathFactory, made: Task
) -> None:
    folder = tmp_path_factory.mktemp("tasks") / "one"
    write_task(made, folder)
    read = read_task(folder)
    assert read.task == made
    assert read.task.digest == made.digest
    assert read.warnings == ()


def test_writing_again_changes_nothing_and_another_task_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    write_task(task(), folder)
    write_task(task(), folder)
    with pytest.raises(TaskError, match="another task"):
        write_task(task("two"), folder)
    assert read_task(folder).task == task()
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


@pytest.mark.parametrize(
    "change",
    [
        {"files": (TaskFile(path="../x", content=b""),)},
        {"files": (TaskFile(path="/../x", content=b""),)},
        {"files": (TaskFile(path="a//b", content=b""),)},
        {"files": (TaskFile(path="a\0", content=b""),)},
        {"files": (TaskFile(path="\ud800", content=b""),)},
        {"files": (TaskFile(path="a", content=b""), TaskFile(path="a", content=b"1"))},
        {"files": (TaskFile(path="a", content=b""), TaskFile(path="a/b", content=b"1"))},
        {"files": (TaskFile(path="x" * 300, content=b""),)},
        {"tests": (TaskFile(path="/tests/test.sh", content=b""),)},
        {"tests": ()},
        {"solution": (TaskFile(path="./solve.sh", content=b""),)},
        {"name": "noslash"},
        {"instruction": "a\r"},
        {"instruction": "a\r\nb"},
        {"instruction": "\ufeffa"},
        {"instruction": "a\0b"},
        {"instruction": "\ud800"},
        {"agent_timeout_s": float("inf")},
        {"workdir": "work"},
        {"context": (TaskFile(path="Dockerfile", content=b"FROM x"),)},
        {"context": (TaskFile(path="Dockerfile", content=b"FROM x\nRUN a"),), "image": "x"},
        {"context": (TaskFile(path="../Dockerfile", content=b"FROM x\nRUN a"),)},
        {"artifacts": ("../x",)},
    ],
)
def test_a_task_that_harbor_cannot_tell_is_refused_whole(
    tmp_path: Path, change: dict[str, object]
) -> None:
    with pytest.raises(TaskError):
        write_task(task().model_copy(update=change), tmp_path / "one")
    assert list(tmp_path.iterdir()) == []


# --- a folder as a suite


def _suite(folder: Path, count: int) -> FolderSource:
    for place in range(count):
        made = task(f"t{place}", family="ab"[place % 2], level=1 + place % 3)
        write_task(made, folder / f"org{place % 4}" / f"t{place}")
    return FolderSource(folder)


def test_a_suite_is_split_by_content_and_drawn_evenly(tmp_path: Path) -> None:
    source = _suite(tmp_path / "mine", 60)
    assert [family.name for family in source.families()] == ["a", "b"]
    assert source.families()[0].levels == (1, 2, 3)
    drawn = {split: source.draw(split, 7, 100) for split in Split}
    assert drawn[Split.REGRESSION] == ()
    digests = [made.digest for split in Split for made in drawn[split]]
    assert len(set(digests)) == len(digests) == 60
    assert len(drawn[Split.SEARCH]) > len(drawn[Split.HOLDOUT]) > 0
    assert len(drawn[Split.EXAM]) > 0
    four = source.draw(Split.SEARCH, 7, 4)
    assert sorted(made.family for made in four) == ["a", "a", "b", "b"]
    assert four == FolderSource(tmp_path / "mine").draw(Split.SEARCH, 7, 4)
    assert source.harden(four[0], 1) == ()
    assert {made.suite for made in four} == {"mine"}


def test_a_renamed_or_repeated_task_stays_in_its_split(tmp_path: Path) -> None:
    before = {made.name: split_of(made) for made in _drawn(_suite(tmp_path / "mine", 20))}
    shutil.copytree(tmp_path / "mine" / "org1" / "t1", tmp_path / "mine" / "copy")
    (tmp_path / "mine").rename(tmp_path / "other")
    after = _drawn(FolderSource(tmp_path / "other"))
    assert {made.name: split_of(made) for made in after} == before
    renamed = after[0].model_copy(update={"name": "a/b", "family": "x", "made_by": "y"})
    assert split_of(renamed) is split_of(after[0])


def _drawn(source: FolderSource) -> list[Task]:
    return [made for split in Split for made in source.draw(split, 0, 99)]


def test_a_suite_with_faults_tells_those_of_every_task(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "task.toml").write_text("x = ")
    with pytest.raises(TaskError) as caught:
        FolderSource(tmp_path).families()
    assert str(caught.value).count("tests/test.sh is missing") == 2


@pytest.mark.parametrize("name", ["empty", "none"])
def test_a_suite_without_tasks_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(TaskError):
        FolderSource(tmp_path / name).families()


def test_the_warnings_of_a_suite_name_their_tasks(foreign: Path) -> None:
    (warning,) = FolderSource(foreign.parent).warnings
    assert warning.startswith("acme/csv-row-count: environment/Dockerfile: FROM")
