"""`python -m benchmarks.sandbox`: one table from one run. `--quick` takes about two minutes."""

import argparse
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.sandbox.peers import Peers, row
from benchmarks.sandbox.table import Measured, document, text
from benchmarks.sandbox.timing import measure
from benchmarks.sandbox.ways import LABEL, Boxes, DockerCli, DockerSdk, Way
from rsi import wiring
from rsi.domain.task import Task, TaskFile
from rsi.edges.docker_sandbox.calls import client, remove_container
from rsi.edges.docker_sandbox.engine import open_engine
from rsi.edges.docker_sandbox.owners import LABEL as OWNER
from rsi.edges.sandbox_image.staging import stage
from rsi.edges.system_clock import SystemClock
from rsi.ports import BoxSpec, Sandbox
from rsi.steps.judge.judge import judge

WIDTH = 4
TASK = Task(
    name="bench/one",
    suite="bench",
    family="bench",
    level=1,
    instruction="Write something into /work/answer.",
    tests=(
        TaskFile(
            path="test.sh",
            content=b"[ -s answer ] && got=1 || got=0\necho $got > /logs/verifier/reward.txt\n",
        ),
    ),
)


def main() -> int:
    """Measures, prints, and ends with status 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer trials, no other harnesses")
    parser.add_argument("--json", type=Path, help="where the figures go as JSON")
    given = parser.parse_args()
    with ExitStack() as stack:
        found = _measured(stack, is_quick=given.quick)
    sys.stdout.write(f"{text(found)}\n")
    if given.json:
        given.json.write_text(json.dumps(document(found), indent=1))
    return 0


def _measured(stack: ExitStack, *, is_quick: bool) -> Measured:
    chosen, say = wiring.settings(), wiring.say_to_stderr
    url = stack.enter_context(open_engine(os.environ, chosen.state_dir / "docker", say)).url
    pool, bare = (
        stack.enter_context(wiring.open_sandbox(chosen.model_copy(update={"sandbox": kind}), say))
        for kind in ("docker", "namespaces")
    )
    pool.check()
    bare.check()
    stack.callback(_remove, url)
    image = stage(chosen.state_dir / "image", say).tag
    ways: list[Way] = [
        DockerSdk(url, image),
        DockerCli(url, image),
        Boxes("rsi, containers from the pool", pool),
        Boxes("rsi, namespaces", bare),
    ]
    found = Measured()
    for way in ways:
        say(f"measuring: {way.name}")
        times = (4, 4.0, 10) if is_quick else (15, 15.0, 50)
        found.costs.append(measure(way, *times))
    count = 20 if is_quick else 120
    for name, sandbox in (("rsi, containers", pool), ("rsi, namespaces", bare)):
        say(f"measuring: tasks of {name}")
        found.tasks_per_minute[name] = row(partial(_tasks, sandbox), count, WIDTH)
    if not is_quick:
        peers = Peers(chosen.state_dir, url, image)
        runs: dict[str, Callable[[int, int], float]] = {
            "Harbor": peers.harbor,
            "Inspect": peers.inspect,
        }
        for name, run in runs.items():
            say(f"measuring: tasks of {name}")
            found.tasks_per_minute[name] = row(run, 12, WIDTH)
    say("measuring: a waiting container, and a long row of trials")
    found.waiting_mb = _waiting_mb(url, pool)
    found.drift = _drift(pool, 200 if is_quick else 1200)
    return found


def _tasks(sandbox: Sandbox, count: int, width: int) -> float:
    """Seconds for so many tasks with an agent that does nothing: its box, then the verifier's."""
    clock = SystemClock()

    def one(_: int) -> None:
        with sandbox.box(BoxSpec.of(TASK, 60)) as box:
            box.stop_all()
            left = box.get(TASK.artifact_paths)
        if judge(TASK, "", left, sandbox, clock).is_solved:
            raise RuntimeError("nothing was done, and it passed")

    begun = time.perf_counter()
    with ThreadPoolExecutor(width) as threads:
        list(threads.map(one, range(count)))
    return time.perf_counter() - begun


def _drift(sandbox: Sandbox, count: int) -> dict[str, float]:
    """Whether the last trials are as fast as the first ones, and take as much memory."""
    times, memory = [], {}
    for number in range(count):
        begun = time.perf_counter()
        with sandbox.box(BoxSpec()) as box:
            box.run(("true",), timeout_s=60)
        times.append(time.perf_counter() - begun)
        if number + 1 in (100, count):
            memory[number + 1] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    third = count // 3
    return {
        f"first third of {count} trials, median ms": 1000 * statistics.median(times[:third]),
        "last third, median ms": 1000 * statistics.median(times[-third:]),
        "peak memory of the runner after 100, MB": memory[100],
        f"after {count}, MB": memory[count],
    }


def _waiting_mb(url: str, sandbox: Sandbox) -> float:
    """What a container that waits holds by its control group, and its holder (containerd-shim)."""
    with sandbox.box(BoxSpec()):
        time.sleep(1)
        with client(url) as api:
            waiting = api.containers(filters={"label": OWNER})
            used = [_used_mb(api.stats(one["Id"], stream=False)) for one in waiting]
    holders = [
        _resident_mb(path.parent)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if any(one["Id"].encode() in _read(path) for one in waiting)
    ]
    return statistics.mean(used) + (statistics.mean(holders) if holders else 0.0)


def _used_mb(stats: dict[str, dict[str, int]]) -> float:
    return stats["memory_stats"].get("usage", 0) / (1 << 20)


def _resident_mb(process: Path) -> float:
    lines = _read(process / "status").decode().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _remove(url: str) -> None:
    """Removes what a broken measurement left."""
    with client(url) as api:
        for one in api.containers(all=True, filters={"label": LABEL}):
            remove_container(api, one["Id"])


if __name__ == "__main__":
    sys.exit(main())
