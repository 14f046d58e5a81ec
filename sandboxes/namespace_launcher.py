"""Makes boxes of Linux namespaces, one after another, for the process that it was started by.

Standard input is a socket. Each message on it is a JSON request with one descriptor, the stream
of the box to be: {root, folders, uid, pids, memory_mb, cpus}. The answer is the process that holds
the box. Another message, {end}, kills such a process; {stops} is answered by how often the kernel
has stopped its box for having used its share of the processor. The end of input ends everything.

The launcher imports all that a box needs once; a box is a fork of it, in mount, pid, network, ipc
and uts namespaces of its own (and a user namespace, unless it may do without), without any
capability, with a filter on its system calls, served by box_helper as PID 1. Where control groups
can be made (box_cgroup) they limit what all processes of a box use together; elsewhere nothing
does. It does not protect against a hole in the kernel. Standard library only; it never imports rsi.
"""

import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import box_cgroup
import box_frames
import box_helper
import call_filter
import private_root

NEW_NS, NEW_UTS, NEW_IPC = 0x00020000, 0x04000000, 0x08000000
NEW_CGROUP, NEW_USER, NEW_PID, NEW_NET = 0x02000000, 0x10000000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
CAPABILITIES_3 = 0x20080522
LAST_CAPABILITY = 63
MESSAGE_BYTES = 8192
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
OPEN_FILES = 512
ROOM_MB = 256
"""Address space that a process needs beside its memory."""
NO_HOLDER = 0xFFFFFFFF
END_LIMIT_S = 1.5
"""For the control groups at the end; their owner waits a little longer for the launcher."""
FIRST_PAUSE_S, LAST_PAUSE_S = 0.01, 5
INSIDE_UID = 1000
"""The agent's id inside a user namespace."""

libc = private_root.libc


def main(process="/proc/self"):
    """Serves requests until the owner is gone; `process` is where control groups are told."""
    owner = socket.socket(fileno=os.dup(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    boxes = Boxes(box_cgroup.Groups(process))
    try:
        while True:
            if owner in select.select([owner, boxes.wake], [], [], boxes.wait_s())[0]:
                message, descriptors, _, _ = socket.recv_fds(owner, MESSAGE_BYTES, 1)
                if not message:
                    return
                answer(owner, boxes, json.loads(message), descriptors)
            boxes.tidy()
    finally:
        boxes.end_all()


def answer(owner, boxes, request, descriptors):
    """Makes a box, ends one, or tells how often its processor limit was felt."""
    if "end" in request:
        boxes.end(request["end"])
        return
    if "stops" in request:
        number = boxes.stops(request["stops"])
    else:
        number = boxes.start(request, descriptors[0])
        os.close(descriptors[0])
    owner.sendall(number.to_bytes(4, "big"))


class Boxes:
    """The boxes that run, each by the process that holds it, and the control groups to remove."""

    def __init__(self, groups):
        self.groups, self.running = groups, {}
        self.ended, self.pause_s = groups.left_behind(), FIRST_PAUSE_S
        self.wake, written = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)

    def start(self, request, stream):
        """The process that holds a new box; a box whose limits can't be set says so itself."""
        fault = None
        try:
            group = self.groups.make(request)
        except OSError as error:
            group, fault = box_cgroup.Group("", ()), error
        try:
            holder = os.fork()
        except OSError:
            self.ended.append(group)
            return NO_HOLDER
        if holder == 0:
            hold(request, stream, group, fault)
        self.running[holder] = group
        return holder

    def end(self, holder):
        """Kills a box, if it runs."""
        if holder in self.running:
            os.kill(holder, signal.SIGKILL)

    def stops(self, holder):
        """How often the kernel has stopped a box for having used its share of the processor."""
        return self.running[holder].stops() if holder in self.running else 0

    def end_all(self):
        """Kills every box and waits for their control groups to be gone, a little while."""
        for holder in self.running:
            os.kill(holder, signal.SIGKILL)
        deadline = time.monotonic() + END_LIMIT_S
        while (self.running or self.ended) and time.monotonic() < deadline:
            select.select([self.wake], [], [], FIRST_PAUSE_S)
            self.tidy()

    def tidy(self):
        """Takes in the dead, and removes the groups that have nobody left in them."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.wake, MESSAGE_BYTES)
        self.pause_s = min(2 * self.pause_s, LAST_PAUSE_S)
        with contextlib.suppress(ChildProcessError):
            while (holder := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                self.ended.append(self.running.pop(holder))
                self.pause_s = FIRST_PAUSE_S
        self.ended = [group for group in self.ended if not group.remove()]

    def wait_s(self):
        """How long until groups that were not empty are looked at again."""
        return self.pause_s if self.ended else None


def hold(request, stream, group, fault):
    """Makes the box's PID 1 and waits for its end; killing this process kills the box."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (0, 1):
            os.dup2(stream, number)
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        if fault is not None:
            raise fault
        group.open()
        os.chdir(request["root"])
        uid = enter_namespaces(request["uid"])
        if os.fork() == 0:
            live(request, uid, group)
        group.close()
        null = os.open("/dev/null", os.O_RDWR)
        for number in (0, 1):
            os.dup2(null, number)
        os.wait()
    except BaseException as error:  # noqa: BLE001 - a fork must end here, whatever happens.
        refuse(error)
    os._exit(0)


def live(request, uid, group):
    """Becomes the box: a private root, no rights, and then the helper."""
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        group.enter()
        # Only for the box not to see where the machine has its group.
        libc.unshare(NEW_CGROUP)
        socket.sethostname("box")
        if request["has_loopback"]:
            raise_loopback()
        private_root.enter_root(request["folders"], uid)
        set_limits(request, "memory" in group.controllers)
        give_up_rights(uid)
        call_filter.filter_calls()
        # Nothing may be imported from now on: the box's files are not the machine's.
        sys.path.clear()
        box_helper.serve()
    except BaseException as error:  # noqa: BLE001 - a fork must end here, whatever happens.
        refuse(error)
    os._exit(1)


def enter_namespaces(uid):
    """Enters new namespaces; the id that the box's processes will have in them."""
    flags = NEW_NS | NEW_PID | NEW_NET | NEW_IPC | NEW_UTS
    if os.geteuid() == 0:
        if libc.unshare(flags) == 0:
            return uid
        # Root without the right to it, as in a container: go on as anybody would.
        drop_to(uid)
    outer = os.geteuid(), os.getegid()
    private_root.call("unshare", libc.unshare(flags | NEW_USER))
    map_inside(*outer)
    return INSIDE_UID


def raise_loopback():
    """Makes the box's own addresses work; there is no other device in it."""
    with socket.socket() as channel:
        asked = struct.pack("16sH14x", b"lo", IFF_UP)
        fcntl.ioctl(channel, SIOCSIFFLAGS, asked)


def drop_to(uid):
    """Becomes an unprivileged user for good."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # A change of user resets both.
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def map_inside(uid, gid):
    """In a new user namespace: this user is the agent, and nobody else exists."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{INSIDE_UID} {uid} 1"),
        ("gid_map", f"{INSIDE_UID} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def set_limits(request, is_memory_limited):
    """Limits of each process, and of the processes of this user id."""
    largest_file = max(request["folders"].values()) << 20
    # Address space isn't memory: it is limited only where nothing better is.
    room = resource.RLIM_INFINITY if is_memory_limited else (request["memory_mb"] + ROOM_MB) << 20
    for what, most in (
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_FSIZE, largest_file),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, room),
        (resource.RLIMIT_NPROC, request["pids"]),
    ):
        hard = resource.getrlimit(what)[1]
        least = min(most, hard) if hard >= 0 and most >= 0 else max(most, hard)
        resource.setrlimit(what, (least, least))


def give_up_rights(uid):
    """No capability is left, and none can come back. Raises OSError."""
    if os.geteuid() != uid:
        drop_to(uid)
        # Only for its id to be the same in every box: where that isn't allowed nothing is lost.
        if libc.unshare(NEW_USER) == 0:
            map_inside(uid, uid)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    for capability in range(LAST_CAPABILITY + 1):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = struct.pack("II", CAPABILITIES_3, 0)
    private_root.call("capset", libc.capset(header, bytes(24)))
    private_root.call("no_new_privs", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def refuse(error):
    """Says in the helper's place why there is no box."""
    with contextlib.suppress(OSError):
        box_frames.send({"ok": False, "reason": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main(*sys.argv[1:])
