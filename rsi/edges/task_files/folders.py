"""Files of a task directory, read without following a link and within a limit."""

import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from rsi.domain.task import TaskFile

LIMIT_BYTES = 16 << 20
"""All files of one task together."""


class FolderFault(Exception):
    """Why a file or folder of a task can't be used."""


def files_below(folder: Path) -> tuple[TaskFile, ...]:
    """The regular files below the folder by relative path, sorted; () when it isn't there.

    Raises FolderFault for links, devices, names that aren't UTF-8, and too many bytes.
    """
    if not folder.exists() and not folder.is_symlink():
        return ()
    if folder.is_symlink() or not folder.is_dir():
        raise FolderFault(f"{folder.name} must be a folder")
    return tuple(sorted(_walk(folder, PurePosixPath(), [0]), key=lambda file: file.path))


def one_file(folder: Path, name: str) -> bytes | None:
    """The content of a file in the folder; None when it isn't there. Raises FolderFault."""
    path = folder / name
    if not path.exists() and not path.is_symlink():
        return None
    return _content(path, name, [0])


def path_fault(path: str, *, may_be_absolute: bool = False) -> str | None:
    """What is wrong with a path inside a task; None for a plain one."""
    bare = path[1:] if may_be_absolute and path.startswith("/") else path
    if not bare or "\0" in bare or any(part in ("", ".", "..") for part in bare.split("/")):
        return f"the path {path!r} must stay below its folder, without `.`, `..` or an empty part"
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return f"the path {path!r} is not UTF-8"
    return None


def _walk(folder: Path, below: PurePosixPath, total: list[int]) -> Iterator[TaskFile]:
    for path in sorted(folder.iterdir()):
        inside = below / path.name
        if fault := path_fault(str(inside)):
            raise FolderFault(fault)
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path, inside, total)
        else:
            content = _content(path, str(inside), total)
            is_executable = bool(path.lstat().st_mode & 0o111)
            yield TaskFile(path=str(inside), content=content, executable=is_executable)


def _content(path: Path, name: str, total: list[int]) -> bytes:
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise FolderFault(f"{name} is a link; copy the file that it points to")
    if not stat.S_ISREG(found.st_mode):
        raise FolderFault(f"{name} is no regular file")
    total[0] += found.st_size
    if total[0] > LIMIT_BYTES:
        raise FolderFault(f"the files are larger than {LIMIT_BYTES >> 20} MiB together")
    return path.read_bytes()
