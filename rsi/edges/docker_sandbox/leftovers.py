"""What an engine of our own leaves when it is killed: processes holding containers, and mounts."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

UNMOUNT_LIMIT_S = 20


def clear_leftovers(data: Path, sockets: Path) -> None:
    """Ends the processes of an engine that has ended, and takes away the mounts of its folders.

    `data` and `sockets` are the engine's own folders; what doesn't name them is left alone.
    """
    for pid in _processes_naming(sockets):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for mount in reversed(_mounts_below(data, sockets)):
        # Lazily: what a process that is just ending still holds is let go of with it.
        subprocess.run(
            ["umount", "--lazy", mount], capture_output=True, timeout=UNMOUNT_LIMIT_S, check=False
        )


def _processes_naming(folder: Path) -> list[int]:
    """The processes whose arguments lie in the folder."""
    wanted, found = os.fsencode(folder) + b"/", []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if any(word.startswith(wanted) for word in path.read_bytes().split(b"\0")):
                found.append(int(path.parent.name))
    return found


def _mounts_below(*folders: Path) -> list[str]:
    """The mount points at and below the folders, in the order of mounting."""
    lines = Path("/proc/self/mounts").read_text("utf-8", "surrogateescape").splitlines()
    points = [_unescaped(line.split(" ")[1]) for line in lines]
    return [one for one in points if any(Path(one).is_relative_to(place) for place in folders)]


def _unescaped(point: str) -> str:
    """A mount point as the kernel's table writes it: octal escapes for blanks and backslashes."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return point
