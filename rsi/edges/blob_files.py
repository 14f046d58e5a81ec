"""Content-addressed bytes in a folder: written whole or not at all, checked when read."""

import errno
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rsi.domain.values import Digest, digest_bytes
from rsi.errors import BlobError, DiskError

CHUNK_BYTES = 1 << 20
LEFT_BEHIND_S = 24 * 3600
"""A file that was still being written so long ago has lost its writer."""
FRESH = ".new-"


class FileBlobs:
    """Keeps the `Blobs` port in a folder, one file for each content, in 256 folders by digest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_swept = False

    def put(self, content: bytes) -> Digest:
        digest = digest_bytes(content)
        with _foreign_errors("write", digest):
            if not self._is_whole(digest, len(content)):
                with self._fresh() as (file, path):
                    file.write(content)
                    self._keep(file, path, digest)
        return digest

    def put_file(self, path: Path) -> Digest:
        """The digest of the file's content, copied into the store."""
        with _foreign_errors("store", str(path)), self._fresh() as (file, fresh):
            hashed = hashlib.sha256()
            with path.open("rb") as source:
                while chunk := source.read(CHUNK_BYTES):
                    hashed.update(chunk)
                    file.write(chunk)
            digest = hashed.hexdigest()
            if not self._is_whole(digest, file.tell()):
                self._keep(file, fresh, digest)
        return digest

    def get(self, digest: Digest) -> bytes:
        with _foreign_errors("read", digest):
            content = self._place(digest).read_bytes()
        if digest_bytes(content) != digest:
            raise BlobError(
                f"blob {digest} in {self._folder} is damaged: its content has another digest; "
                "restore it from a copy, or remove the file and run again"
            )
        return content

    def path(self, digest: Digest) -> Path:
        if not self.has(digest):
            raise BlobError(f"there is no blob {digest} in {self._folder}; restore it from a copy")
        return self._place(digest)

    def has(self, digest: Digest) -> bool:
        with _foreign_errors("look for", digest):
            return self._place(digest).is_file()

    def _place(self, digest: Digest) -> Path:
        return self._folder / digest[:2] / digest

    def _is_whole(self, digest: Digest, size: int) -> bool:
        """Whether the blob is there and not cut short, as a power cut may leave it."""
        try:
            return self._place(digest).stat().st_size == size
        except FileNotFoundError:
            return False

    @contextmanager
    def _fresh(self) -> Iterator[tuple[BinaryIO, Path]]:
        """A new file in the store that is gone afterwards unless it was kept."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._sweep()
        handle, name = tempfile.mkstemp(dir=self._folder, prefix=FRESH)
        path = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file, path
        finally:
            path.unlink(missing_ok=True)

    def _keep(self, file: BinaryIO, path: Path, digest: Digest) -> None:
        file.flush()
        os.fsync(file.fileno())
        place = self._place(digest)
        place.parent.mkdir(exist_ok=True)
        os.replace(path, place)
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _sweep(self) -> None:
        """Removes what killed writers left behind, once in the life of this value."""
        if self._is_swept:
            return
        self._is_swept = True
        for left in self._folder.glob(f"{FRESH}*"):
            try:
                if time.time() - left.stat().st_mtime > LEFT_BEHIND_S:
                    left.unlink()
            except FileNotFoundError:
                continue


@contextmanager
def _foreign_errors(doing: str, what: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise BlobError(
            f"could not {doing} blob {what}: {error.filename} is missing; restore it from a copy"
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskError(
                f"the disk is full: could not {doing} blob {what}; free some room and run again"
            ) from error
        raise BlobError(
            f"could not {doing} blob {what}: {error}; check the folder and the rights to it"
        ) from error
