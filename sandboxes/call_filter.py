"""A seccomp filter for boxes of namespaces: what no shell task needs and exploits begin with.

It refuses the calls below, new namespaces, and sockets other than the plain ones. The numbers are
the kernel's own (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h).
Standard library only; it never imports rsi.
"""

import ctypes
import errno
import os
import platform
import struct

NEW_NAMESPACES = 0x7E020000
"""The flags of clone that make namespaces."""
FAMILIES = (1, 2, 10, 16)
"""UNIX, INET, INET6, NETLINK."""
ALLOW, REFUSE, ABSENT = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER_AT, MACHINE_AT, FIRST_AT, SECOND_AT = 0, 4, 16, 24
X32_BIT = 0x40000000
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The column below, and the audit number."""
CLONE, CLONE3 = (56, 220), (435, 435)
SOCKET, SOCKETPAIR = (41, 198), (53, 199)
PRLIMIT, SETPRIORITY = (302, 261), (141, 140)
REFUSED = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mbind": (237, 235),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sched_setattr": (314, 274),
    "sched_setscheduler": (144, 119),
    "semget": (64, 190),
    "set_mempolicy": (238, 237),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "shmget": (29, 194),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "uselib": (134, None),
    "vhangup": (153, 58),
}


def filter_calls():
    """Puts the filter on this process and all that come of it. Raises OSError."""
    code = b"".join(struct.pack("HBBI", *line) for line in program(platform.machine()))
    buffer = ctypes.create_string_buffer(code)
    head = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "seccomp")


def program(machine):
    """The filter's lines for the machine: (code, jump if true, jump if false, value)."""
    if machine not in MACHINES:
        raise OSError(errno.ENOSYS, f"no filter of system calls is known for {machine}")
    column, audit = MACHINES[machine]
    lines = [(LOAD, 0, 0, MACHINE_AT), (EQUAL, 1, 0, audit), (RETURN, 0, 0, REFUSE)]
    lines += [(LOAD, 0, 0, NUMBER_AT), (AT_LEAST, 0, 1, X32_BIT), (RETURN, 0, 0, REFUSE)]
    lines += on_call(CLONE3[column], [(RETURN, 0, 0, ABSENT)])
    for number in sorted(numbers[column] for numbers in REFUSED.values() if numbers[column]):
        lines += on_call(number, [(RETURN, 0, 0, REFUSE)])
    lines += on_call(CLONE[column], [(LOAD, 0, 0, FIRST_AT), *unless(ANY_BIT, NEW_NAMESPACES)])
    for number in (SOCKET[column], SOCKETPAIR[column]):
        lines += on_call(number, only(FIRST_AT, FAMILIES))
    # Limits and priorities of itself alone: another's could be PID 1's.
    lines += on_call(PRLIMIT[column], only(FIRST_AT, (0,)))
    lines += on_call(SETPRIORITY[column], only(SECOND_AT, (0,)))
    return [*lines, (RETURN, 0, 0, ALLOW)]


def on_call(number, body):
    """The body, run when the call has the number."""
    return [(EQUAL, 0, len(body), number), *body]


def unless(test, value):
    """Refuses when what was loaded passes the test; allows otherwise."""
    return [(test, 0, 1, value), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]


def only(place, values):
    """Allows the call when the argument at the place is one of the values."""
    tests = [(EQUAL, len(values) - done, 0, value) for done, value in enumerate(values)]
    return [(LOAD, 0, 0, place), *tests, (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
