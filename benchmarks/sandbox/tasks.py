"""Three small tasks of rsi's own suite, for an agent that does nothing: here, and for others."""

import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rsi.domain.task import Split, Task
from rsi.edges.docker_sandbox.calls import client
from rsi.edges.system_clock import SystemClock
from rsi.edges.task_files.writing import write_task
from rsi.ports import BoxFile, BoxSpec, Sandbox
from rsi.steps.judge.judge import judge
from rsi.suites.shell.suite import ShellSuite

SEED, COUNT = 5, 3
"""This draw has tasks that are judged by what was printed and by the files that were left."""
IMAGES = "rsi-bench"
NO_NETWORK = 'network_mode = "no-network"\n'
"""Not asked of Harbor, which needs a second container and the kernel's help for it, and refuses the
task where it has no such help; without it Harbor has less to do."""


def small_tasks() -> tuple[Task, ...]:
    """The tasks, always the same."""
    return ShellSuite().draw(Split.SEARCH, SEED, COUNT)


def seconds_for(sandbox: Sandbox, tasks: Sequence[Task], trials: int, width: int) -> float:
    """How long so many trials take with an agent that does nothing: its box, then the verifier's.

    Raises RuntimeError when nothing was done, and it passed.
    """
    clock = SystemClock()

    def one(number: int) -> None:
        task = tasks[number % len(tasks)]
        with sandbox.box(BoxSpec.of(task, 60)) as box:
            box.put([BoxFile.of(task.workdir, file) for file in task.files])
            box.stop_all()
            left = box.get(task.artifact_paths) if task.artifact_paths else ()
        if judge(task, "", left, sandbox, clock).is_solved:
            raise RuntimeError(f"nothing was done, and {task.name} passed")

    begun = time.perf_counter()
    with ThreadPoolExecutor(width) as threads:
        list(threads.map(one, range(trials)))
    return time.perf_counter() - begun


def export(tasks: Sequence[Task], folder: Path, url: str, base: str) -> None:
    """Writes the tasks as Harbor directories, each with an image that is built already, so that
    no harness is charged for making one."""
    shutil.rmtree(folder, ignore_errors=True)
    with client(url) as api:
        for number, task in enumerate(tasks):
            place = folder / f"task-{number}"
            write_task(task.model_copy(update={"image": base}), place)
            tag = f"{IMAGES}:{number}"
            said = api.build(path=str(place / "environment"), tag=tag, rm=True, decode=True)
            faults = [line["error"] for line in said if "error" in line]
            if faults:
                raise RuntimeError(f"the image of {task.name} can't be built: {faults[0]}")
            toml = place / "task.toml"
            toml.write_text(toml.read_text().replace(NO_NETWORK, f'docker_image = "{tag}"\n'))


def remove_images(url: str) -> None:
    """Removes what `export` had built."""
    with client(url) as api:
        for image in api.images(name=IMAGES):
            api.remove_image(image["Id"], force=True)
