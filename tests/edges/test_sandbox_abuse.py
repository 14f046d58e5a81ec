"""What an agent may try in a box, and what comes of it: the same for containers and namespaces."""

import socket
import time
from pathlib import Path

import pytest

from rsi.errors import TrialFault
from rsi.ports import Box, BoxFile, BoxSpec, Ran, Sandbox


def python(box: Box, code: str, timeout_s: float = 20) -> Ran:
    """A program of its own, not the persistent namespace."""
    return box.run(["python3", "-c", code], timeout_s=timeout_s)


def still_works(box: Box) -> bool:
    """Whether the box ends what runs, and serves on."""
    box.stop_all()
    box.put([BoxFile("/work/after", b"1")])
    return box.run(["cat", "/work/after"], timeout_s=20).stdout == b"1"


def test_a_fork_bomb_stays_in_its_box(sandbox: Sandbox) -> None:
    with sandbox.box(BoxSpec(pids=32)) as box:
        ran = box.run(["bash", "-c", ":(){ :|:& };:; sleep 20"], timeout_s=1.5)
        assert ran.exit_code != 0
        box.stop_all()
        left = box.run(["bash", "-c", "set -- /proc/[0-9]*; echo $#"], timeout_s=20)
        assert left.stdout == b"2\n"


def test_processes_have_a_limit(sandbox: Sandbox) -> None:
    if "number of processes" in sandbox.check().missing:
        pytest.skip("this machine can't limit them")
    code = (
        "import os, time\n"
        "for made in range(100):\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(9); os._exit(0)\n"
        "    except OSError: break\n"
        "print(made)\n"
    )
    with sandbox.box(BoxSpec(pids=20)) as box:
        assert 10 <= int(python(box, code).stdout) <= 20


def test_one_process_cannot_take_all_memory(sandbox: Sandbox) -> None:
    with sandbox.box(BoxSpec(memory_mb=96)) as box:
        ran = python(box, "held = b'x' * (600 << 20)")
        assert ran.exit_code in (1, -9)
        assert still_works(box)


def test_many_processes_cannot_take_all_memory(sandbox: Sandbox) -> None:
    if "memory of all processes together" in sandbox.check().missing:
        pytest.skip("this machine can't limit it")
    code = (
        "import os\n"
        "for _ in range(8):\n"
        "    if os.fork() == 0: held = bytearray(60 << 20); held[::4096] = b'x' * (60 << 8); "
        "os.read(0, 1); os._exit(0)\n"
        "print(sum(os.wait()[1] == 9 for _ in range(8)) > 0)"
    )
    with sandbox.box(BoxSpec(memory_mb=128, pids=32)) as box:
        assert python(box, code).stdout == b"True\n"
        assert still_works(box)


def test_a_full_disk_is_the_agents_alone(sandbox: Sandbox) -> None:
    with sandbox.box(BoxSpec(disk_mb=4)) as box:
        ran = box.run(["bash", "-c", "head -c 9000000 /dev/zero > big"], timeout_s=20)
        assert b"No space left" in ran.stderr
        with pytest.raises(TrialFault, match="No space left"):
            box.put([BoxFile("/work/more", b"x" * 4096)])
        assert box.run(["rm", "big"], timeout_s=20).exit_code == 0
        assert still_works(box)


@pytest.mark.parametrize("folder", ["/work", "/tmp", "/dev/shm", "/logs", "/tests"])
def test_every_writable_folder_is_bounded(box: Box, folder: str) -> None:
    filled = box.run(
        ["bash", "-c", f"for n in 1 2 3; do head -c 30000000 /dev/zero > {folder}/$n; done; true"],
        timeout_s=60,
    )
    assert filled.stderr.count(b"No space left") >= 2
    assert box.run(["bash", "-c", f"rm {folder}/[123]"], timeout_s=20).exit_code == 0
    assert still_works(box)


def test_open_files_have_a_limit(box: Box) -> None:
    code = (
        "import os\n"
        "held = []\n"
        "try:\n"
        "    while len(held) < 5000: held.append(os.open('/dev/null', os.O_RDONLY))\n"
        "except OSError as error: print(error.errno == 24, len(held) < 600)\n"
    )
    assert python(box, code).stdout == b"True True\n"
    assert box.run(["bash", "-c", "ulimit -n 100000"], timeout_s=20).exit_code != 0
    assert still_works(box)


def test_the_dead_are_taken_in(box: Box) -> None:
    code = (
        "import os\n"
        "for _ in range(40):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0: os._exit(0)\n"
        "        os._exit(0)\n"
        "os._exit(0)\n"
    )
    assert python(box, code).exit_code == 0
    count = ["bash", "-c", "grep -l 'State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l"]
    box.run(["sleep", "0.1"], timeout_s=20)
    assert box.run(count, timeout_s=20).stdout.strip() == b"0"


def test_files_have_a_number_and_a_size_limit(sandbox: Sandbox) -> None:
    code = (
        "import errno, os\n"
        "try:\n"
        "    for n in range(40000): os.close(os.open(f'f{n}', os.O_CREAT))\n"
        "except OSError as error: print(errno.errorcode[error.errno])\n"
        "try: os.truncate('f0', 1 << 40)\n"
        "except OSError as error: print(errno.errorcode[error.errno])\n"
    )
    with sandbox.box(BoxSpec()) as box:
        ran = python(box, code, timeout_s=60)
        assert ran.stdout.split() == [b"ENOSPC", b"EFBIG"]
        with pytest.raises(TrialFault, match="larger or more"):
            box.get(["/work", "/work"])


def test_endless_output_from_python_is_stopped(box: Box) -> None:
    ran = box.python("while True: print('x' * 9999)", timeout_s=60, output_limit_bytes=5)
    assert ran.stdout == b"xxxxx"
    assert ran.exit_code is None
    assert not ran.is_timeout
    assert still_works(box)


@pytest.mark.parametrize("folder", ["/", "/usr", "/usr/bin", "/etc", "/dev", "/bin", "/proc/sys"])
def test_nothing_can_be_written_outside_the_boxs_folders(box: Box, folder: str) -> None:
    ran = box.run(["bash", "-c", f"echo x > {folder}/stain"], timeout_s=20)
    assert ran.exit_code != 0
    assert ran.stderr != b""


def test_no_network_is_reached(box: Box) -> None:
    code = (
        "import socket\n"
        "for place in (('192.0.2.1', 80), ('169.254.169.254', 80), ('127.0.0.1', 22)):\n"
        "    try: socket.create_connection(place, 3); print('reached', place)\n"
        "    except OSError: pass\n"
        "try: socket.getaddrinfo('example.org', 80); print('resolved')\n"
        "except OSError: pass\n"
        "print(open('/proc/net/dev').read().count(':'))"
    )
    assert python(box, code).stdout in (b"1\n", b"0\n")


def test_what_listens_on_the_hosts_loopback_is_not_reached(box: Box) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind("\0rsi-abuse")
        unix.listen()
        port = tcp.getsockname()[1]
        code = (
            "import socket\n"
            f"for place in (('127.0.0.1', {port}), ('localhost', {port}), ('0.0.0.0', {port})):\n"
            "    try: socket.create_connection(place, 3); print('reached', place)\n"
            "    except OSError: pass\n"
            "try: socket.socket(socket.AF_UNIX).connect('\\0rsi-abuse'); print('reached it')\n"
            "except OSError: pass\n"
        )
        ran = python(box, code)
    assert (ran.exit_code, ran.stdout) == (0, b"")


def test_the_hosts_files_are_not_there(box: Box) -> None:
    code = (
        "import os\n"
        "for path in ('/root/.ssh', '/home', '/var/run/docker.sock', '/run', '/etc/shadow', "
        "'/host', '/mnt', '/sys/kernel/debug', '/proc/kcore'):\n"
        "    try: print(path, open(path, 'rb').read(1) if os.path.isfile(path) else "
        "os.listdir(path))\n"
        "    except OSError: pass\n"
        "print(sum(name.isdigit() for name in os.listdir('/proc')))"
    )
    said = python(box, code).stdout.decode().splitlines()
    assert said.pop() == "2"
    for line in said:
        assert line.endswith((" b''", " []")), line


def test_pid_1_does_not_listen_to_the_agent(box: Box) -> None:
    code = (
        "import os, resource\n"
        "for number in range(1, 65):\n"
        "    try: os.kill(1, number)\n"
        "    except OSError: pass\n"
        "for act in (\n"
        "    lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3)),\n"
        "    lambda: resource.prlimit(1, resource.RLIMIT_AS, (1, 1)),\n"
        "    lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),\n"
        "    lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)),\n"
        "):\n"
        "    try: act(); print('done')\n"
        "    except OSError: pass\n"
    )
    ran = python(box, code)
    assert (ran.exit_code, ran.stdout) == (0, b"")
    assert still_works(box)


def test_pid_1_keeps_its_memory_and_descriptors(box: Box) -> None:
    code = (
        "import os\n"
        "for act in (\n"
        "    lambda: os.listdir('/proc/1/fd'),\n"
        "    lambda: open('/proc/1/mem', 'rb'),\n"
        "    lambda: open('/proc/1/environ').read(),\n"
        "    lambda: open('/proc/1/fd/1', 'wb'),\n"
        "    lambda: os.listdir('/proc/1/root/'),\n"
        "    lambda: open('/proc/1/oom_score_adj', 'w').write('1000'),\n"
        "    lambda: open('/proc/1/maps').read(),\n"
        "):\n"
        "    try: print(act())\n"
        "    except OSError: pass\n"
    )
    assert python(box, code).stdout == b""


def test_what_exploits_begin_with_is_refused(box: Box) -> None:
    code = (
        "import ctypes, os\n"
        "pick = 0 if os.uname().machine == 'x86_64' else 1\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "calls = {\n"
        "    'unshare user': lambda: libc.unshare(0x10000000),\n"
        "    'unshare mount': lambda: libc.unshare(0x20000),\n"
        "    'mount': lambda: libc.mount(b'x', b'/tmp', b'tmpfs', 0, None),\n"
        "    'chroot': lambda: libc.chroot(b'/tmp'),\n"
        "    'ptrace pid 1': lambda: libc.ptrace(16, 1, None, None),\n"
        "    'setuid': lambda: libc.setuid(0),\n"
        "    'sethostname': lambda: libc.sethostname(b'x', 1),\n"
        "    'io_uring': lambda: libc.syscall(425, 8, ctypes.create_string_buffer(120)),\n"
        "    'bpf': lambda: libc.syscall((321, 280)[pick], 0, 0, 0),\n"
        "    'keyctl': lambda: libc.syscall((250, 219)[pick], 0, 0),\n"
        "    'shmget': lambda: libc.shmget(0, 4096, 0o1600),\n"
        "    'device': lambda: libc.mknod(b'/tmp/d', 0o20666, 0x103),\n"
        "    'vsock': lambda: libc.socket(40, 1, 0),\n"
        "    'packet': lambda: libc.socket(17, 3, 0),\n"
        "    'algorithm': lambda: libc.socket(38, 5, 0),\n"
        "    'personality': lambda: libc.personality(0x0040000),\n"
        "    'clone namespace': lambda: libc.syscall("
        "(56, 220)[pick], 0x10000011, 0, 0, 0, 0) or os._exit(0),\n"
        "}\n"
        "for name, call in calls.items():\n"
        "    if call() >= 0: print(name)\n"
    )
    ran = python(box, code)
    assert (ran.exit_code, ran.stdout) == (0, b"")


def test_a_set_uid_copy_gives_no_other_user(box: Box) -> None:
    script = "cp $(type -P id) mine; chmod 6755 mine; ./mine -u; ./mine -g"
    ran = box.run(["bash", "-c", script], timeout_s=20)
    assert (ran.exit_code, ran.stdout) == (0, b"1000\n1000\n")


def test_threads_and_processes_of_plain_programs_work(box: Box) -> None:
    code = (
        "import multiprocessing, subprocess, threading\n"
        "thread = threading.Thread(target=print, args=('thread',)); thread.start(); thread.join()\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "        print(sum(pool.map(abs, [-1, -2])))\n"
        "    print(subprocess.run(['echo', 'x'], capture_output=True).stdout)\n"
    )
    ran = python(box, code)
    assert ran.stdout == b"thread\n3\nb'x\\n'\n", ran.stderr


def test_a_persistent_namespace_that_lies_breaks_only_itself(box: Box) -> None:
    box.python("import os; os.write(3, b'nonsense\\n'); print('lied')", timeout_s=20)
    assert box.python("print('on')", timeout_s=20).stdout == b"on\n"
    box.python("import os; os.close(3)", timeout_s=5)
    assert box.python("print('on')", timeout_s=20).stdout == b"on\n"
    assert still_works(box)


def test_deep_folders_are_given_as_far_as_they_make_sense(box: Box) -> None:
    code = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"
    assert python(box, code).exit_code == 0
    assert 10 < len(box.get(["/work"])) < 200


def test_a_link_in_place_of_a_file_is_not_followed(box: Box) -> None:
    box.run(["bash", "-c", "ln -s /tests/real /work/out; echo kept > /tests/real"], timeout_s=20)
    with pytest.raises(TrialFault, match="put"):
        box.put([BoxFile("/work/out", b"overwritten")])
    assert box.get(["/work/out"]) == ()
    assert box.get(["/tests/real"])[0].content == b"kept\n"


def test_a_hard_link_gives_the_file_and_a_hole_counts_in_full(box: Box) -> None:
    made = box.run(
        ["bash", "-c", "echo one > a; ln a b; ln /etc/passwd c; truncate -s 20M hole"], timeout_s=20
    )
    assert made.exit_code == 0 or b"c" in made.stderr
    assert [file.content for file in box.get(["/work/a", "/work/b"])] == [b"one\n", b"one\n"]
    assert box.get(["/work/c"]) == ()
    with pytest.raises(TrialFault, match="larger"):
        box.get(["/work/hole"], limit_bytes=1 << 20)
    assert still_works(box)


@pytest.mark.parametrize(
    "path", ["../work/a", "/work/../etc/passwd", "work/a", "/work/./a", "", "/work/\0"]
)
def test_a_path_that_is_not_plain_is_not_given(box: Box, path: str) -> None:
    try:
        given = [file.path for file in box.get([path])]
    except TrialFault:
        given = []
    assert [one for one in given if not one.startswith("/work")] == []
    assert all(".." not in one for one in given)


def test_bytes_that_are_no_text_come_through_as_they_are(box: Box) -> None:
    odd = bytes(range(256)) + "\udc80\u202e".encode("utf-8", "surrogatepass")
    ran = box.run(["cat"], timeout_s=20, stdin=odd)
    assert ran.stdout == odd
    assert box.run(["printf", "\x1b[2J\udcff"], timeout_s=20).stdout.startswith(b"\x1b[2J")


def test_one_line_of_a_hundred_megabytes_is_cut(box: Box) -> None:
    ran = box.run(["bash", "-c", "head -c 100000000 /dev/zero | tr '\\0' x"], timeout_s=60)
    assert len(ran.stdout) == 65536
    assert ran.is_truncated
    assert still_works(box)


def test_five_megabytes_of_words_and_arguments_are_no_fault_of_the_box(box: Box) -> None:
    many = "x" * 5_000_000
    assert box.run(["echo", many], timeout_s=20).exit_code in (126, 127)
    assert box.run(["bash", "-c", f"true {many}"], timeout_s=20).exit_code in (126, 127)
    assert box.python(f"print(len('{many}'))", timeout_s=60).stdout == b"5000000\n"
    box.put([BoxFile("/work/many", many.encode())])
    assert box.run(["wc", "-c", "many"], timeout_s=20).stdout == b"5000000 many\n"


def test_a_box_is_gone_soon_after_its_end(sandbox: Sandbox) -> None:
    with sandbox.box(BoxSpec()) as box:
        box.run(["bash", "-c", "sleep 987.25 & sleep 987.25 & true"], timeout_s=20)
    deadline = time.monotonic() + 10
    while _runs("987.25") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs("987.25")


def _runs(word: str) -> bool:
    """Whether a process of this machine has the word in its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word in path.read_bytes().decode("utf-8", "replace").split("\0"):
                return True
        except OSError:
            continue
    return False
