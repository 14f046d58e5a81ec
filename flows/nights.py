"""Works through the nights: deploys prefect.yaml and runs a worker until it is stopped."""

import os
import subprocess
import sys
from pathlib import Path

from rsi.errors import PartError

POOL = "rsi"
DEPLOY_LIMIT_S = 120
ROOT = Path(__file__).parent.parent


def deploy() -> None:
    """The deployments of prefect.yaml, made or brought up to date at the server in use.

    Raises PartError with Prefect's own words.
    """
    _prefect("work-pool", "create", POOL, "--type", "process", "--overwrite")
    _prefect("--no-prompt", "deploy", "--all")


def work() -> int:
    """The worker's exit status, after it has been stopped."""
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL]
    # A session of its own, with the usual meaning of interrupts: one that ignores them stays.
    with subprocess.Popen(command, cwd=ROOT, env=_environment(), start_new_session=True) as worker:
        try:
            return worker.wait()
        finally:
            worker.terminate()


def _prefect(*arguments: str) -> None:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "prefect", *arguments],
            cwd=ROOT,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEPLOY_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PartError(
            f"prefect {arguments[0]} took over {DEPLOY_LIMIT_S} s; is the server at "
            f"{os.environ['PREFECT_API_URL']} well?"
        ) from error
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-400:]
        raise PartError(f"prefect {' '.join(arguments)} failed: {said}")


def _environment() -> dict[str, str]:
    """Ours, with bytecode, and with the checkout as the place of the flows."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return own | {"PREFECT_WORKER_QUERY_SECONDS": "5"}
