"""A blob store in memory; what is asked for as a path is laid into the folder."""

from pathlib import Path

from rsi.domain.values import Digest, digest_bytes
from rsi.errors import BlobError


class FakeBlobs:
    """Keeps every content by its digest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._contents: dict[Digest, bytes] = {}

    def put(self, content: bytes) -> Digest:
        digest = digest_bytes(content)
        self._contents[digest] = content
        return digest

    def put_file(self, path: Path) -> Digest:
        try:
            return self.put(path.read_bytes())
        except OSError as error:
            raise BlobError(f"could not store {path}") from error

    def get(self, digest: Digest) -> bytes:
        if digest not in self._contents:
            raise BlobError(f"There is no blob {digest}.")
        return self._contents[digest]

    def path(self, digest: Digest) -> Path:
        content = self.get(digest)
        path = self._folder / digest
        path.write_bytes(content)
        return path

    def has(self, digest: Digest) -> bool:
        return digest in self._contents
