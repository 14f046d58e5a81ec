"""The base image of boxes, made of this machine's own programs: no registry is needed.

A root folder is staged from the tools that shell tasks need, the libraries they load and the
running Python's standard library. Docker imports it; namespaces use it as it stands. Nothing else
of the machine goes in: no accounts, no configuration, no set-uid file.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rsi.edges.sandbox_image.filling import fill
from rsi.errors import SandboxError

RECIPE = "5"
"""Raised when the recipe changes, so that an older staged root isn't taken for a new one."""
KEEP_S = 7 * 86400
"""Roots of older recipes stay so long: another process may still make boxes of them."""


@dataclass(frozen=True, slots=True)
class BaseImage:
    """The staged root, and the digest of what is in it."""

    root: Path
    digest: str

    @property
    def tag(self) -> str:
        """Its name in a Docker engine."""
        return f"rsi-base:{self.digest[:12]}"


def stage(folder: Path, say: Callable[[str], None]) -> BaseImage:
    """The base image below `folder`, staged on first use (about 15 s).

    Raises SandboxError naming the tools that this machine lacks.
    """
    with _foreign_errors(folder):
        image = _staged(folder)
        if image is not None:
            return image
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            image = _staged(folder)
            if image is not None:
                return image
            say("Making the sandbox's base image from this machine's own tools (about 15 s)")
            _remove_old(folder)
            fresh = folder / f"fresh.{os.getpid()}"
            fresh.mkdir()
            fill(fresh)
            digest = _digest(fresh)
            image = BaseImage(folder / f"root-{digest[:12]}", digest)
            if not image.root.exists():
                os.replace(fresh, image.root)
            note = folder / f"digest.{os.getpid()}"
            note.write_text(f"{RECIPE}:{digest}\n")
            os.replace(note, folder / "digest")
            return image


def _staged(folder: Path) -> BaseImage | None:
    """The image as it was staged before by this recipe, if it was."""
    note = folder / "digest"
    if not note.is_file():
        return None
    recipe, _, digest = note.read_text().strip().partition(":")
    image = BaseImage(folder / f"root-{digest[:12]}", digest)
    return image if recipe == RECIPE and image.root.is_dir() else None


def _remove_old(folder: Path) -> None:
    """Removes what broke off, and roots that nobody can be using any more."""
    for path in folder.iterdir():
        is_old = path.stat().st_mtime < time.time() - KEEP_S
        if path.name.startswith("fresh.") or (path.name.startswith("root") and is_old):
            shutil.rmtree(path, ignore_errors=True)


def write_tar(image: BaseImage, target: Path) -> None:
    """The image as a tar with fixed owners and times: the same root gives the same bytes."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = 0
        return member

    with _foreign_errors(target), tarfile.open(target, "w") as tar:
        for path in sorted(image.root.rglob("*")):
            name = str(path.relative_to(image.root))
            tar.add(path, arcname=name, recursive=False, filter=plain)


def _digest(root: Path) -> str:
    """SHA-256 over the paths, kinds and contents below the root."""
    total = hashlib.sha256(RECIPE.encode())
    for path in sorted(root.rglob("*")):
        total.update(str(path.relative_to(root)).encode() + b"\0")
        if path.is_symlink():
            total.update(os.readlink(path).encode())
        elif path.is_file():
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@contextmanager
def _foreign_errors(place: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, subprocess.SubprocessError, shutil.Error) as error:
        raise SandboxError(f"the sandbox's image could not be made in {place}: {error}") from error
