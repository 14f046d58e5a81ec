"""`python -m benchmarks.sandbox`: one table from one run. `--quick` takes two minutes at most."""

import argparse
import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.sandbox.endurance import drift, waiting
from benchmarks.sandbox.peers import Peers, row
from benchmarks.sandbox.table import HARBOR, INSPECT, Measured, document, text
from benchmarks.sandbox.tasks import export, remove_images, seconds_for, small_tasks
from benchmarks.sandbox.timing import Amount, Deadline, measure
from benchmarks.sandbox.ways import (
    COLD,
    LABEL,
    NAMESPACES,
    POOL,
    Boxes,
    DockerCli,
    DockerSdk,
    Way,
    own_label,
)
from rsi import wiring
from rsi.edges.docker_sandbox.boxes import DockerSandbox, Limits
from rsi.edges.docker_sandbox.calls import client, remove_container
from rsi.edges.docker_sandbox.engine import open_engine
from rsi.edges.sandbox_image.staging import stage
from rsi.ports import Sandbox
from rsi.settings import Settings

FULL = Amount(paced=12, saturated_s=6, calls=50, tasks=120, drift=1000, limit_s=660)
QUICK = Amount(paced=3, saturated_s=2, calls=10, tasks=12, drift=200, limit_s=100)
WIDTH = 4
PEER_RUNS = ((12, 4), (24, 12))
"""(trials, side by side): other harnesses wait more than they work, so that more may be better."""


def main() -> int:
    """Measures, prints, and ends with status 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer trials, no other harnesses")
    parser.add_argument("--json", type=Path, help="where the figures go as JSON")
    given = parser.parse_args()
    with ExitStack() as stack:
        found = _bench(stack, QUICK if given.quick else FULL).run(has_peers=not given.quick)
    sys.stdout.write(f"{text(found)}\n")
    if given.json:
        given.json.write_text(json.dumps(document(found), indent=1))
    return 0


@dataclass(slots=True)
class Bench:
    """One run: what is measured, and what was found so far."""

    chosen: Settings
    amount: Amount
    deadline: Deadline
    url: str
    image: str
    pool: Sandbox
    cold: Sandbox
    bare: Sandbox
    found: Measured = field(default_factory=Measured)

    def run(self, *, has_peers: bool) -> Measured:
        """Everything in turn; nothing is begun after the deadline."""
        ways: list[Way] = [
            DockerSdk(self.url, self.image),
            DockerCli(self.url, self.image),
            Boxes(POOL, self.pool),
            Boxes(COLD, self.cold),
            Boxes(NAMESPACES, self.bare),
        ]
        self._step("trials and calls, the ways in turn", partial(self._costs, ways))
        for name, sandbox in ((POOL, self.pool), (NAMESPACES, self.bare)):
            self._step(f"tasks: {name}", partial(self._tasks, name, sandbox))
        if has_peers:
            self._peers()
        self._step("a waiting container", self._waiting)
        self._step(f"{self.amount.drift} trials in a row", self._drift)
        return self.found

    def _step(self, name: str, work: Callable[[], None]) -> None:
        load = os.getloadavg()[0]
        if self.deadline.left_s() > 0:
            self.found.loads.append(load)
            wiring.say_to_stderr(f"measuring {name} (load {load:.1f})")
            work()
        else:
            wiring.say_to_stderr(f"no time is left for {name}")

    def _costs(self, ways: list[Way]) -> None:
        self.found.costs = measure(ways, self.amount)

    def _tasks(self, name: str, sandbox: Sandbox) -> None:
        count = self.amount.tasks
        taken_s = seconds_for(sandbox, small_tasks(), count, WIDTH)
        self.found.tasks_per_minute[name] = 60 * count / taken_s

    def _peers(self) -> None:
        tasks, folder = small_tasks(), self.chosen.state_dir / "peers"
        export(tasks, folder / "tasks", self.url, self.image)
        left_s = self.deadline.left_s
        peers = Peers(folder, folder / "tasks", len(tasks), self.url, self.image, left_s)
        for name, run in ((HARBOR, peers.harbor), (INSPECT, peers.inspect)):
            self._step(f"tasks: {name}", partial(self._peer, name, run))

    def _peer(self, name: str, run: Callable[[int, int], float]) -> None:
        rates: dict[int, float] = {}
        for trials, width in PEER_RUNS:
            rate = row(run, trials, width)
            if isinstance(rate, str):
                self.found.notes[name] = rate
                break
            rates[width] = rate
        if rates:
            self.found.tasks_per_minute[name] = max(rates.values())
            told = ", ".join(f"{rate:.0f} with {width} at once" for width, rate in rates.items())
            more = self.found.notes.get(name)
            self.found.notes[name] = f"{told}; {more}" if more else told

    def _waiting(self) -> None:
        self.found.waiting = waiting(self.url, self.pool)

    def _drift(self) -> None:
        self.found.drift = drift(self.pool, self.amount.drift, self.deadline.left_s)


def _bench(stack: ExitStack, amount: Amount) -> Bench:
    """The sandboxes, opened; the time begins when they are ready."""
    chosen, say = wiring.settings(), wiring.say_to_stderr
    url = stack.enter_context(open_engine(os.environ, chosen.state_dir / "docker", say)).url
    pool, bare = (
        stack.enter_context(wiring.open_sandbox(chosen.model_copy(update={"sandbox": kind}), say))
        for kind in ("docker", "namespaces")
    )
    image = stage(chosen.state_dir / "image", say)
    cold = DockerSandbox(
        url, image.tag, image.digest, chosen.root / "sandboxes", chosen.state_dir, Limits(warm=0)
    )
    stack.callback(cold.close)
    stack.callback(remove_images, url)
    stack.callback(_remove, url)
    for sandbox in (pool, cold, bare):
        sandbox.check()
    deadline = Deadline.after(amount.limit_s)
    return Bench(chosen, amount, deadline, url, image.tag, pool, cold, bare)


def _remove(url: str) -> None:
    """Removes what a broken measurement left, and what an earlier run that was killed did."""
    with client(url) as api:
        for one in api.containers(all=True, filters={"label": LABEL}):
            if one["Labels"][LABEL] == own_label()[LABEL] or one["State"] != "running":
                remove_container(api, one["Id"])


if __name__ == "__main__":
    sys.exit(main())
