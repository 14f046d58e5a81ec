"""The private root of a box of namespaces: read-only binds of an image, sized tmpfs, own /proc.

Called in fresh mount and pid namespaces, with the image's root as the working folder. Standard
library only; it never imports rsi.
"""

import ctypes
import os
import platform

RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, NOATIME, NODIRATIME, BIND, REC, PRIVATE = (
    1,
    2,
    4,
    8,
    32,
    1024,
    2048,
    4096,
    16384,
    1 << 18,
)
KEPT = {2: NOSUID, 4: NODEV, 8: NOEXEC, 1024: NOATIME, 2048: NODIRATIME}
"""statvfs flag -> mount flag: a user namespace may not take these off a mount that has them."""
DETACH = 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
NEW = "/tmp"
"""Where the new root is put together; any folder does, since nobody else sees it."""
DEVICES = ("null", "zero", "full", "random", "urandom")
SHM_MB = 8
MASKED = ("keys", "kallsyms", "kcore", "timer_list", "sched_debug", "sysrq-trigger", "interrupts")
"""Files of /proc that tell about the machine and that no task needs."""

libc = ctypes.CDLL(None, use_errno=True)


def enter_root(folders, uid):
    """Makes the root and enters it; nothing of the machine's own files is left. Raises OSError.

    `folders` are the writable ones, each with its size in MB; they belong to `uid`.
    """
    mount("none", "/", "", REC | PRIVATE)
    mount("box", NEW, "tmpfs", NOSUID | NODEV, "size=1m,mode=755")
    for name in sorted(os.listdir(".")):
        add_entry(name)
    for path, size_mb in folders.items():
        add_room(path, size_mb, uid)
    add_devices(uid)
    add_proc()
    os.chdir(NEW)
    call("pivot_root", libc.syscall(PIVOT_ROOT[platform.machine()], b".", b"."))
    call("umount", libc.umount2(b".", DETACH))
    os.chdir("/")
    mount("none", "/", "", REMOUNT | BIND | RDONLY | NOSUID | NODEV)


def add_entry(name):
    """A link or a folder of the image; its empty folders are places for other mounts."""
    target = f"{NEW}/{name}"
    if os.path.islink(name):
        os.symlink(os.readlink(name), target)
    elif os.path.isdir(name) and os.listdir(name):
        os.mkdir(target)
        mount(name, target, "", BIND)
        kept = sum(flag for bit, flag in KEPT.items() if os.statvfs(target).f_flag & bit)
        mount(name, target, "", BIND | REMOUNT | RDONLY | kept | NOSUID | NODEV)


def add_room(path, size_mb, uid):
    """A writable folder that lives in memory."""
    os.makedirs(NEW + path, exist_ok=True)
    options = f"size={size_mb}m,nr_inodes=16k,mode=755,uid={uid},gid={uid}"
    mount("box", NEW + path, "tmpfs", NOSUID | NODEV, options)


def add_devices(uid):
    """The devices that programs take for granted, and a little shared memory."""
    os.mkdir(f"{NEW}/dev")
    for name in DEVICES:
        target = f"{NEW}/dev/{name}"
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o666))
        mount(f"/dev/{name}", target, "", BIND)
    os.symlink("/proc/self/fd", f"{NEW}/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{NEW}/dev/{name}")
    add_room("/dev/shm", SHM_MB, uid)


def add_proc():
    """The box's own processes, without what tells about the machine."""
    proc = f"{NEW}/proc"
    os.mkdir(proc)
    mount("proc", proc, "proc", NOSUID | NODEV | NOEXEC)
    for name in MASKED:
        if os.path.exists(f"{proc}/{name}"):
            mount(f"{NEW}/dev/null", f"{proc}/{name}", "", BIND)
    mount(f"{proc}/sys", f"{proc}/sys", "", BIND)
    mount("none", f"{proc}/sys", "", BIND | REMOUNT | RDONLY | NOSUID | NODEV | NOEXEC)


def mount(source, target, kind, flags, options=""):
    done = libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    call(f"mount {kind or source} on {target.removeprefix(NEW) or '/'}", done)


def call(what, result):
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
