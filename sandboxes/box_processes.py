"""The processes of a box: starting them, taking in the dead, ending them for sure.

Standard library only; it never imports rsi.
"""

import os
import select
import signal
import sys
import time

from box_frames import receive, send

STOP_LIMIT_S = 5


class Children:
    """The exit codes of the processes that are waited for; PID 1 inherits every other orphan."""

    def __init__(self, network):
        self.codes = {}
        self.network = network
        self.wake, written = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)

    def start(self, header, descriptors):
        """The id of a new process with these descriptors. Raises OSError."""
        pid = spawn(header, descriptors)
        self.codes[pid] = None
        prefer_for_oom(pid)
        return pid

    def reap(self):
        """Takes in the dead."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.codes:
                self.codes[pid] = os.waitstatus_to_exitcode(status)

    def listen(self, outputs, inputs, limit_s):
        """The outputs to read and the inputs to write; the dead are taken in on the way."""
        mine = sys.stdin.fileno()
        ready, writable, _ = select.select(
            [mine, self.wake, *outputs, *self.network.readers()],
            [*inputs, *self.network.writers()],
            [],
            limit_s,
        )
        if mine in ready:
            self.network.take(*receive())  # Nothing else is sent during a call.
        if self.wake in ready:
            os.read(self.wake, 4096)
            self.reap()
        self.network.move(ready, writable)
        return [one for one in outputs if one in ready], [one for one in inputs if one in writable]

    def end(self, pid, tick):
        """Ends the process and all that has started since; returns when the process is dead."""
        end_since(tick, pid)
        while self.codes[pid] is None:
            self.reap()
            if self.codes[pid] is None:
                self.listen((), (), 0.1)

    def stop_all(self, _header, _payload):
        """Ends every process but this one; repeats until none is left."""
        deadline = time.monotonic() + STOP_LIMIT_S
        while time.monotonic() < deadline:
            if not end_all():
                send({"ok": True})
                return
            self.reap()
            time.sleep(0.001)
        send({"ok": False, "reason": f"processes would not end within {STOP_LIMIT_S} s"})


def spawn(header, descriptors):
    """A new process. `posix_spawn` is the fastest way there is: it copies no memory."""
    actions = [(os.POSIX_SPAWN_DUP2, ours, number) for number, ours in descriptors.items()]
    os.chdir(header["cwd"])
    try:
        return os.posix_spawnp(
            header["argv"][0],
            header["argv"],
            {**os.environ, **header["env"]},  # An image's own variables, then ours.
            file_actions=actions,
            setsid=True,
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )
    finally:
        os.chdir("/")


def prefer_for_oom(pid):
    """When memory ends, the kernel takes the agent's process, not PID 1."""
    try:
        with open(f"/proc/{pid}/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass  # The process has ended already.


def end_all():
    """Ends every process but this one, in one call that no fork can outrun; False when none is."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def end_since(tick, pid):
    """Ends what has started since, also outside the session; all, if they breed too fast."""
    for _ in range(50):
        young = [other for other in living() if other == pid or started(other) >= tick]
        if not young:
            return
        for other in young:
            try:
                os.kill(other, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.001)
    end_all()


def living():
    """The ids of all processes but this one that are not dead."""
    others = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in others if pid != os.getpid() and started(pid) >= 0]


def started(pid):
    """When a process started, in ticks since the machine did; -1 for the dead."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return -1
    return -1 if fields[0] in (b"Z", b"X") else int(fields[19])


def now_in_ticks():
    """The time as `started` gives it."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
