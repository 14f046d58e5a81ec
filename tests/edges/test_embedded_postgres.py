"""The embedded server starts, is found, survives, and ends."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from rsi.edges.embedded_postgres.locks import is_locked, locked
from rsi.edges.embedded_postgres.server import EmbeddedPostgres
from rsi.errors import DatabaseError

pytestmark = pytest.mark.postgres

START = (
    "import sys; from pathlib import Path\n"
    "from rsi.edges.embedded_postgres.server import EmbeddedPostgres\n"
    "print(EmbeddedPostgres(Path(sys.argv[1])).start())\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's folder."""
    return tmp_path_factory.mktemp("pg") / "postgres"


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[EmbeddedPostgres]:
    """A server; a test may end or kill it, and asks for `running` to have it back."""
    made = EmbeddedPostgres(folder)
    yield made
    made.stop()


@pytest.fixture
def running(server: EmbeddedPostgres) -> EmbeddedPostgres:
    """The server, started."""
    server.start()
    return server


def asked(url: str, query: str) -> object:
    """The one answer of a query."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        answer = connection.execute(text(query)).scalar_one()
    engine.dispose()
    return answer


def home_of(server: EmbeddedPostgres) -> Path:
    """The folder of the data, from the server itself."""
    return Path(str(asked(server.url, "SHOW data_directory"))).parent


def first_process(server: EmbeddedPostgres) -> int:
    """The number of the server's first process."""
    return int((home_of(server) / "data/postmaster.pid").read_text().split()[0])


def test_it_answers_on_a_private_socket_alone(running: EmbeddedPostgres) -> None:
    assert asked(running.url, "SELECT 1") == 1
    assert asked(running.url, "SHOW listen_addresses") == ""
    assert asked(running.url, "SHOW fsync") == "on"
    sockets = Path(str(asked(running.url, "SHOW unix_socket_directories")))
    assert sockets.stat().st_mode & 0o77 == 0
    assert home_of(running).stat().st_mode & 0o77 == 0


def test_its_processes_are_not_root_inside(running: EmbeddedPostgres) -> None:
    status = Path(f"/proc/{first_process(running)}/status").read_text()
    found = re.search(r"CapEff:\s+(\w+)", status)
    assert found is not None
    if os.geteuid() == 0:
        here, there = (os.stat(f"/proc/{pid}/ns/user") for pid in ("self", first_process(running)))
        assert here.st_ino != there.st_ino or not int(found[1], 16)


def test_attaching_takes_milliseconds(running: EmbeddedPostgres) -> None:
    started = time.monotonic()
    for _ in range(10):
        assert not running.start()
    assert time.monotonic() - started < 1


def test_another_database_is_made_when_asked_for(running: EmbeddedPostgres) -> None:
    for _ in range(2):
        assert not running.start(("rsi", "prefect"))
        assert asked(running.url_of("prefect"), "SELECT current_database()") == "prefect"


def test_it_outlives_the_process_that_started_it(server: EmbeddedPostgres, folder: Path) -> None:
    server.stop()
    assert not server.is_running()
    shown = subprocess.run(
        [sys.executable, "-c", START, str(folder)], capture_output=True, text=True, timeout=90
    )
    assert (shown.stdout, shown.stderr) == ("True\n", "")
    assert server.is_running()
    assert not server.start()


def test_many_processes_may_start_it_at_once(server: EmbeddedPostgres, folder: Path) -> None:
    server.stop()
    command = [sys.executable, "-c", START, str(folder)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    ended = sorted(one.communicate(timeout=90)[0] for one in started)
    assert ended == ["False\n"] * 3 + ["True\n"]


@pytest.mark.parametrize("pause_s", [0.0, 0.05, 0.3])
def test_a_killed_server_is_started_again_with_what_was_committed(
    running: EmbeddedPostgres, pause_s: float
) -> None:
    engine = create_engine(running.url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS kept (at float)"))
        connection.execute(text(f"INSERT INTO kept VALUES ({pause_s})"))
    os.kill(first_process(running), signal.SIGKILL)
    time.sleep(pause_s)
    running.start()
    assert asked(running.url, f"SELECT count(*) FROM kept WHERE at = {pause_s}") == 1
    engine.dispose()


def test_a_number_that_belongs_to_another_process_by_now_does_not_matter(
    running: EmbeddedPostgres,
) -> None:
    home = home_of(running)
    left = {path: path.read_bytes() for path in home.glob("data/postmaster.pid")}
    left |= {path: path.read_bytes() for path in home.glob("run/.s.*.lock")}
    number = str(first_process(running)).encode()
    running.stop()
    for path, content in left.items():
        path.write_bytes(content.replace(number, str(os.getpid()).encode(), 1))
    assert not running.is_running()
    assert running.start()
    assert asked(running.url, "SELECT 1") == 1


def test_stopping_twice_or_before_the_first_start_does_nothing(
    server: EmbeddedPostgres, tmp_path: Path
) -> None:
    for _ in range(2):
        server.stop()
        assert not server.is_running()
    nowhere = EmbeddedPostgres(tmp_path / "nowhere")
    nowhere.stop()
    assert not nowhere.is_running()
    assert not (tmp_path / "nowhere").exists()


def test_a_first_start_that_was_killed_half_way_is_begun_again(tmp_path: Path) -> None:
    half = tmp_path / "pg" / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    made = EmbeddedPostgres(tmp_path / "pg")
    try:
        assert made.start()
        assert asked(made.url, "SELECT 1") == 1
        assert not half.exists()
    finally:
        made.stop()


@pytest.mark.parametrize("name", ["long-" + "x" * 100, "with space, comma & 'quote' % é"])
def test_a_long_or_odd_path_gets_its_socket_elsewhere(tmp_path: Path, name: str) -> None:
    made = EmbeddedPostgres(tmp_path / name)
    try:
        assert made.start()
        assert asked(made.url, "SELECT 1") == 1
        sockets = Path(str(asked(made.url, "SHOW unix_socket_directories")))
        assert not made.start()
    finally:
        made.stop()
    assert len(str(sockets)) < 60
    sockets.rmdir()


def test_a_socket_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    made = EmbeddedPostgres(tmp_path / ("x" * 100))
    foreign = Path(re.sub(".*host=", "", made.url).replace("%2F", "/"))
    foreign.mkdir(mode=0o755)
    try:
        with pytest.raises(DatabaseError, match="open to others"):
            made.start()
    finally:
        made.stop()
        shutil.rmtree(foreign)


def test_a_folder_that_cannot_be_used_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseError, match="RSI_STATE_DIR"):
        EmbeddedPostgres(tmp_path / "file" / "pg").start()
    with pytest.raises(DatabaseError, match="RSI_STATE_DIR"):
        EmbeddedPostgres(tmp_path / "$(id)").start()


def test_data_that_postgres_refuses_is_said_in_its_words(tmp_path: Path) -> None:
    data = tmp_path / "pg" / "data"
    data.mkdir(parents=True, mode=0o700)
    (data / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(DatabaseError, match=r"(?s)pg_ctl.*RSI_DATABASE_URL"):
        EmbeddedPostgres(tmp_path / "pg").start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to be somebody else")
def test_root_uses_an_account_where_a_namespace_cannot_reach_the_folder() -> None:
    # An id without rights over the folder above: root passes, a namespace's process doesn't.
    above = Path(tempfile.mkdtemp(prefix="rsi-unreachable-"))
    os.chown(above, 65534, 65534)
    made = EmbeddedPostgres(above / "pg")
    home = None
    try:
        assert made.start(("rsi", "prefect"))
        assert asked(made.url, "SELECT 1") == 1
        home = home_of(made)
        assert home.parent == Path("/var/lib")
        assert Path(f"/proc/{first_process(made)}").stat().st_uid != 0
        os.kill(first_process(made), signal.SIGKILL)
        made.start()
        assert asked(made.url_of("prefect"), "SELECT 1") == 1
    finally:
        made.stop()
        shutil.rmtree(above)
        if home is not None:
            shutil.rmtree(home)


def test_a_lock_is_held_until_the_last_process_that_has_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path, limit_s=1) as handle:
        child = subprocess.Popen(["sleep", "60"], pass_fds=(handle,))
    assert is_locked(path)
    with pytest.raises(DatabaseError, match="another process"), locked(path, limit_s=0.1):
        pytest.fail("two holders")
    child.kill()
    child.wait()
    assert not is_locked(path)


def test_a_socket_without_a_server_is_not_taken_for_one(
    server: EmbeddedPostgres, running: EmbeddedPostgres
) -> None:
    home = home_of(running)
    ready = (home / "data/postmaster.pid").read_bytes()
    server.stop()
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(home / "run/.s.PGSQL.5432"))
        deaf.listen()
        (home / "data/postmaster.pid").write_bytes(ready)
        assert not server.is_running()
    assert server.start()
