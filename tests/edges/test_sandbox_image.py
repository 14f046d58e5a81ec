"""The base image: made of this machine's programs, readable by the agent, the same each time."""

import hashlib
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rsi.edges.sandbox_image.filling import fill
from rsi.edges.sandbox_image.staging import BaseImage, stage, write_tar
from rsi.edges.sandbox_image.tools import NEEDED, STAND_INS
from rsi.errors import SandboxError


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BaseImage]:
    """An image staged under the strictest umask, where an earlier staging broke off."""
    folder = tmp_path_factory.mktemp("strict")
    (folder / "fresh.1").mkdir()
    (folder / "digest").write_text("an older recipe:123\n")
    before = os.umask(0o077)
    try:
        image = stage(folder, lambda _: None)
    finally:
        os.umask(before)
    yield image
    shutil.rmtree(folder)


def test_staging_again_takes_no_time_and_says_nothing(strict: BaseImage) -> None:
    said: list[str] = []
    begun = time.monotonic()
    assert stage(strict.root.parent, said.append) == strict
    assert time.monotonic() - begun < 1
    assert said == []


def test_everybody_can_read_it_and_nobody_gains_rights(strict: BaseImage) -> None:
    for path in strict.root.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            continue
        wanted = 0o555 if stat.S_ISDIR(mode) else 0o444
        assert mode & wanted == wanted, path
        assert not mode & (stat.S_ISUID | stat.S_ISGID | 0o022), path


def test_nothing_else_of_the_machine_goes_in(strict: BaseImage) -> None:
    assert sorted(path.name for path in (strict.root / "etc").iterdir()) == ["group", "passwd"]
    assert not {"root", "home", "var", "opt"} & {path.name for path in strict.root.iterdir()}


def test_the_same_root_gives_the_same_bytes(strict: BaseImage, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_tar(strict, tmp_path / name)
    one, two = (hashlib.sha256((tmp_path / name).read_bytes()) for name in ("one", "two"))
    assert one.digest() == two.digest()


def test_what_broke_off_is_removed(strict: BaseImage) -> None:
    names = {path.name for path in strict.root.parent.iterdir()}
    assert names == {"digest", "lock", strict.root.name}


def test_a_machine_without_the_tools_says_which(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"lacks bash, sh.*install them"):
        fill(tmp_path, programs=str(tmp_path))


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SandboxError, match="could not be made"):
        stage(tmp_path / "file", lambda _: None)


def test_the_stand_ins_do_what_the_real_ones_do(tmp_path: Path) -> None:
    script = tmp_path / "rev"
    script.write_text(STAND_INS["rev"].partition("\n")[2])
    given = "abc\n\nx\u00e9y".encode()
    done = subprocess.run(
        ["python3", str(script)], input=given, capture_output=True, timeout=20, check=True
    )
    assert done.stdout == "cba\n\ny\u00e9x".encode()


def test_each_tool_is_named_once() -> None:
    assert len(set(NEEDED)) == len(NEEDED)
