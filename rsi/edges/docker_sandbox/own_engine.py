"""An engine of our own: a dockerd whose files all lie in one folder, stopped by its last user.

Its users share a lock file; who leaves and finds nobody else there stops the engine. So it also
goes when its starter was killed and another user came after.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rsi.edges.docker_sandbox.leftovers import clear_leftovers
from rsi.errors import SandboxError

START_LIMIT_S = 45
STOP_LIMIT_S = 25
LONGEST_SOCKET = "exec/containerd/containerd-debug.sock"
"""Of the sockets that the engine makes beside ours."""
SOCKET_BYTES = 104
"""Its limit for their paths."""


class OwnEngine:
    """The engine of one folder, whether it runs or not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._place = _short_place(self._folder)
        self._lock: int | None = None

    @property
    def url(self) -> str:
        return f"unix://{self._place / 'docker.sock'}"

    def join(self) -> bool:
        """Becomes one of the engine's users; False when it has just been stopped."""
        self._share()
        if self._pid() is not None:
            return True
        self._unshare()
        return False

    def start(self, answers: Callable[[], bool]) -> None:
        """Starts the engine, unless another process has just done so; we are its user then.

        Raises SandboxError with the reason in one line.
        """
        program = find_program()
        with _foreign_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            _make_private(self._place)
            lock = os.open(self._folder / "start.lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._share()
                pid = self._pid()
                if pid is not None and not answers():
                    _end(pid)
                if not answers():
                    self._launch(program, answers)
            finally:
                os.close(lock)

    def leave(self) -> None:
        """Stops the engine, unless it has other users."""
        if not self._folder.is_dir():
            return
        try:
            fcntl.flock(self._users(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # Others go on; the last of them stops it.
        else:
            self._stop()
        self._unshare()

    def _launch(self, program: str, answers: Callable[[], bool]) -> None:
        # What a killed one left would keep the new one from starting.
        self._clear()
        log_path = self._folder / "dockerd.log"
        descriptors = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log_path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        # A session of its own: it outlives us where others use it.
        pid = os.posix_spawn(
            program,
            [program, *self._arguments()],
            os.environ,
            file_actions=descriptors,
            setsid=True,
        )
        deadline = time.monotonic() + START_LIMIT_S
        while not (ended := _has_ended(pid)) and time.monotonic() < deadline:
            if answers():
                return
            time.sleep(0.1)
        if not ended:
            _end(pid)
        self._clear()
        self._unshare()
        said = log_path.read_text(errors="replace").strip()[-300:]
        raise SandboxError(f"dockerd didn't start within {START_LIMIT_S} s; {log_path}: {said}")

    def _arguments(self) -> list[str]:
        # Boxes have no network at all, so the engine needs no bridge and no packet filter.
        return [
            f"--host={self.url}",
            f"--data-root={self._folder / 'data'}",
            f"--exec-root={self._place / 'exec'}",
            f"--pidfile={self._folder / 'dockerd.pid'}",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
            "--shutdown-timeout=2",
            "--log-level=error",
        ]

    def _stop(self) -> None:
        pid = self._pid()
        if pid is not None:
            _end(pid)
        self._clear()
        if self._place != self._folder:
            shutil.rmtree(self._place, ignore_errors=True)

    def _clear(self) -> None:
        """Takes away what an engine that has ended left; its images and boxes stay."""
        clear_leftovers(self._folder / "data", self._place / "exec")
        shutil.rmtree(self._place / "exec", ignore_errors=True)
        (self._folder / "dockerd.pid").unlink(missing_ok=True)

    def _pid(self) -> int | None:
        """The process of the engine; ids are reused, so its command line has to be ours."""
        try:
            pid = int((self._folder / "dockerd.pid").read_text())
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if os.fsencode(self._folder / "dockerd.pid") in line else None

    def _share(self) -> None:
        """Holds the users' lock, shared; the kernel lets go of it when this process dies."""
        fcntl.flock(self._users(), fcntl.LOCK_SH)

    def _users(self) -> int:
        if self._lock is None:
            self._lock = os.open(self._folder / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
        return self._lock

    def _unshare(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def find_program() -> str:
    """The path of dockerd. Raises SandboxError with the reason when we can't start one."""
    if os.geteuid() != 0:
        raise SandboxError("no Docker engine answers, and only root can start one")
    program = shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        raise SandboxError("no Docker engine answers, and dockerd isn't installed")
    return program


def _short_place(folder: Path) -> Path:
    """Where the sockets go: in the folder, or in a short private one where its path is long."""
    if len(os.fsencode(folder / LONGEST_SOCKET)) <= SOCKET_BYTES:
        return folder
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return Path(tempfile.gettempdir(), f"rsi-docker-{os.geteuid()}-{name}")


def _make_private(place: Path) -> None:
    """Makes the folder, or checks that it is ours alone: others can write where it lies."""
    place.mkdir(mode=0o700, exist_ok=True)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise SandboxError(f"{place} belongs to somebody else; remove it and run again")


def _end(pid: int) -> None:
    """Ends a process that has a group of its own, within a limit."""
    for sign, limit_s in ((signal.SIGTERM, STOP_LIMIT_S), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sign)
        if _ended(pid, limit_s):
            return


def _ended(pid: int, limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if _has_ended(pid):
            return True
        time.sleep(0.05)
    return False


def _has_ended(pid: int) -> bool:
    """Whether a process is gone, be it our child or not."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not Path(f"/proc/{pid}").exists()


@contextlib.contextmanager
def _foreign_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SandboxError(f"the engine's folder {folder} can't be used: {error}") from error
