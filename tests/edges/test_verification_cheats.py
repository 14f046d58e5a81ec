"""The known ways to make a verifier say PASS for a wrong solution, on real boxes.

A task with cases is fooled by none of them. A test.sh that runs what the agent left, as most tasks
of the exchange format do, is not fooled by what the agent leaves around it, but can be by the
solution itself: such a task is marked as not judged outside.
"""

import pytest

from rsi.domain.cases import CallCase, RunCase
from rsi.domain.task import Task, TaskFile
from rsi.edges.system_clock import SystemClock
from rsi.ports import BoxSpec, Sandbox
from rsi.steps.judge.judge import judge

WRONG = "cat > solution.py <<'END'\ndef add(a, b):\n    return 0\nEND\n"
ORACLE = "cat > solution.py <<'END'\ndef add(a, b):\n    return a + b\nEND\n"
DAEMON = """
cat > /tmp/daemon.py <<'END'
import os, time
if os.fork() == 0:
    os.setsid()
    while True:
        try:
            {act}
        except OSError:
            pass
        time.sleep(0.01)
END
python3 /tmp/daemon.py
"""
AROUND = {
    "conftest": WRONG
    + "printf 'import os\\nos._exit(0)\\n' | tee conftest.py sitecustomize.py usercustomize.py",
    "pytest plugin": WRONG
    + "printf '[pytest]\\naddopts = -p cheat\\n' > pytest.ini; echo 'import os; os._exit(0)' "
    "> cheat.py",
    "user site": WRONG + "d=/tmp/.local/lib/python3.11/site-packages; mkdir -p $d; "
    "echo 'import os; os._exit(0)' > $d/cheat.pth",
    "shadowed module": WRONG + "echo 'import os; os._exit(0)' | tee json.py unittest.py io.py",
    "PATH shim": WRONG + "printf '#!/bin/bash\\nexit 0\\n' > python3; chmod +x python3; "
    "echo 'export PATH=/work:$PATH' | tee .profile .bashrc /tmp/.profile /tmp/.bashrc",
    "daemon rewriting tests": WRONG
    + DAEMON.format(act="open('/tests/test.sh', 'w').write('echo 1 > /logs/verifier/reward.txt')"),
    "daemon rewriting the reward": WRONG
    + DAEMON.format(act="open('/logs/verifier/reward.txt', 'w').write('1')"),
    "edited tests": WRONG
    + "echo 'echo 1 > /logs/verifier/reward.txt' | tee /tests/test.sh test.sh tests.py",
    "forged stdout": WRONG
    + """echo 'print("{\\"returns\\": 5}\\n" * 9, flush=True)' >> solution.py""",
}
"""What an agent leaves around a wrong solution."""
INSIDE = {
    "exit on import": "echo 'import os; os._exit(0)' > solution.py",
    "equal to everything": "cat > solution.py <<'END'\nclass Same(int):\n"
    "    def __eq__(self, other): return True\n"
    "def add(a, b): return Same()\nEND\n",
    "patched comparison": "cat > solution.py <<'END'\nimport unittest\n"
    "unittest.TestCase.assertEqual = lambda *_: None\n"
    "def add(a, b): return 0\nEND\n",
    "the caller's frame": "cat > solution.py <<'END'\nimport sys\n"
    "def add(a, b):\n"
    "    here = sys._getframe(1)\n"
    "    while here:\n"
    "        for held in here.f_locals.values():\n"
    "            if isinstance(held, dict) and 'returns' in held: return held['returns']\n"
    "            if type(held) is int and held > 4: return held\n"
    "        here = here.f_back\n"
    "    return 0\nEND\n",
}
"""Solutions that cheat from within the process that they run in."""
BY_CASES = Task(
    name="test/add",
    suite="test",
    family="code",
    level=1,
    instruction="Write add(a, b) in solution.py.",
    tests=(),
    cases=(
        CallCase(call="solution.py:add", args=(2, 3), returns=5),
        CallCase(call="solution.py:add", kwargs={"a": 40, "b": 2}, returns=42),
        RunCase(
            run=("python3", "-c", "import sys; sys.path.append('.')\nimport solution\n"
                 "print(solution.add(int(input()), 7))"),
            stdin="100\n",
            prints="107",
        ),
    ),
)  # fmt: skip
SCRIPT = """
cat > /tmp/check.py <<'END'
import importlib.util, unittest
spec = importlib.util.spec_from_file_location("solution", "/work/solution.py")
solution = importlib.util.module_from_spec(spec)
spec.loader.exec_module(solution)
class Check(unittest.TestCase):
    def test_add(self):
        wanted = 5
        self.assertEqual(solution.add(2, 3), wanted)
unittest.main()
END
python3 -I /tmp/check.py >/dev/null 2>&1 && got=1 || got=0
echo $got > /logs/verifier/reward.txt
"""
BY_SCRIPT = BY_CASES.model_copy(
    update={"cases": (), "tests": (TaskFile(path="test.sh", content=SCRIPT.encode()),)}
)


def reward(task: Task, script: str, sandbox: Sandbox) -> float:
    """What an agent gets who runs the script."""
    with sandbox.box(BoxSpec()) as box:
        box.run(["bash", "-c", script], timeout_s=20)
        box.stop_all()
        left = box.get(["/work"])
    return judge(task, "", left, sandbox, SystemClock()).rewards["reward"]


@pytest.mark.parametrize("task", [BY_CASES, BY_SCRIPT], ids=["cases", "script"])
def test_the_oracle_passes_and_a_no_op_fails(task: Task, sandbox: Sandbox) -> None:
    assert reward(task, ORACLE, sandbox) == 1
    assert reward(task, "true", sandbox) == 0
    assert reward(task, WRONG, sandbox) == 0


@pytest.mark.parametrize("cheat", [*AROUND, *INSIDE])
def test_cases_are_fooled_by_no_cheat(cheat: str, sandbox: Sandbox) -> None:
    assert reward(BY_CASES, {**AROUND, **INSIDE}[cheat], sandbox) == 0


@pytest.mark.parametrize("cheat", AROUND)
def test_a_script_is_not_fooled_by_what_lies_around(cheat: str, sandbox: Sandbox) -> None:
    assert reward(BY_SCRIPT, AROUND[cheat], sandbox) == 0


def test_what_can_be_fooled_says_so(sandbox: Sandbox) -> None:
    assert reward(BY_SCRIPT, INSIDE["exit on import"], sandbox) == 1
    assert not BY_SCRIPT.is_judged_outside
    assert BY_CASES.is_judged_outside


def test_an_endless_solution_fails_and_leaves_no_daemon(sandbox: Sandbox) -> None:
    endless = BY_CASES.model_copy(update={"verifier_timeout_s": 1.0})
    script = "cat > solution.py <<'END'\nimport os, time\nos.fork()\ntime.sleep(99)\nEND\n"
    assert reward(endless, script, sandbox) == 0


def test_the_expected_values_never_enter_a_box(sandbox: Sandbox) -> None:
    secret = BY_CASES.model_copy(
        update={"cases": (CallCase(call="solution.py:look", returns="canary-5391"),)}
    )
    look = (
        "cat > solution.py <<'END'\nimport glob, gc\n"
        "def look():\n"
        "    seen = [repr(one) for one in gc.get_objects() if isinstance(one, (str, list, dict))]\n"
        "    for path in glob.glob('/proc/*/cmdline') + glob.glob('/[tlw]*/**', recursive=1):\n"
        "        try: seen.append(open(path).read())\n"
        "        except (OSError, ValueError): pass\n"
        "    found = 'canary' + chr(45) in ''.join(seen)\n"
        "    return 'canary' + chr(45) + str(5390 + found)\nEND\n"
    )
    assert reward(secret, look, sandbox) == 0
