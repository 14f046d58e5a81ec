"""Content-addressed bytes in a folder: written whole or not at all, checked when read."""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rsi.domain.values import Digest, digest_bytes
from rsi.errors import BlobError, DiskError

CHUNK_BYTES = 1 << 20


class FileBlobs:
    """Keeps the `Blobs` port in a folder, one file for each content, in 256 folders by digest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, content: bytes) -> Digest:
        digest = digest_bytes(content)
        if not self.has(digest):
            with _foreign_errors("write", digest), self._fresh() as (handle, path):
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                self._keep(path, digest)
        return digest

    def put_file(self, path: Path) -> Digest:
        """The digest of the file's content, copied into the store."""
        with _foreign_errors("store", str(path)), self._fresh() as (handle, fresh):
            hashed = hashlib.sha256()
            with path.open("rb") as source, os.fdopen(handle, "wb") as target:
                while chunk := source.read(CHUNK_BYTES):
                    hashed.update(chunk)
                    target.write(chunk)
                target.flush()
                os.fsync(target.fileno())
            digest = hashed.hexdigest()
            if not self.has(digest):
                self._keep(fresh, digest)
        return digest

    def get(self, digest: Digest) -> bytes:
        with _foreign_errors("read", digest):
            content = self._place(digest).read_bytes()
        if digest_bytes(content) != digest:
            raise BlobError(
                f"blob {digest} in {self._folder} is damaged: its content has another digest; "
                "restore it from a copy"
            )
        return content

    def path(self, digest: Digest) -> Path:
        place = self._place(digest)
        if not place.is_file():
            raise BlobError(f"there is no blob {digest} in {self._folder}")
        return place

    def has(self, digest: Digest) -> bool:
        return self._place(digest).is_file()

    def _place(self, digest: Digest) -> Path:
        return self._folder / digest[:2] / digest

    @contextmanager
    def _fresh(self) -> Iterator[tuple[int, Path]]:
        """A new file in the store that is gone afterwards unless it was kept."""
        self._folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self._folder, prefix=".new-")
        path = Path(name)
        try:
            yield handle, path
        finally:
            path.unlink(missing_ok=True)

    def _keep(self, path: Path, digest: Digest) -> None:
        place = self._place(digest)
        place.parent.mkdir(exist_ok=True)
        shutil.move(path, place)


@contextmanager
def _foreign_errors(doing: str, what: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise BlobError(f"could not {doing} blob {what}: {error.filename} is missing") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskError(
                f"the disk is full: could not {doing} blob {what}; free some room and run again"
            ) from error
        raise BlobError(f"could not {doing} blob {what}: {error}") from error
