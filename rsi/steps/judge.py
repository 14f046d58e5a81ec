"""Judge: what the verifier says about the world an agent left, in a box the agent never saw."""

from collections.abc import Sequence

from rsi.domain.rewards import rewards_from
from rsi.domain.task import Answer, Task
from rsi.domain.trial import Judgement
from rsi.errors import TrialFault
from rsi.ports import BoxFile, BoxSpec, Clock, Sandbox

REWARD_JSON = "/logs/verifier/reward.json"
REWARD_TXT = "/logs/verifier/reward.txt"
ANSWER = "/logs/agent/answer.txt"


def judge(
    task: Task, answer: str, left: Sequence[BoxFile], sandbox: Sandbox, clock: Clock
) -> Judgement:
    """The rewards that the task's verifier declares (Harbor's layout, schema 1.4).

    Only the files that the agent left travel, into a fresh box; tests are laid after them, so
    that nothing the agent wrote can stand in their place.
    Raises TrialFault("verifier", …) when no reward can be read, and what `Sandbox.box` raises.
    """
    begun = clock.monotonic_s()
    spec = BoxSpec(image=task.image, workdir=task.workdir, life_s=task.verifier_timeout_s + 30)
    with sandbox.box(spec) as box:
        box.put(_world(task, answer, left))
        ran = box.run(
            ["bash", "/tests/test.sh"], timeout_s=task.verifier_timeout_s, cwd=task.workdir
        )
        if ran.is_timeout:
            limit_s = task.verifier_timeout_s
            raise TrialFault("verifier", f"tests/test.sh ran longer than {limit_s:g} s")
        box.stop_all()
        found = {file.path: file.content for file in box.get(["/logs/verifier"])}
    rewards = rewards_from(found.get(REWARD_JSON), found.get(REWARD_TXT))
    return Judgement(rewards=rewards, elapsed_s=clock.monotonic_s() - begun)


def _world(task: Task, answer: str, left: Sequence[BoxFile]) -> list[BoxFile]:
    """What the verifier finds: the agent's workdir (or the first files under the declared
    artifacts), the answer, and the tests."""
    whole_workdir = task.answer is Answer.FILES and not task.artifacts
    world = [BoxFile("/logs/verifier/", b"", 0o755)]
    if not whole_workdir:
        world += [BoxFile.of(task.workdir, file) for file in task.files]
    world += left
    world += [BoxFile.of("/tests", file) for file in task.tests]
    if task.answer is Answer.STDOUT:
        world.append(BoxFile(ANSWER, answer.encode("utf-8", "replace")))
    return world
