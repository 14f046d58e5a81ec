"""Endurance: many trials, whose runner is killed again and again, leave nothing on the machine.

`python -m benchmarks.soak docker 1000 10` runs 1,000 trials in containers and kills the runner ten
times; it ends with status 1 when anything is left.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rsi import wiring
from rsi.edges.docker_sandbox.calls import client
from rsi.edges.docker_sandbox.engine import open_engine
from rsi.edges.docker_sandbox.owners import LABEL
from rsi.ports import BoxFile, BoxSpec, Sandbox

WIDTH = 4
"""Trials side by side."""
GONE_LIMIT_S = 30
DAEMON = "(trap '' TERM; setsid sleep 600 &) ; sleep 600 & echo one > answer"


@dataclass(frozen=True, slots=True)
class Census:
    """What a sandbox could leave; each a number of things."""

    containers: int = 0
    networks: int = 0
    volumes: int = 0
    processes: int = 0
    control_groups: int = 0
    temporary_files: int = 0


@dataclass(frozen=True, slots=True)
class Soak:
    """What came of it."""

    kind: str
    trials: int
    kills: int
    elapsed_s: float
    left: Census

    @property
    def is_clean(self) -> bool:
        return not any(asdict(self.left).values())


def soak(kind: str, trials: int, kills: int, seed: int = 1) -> Soak:
    """Runs the trials, killing the runner so often at random moments, and counts what is left."""
    rng, begun = random.Random(seed), time.monotonic()
    with ExitStack() as stack:
        url = stack.enter_context(_engine()) if kind == "docker" else None
        before = _census(url)
        done = killed = 0
        while done < trials:
            share = (trials - done) // (kills - killed + 1) if killed < kills else trials - done
            most = max(1, rng.randint(share // 2, share + share // 2)) if killed < kills else share
            is_last = killed == kills
            done += _run_some(kind, trials - done, None if is_last else most)
            killed += not is_last
        deadline = time.monotonic() + GONE_LIMIT_S
        while _more(_census(url), before) != Census() and time.monotonic() < deadline:
            time.sleep(0.2)
        left = _more(_census(url), before)
    return Soak(kind, done, killed, round(time.monotonic() - begun, 1), left)


def _run_some(kind: str, trials: int, kill_after: int | None) -> int:
    """How many trials a runner finished until its end, or until it was killed."""
    command = [sys.executable, "-m", "benchmarks.soak", kind, str(trials), "--runner"]
    done = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            done += line == "done\n"
            if kill_after is not None and done >= kill_after:
                process.send_signal(signal.SIGKILL)
                break
        else:
            if process.wait(GONE_LIMIT_S):
                raise SystemExit(f"the runner ended with {process.returncode}")
    return done


def run(kind: str, trials: int) -> None:
    """The runner: says `done` after each trial."""
    chosen = wiring.settings().model_copy(update={"sandbox": kind})
    with wiring.open_sandbox(chosen, wiring.say_to_stderr) as sandbox:
        sandbox.check()
        with ThreadPoolExecutor(WIDTH) as threads:
            for _ in threads.map(lambda _: _trial(sandbox), range(trials)):
                sys.stdout.write("done\n")
                sys.stdout.flush()


def _trial(sandbox: Sandbox) -> None:
    with sandbox.box(BoxSpec()) as box:
        box.put([BoxFile(f"/work/{name}", b"x" * 10_000) for name in ("a", "b", "c")])
        for script in ("cat a b c | wc -c", DAEMON):
            box.run(["bash", "-c", script], timeout_s=20)
        box.stop_all()
        if [file.content for file in box.get(["/work/answer"])] != [b"one\n"]:
            raise SystemExit("a trial gave another answer")


@contextmanager
def _engine() -> Iterator[str]:
    """Keeps one engine for all runners, so that a killed one leaves it running."""
    folder = wiring.settings().state_dir / "docker"
    with open_engine(os.environ, folder, wiring.say_to_stderr) as engine:
        yield engine.url


def _census(url: str | None) -> Census:
    counts = {"containers": 0, "networks": 0, "volumes": 0}
    if url is not None:
        with client(url) as api:
            counts["containers"] = len(api.containers(all=True, filters={"label": LABEL}))
            counts["networks"] = len(api.networks())
            counts["volumes"] = len(api.volumes()["Volumes"] or ())
    return Census(
        **counts,
        processes=_processes(),
        control_groups=sum(1 for _ in Path("/sys/fs/cgroup").glob("**/rsi-*")),
        temporary_files=len(os.listdir(tempfile.gettempdir())),
    )


def _processes() -> int:
    """The processes of boxes: what holds one, what serves one, what an agent left."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        is_holder = any(word.endswith("namespace_launcher.py") for word in words)
        is_shim = words[0].endswith("containerd-shim-runc-v2")
        count += is_holder or is_shim or words[:2] == ["sleep", "600"]
    return count


def _more(now: Census, before: Census) -> Census:
    """What there is now and was not before."""
    then = asdict(before)
    return Census(**{name: max(0, n - then[name]) for name, n in asdict(now).items()})


def main() -> int:
    """The exit status: 0 when nothing is left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["docker", "namespaces"])
    parser.add_argument("trials", type=int, nargs="?", default=1000)
    parser.add_argument("kills", type=int, nargs="?", default=10)
    parser.add_argument("--runner", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.runner:
        run(given.kind, given.trials)
        return 0
    found = soak(given.kind, given.trials, given.kills)
    heads = list(asdict(found.left))
    sys.stdout.write(
        f"{found.trials} trials ({found.kind}), runner killed {found.kills} times, "
        f"{found.elapsed_s:g} s; left:\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
        f"| {' | '.join(str(n) for n in asdict(found.left).values())} |\n\n"
        f"{json.dumps(asdict(found))}\n"
    )
    return 0 if found.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
