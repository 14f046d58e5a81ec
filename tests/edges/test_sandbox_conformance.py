"""What every sandbox keeps: the same tests for containers and namespaces."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from rsi.errors import TrialFault
from rsi.ports import Box, BoxFile, BoxSpec, Ran, Sandbox
from tests.fakes.sandbox import FakeSandbox

DAEMON = (
    "import os, signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        time.sleep(1000)\n"
)
"""Leaves a process in a session of its own that a polite signal doesn't end."""


def bash(box: Box, script: str, timeout_s: float = 20, output_limit_bytes: int = 65536) -> Ran:
    return box.run(
        ["bash", "-c", script], timeout_s=timeout_s, output_limit_bytes=output_limit_bytes
    )


def process_count(box: Box) -> int:
    """How many processes there are beside PID 1 and the one that counts."""
    said = bash(box, "set -- /proc/[0-9]*; echo $(($# - 2))").stdout
    return int(said)


def test_files_come_back_as_they_were_laid(box: Box) -> None:
    laid = (
        BoxFile("/work/a.txt", b"one\n", 0o644),
        BoxFile("/work/deep/er/", b"", 0o755),
        BoxFile("/work/deep/er/run.sh", b"echo hi\n", 0o755),
        BoxFile("/work/odd \n\xe9 name", bytes(range(256)), 0o600),
    )
    box.put(laid)
    found = {file.path: file for file in box.get(["/work"])}
    assert set(laid) <= set(found.values())
    assert found.keys() == {file.path for file in laid} | {"/work/", "/work/deep/"}


@pytest.mark.parametrize("folder", ["/work", "/tests", "/solution", "/logs/verifier", "/tmp"])
def test_every_folder_of_a_trial_takes_files(box: Box, folder: str) -> None:
    box.put([BoxFile(f"{folder}/file", b"x")])
    assert [file.content for file in box.get([f"{folder}/file"])] == [b"x"]


def test_a_path_outside_is_refused_and_the_box_goes_on(box: Box) -> None:
    with pytest.raises(TrialFault, match="put"):
        box.put([BoxFile("/usr/bin/evil", b"x")])
    assert bash(box, "true").exit_code == 0


def test_a_command_says_its_code_and_both_outputs(box: Box) -> None:
    ran = bash(box, "echo out; echo err >&2; exit 3")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"out\n", b"err\n")
    assert not ran.is_timeout
    assert not ran.is_truncated


def test_a_signal_is_told_by_a_negative_code(box: Box) -> None:
    assert bash(box, "kill -9 $$").exit_code == -9


@pytest.mark.parametrize(
    ("argv", "code"), [(["no-such-command"], 127), (["/etc/passwd"], 126), (["tr\x00ue"], 0)]
)
def test_what_cannot_be_started_says_so_as_a_shell_does(
    box: Box, argv: list[str], code: int
) -> None:
    assert box.run(argv, timeout_s=10).exit_code == code


def test_input_larger_than_a_pipe_arrives_whole(box: Box) -> None:
    ran = box.run(["wc", "-c"], timeout_s=20, stdin=b"x" * 1_000_000)
    assert ran.stdout.strip() == b"1000000"


def test_input_that_nobody_reads_does_not_hang(box: Box) -> None:
    assert box.run(["true"], timeout_s=10, stdin=b"x" * 1_000_000).exit_code == 0


def test_nothing_of_the_hosts_environment_enters(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RSI_CANARY", "secret")
    with sandbox.box(BoxSpec()) as box:
        said = box.run(["env"], timeout_s=10, env={"GIVEN": "yes"}).stdout.decode()
    names = {line.partition("=")[0] for line in said.splitlines()}
    assert "GIVEN" in names
    assert names <= {"GIVEN", "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "HOSTNAME"}


def test_the_work_folder_is_the_one_asked_for(sandbox: Sandbox) -> None:
    with sandbox.box(BoxSpec(workdir="/app/data")) as box:
        box.put([BoxFile("/app/data/x", b"1")])
        assert bash(box, "pwd; cat x").stdout == b"/app/data\n1"
        assert box.run(["pwd"], timeout_s=10, cwd="/tmp").stdout == b"/tmp\n"


def test_the_agent_is_the_same_user_in_every_box(box: Box) -> None:
    assert bash(box, "id -u; id -g").stdout == b"1000\n1000\n"


def test_a_command_over_its_time_takes_its_daemons_with_it(box: Box) -> None:
    box.put([BoxFile("/work/daemon.py", DAEMON.encode())])
    ran = bash(box, "python3 daemon.py & python3 daemon.py; sleep 1000", timeout_s=2)
    assert ran.is_timeout
    assert ran.exit_code is None
    assert ran.elapsed_s < 8
    assert process_count(box) == 0


def test_what_a_command_leaves_goes_on_until_all_is_stopped(box: Box) -> None:
    box.put([BoxFile("/work/daemon.py", DAEMON.encode())])
    assert box.run(["python3", "/work/daemon.py"], timeout_s=10).exit_code == 0
    assert process_count(box) == 1
    box.stop_all()
    assert process_count(box) == 0


def test_a_daemon_that_holds_the_output_does_not_hold_up_the_answer(box: Box) -> None:
    ran = bash(box, "sleep 1000 & echo started")
    assert ran.stdout == b"started\n"
    assert ran.elapsed_s < 8


def test_output_is_kept_up_to_its_limit(box: Box) -> None:
    ran = bash(box, "printf 'a%.0s' {1..5000}; printf 'b%.0s' {1..5000} >&2", output_limit_bytes=10)
    assert (ran.stdout, ran.stderr) == (b"a" * 10, b"b" * 10)
    assert ran.is_truncated
    assert ran.exit_code == 0


def test_a_flood_of_output_is_stopped(box: Box) -> None:
    ran = box.run(["yes"], timeout_s=60, output_limit_bytes=100)
    assert ran.exit_code is None
    assert not ran.is_timeout
    assert len(ran.stdout) == 100
    assert bash(box, "true").exit_code == 0


def test_python_keeps_one_namespace(box: Box) -> None:
    assert box.python("x = 4", timeout_s=20).exit_code == 0
    ran = box.python("print(x + 1)", timeout_s=20)
    assert (ran.exit_code, ran.stdout) == (0, b"5\n")
    assert box.run(["true"], timeout_s=10).exit_code == 0
    assert box.python("print(x)", timeout_s=20).stdout == b"4\n"


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("1 / 0", 1),
        ("this is no Python", 1),
        ("input()", 1),
        ("import sys; sys.exit(7)", 7),
        ("import os; os._exit(7)", 7),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("def f(): f()\nf()", 1),
        ("import sys; sys.stdout = sys.stderr = None", 0),
    ],
)
def test_python_that_goes_wrong_says_its_code(box: Box, code: str, exit_code: int) -> None:
    assert box.python(code, timeout_s=30).exit_code == exit_code
    assert box.python("print('on')", timeout_s=30).exit_code == 0


def test_python_over_its_time_begins_afresh(box: Box) -> None:
    box.python("x = 4", timeout_s=20)
    ran = box.python("while True: pass", timeout_s=0.5)
    assert ran.is_timeout
    assert ran.exit_code is None
    assert b"NameError" in box.python("x", timeout_s=20).stderr


def test_only_files_and_folders_leave_a_box(box: Box) -> None:
    made = bash(
        box,
        "echo 1 > file; ln -s /etc/passwd link; ln -s / root; mkfifo pipe; mkdir sub; "
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'; "
        "echo 2 > $'bad\\xff'; echo 3 > ' -rf'; chmod 000 sub",
    )
    assert made.exit_code == 0
    found = [file.path for file in box.get(["/work", "/dev/null", "/work/link"])]
    assert found == ["/work/", "/work/ -rf", "/work/file"]


def test_files_over_the_limit_are_refused_and_the_box_goes_on(box: Box) -> None:
    bash(box, "head -c 20000 /dev/zero > big")
    with pytest.raises(TrialFault, match="larger"):
        box.get(["/work"], limit_bytes=10_000)
    assert len(box.get(["/work/big"], limit_bytes=20_000)[0].content) == 20_000


def test_what_is_not_there_gives_nothing(box: Box) -> None:
    assert box.get(["/work/none", "/nowhere"]) == ()


def test_every_box_is_clean(sandbox: Sandbox) -> None:
    for _ in range(3):
        with sandbox.box(BoxSpec()) as box:
            assert bash(box, "ls /work /tmp /tests /solution").stdout.split() == [
                b"/solution:",
                b"/tests:",
                b"/tmp:",
                b"/work:",
            ]
            bash(box, "echo stain | tee /work/a /tmp/a /tests/a /solution/a")


def test_a_box_ends_when_its_life_is_over(sandbox: Sandbox) -> None:
    with (
        sandbox.box(BoxSpec(life_s=1)) as box,
        pytest.raises(TrialFault, match="the box ended during run"),
    ):
        box.run(["sleep", "30"], timeout_s=30)


def test_a_box_that_ended_stays_ended(sandbox: Sandbox) -> None:
    with sandbox.box(BoxSpec(life_s=0.2)) as box:
        with pytest.raises(TrialFault):
            box.run(["sleep", "5"], timeout_s=10)
        with pytest.raises(TrialFault, match="ended earlier"):
            box.run(["true"], timeout_s=10)


def test_boxes_are_made_side_by_side(sandbox: Sandbox) -> None:
    def one(number: int) -> bytes:
        with sandbox.box(BoxSpec()) as box:
            return bash(box, f"echo {number}").stdout

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(one, range(8))) == [b"%d\n" % number for number in range(8)]


def test_the_tools_of_a_shell_task_are_there(box: Box) -> None:
    tools = (
        "bash cat cut sort uniq join comm paste tr wc head tail tac seq rev grep sed awk find "
        "xargs diff cmp tar gzip python3 date md5sum sha256sum tee nl fold od split stat"
    )
    assert bash(box, f"for tool in {tools}; do type -P $tool || echo lacks; done").exit_code == 0
    assert (
        b"lacks"
        not in bash(
            box, f"for tool in {tools}; do type -P $tool >/dev/null || echo lacks $tool; done"
        ).stdout
    )
    assert bash(box, "echo 'é b a' | tr ' ' '\\n' | LC_ALL=C sort | rev | awk '{print $1}'").stdout
    assert bash(box, "python3 -c 'import json, re, csv, sqlite3, subprocess'").exit_code == 0


def test_facts_come_with_every_box(sandbox: Sandbox) -> None:
    facts = sandbox.check()
    with sandbox.box(BoxSpec()) as box:
        assert box.facts == facts
    is_isolated = facts.engine == "docker" and not facts.missing
    assert facts.level == ("isolated" if is_isolated else "contained")


def test_an_image_that_cannot_be_had_breaks_only_its_own_trial(sandbox: Sandbox) -> None:
    with (
        pytest.raises(TrialFault, match="no-such-image-of-ours"),
        sandbox.box(BoxSpec(image="localhost:9/no-such-image-of-ours:1")),
    ):
        pass
    with sandbox.box(BoxSpec()) as box:
        assert bash(box, "true").exit_code == 0


class TestTheFake:
    """What of the port the fake keeps."""

    def test_it_gives_files_back(self) -> None:
        with FakeSandbox().box(BoxSpec()) as box:
            box.put([BoxFile("/work/a", b"1", 0o755)])
            assert box.get(["/work"]) == (BoxFile("/work/a", b"1", 0o755),)

    def test_it_echoes_and_knows_no_other_command(self) -> None:
        with FakeSandbox().box(BoxSpec()) as box:
            assert bash(box, "echo hi").stdout == b"hi\n"
            assert bash(box, "nothing").exit_code == 127

    def test_each_box_is_clean_and_says_its_facts(self) -> None:
        sandbox = FakeSandbox()
        with sandbox.box(BoxSpec()) as box:
            box.put([BoxFile("/work/a", b"1")])
        with sandbox.box(BoxSpec()) as box:
            assert box.get(["/work"]) == ()
            assert box.facts == sandbox.check()
