"""The filter of system calls, run on calls as the kernel would run it."""

import importlib.util
import struct
import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.sandbox import SANDBOXES

ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def load() -> ModuleType:
    """The module as the launcher has it."""
    spec = importlib.util.spec_from_file_location("call_filter", SANDBOXES / "call_filter.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("call_filter", module)
    spec.loader.exec_module(module)
    return module


FILTER = load()


def verdict(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """What the filter says, by the rules of classic BPF."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, audit or AUDIT[machine], 0, *padded)
    lines, at, loaded = FILTER.program(machine), 0, 0
    while True:
        code, if_true, if_false, value = lines[at]
        at += 1
        if code == 0x06:
            return int(value)
        if code == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
            continue
        holds = {
            0x15: loaded == value,
            0x35: loaded >= value,
            0x45: bool(loaded & value),
        }[code]
        at += if_true if holds else if_false


@pytest.mark.parametrize("machine", AUDIT)
@pytest.mark.parametrize("name", ["mount", "unshare", "setns", "ptrace", "bpf", "keyctl", "shmget"])
def test_dangerous_calls_are_refused(machine: str, name: str) -> None:
    column = FILTER.MACHINES[machine][0]
    assert verdict(machine, FILTER.REFUSED[name][column]) == EPERM


@pytest.mark.parametrize("machine", AUDIT)
def test_processes_are_allowed_and_namespaces_are_not(machine: str) -> None:
    clone = FILTER.CLONE[FILTER.MACHINES[machine][0]]
    assert verdict(machine, clone, 0x11) == ALLOW
    assert verdict(machine, clone, 0x3D0F00) == ALLOW  # a thread
    assert verdict(machine, clone, 0x10000011) == EPERM  # a user namespace
    assert verdict(machine, clone, 0x00020011) == EPERM  # a mount namespace
    assert verdict(machine, 435) == ENOSYS


@pytest.mark.parametrize("machine", AUDIT)
def test_only_plain_sockets_are_made(machine: str) -> None:
    socket = FILTER.SOCKET[FILTER.MACHINES[machine][0]]
    allowed = [family for family in range(46) if verdict(machine, socket, family) == ALLOW]
    assert allowed == [1, 2, 10, 16]


@pytest.mark.parametrize("machine", AUDIT)
def test_limits_are_set_for_the_caller_alone(machine: str) -> None:
    column = FILTER.MACHINES[machine][0]
    assert verdict(machine, FILTER.PRLIMIT[column], 0) == ALLOW
    assert verdict(machine, FILTER.PRLIMIT[column], 1) == EPERM
    assert verdict(machine, FILTER.SETPRIORITY[column], 0, 0) == ALLOW
    assert verdict(machine, FILTER.SETPRIORITY[column], 0, 1) == EPERM


@pytest.mark.parametrize("machine", AUDIT)
@given(number=st.integers(0, 2**32 - 1), arguments=st.lists(st.integers(0, 2**64 - 1), max_size=6))
def test_every_call_gets_a_verdict(machine: str, number: int, arguments: list[int]) -> None:
    said = verdict(machine, number, *arguments)
    assert said in (ALLOW, EPERM, ENOSYS)
    if number >= 0x40000000:
        assert said == EPERM


def test_calls_of_another_machine_are_refused() -> None:
    assert verdict("x86_64", 1, audit=0x40000003) == EPERM
    with pytest.raises(OSError, match="no filter"):
        FILTER.program("riscv64")
