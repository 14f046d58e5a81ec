"""The local Prefect server starts, shows runs, and is gone afterwards; batches keep their order."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows import server
from rsi.errors import PartError

pytestmark = pytest.mark.prefect

RUN = """
import sys
from flows.parts import TaskWorkers
from flows.progress import open_progress
from prefect import flow

@flow(name="numbers", persist_result=False)
def numbers() -> None:
    workers = TaskWorkers(3)
    with open_progress() as progress:
        progress.say("said by the flow")
        workers.map("speakers", lambda n: progress.say(f"said by thread {n}"), range(3))
    assert workers.map("squares", lambda n: n * n, range(50)) == [n * n for n in range(50)]
    try:
        workers.map("broken", lambda n: 1 // (n - 5), range(50))
    except ZeroDivisionError:
        print("the first error came through")

numbers()
from prefect.logging.handlers import APILogWorker
APILogWorker.drain_all(timeout=30)
from prefect.client.orchestration import get_client
with get_client(sync_client=True) as client:
    runs = client.read_task_runs()
    print(sorted(line.message for line in client.read_logs()))
print(sorted((run.name, run.state_name) for run in runs))
"""


LEFT = """
from flows.generation import generation
from flows.leftovers import close_leftovers
from prefect.client.orchestration import get_client
from prefect.states import Running
with get_client(sync_client=True) as client:
    left = client.create_flow_run(generation, parameters={"number": 7}, state=Running())
    print("closed", close_leftovers(), client.read_flow_run(left.id).state_name)
    print("closed", close_leftovers())
"""

DEPLOYED = """
from pathlib import Path
from flows.nights import ROOT
import yaml
(deployment,) = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
from prefect.flows import load_flow_from_entrypoint
print(load_flow_from_entrypoint(deployment["entrypoint"]).name)
from flows.nightly import is_over
from datetime import UTC, datetime, timedelta
due = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
print([is_over(due, due + timedelta(hours=h)) for h in (0, 5, 7)], is_over(None, due))
"""


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.PrefectServer]:
    before = dict(os.environ)
    os.environ.pop("PREFECT_API_URL", None)
    found = server.start(tmp_path_factory.mktemp("prefect"))
    try:
        found.wait()
        yield found
    finally:
        found.stop()
        os.environ.clear()
        os.environ.update(before)


def test_a_batch_is_one_task_and_keeps_its_order(prefect: server.PrefectServer) -> None:
    done = _run(RUN)
    assert "the first error came through" in done.stdout
    assert "('squares: 50', 'Completed')" in done.stdout
    assert "('broken: 50', 'Failed')" in done.stdout
    for said in ("said by the flow", "said by thread 0", "said by thread 2"):
        assert said in done.stdout, "the log of the run has it"
        assert done.stderr.count(said) == 1, "the terminal has it once"
    assert "Traceback" not in done.stderr, "an error is told once, by who ends on it"
    assert prefect.url in os.environ["PREFECT_API_URL"]


@pytest.mark.usefixtures("prefect")
def test_runs_of_a_killed_process_are_closed_once() -> None:
    assert _run(LEFT).stdout == "closed 1 Crashed\nclosed 0\n"


@pytest.mark.usefixtures("prefect")
def test_the_nightly_flow_is_where_its_deployment_says_and_skips_nights_that_are_over() -> None:
    assert _run(DEPLOYED).stdout == "nightly\n[False, False, True] False\n"


def test_only_the_server_of_the_state_folder_is_our_own(
    prefect: server.PrefectServer, tmp_path: Path
) -> None:
    assert server.is_own(prefect.state)
    assert not server.is_own(tmp_path)


def test_a_running_server_is_found_again(prefect: server.PrefectServer) -> None:
    assert server.running(prefect.state) == prefect


def test_a_server_that_cannot_start_is_told_with_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("the port is taken")
    dead = server.PrefectServer("http://127.0.0.1:9/api", 2**22 - 1, tmp_path)
    with pytest.raises(PartError, match="the port is taken"):
        dead.wait()


def test_a_stopped_server_is_gone(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True
    )
    found = server.PrefectServer("http://127.0.0.1:9/api", process.pid, tmp_path, process)
    found.stop()
    assert process.poll() is not None
    assert server.running(tmp_path) is None


def _run(script: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=dict(os.environ),
        cwd=Path(server.__file__).parent.parent,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done
