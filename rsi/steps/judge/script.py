"""Rewards by tests/test.sh, as in Harbor: it runs in the box and writes them to a file."""

from rsi.domain.rewards import rewards_from
from rsi.domain.task import Task
from rsi.errors import TrialFault
from rsi.ports import Box

REWARD_JSON = "/logs/verifier/reward.json"
REWARD_TXT = "/logs/verifier/reward.txt"
ANSWER = "/logs/agent/answer.txt"


def rewards_by_script(task: Task, box: Box) -> dict[str, float]:
    """The rewards that tests/test.sh declares. Raises TrialFault("verifier", …)."""
    limit_s = task.verifier_timeout_s
    ran = box.run(["bash", "/tests/test.sh"], timeout_s=limit_s, cwd=task.workdir)
    if ran.is_timeout:
        raise TrialFault("verifier", f"tests/test.sh ran longer than {limit_s:g} s")
    box.stop_all()
    found = {file.path: file.content for file in box.get(["/logs/verifier"])}
    return rewards_from(found.get(REWARD_JSON), found.get(REWARD_TXT))
