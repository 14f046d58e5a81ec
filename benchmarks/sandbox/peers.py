"""Other harnesses from PyPI on the same tasks, each in an environment of its own.

Harbor needs Python 3.12, Inspect needs engine 24; both need `docker compose`. What this machine
lacks is told in the harness's row, and the rest goes on.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HARBOR, INSPECT = "harbor==0.26.0", "inspect_ai==0.3.285"
INSTALL_LIMIT_S, RUN_LIMIT_S = 600, 300
PYTHONS = ("python3.13", "python3.12")
INSPECT_RUN = Path(__file__).with_name("inspect_run.py")
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
TASK = """\
schema_version = "1.4"
[task]
name = "bench/{name}"
[environment]
docker_image = "{image}"
workdir = "/work"
[agent]
timeout_sec = 60.0
[verifier]
timeout_sec = 60.0
"""
TEST = "#!/bin/bash\n[ -s /work/answer ] && got=1 || got=0\necho $got > /logs/verifier/reward.txt\n"


class Absent(Exception):
    """Why a harness can't run here."""


@dataclass(frozen=True, slots=True)
class Peers:
    """Where the harnesses are, and what they work on."""

    state: Path
    url: str
    image: str

    def harbor(self, tasks: int, width: int) -> float:
        """Seconds that Harbor takes for the tasks with its no-op agent. Raises Absent."""
        self._check_compose()
        program = self._program("harbor", HARBOR, _newer_python(), "harbor")
        folder, jobs = self.state / "peers/tasks", self.state / "peers/jobs"
        for path in (folder, jobs):
            shutil.rmtree(path, ignore_errors=True)
        for number in range(tasks):
            _write_task(folder / f"task-{number}", f"task-{number}", self.image)
        words = ("run", "-p", str(folder), "-a", "nop", "-n", str(width), "-o", str(jobs), "-y")
        said, taken_s = self._timed([program, *words])
        # Its own clock leaves out that it starts, which takes seconds.
        total = re.search(r"Total runtime: (?:(\d+)m )?(\d+)s", said)
        if total is None or f"{tasks}/{tasks}" not in said:
            raise Absent(f"it didn't finish: {said.strip()[-200:]}")
        return min(taken_s, 60 * int(total[1] or 0) + int(total[2]))

    def inspect(self, tasks: int, width: int) -> float:
        """Seconds that Inspect takes for the tasks with a solver that does nothing."""
        self._check_compose()
        python = self._program("inspect", INSPECT, sys.executable, "python")
        compose = self.state / "peers/compose.yaml"
        compose.write_text(COMPOSE.format(image=self.image))
        logs = self.state / "peers/logs"
        words = (str(INSPECT_RUN), str(compose), str(tasks), str(width), str(logs))
        said, _ = self._timed([python, *words])
        seconds = re.search(rf"^success {tasks} ([\d.]+)$", said, re.MULTILINE)
        if seconds is None:
            lines = [line.strip() for line in said.splitlines() if line.strip()]
            raise Absent(f"it didn't finish: {' '.join(lines)[-200:]}")
        return float(seconds[1])

    def _check_compose(self) -> None:
        said, _ = self._timed(["docker", "compose", "version"])
        if "version" not in said or "unknown" in said:
            raise Absent("`docker compose` isn't installed")

    def _program(self, name: str, package: str, python: str, program: str) -> str:
        """A program of the package, installed below the state folder on first use."""
        folder = self.state / "peers" / f"{name}-{package.rpartition('=')[2]}"
        if not (folder / "ready").exists():
            for command in (
                [python, "-m", "venv", "--clear", str(folder)],
                [str(folder / "bin/pip"), "install", "-q", package],
            ):
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False
                )
                if done.returncode:
                    raise Absent(f"{package} can't be installed: {done.stderr.strip()[-120:]}")
            (folder / "ready").touch()
        return str(folder / "bin" / program)

    def _timed(self, command: Sequence[str]) -> tuple[str, float]:
        begun = time.perf_counter()
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=RUN_LIMIT_S,
                check=False,
                env={**os.environ, "DOCKER_HOST": self.url, "COLUMNS": "100"},
                cwd=self.state,
            )
        except subprocess.TimeoutExpired as error:
            raise Absent(f"it took over {RUN_LIMIT_S} s") from error
        return done.stdout, time.perf_counter() - begun


def row(run: Callable[[int, int], float], tasks: int, width: int) -> float | str:
    """Trials a minute, or why there are none."""
    try:
        return 60 * tasks / run(tasks, width)
    except Absent as absent:
        return str(absent)


def _newer_python() -> str:
    """A Python that is new enough for Harbor, on the path or where pyenv keeps them."""
    if sys.version_info >= (3, 12):
        return sys.executable
    found = [shutil.which(name) for name in PYTHONS]
    for version in ("3.13", "3.12"):
        found += map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    for program in filter(None, found):
        command = [program, "-c", "import sys; print(sys.version_info >= (3, 12))"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        if said.stdout.strip() == "True":
            return program
    raise Absent("it needs Python 3.12 or newer, which this machine hasn't got")


def _write_task(folder: Path, name: str, image: str) -> None:
    for path, text in {
        "task.toml": TASK.format(name=name, image=image),
        "instruction.md": "Write something into /work/answer.\n",
        "environment/Dockerfile": f"FROM {image}\nWORKDIR /work\n",
        "tests/test.sh": TEST,
        "solution/solve.sh": "echo one > /work/answer\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
