"""What an image has in a folder, read without making anything of it on this machine."""

import contextlib
import io
import tarfile
from collections.abc import Iterator
from typing import Any

from docker.errors import APIError

from rsi.edges.docker_sandbox.owners import LABEL
from rsi.errors import TrialFault
from rsi.ports import BoxFile

READ_LIMIT_S = 60
NOT_FOUND = 404
LIMIT_BYTES = 64 << 20
MOST_FILES = 10_000
MOST_DEPTH = 64
BATCH_BYTES = 4 << 20
BLOCK_BYTES = 4096
"""What each file of a tmpfs is rounded up to."""


def folder_files(api: Any, image: str, folder: str, owner: str) -> tuple[BoxFile, ...]:
    """The regular files and the folders below the image's folder; links are left out. Nothing
    for a folder that the image hasn't got.

    Raises TrialFault when they are more than a box could hold, or make no sense.
    """
    created = api.create_container(image, ["true"], labels={LABEL: owner}, network_disabled=True)
    try:
        # The SDK's own call has no limits on reading, and can't be broken off.
        address = f"{api.base_url}/v{api.api_version}/containers/{created['Id']}/archive"
        asked = api.get(address, params={"path": folder}, stream=True, timeout=READ_LIMIT_S)
        with contextlib.closing(asked) as answer:
            if answer.status_code == NOT_FOUND:
                return ()
            answer.raise_for_status()
            return _read(answer.iter_content(1 << 16), folder, image)
    finally:
        with contextlib.suppress(APIError):
            api.remove_container(created["Id"], v=True, force=True)


def batches(files: tuple[BoxFile, ...]) -> Iterator[list[BoxFile]]:
    """The files in portions that a box's helper can hold."""
    some: list[BoxFile] = []
    size = 0
    for file in files:
        if some and size + len(file.content) > BATCH_BYTES:
            yield some
            some, size = [], 0
        some.append(file)
        size += len(file.content)
    if some:
        yield some


def room_bytes(files: tuple[BoxFile, ...]) -> int:
    """What the files take of a box's folder."""
    return sum(-(-max(1, len(file.content)) // BLOCK_BYTES) * BLOCK_BYTES for file in files)


def _read(chunks: Iterator[bytes], folder: str, image: str) -> tuple[BoxFile, ...]:
    found: dict[str, BoxFile] = {}
    try:
        with tarfile.open(fileobj=io.BufferedReader(_Chunks(chunks)), mode="r|") as tar:
            for member in tar:
                _add(found, tar, member, folder)
    except _TooMuch as error:
        reason = f"image {image} has over {LIMIT_BYTES >> 20} MB or {MOST_FILES} files in {folder}"
        raise TrialFault("sandbox", reason) from error
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise TrialFault("sandbox", f"image {image}: {folder} can't be read ({error})") from error
    return tuple(found.values())


def _add(
    found: dict[str, BoxFile], tar: tarfile.TarFile, member: tarfile.TarInfo, folder: str
) -> None:
    path = _place(member.name, folder)
    if path is None or member.issparse():
        return
    if len(found) >= MOST_FILES or member.size > LIMIT_BYTES:
        raise _TooMuch
    mode = 0o755 if member.isdir() or member.mode & 0o111 else 0o644
    if member.isdir():
        found[f"{path}/"] = BoxFile(f"{path}/", b"", mode)
    elif member.isreg():
        content = tar.extractfile(member)
        found[path] = BoxFile(path, content.read() if content else b"", mode)
    elif member.islnk() and (same := found.get(_place(member.linkname, folder) or "")):
        # A second name of a file is a file of its own in the box.
        found[path] = BoxFile(path, same.content, mode)


def _place(name: str, folder: str) -> str | None:
    """Where a member lies in the box; None for the folder itself and for odd names."""
    _, *parts = name.strip("/").split("/")
    if not parts or len(parts) > MOST_DEPTH or any(part in ("", ".", "..") for part in parts):
        return None
    try:
        "/".join(parts).encode("utf-8")
    except UnicodeEncodeError:
        return None
    return "/".join((folder.rstrip("/"), *parts))


class _TooMuch(Exception):
    """The budget is spent."""


class _Chunks(io.RawIOBase):
    """The engine's answer as a file that is read once, up to the budget."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest, self._seen = chunks, b"", 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._chunks, b"")
        taken, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        self._seen += len(taken)
        # Heads and padding take up to 1 KiB of each file.
        if self._seen > LIMIT_BYTES + MOST_FILES * 1024:
            raise _TooMuch
        buffer[: len(taken)] = taken
        return len(taken)
