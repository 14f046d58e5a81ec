"""What a box guarantees, found by trying from the inside: engines drop some limits silently."""

from rsi.errors import SandboxError, TrialFault
from rsi.ports import Box, BoxSpec

PROBE_SPEC = BoxSpec(pids=32, memory_mb=128, disk_mb=8, life_s=90)
PROCESSOR_SPEC = BoxSpec(pids=8, memory_mb=128, disk_mb=8, life_s=90, cpus=0.1)
PROBE_LIMIT_S = 30
MORE_PROCESSES = 64
HOLES = """
import os, socket
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
if any(int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")):
    print("it has capabilities")
if os.getuid() == 0:
    print("it runs as root")
if status["NoNewPrivs"].strip() != "1":
    print("it can gain privileges")
if status["Seccomp"].strip() != "2":
    print("system calls are not filtered")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
    try:
        channel.connect(("192.0.2.1", 9))
        print("it reaches a network")
    except OSError:
        pass
for folder in ("/", "/usr", "/usr/bin", "/etc", "/proc/sys/kernel", "/dev"):
    try:
        os.close(os.open(folder + "/probe", os.O_CREAT | os.O_WRONLY))
        print("it writes in " + folder)
    except OSError:
        pass
room = os.statvfs(".")
if room.f_blocks * room.f_frsize > 9 << 20:
    print("its disk has no limit")
"""
"""Prints a line for each hole; nothing in a box that is closed."""
FORKS = f"""
import os, time
made = 0
try:
    for _ in range({MORE_PROCESSES}):
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made)
"""
"""Prints how many processes a box lets one make."""
MEMORY = """
import os, time
said, says = os.pipe()
os.set_blocking(said, False)
for _ in range(5):
    if os.fork() == 0:
        held = bytearray(b"x") * (90 << 20)
        os.write(says, b"x")
        time.sleep(30)
        os._exit(0)
full = dead = 0
while full + dead < 5:
    time.sleep(0.01)
    dead += os.waitpid(-1, os.WNOHANG)[0] > 0
    try:
        full += len(os.read(said, 5))
    except BlockingIOError:
        pass
print("held" if full == 5 else "limited")
"""
"""Prints `held` when five processes may hold 450 MB together; leaves them for `stop_all`."""
STOPS = """
import glob, time
def stops():
    for path in glob.glob("/sys/fs/cgroup/cpu.stat") + glob.glob("/sys/fs/cgroup/cpu*/cpu.stat"):
        for line in open(path):
            if line.startswith("nr_throttled "):
                return int(line.split()[1])
    return 0
before, end = stops(), time.monotonic() + 0.35
while time.monotonic() < end:
    pass
print(stops() - before)
"""
"""Prints how often the kernel stopped a busy loop."""
SHARE = """
import time
begin, used = time.monotonic(), time.process_time()
while time.monotonic() < begin + 0.25:
    pass
print((time.process_time() - used) / (time.monotonic() - begin))
"""
"""Prints what share of one processor a busy loop gets."""


def probe(box: Box) -> tuple[str, ...]:
    """The limits that a box made to PROBE_SPEC doesn't have.

    Raises SandboxError when it isn't closed, or doesn't work at all.
    """
    try:
        holes = _python(box, HOLES).splitlines()
        missing = []
        if int(_python(box, FORKS)) >= MORE_PROCESSES:
            missing.append("number of processes")
        box.stop_all()
        if _python(box, MEMORY) == "held":
            missing.append("memory of all processes together")
        box.stop_all()
    except (TrialFault, ValueError) as error:
        raise SandboxError(f"a box was made but doesn't work: {error}") from error
    if holes:
        raise SandboxError(
            f"a box was made but isn't closed: {'; '.join(holes)}; mend the engine's set-up, or "
            "choose another sandbox with RSI_SANDBOX, and run again"
        )
    return tuple(missing)


def limits_processor(box: Box) -> bool:
    """Whether the kernel stopped a busy loop, as it says in the box's own control group; the box
    must be made with less than a whole processor. Where the group can't be seen: False.

    Raises SandboxError when the box doesn't work.
    """
    try:
        return int(_python(box, STOPS)) > 0
    except (TrialFault, ValueError) as error:
        raise SandboxError(f"a box was made but doesn't work: {error}") from error


def processor_share(box: Box) -> float:
    """The share of one processor that a busy loop gets in the box.

    A low one shows a limit only on a machine that has nothing else to do. Raises SandboxError.
    """
    try:
        return float(_python(box, SHARE))
    except (TrialFault, ValueError) as error:
        raise SandboxError(f"a box was made but doesn't work: {error}") from error


def _python(box: Box, code: str) -> str:
    ran = box.run(["python3", "-I", "-S", "-c", code], timeout_s=PROBE_LIMIT_S)
    if ran.exit_code != 0:
        raise ValueError(f"exit {ran.exit_code}: {ran.stderr[-300:]!r}")
    return ran.stdout.decode().strip()
