"""Where control groups of boxes can be made, as a process's own files tell it."""

import os
from pathlib import Path

from tests.edges.test_box_cgroup import CGROUP, told


def places(process: Path) -> list[tuple[int, str, tuple[str, ...]]]:
    return [tuple(one) for one in CGROUP.find_places(CGROUP.find_mounts(process), process)]


def test_places_of_version_1_lie_below_the_own_group(tmp_path: Path) -> None:
    process = told(
        tmp_path,
        "30 1 0:28 / / rw - ext4 /dev/vda rw\n"
        "33 31 0:30 / /groups/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "35 31 0:32 /docker/ab /with\\040room rw,nosuid - cgroup cgroup rw,memory\n"
        "36 31 0:33 / /groups/freezer rw - cgroup cgroup rw,freezer\n",
        "9:freezer:/\n4:memory:/docker/ab/deep\n1:cpu,cpuacct:/\n0::/x\n",
    )
    assert places(process) == [
        (1, "/groups/cpu,cpuacct", ("cpu",)),
        (1, "/with room/deep", ("memory",)),
    ]


def test_a_group_outside_of_what_is_mounted_is_no_place(tmp_path: Path) -> None:
    mount = "35 31 0:32 /docker/ab /memory rw - cgroup cgroup rw,memory\n"
    assert places(told(tmp_path, mount, "4:memory:/docker/other\n")) == []
    assert places(told(tmp_path, mount, "4:memory:/../outside\n")) == []
    assert places(told(tmp_path, mount, "1:cpu:/\n")) == []


def test_the_place_of_version_2_is_the_nearest_that_gives_all_controllers(tmp_path: Path) -> None:
    top = tmp_path / "top"
    for name, given in (("", "cpu memory pids io"), ("a", "memory pids cpu"), ("a/b", "memory")):
        (top / name).mkdir(exist_ok=True)
        (top / name / "cgroup.subtree_control").write_text(given + "\n")
    (top / "a/b/own").mkdir()
    (top / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    process = told(
        tmp_path / "process", f"31 1 0:28 / {top} rw - cgroup2 cgroup2 rw\n", "0::/a/b/own\n"
    )
    assert places(process) == [(2, f"{top}/a", ("memory", "pids", "cpu"))]


def test_each_controller_is_used_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("      pids\n")
    process = told(
        tmp_path,
        "35 31 0:32 / /memory rw - cgroup cgroup rw,memory\n"
        f"31 1 0:28 / {tmp_path} rw - cgroup2 cgroup2 rw\n",
        "4:memory:/\n0::/\n",
    )
    assert places(process) == [(1, "/memory", ("memory",)), (2, str(tmp_path), ("pids",))]


def test_only_the_groups_of_dead_launchers_are_left_behind(tmp_path: Path) -> None:
    here, me = CGROUP.pid_namespace(), os.getpid()
    start = CGROUP.started(me)
    assert not CGROUP.is_dead(f"rsi-{here}-{me}-{start}-1")
    assert CGROUP.is_dead(f"rsi-{here}-{me}-{start + 1}-1")
    assert not CGROUP.is_dead(f"rsi-{here + 1}-{me}-{start + 1}-1")
    assert CGROUP.NAME.fullmatch(CGROUP.Groups(tmp_path).new_name())
