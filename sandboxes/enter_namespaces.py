"""Enters a box made of Linux namespaces, then becomes its helper.

Called with one JSON argument: {root, mount, folders, uid, pids, memory_mb, argv}. Makes new mount,
pid, network, ipc and uts namespaces (and a user namespace where the caller isn't root), builds a
private root of read-only binds and sized tmpfs, gives up every capability, and runs argv as PID 1.

It does not protect against a hole in the kernel, and without cgroups it can't limit what all
processes of a box use together. Standard library only; it never imports rsi.
"""

import ctypes
import json
import os
import platform
import resource
import signal
import socket
import struct
import sys

NEW_NS, NEW_UTS, NEW_IPC, NEW_USER, NEW_PID, NEW_NET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = (
    1,
    2,
    4,
    8,
    32,
    4096,
    16384,
    1 << 18,
)
DETACH = 2
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 38
DEVICES = ("null", "zero", "full", "random", "urandom")

# Architecture: AUDIT_ARCH, pivot_root, clone, clone3, and what a box may not call.
SYSCALLS = {
    "x86_64": (
        0xC000003E,
        155,
        56,
        435,
        (
            101,
            155,
            165,
            166,
            161,
            163,
            167,
            168,
            169,
            172,
            173,
            174,
            175,
            176,
            179,
            246,
            248,
            249,
            250,
            272,
            298,
            304,
            308,
            310,
            311,
            312,
            313,
            320,
            321,
            323,
            425,
            426,
            427,
            428,
            429,
            430,
            431,
            432,
            433,
            442,
            29,
            30,
            31,
            64,
            65,
            66,
            67,
            68,
            69,
            70,
            71,
            220,
            240,
            241,
            242,
            243,
            244,
            245,
            237,
            238,
            239,
            256,
            279,
            135,
            153,
            154,
            156,
            164,
            170,
            171,
            180,
            212,
            227,
            159,
            305,
            303,
            310,
            311,
        ),
    ),
    "aarch64": (
        0xC00000B7,
        41,
        220,
        435,
        (
            39,
            40,
            41,
            42,
            51,
            58,
            60,
            89,
            92,
            97,
            104,
            105,
            106,
            112,
            117,
            142,
            161,
            162,
            170,
            171,
            180,
            181,
            182,
            183,
            184,
            185,
            186,
            187,
            188,
            189,
            190,
            191,
            192,
            193,
            194,
            195,
            196,
            197,
            217,
            218,
            219,
            224,
            225,
            235,
            236,
            237,
            238,
            239,
            241,
            264,
            265,
            266,
            268,
            270,
            271,
            273,
            280,
            282,
            294,
            425,
            426,
            427,
            428,
            429,
            430,
            431,
            432,
            433,
            442,
        ),
    ),
}
NEW_ANY = 0x7E020000
"""The flags of clone that make namespaces."""

libc = ctypes.CDLL(None, use_errno=True)


def main():
    spec = json.loads(sys.argv[1])
    is_root = os.geteuid() == 0
    enter(is_root)
    child = os.fork()
    if child:
        for descriptor in (0, 1):
            os.close(descriptor)
        os.waitpid(child, 0)
        return
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    socket.sethostname("box")
    build(spec)
    limit(spec)
    give_up(spec, is_root)
    filter_calls()
    os.execv(spec["argv"][0], spec["argv"])


def enter(is_root):
    outer = os.geteuid(), os.getegid()
    flags = NEW_NS | NEW_PID | NEW_NET | NEW_IPC | NEW_UTS
    call("unshare", libc.unshare(flags if is_root else flags | NEW_USER))
    if not is_root:
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"1000 {outer[0]} 1")
        write("/proc/self/gid_map", f"1000 {outer[1]} 1")


def build(spec):
    """The private root: tmpfs, with the image's folders bound read-only into it."""
    root, new = spec["root"], spec["mount"]
    mount("none", "/", "", REC | PRIVATE)
    mount("box", new, "tmpfs", NOSUID | NODEV, "size=1m,mode=755")
    for name in sorted(os.listdir(root)):
        source, target = os.path.join(root, name), os.path.join(new, name)
        if os.path.islink(source):
            os.symlink(os.readlink(source), target)
        elif os.path.isdir(source) and os.listdir(source):
            os.mkdir(target)
            mount(source, target, "", BIND)
            mount(source, target, "", BIND | REMOUNT | RDONLY | NOSUID | NODEV)
    for path, size_mb in spec["folders"].items():
        os.makedirs(new + path, exist_ok=True)
        owner = f"uid={spec['uid']},gid={spec['uid']}"
        options = f"size={size_mb}m,nr_inodes=16k,mode=755,{owner}"
        mount("box", new + path, "tmpfs", NOSUID | NODEV, options)
    add_devices(new)
    os.mkdir(new + "/proc")
    mount("proc", new + "/proc", "proc", NOSUID | NODEV | NOEXEC)
    os.chdir(new)
    call("pivot_root", libc.syscall(SYSCALLS[platform.machine()][1], b".", b"."))
    call("umount", libc.umount2(b".", DETACH))
    os.chdir("/")
    mount("none", "/", "", REMOUNT | BIND | RDONLY | NOSUID | NODEV)


def add_devices(new):
    os.mkdir(new + "/dev")
    for name in DEVICES:
        target = f"{new}/dev/{name}"
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o666))
        mount(f"/dev/{name}", target, "", BIND)
    os.symlink("/proc/self/fd", new + "/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{new}/dev/{name}")


def limit(spec):
    memory = (spec["memory_mb"] + 256) << 20
    for what, most in (
        (resource.RLIMIT_NOFILE, 512),
        (resource.RLIMIT_FSIZE, 64 << 20),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NPROC, spec["pids"]),
    ):
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def give_up(spec, is_root):
    """No capability is left, and none can come back."""
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if is_root:
        os.setgroups([])
        os.setresgid(spec["uid"], spec["uid"], spec["uid"])
        os.setresuid(spec["uid"], spec["uid"], spec["uid"])
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    header = struct.pack("II", 0x20080522, 0)
    call("capset", libc.capset(header, bytes(24)))
    call("no_new_privs", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def filter_calls():
    """A seccomp filter: the calls named above are refused, and so are new namespaces."""
    arch, _, clone, clone3, refused = SYSCALLS[platform.machine()]
    allow, refuse, absent = 0x7FFF0000, 0x00050001, 0x00050000 | 38
    lines = [(0x20, 0, 0, 4), (0x15, 1, 0, arch), (0x06, 0, 0, refuse), (0x20, 0, 0, 0)]
    if platform.machine() == "x86_64":
        lines += [(0x35, 0, 1, 0x40000000), (0x06, 0, 0, refuse)]
    lines += [(0x15, 0, 1, clone3), (0x06, 0, 0, absent)]
    for number in sorted(set(refused)):
        lines += [(0x15, 0, 1, number), (0x06, 0, 0, refuse)]
    lines += [
        (0x15, 0, 4, clone),
        (0x20, 0, 0, 16),
        (0x45, 0, 1, NEW_ANY),
        (0x06, 0, 0, refuse),
        (0x06, 0, 0, allow),
        (0x06, 0, 0, allow),
    ]
    code = b"".join(struct.pack("HBBI", *line) for line in lines)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(buffer))
    call("seccomp", libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0))


def mount(source, target, kind, flags, options=""):
    done = libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    call(f"mount {kind or source} on {target}", done)


def call(what, result):
    if result:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
