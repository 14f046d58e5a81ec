"""What every blob store promises, and what the one in files promises beyond that."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsi.domain.values import digest_bytes
from rsi.edges.blob_files import LEFT_BEHIND_S, FileBlobs
from rsi.errors import BlobError
from rsi.ports import Blobs
from tests.fakes.blobs import FakeBlobs
from tests.samples import digest


@pytest.fixture(params=[FileBlobs, FakeBlobs])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    """An empty store."""
    folder = tmp_path / "blobs"
    if request.param is FakeBlobs:
        folder.mkdir()
        return FakeBlobs(folder)
    return FileBlobs(folder)


def files_of(folder: Path) -> list[Path]:
    """Every file at or below the folder."""
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("content", [b"", b"one", b"\x00\xff\r\n" * 300_000])
def test_what_was_put_comes_back_by_its_digest(
    blobs: Blobs, content: bytes, tmp_path: Path
) -> None:
    found = blobs.put(content)
    assert found == digest_bytes(content)
    assert blobs.get(found) == content
    assert blobs.path(found).read_bytes() == content
    assert blobs.has(found)
    source = tmp_path / "source"
    source.write_bytes(content)
    assert blobs.put_file(source) == found
    assert source.read_bytes() == content


def test_a_large_file_comes_back_by_its_digest(blobs: Blobs, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(3_000_000))
    assert blobs.path(blobs.put_file(source)).read_bytes() == source.read_bytes()


def test_a_blob_that_is_not_there_is_an_error(blobs: Blobs, tmp_path: Path) -> None:
    assert not blobs.has(digest("nothing"))
    with pytest.raises(BlobError):
        blobs.get(digest("nothing"))
    with pytest.raises(BlobError):
        blobs.path(digest("nothing"))
    with pytest.raises(BlobError):
        blobs.put_file(tmp_path / "nothing")


def test_many_writers_of_the_same_content_make_one_blob(blobs: Blobs) -> None:
    contents = [b"a" * 100_000, b"b" * 100_000] * 8
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(blobs.put, contents))
    assert len(set(found)) == 2
    assert [blobs.get(each) for each in found] == contents


def test_the_same_content_is_one_file_and_no_other_is_left(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path)
    found = blobs.put(b"one")
    before = blobs.path(found).stat()
    (tmp_path / found[:2] / "source").write_bytes(b"one")
    blobs.put(b"one")
    blobs.put_file(tmp_path / found[:2] / "source")
    assert blobs.path(found).stat().st_ino == before.st_ino
    (tmp_path / found[:2] / "source").unlink()
    assert files_of(tmp_path) == [blobs.path(found)]


@pytest.mark.parametrize("damage", [b"", b"on", b"onE", b"one more"])
def test_a_damaged_blob_is_never_given_out(tmp_path: Path, damage: bytes) -> None:
    blobs = FileBlobs(tmp_path)
    found = blobs.put(b"one")
    blobs.path(found).write_bytes(damage)
    with pytest.raises(BlobError, match="damaged"):
        blobs.get(found)


def test_a_blob_that_was_cut_short_is_written_again(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path)
    found = blobs.put(b"one")
    blobs.path(found).write_bytes(b"o")
    assert blobs.put(b"one") == found
    assert blobs.get(found) == b"one"


def test_what_a_killed_writer_left_is_swept_and_a_living_ones_file_is_not(tmp_path: Path) -> None:
    old, young = tmp_path / ".new-old", tmp_path / ".new-young"
    for path in (old, young):
        path.write_bytes(b"half")
    long_ago = time.time() - LEFT_BEHIND_S - 60
    os.utime(old, (long_ago, long_ago))
    FileBlobs(tmp_path).put(b"one")
    assert not old.exists()
    assert young.exists()


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(BlobError, match="check the folder"):
        FileBlobs(tmp_path / "file" / "blobs").put(b"one")


@pytest.mark.namespaces
def test_a_full_disk_is_said_and_nothing_half_written_stays(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from rsi.edges.blob_files import FileBlobs; from rsi.errors import DiskError\n"
        "folder = Path(sys.argv[1]); blobs = FileBlobs(folder)\n"
        "small = blobs.put(b'one')\n"
        "try: blobs.put(b'x' * 1_000_000)\n"
        "except DiskError as error: print(error)\n"
        "print(blobs.get(small), sum(path.is_file() for path in folder.rglob('*')))\n"
    )
    mounted = f'mount -t tmpfs -o size=64k none {tmp_path} && exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", mounted, "sh", sys.executable, "-c", code]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=60)
    if "Operation not permitted" in done.stderr:
        pytest.skip("this machine refuses user namespaces")
    assert done.stderr == ""
    assert "free some room and run again" in done.stdout
    assert done.stdout.endswith("b'one' 1\n")


@given(st.binary(max_size=200))
def test_the_name_is_the_digest_of_the_content(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp() / "named"
    blobs = FileBlobs(folder)
    found = blobs.put(content)
    assert blobs.path(found).name == digest_bytes(content)
    assert blobs.get(found) == content
