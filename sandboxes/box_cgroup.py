"""Limits on what all processes of a box use together: memory, number, share of the processor.

They are control groups of either version (Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst of
the kernel), made below the group of the launcher itself, so that what limits the launcher limits
its boxes too. Only what can be made is used: that a limit holds is for the caller to find out by
trying. A group has its owner's name, for the groups of a killed launcher to be found by the next.

It mounts nothing, and moves nobody but a box's PID 1. Standard library only; it never imports rsi.
"""

import contextlib
import errno
import os
import re
from collections import namedtuple

from box_processes import started

CONTROLLERS = ("memory", "pids", "cpu")
PERIOD_US = 100_000
"""Of the processor's limit; the kernel's and Docker's default."""
LEAST_QUOTA_US = 1_000
"""The kernel takes no less."""
SWAP = ("memory.memsw.limit_in_bytes", "memory.swap.max")
"""Absent where the kernel doesn't count swap."""
TRIAL = {"memory_mb": 64, "pids": 8, "cpus": 0.5}
NAME = re.compile(r"rsi-(\d+)-(\d+)-(\d+)-\d+")
"""Pid namespace, id and start of the launcher, and the number of its box."""

Mount = namedtuple("Mount", "version controllers root folder")
Place = namedtuple("Place", "version folder controllers")
"""A group below which boxes get theirs, and the controllers that limit them there."""


class Groups:
    """Makes the groups of a launcher's boxes; `places` is empty where none can be made."""

    def __init__(self, process="/proc/self"):
        """`process` is the folder that tells the mounts and the groups of this process."""
        self.owner = f"rsi-{pid_namespace()}-{os.getpid()}-{started(os.getpid())}"
        self.count = 0
        self.mounts = find_mounts(process)
        tried = [self.attempt(place) for place in find_places(self.mounts, process)]
        self.places = [place for place in tried if place.controllers]

    def make(self, request):
        """An empty group with the limits of the request. Raises OSError."""
        group = Group(self.new_name(), self.places)
        try:
            for place, folder in zip(self.places, group.folders, strict=True):
                os.mkdir(folder, 0o755)
                for controller in place.controllers:
                    set_limit(place.version, folder, controller, request)
        except OSError:
            group.remove()
            raise
        return group

    def attempt(self, place):
        """The place with those controllers alone that let a limit be set."""
        folder, able = f"{place.folder}/{self.new_name()}", []
        try:
            os.mkdir(folder, 0o755)
        except OSError:
            return place._replace(controllers=())
        for controller in place.controllers:
            with contextlib.suppress(OSError):
                set_limit(place.version, folder, controller, TRIAL)
                able.append(controller)
        os.rmdir(folder)
        return place._replace(controllers=tuple(able))

    def left_behind(self):
        """The groups of launchers that are dead; those of the living are theirs."""
        found = []
        for mount in self.mounts if self.places else ():
            for folder, names, _ in os.walk(mount.folder):
                ours = [name for name in names if NAME.fullmatch(name)]
                found += [Group(name, [Place(0, folder, ())]) for name in ours if is_dead(name)]
                names[:] = set(names).difference(ours)
        return found

    def new_name(self):
        self.count += 1
        return f"{self.owner}-{self.count}"


class Group:
    """The control groups of one box: a folder of the same name at each place."""

    def __init__(self, name, places):
        self.folders = [f"{place.folder}/{name}" for place in places]
        # Of version 1 a thread may move itself without the lock that all forks wait for.
        self.doors = ["tasks" if place.version == 1 else "cgroup.procs" for place in places]
        self.controllers = {one for place in places for one in place.controllers}
        self.opened = []

    def open(self):
        """Gets ready to enter; the rights to it are looked at now. Raises OSError."""
        for folder, door in zip(self.folders, self.doors, strict=True):
            self.opened.append(os.open(f"{folder}/{door}", os.O_WRONLY | os.O_CLOEXEC))

    def enter(self):
        """Moves this process, of one thread, into the group. Raises OSError."""
        for descriptor in self.opened:
            os.write(descriptor, b"0")
        self.close()

    def close(self):
        """Keeps what was opened from those that come after."""
        while self.opened:
            os.close(self.opened.pop())

    def stops(self):
        """How often the kernel has stopped the group for having used its share of the processor."""
        for folder in self.folders:
            words = read_words(f"{folder}/cpu.stat")
            if "nr_throttled" in words:
                return int(words[words.index("nr_throttled") + 1])
        return 0

    def remove(self):
        """Whether the group is gone now; one that still has processes stays."""
        left = []
        for folder in self.folders:
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                left.append(folder)
        self.folders = left
        return not left


def set_limit(version, folder, controller, request):
    """Writes the limit of one kind. Raises OSError."""
    for name, value in limits(version, controller, request):
        try:
            write(f"{folder}/{name}", value)
        except OSError as error:
            # Of version 1 no quota may be above the parent's, which holds for the box anyway.
            is_above = name == "cpu.cfs_quota_us" and error.errno == errno.EINVAL
            if not is_above and not (name in SWAP and error.errno == errno.ENOENT):
                raise


def limits(version, controller, request):
    """The files of a group that set a limit, in the order of writing, each with its value."""
    memory = request["memory_mb"] << 20
    quota = max(LEAST_QUOTA_US, int(request["cpus"] * PERIOD_US))
    return {
        (1, "memory"): (("memory.limit_in_bytes", memory), (SWAP[0], memory)),
        (1, "pids"): (("pids.max", request["pids"]),),
        (1, "cpu"): (("cpu.cfs_period_us", PERIOD_US), ("cpu.cfs_quota_us", quota)),
        (2, "memory"): (("memory.max", memory), (SWAP[1], 0)),
        (2, "pids"): (("pids.max", request["pids"]),),
        (2, "cpu"): (("cpu.max", f"{quota} {PERIOD_US}"),),
    }[version, controller]


def find_mounts(process):
    """The mounted hierarchies (proc_pid_mountinfo(5)); none where they can't be told."""
    found = []
    for line in read_lines(f"{process}/mountinfo"):
        mount, _, kind = line.partition(" - ")
        fields, (name, _, options) = mount.split(), [*kind.split(), "", "", ""][:3]
        if name not in ("cgroup", "cgroup2"):
            continue
        root, folder = (re.sub(r"\\(\d{3})", unescape, field) for field in fields[3:5])
        if name == "cgroup":
            controllers = [one for one in CONTROLLERS if one in options.split(",")]
            found.append(Mount(1, controllers, root, folder))
        else:
            controllers = read_words(f"{folder}/cgroup.controllers")
            found.append(Mount(2, [one for one in CONTROLLERS if one in controllers], root, folder))
    return found


def find_places(mounts, process):
    """Where groups could be made: each controller once."""
    own = {}
    for line in read_lines(f"{process}/cgroup"):
        _, names, path = line.split(":", 2)
        own.update(dict.fromkeys(names.split(","), path))
    places, seen = [], set()
    for mount in mounts:
        fresh = [one for one in mount.controllers if one not in seen]
        path = own.get(fresh[0] if fresh and mount.version == 1 else "", "")
        if not fresh or os.path.commonpath([path or "/..", mount.root]) != mount.root:
            continue
        folder = os.path.normpath(f"{mount.folder}/{os.path.relpath(path, mount.root)}")
        if mount.version == 1:
            places.append(Place(1, folder, tuple(fresh)))
        else:
            places.append(nearest(folder, mount.folder, fresh))
        seen.update(places[-1].controllers)
    return places


def nearest(folder, top, wanted):
    """Of version 2: the group from the folder up that gives its children the most controllers.

    They are switched on in the folder itself only: the groups above are somebody else's.
    """
    with contextlib.suppress(OSError):  # Refused where processes are in it, unless it's the root.
        write(f"{folder}/cgroup.subtree_control", " ".join(f"+{one}" for one in wanted))
    chain = [folder]
    while chain[-1] != top and chain[-1] != "/":
        chain.append(os.path.dirname(chain[-1]))
    given = [
        Place(2, one, tuple(c for c in wanted if c in read_words(f"{one}/cgroup.subtree_control")))
        for one in chain
    ]
    return max(given, key=lambda place: len(place.controllers))


def is_dead(name):
    """Whether the launcher that made the group is known to be gone."""
    namespace, pid, tick = (int(word) for word in NAME.fullmatch(name).groups())
    return namespace == pid_namespace() and started(pid) != tick


def pid_namespace():
    return os.stat("/proc/self/ns/pid").st_ino


def unescape(match):
    return chr(int(match[1], 8))


def write(path, value):
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(value).encode())
    finally:
        os.close(descriptor)


def read_lines(path):
    """The lines of a file; none when it can't be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().splitlines()
    except OSError:
        return []


def read_words(path):
    return " ".join(read_lines(path)).split()
