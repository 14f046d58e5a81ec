"""Other harnesses from PyPI on the same tasks, each driven over its own command line or script.

Harbor needs Python 3.12, Inspect needs engine 24; both need `docker compose`. What this machine
lacks is told in the harness's row, and the rest goes on.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from docker.errors import APIError

from benchmarks.sandbox.installing import Absent, last_line, newer_python, program
from rsi.edges.docker_sandbox.calls import client, remove_container

HARBOR, INSPECT = "harbor==0.26.0", "inspect_ai==0.3.285"
RUN_LIMIT_S = 120
INSPECT_RUN = Path(__file__).with_name("inspect_run.py")
PROJECT = "com.docker.compose.project"
PROJECTS = ("task-", "inspect-")
"""What the names of the harnesses' projects begin with."""
COMPOSE = """\
services:
  default:
    image: {image}
    command: sleep infinity
    init: true
    network_mode: none
    pull_policy: never
    mem_limit: 256m
"""


@dataclass(frozen=True, slots=True)
class Peers:
    """Where the harnesses are, and what they work on."""

    folder: Path
    tasks: Path
    """Harbor directories whose images are there."""
    count: int
    """How many they are."""
    url: str
    image: str
    left_s: Callable[[], float]

    def harbor(self, trials: int, width: int) -> float:
        """Seconds that Harbor takes for the trials with its no-op agent. Raises Absent."""
        self._check_compose()
        harbor = program(self._place(HARBOR), HARBOR, newer_python(), "harbor")
        jobs = self.folder / "jobs"
        shutil.rmtree(jobs, ignore_errors=True)
        attempts = str(trials // self.count)
        words = ("-p", str(self.tasks), "-a", "nop", "-k", attempts, "-n", str(width))
        said = self._said([harbor, "run", *words, "-o", str(jobs), "-y", "-q"])
        results = list(jobs.glob("*/result.json"))
        if len(results) != 1:
            raise Absent(f"it didn't finish: {_reason(said)}")
        try:
            # By its own clock, which leaves out that it starts and ends, which takes seconds.
            return seconds_of(json.loads(results[0].read_text()), trials)
        except Absent as absent:
            raise Absent(f"{absent}: {_reason(said)}") from absent

    def inspect(self, trials: int, width: int) -> float:
        """Seconds that Inspect takes for the trials with a solver that does nothing.

        Raises Absent.
        """
        self._check_compose()
        python = program(self._place(INSPECT), INSPECT, sys.executable, "python")
        compose = self.folder / "compose.yaml"
        compose.write_text(COMPOSE.format(image=self.image))
        words = (str(compose), str(self.tasks), str(trials), str(width), str(self.folder / "logs"))
        said = self._said([python, str(INSPECT_RUN), *words])
        seconds = re.search(rf"^success {trials} ([\d.]+)$", said, re.MULTILINE)
        if seconds is None:
            raise Absent(f"it didn't finish: {_reason(said)}")
        return float(seconds[1])

    def _place(self, package: str) -> Path:
        return self.folder / package.replace("==", "-")

    def _check_compose(self) -> None:
        said = self._said(["docker", "compose", "version"])
        if "version" not in said or "unknown" in said:
            raise Absent("`docker compose` isn't installed (Debian 13: docker-compose)")

    def _said(self, command: Sequence[str]) -> str:
        """What a program said until its end; what it leaves in the engine is removed."""
        limit_s = min(RUN_LIMIT_S, self.left_s())
        if limit_s <= 0:
            raise Absent("the benchmark's time was up")
        self.folder.mkdir(parents=True, exist_ok=True)
        with client(self.url) as api:
            before = _compose_things(api)
            try:
                return _run(command, limit_s, {"DOCKER_HOST": self.url}, self.folder)
            finally:
                _remove_all(api, _compose_things(api) - before)


def row(run: Callable[[int, int], float], trials: int, width: int) -> float | str:
    """Trials a minute, or why there are none."""
    try:
        return 60 * trials / run(trials, width)
    except Absent as absent:
        return str(absent)


def seconds_of(result: dict[str, Any], trials: int) -> float:
    """How long a job of Harbor took, by its result. Raises Absent when not all was judged."""
    judged = sum(
        len(names)
        for one in result["stats"]["evals"].values()
        for names in one["reward_stats"].get("reward", {}).values()
    )
    if judged != trials or result["stats"]["n_errored_trials"]:
        raise Absent(f"{judged} of {trials} trials were judged")
    begun, ended = (datetime.fromisoformat(result[name]) for name in ("started_at", "finished_at"))
    return (ended - begun).total_seconds()


def _reason(said: str) -> str:
    """The last error that a harness tells, else its last line."""
    errors = re.findall(r"^.*(?:Error|ERROR|requires?|requirement)\b.*$", said, re.MULTILINE)
    return last_line(errors[-1] if errors else said)


def _run(command: Sequence[str], limit_s: float, more: dict[str, str], cwd: Path) -> str:
    """Runs a program with its children in a group of their own, which ends with it."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **more, "COLUMNS": "200"},
        cwd=cwd,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=limit_s)[0]
    except subprocess.TimeoutExpired as error:
        raise Absent(f"it took over {limit_s:.0f} s") from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _compose_things(api: Any) -> frozenset[tuple[str, str]]:
    """(kind, id) of what compose made for harnesses."""
    chosen = {"label": PROJECT}
    found = [("container", one) for one in api.containers(all=True, filters=chosen)]
    found += [("network", one) for one in api.networks(filters=chosen)]
    return frozenset(
        (kind, one["Id"]) for kind, one in found if one["Labels"][PROJECT].startswith(PROJECTS)
    )


def _remove_all(api: Any, things: frozenset[tuple[str, str]]) -> None:
    """Removes containers, and then the networks that they were in."""
    for kind, name in sorted(things):
        if kind == "container":
            remove_container(api, name)
        else:
            with contextlib.suppress(APIError):  # It may be gone, or somebody's after all.
                api.remove_network(name)
