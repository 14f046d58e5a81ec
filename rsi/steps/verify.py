"""Verify: whether a task is fit to measure anything; nothing enters the bank without it."""

from collections.abc import Callable
from dataclasses import dataclass

from rsi.domain.task import Task
from rsi.domain.trial import Judgement
from rsi.errors import TrialFault
from rsi.ports import BoxFile, BoxSpec, Judge, Sandbox


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a task may enter the bank, and every reason against it."""

    task: Task
    faults: tuple[str, ...]

    @property
    def is_admitted(self) -> bool:
        return not self.faults


def verify(task: Task, sandbox: Sandbox, judge: Judge, repeats: int = 2) -> Admission:
    """Runs the reference and a no-op `repeats` times each: the one passes, the other fails,
    every time, or the task stays out. A fault of the machine is a reason like any other.

    Raises SandboxError when the engine is down.
    """
    faults: list[str] = []
    if not any(file.path == "solve.sh" for file in task.solution):
        faults.append("it has no solution/solve.sh")
    else:
        faults += _tried(repeats, "reference", True, lambda: _reference(task, sandbox, judge))
    faults += _tried(repeats, "no-op", False, lambda: _no_op(task, sandbox, judge))
    return Admission(task, tuple(dict.fromkeys(faults)))


def _tried(repeats: int, who: str, wanted: bool, attempt: Callable[[], Judgement]) -> list[str]:
    faults = []
    for _ in range(repeats):
        try:
            judgement = attempt()
        except TrialFault as fault:
            faults.append(f"the {who} broke: {fault}")
            continue
        if judgement.is_solved is not wanted:
            did = "fails" if wanted else "passes"
            faults.append(f"the {who} {did}: rewards {judgement.rewards}")
    return faults


def _reference(task: Task, sandbox: Sandbox, judge: Judge) -> Judgement:
    with sandbox.box(BoxSpec.of(task, task.agent_timeout_s + 30)) as box:
        box.put([BoxFile.of(task.workdir, file) for file in task.files])
        box.put([BoxFile.of("/solution", file) for file in task.solution])
        ran = box.run(
            ["bash", "/solution/solve.sh"], timeout_s=task.agent_timeout_s, cwd=task.workdir
        )
        if ran.exit_code != 0:
            said = ran.stderr.decode("utf-8", "replace").strip()[:200]
            raise TrialFault("reference", f"solve.sh ended with {ran.exit_code}: {said}")
        box.stop_all()
        paths = task.artifact_paths
        left = box.get(paths) if paths else ()
    return judge(task, ran.stdout.decode("utf-8", "replace"), left)


def _no_op(task: Task, sandbox: Sandbox, judge: Judge) -> Judgement:
    return judge(task, "", _untouched(task, sandbox) if task.travels_whole else ())


def _untouched(task: Task, sandbox: Sandbox) -> tuple[BoxFile, ...]:
    """The workdir as the agent finds it."""
    files = tuple(BoxFile.of(task.workdir, file) for file in task.files)
    if task.image_name is None:
        return files
    # The image may have files of its own there.
    with sandbox.box(BoxSpec.of(task, task.verifier_timeout_s + 30)) as box:
        box.put(files)
        return box.get([task.workdir])
