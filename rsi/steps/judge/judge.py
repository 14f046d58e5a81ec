"""Judge: the rewards of a trial, from the files and the answer that the agent left."""

from collections.abc import Sequence

from rsi.domain.task import Answer, Task
from rsi.domain.trial import Judgement
from rsi.ports import BoxFile, BoxSpec, Clock, Sandbox
from rsi.steps.judge.cases import rewards_by_cases
from rsi.steps.judge.script import ANSWER, rewards_by_script


def judge(
    task: Task, answer: str, left: Sequence[BoxFile], sandbox: Sandbox, clock: Clock
) -> Judgement:
    """The rewards of what an agent left, found in a fresh box.

    Only the files that the agent left travel. A task with cases is judged from outside: its
    solution runs in a process of its own, and what it gives is compared here. Any other is judged
    by its tests/test.sh (Harbor's layout, schema 1.4), laid after the agent's files, so that
    nothing that the agent wrote can stand in its place.
    Raises TrialFault("verifier", …) when no reward can be had, and what `Sandbox.box` raises.
    """
    begun = clock.monotonic_s()
    life_s = task.verifier_timeout_s + 30
    spec = BoxSpec.of(task, life_s, has_image_files=not task.travels_whole)
    with sandbox.box(spec) as box:
        box.put(_world(task, answer, left))
        rewards = rewards_by_cases(task, box) if task.cases else rewards_by_script(task, box)
    return Judgement(rewards=rewards, elapsed_s=clock.monotonic_s() - begun)


def _world(task: Task, answer: str, left: Sequence[BoxFile]) -> list[BoxFile]:
    """What the verifier finds: the agent's workdir (or the first files under the declared
    artifacts), the answer, and the tests."""
    whole_workdir = task.answer is Answer.FILES and not task.artifacts
    world = [BoxFile("/logs/verifier/", b"", 0o755)]
    if not whole_workdir:
        world += [BoxFile.of(task.workdir, file) for file in task.files]
    world += left
    if not task.cases:
        world += [BoxFile.of("/tests", file) for file in task.tests]
    if task.answer is Answer.STDOUT:
        world.append(BoxFile(ANSWER, answer.encode("utf-8", "replace")))
    return world
