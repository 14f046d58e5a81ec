"""An interrupt ends a command within seconds, even when its threads wait for something."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows.stopping import INTERRUPTED

WORK = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from flows.stopping import ended_by_signals

def last() -> None:
    print("swept", flush=True)

try:
    with ended_by_signals(last, grace_s=float(sys.argv[1])):
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(time.sleep, float(sys.argv[2]))
            print("at work", flush=True)
            waiting.result()
except KeyboardInterrupt:
    print("unwound", flush=True)
    sys.exit(130)
"""


def _started(grace_s: float, busy_s: float) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", WORK, str(grace_s), str(busy_s)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent.parent,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    return process


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_work_that_ends_in_time_is_unwound(sign: signal.Signals) -> None:
    process = _started(grace_s=20, busy_s=1)
    process.send_signal(sign)
    said, _ = process.communicate(timeout=15)
    assert (said, process.returncode) == ("unwound\n", INTERRUPTED)


def test_work_that_does_not_end_is_left_after_the_grace() -> None:
    process = _started(grace_s=0.5, busy_s=60)
    begun_s = time.monotonic()
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=15)
    assert (said, process.returncode) == ("swept\n", INTERRUPTED)
    assert time.monotonic() - begun_s < 5


def test_a_second_interrupt_ends_it_at_once() -> None:
    process = _started(grace_s=60, busy_s=60)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    said, _ = process.communicate(timeout=15)
    assert (said, process.returncode) == ("swept\n", INTERRUPTED)
