"""Other harnesses' programs, each in an environment of its own below the state folder."""

import shutil
import subprocess
import sys
from pathlib import Path

INSTALL_LIMIT_S = 240
PYTHONS = ("python3.13", "python3.12")


class Absent(Exception):
    """Why a harness can't run here, in one line."""


def program(folder: Path, package: str, python: str, name: str) -> str:
    """The path of a program of the package, installed into the folder on first use.

    Raises Absent.
    """
    if not (folder / "ready").exists():
        for command in (
            [python, "-m", "venv", "--clear", str(folder)],
            [str(folder / "bin/pip"), "install", "-q", package],
        ):
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False
                )
            except subprocess.TimeoutExpired as error:
                raise Absent(f"installing {package} took over {INSTALL_LIMIT_S} s") from error
            if done.returncode:
                raise Absent(f"{package} can't be installed: {last_line(done.stderr)}")
        (folder / "ready").touch()
    return str(folder / "bin" / name)


def newer_python() -> str:
    """A Python that is 3.12 or newer, on the path or where pyenv keeps them. Raises Absent."""
    if sys.version_info >= (3, 12):
        return sys.executable
    found = [shutil.which(name) for name in PYTHONS]
    for version in ("3.13", "3.12"):
        found += map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    for python in filter(None, found):
        command = [python, "-c", "import sys; print(sys.version_info >= (3, 12))"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        if said.stdout.strip() == "True":
            return python
    raise Absent("it needs Python 3.12 or newer, which this machine hasn't got")


def last_line(said: str) -> str:
    """The last thing that a program said, short enough for a table."""
    lines = [line.strip(" │╰─╯|") for line in said.splitlines()]
    return next((line for line in reversed(lines) if line), "nothing was said")[-160:]
