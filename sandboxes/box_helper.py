"""PID 1 of a box: takes requests over stdin, answers over stdout, and dies with its owner.

A frame is a 4-byte length, a JSON header of that length, then as many payload bytes as the
header's "payload" says. One request, one answer. End of input ends the box, and so does a timer.

It protects its own memory and descriptors from the agent (PR_SET_DUMPABLE), keeps the agent's
output within a cap, and can end every other process at once. It does not protect against a hole
in the kernel, against the agent filling its own folders, or against it lowering PID 1's limits,
which only ends the box. Standard library only; it never imports rsi.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import stat
import struct
import subprocess
import sys
import time

FLOOD_BYTES = 64 << 20
"""A command that prints more than this is killed."""
DRAIN_S = 0.05
"""How long output is waited for after a command ended: a daemon may hold the pipe for ever."""
MOST_FILES = 20_000
MOST_DEPTH = 64
PR_SET_DUMPABLE = 4

REPL = """
import contextlib, io, json, os, sys, traceback
results = os.fdopen(int(sys.argv[1]), "w")
namespace = {"__name__": "__main__"}
for line in os.fdopen(os.dup(0), "r"):
    exit_code = 0
    try:
        exec(compile(json.loads(line), "<cell>", "exec"), namespace)
    except SystemExit as stop:
        exit_code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        exit_code = 1
        traceback.print_exc()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    results.write(str(exit_code) + "\\n")
    results.flush()
"""


class Gone(Exception):
    """The owner has closed the connection."""


def read_exactly(count):
    data = sys.stdin.buffer.read(count)
    if len(data) != count:
        raise Gone
    return data


def receive():
    header = json.loads(read_exactly(struct.unpack(">I", read_exactly(4))[0]))
    return header, read_exactly(header.get("payload", 0))


def send(header, payload=b""):
    header["payload"] = len(payload)
    text = json.dumps(header).encode()
    out = sys.stdout.buffer
    out.write(struct.pack(">I", len(text)) + text + payload)
    out.flush()


class Capture:
    """What the pipes of a command say, up to a cap for each; the rest is only counted."""

    def __init__(self, pipes, cap):
        self.kept = {pipe: bytearray() for pipe in pipes}
        self.open = set(pipes)
        self.cap = cap
        self.seen = 0

    def take(self, pipe):
        data = os.read(pipe, 65536)
        if not data:
            self.open.discard(pipe)
            return
        self.seen += len(data)
        room = self.cap - len(self.kept[pipe])
        if room > 0:
            self.kept[pipe] += data[:room]

    @property
    def is_cut(self):
        return self.seen > sum(len(kept) for kept in self.kept.values())


def put(header, payload):
    place = 0
    for entry in header["files"]:
        path, size = entry["path"], entry["size"]
        if path.endswith("/"):
            os.makedirs(path, exist_ok=True)
            os.chmod(path, entry["mode"])
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        handle = os.open(path, flags, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(payload[place : place + size])
        os.chmod(path, entry["mode"])
        place += size
    send({"ok": True})


def run(header, payload):
    begun = time.monotonic()
    try:
        child = subprocess.Popen(
            header["argv"],
            stdin=subprocess.PIPE if payload else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=header["cwd"],
            env=header["env"],
            start_new_session=True,
        )
    except OSError as error:
        said = f"{header['argv'][0]}: {error.strerror}\n".encode()
        answer(127, Capture((), 0), None, None, begun, said)
        return
    prefer_for_oom(child.pid)
    pipes = (child.stdout.fileno(), child.stderr.fileno())
    capture = Capture(pipes, header["limit"])
    deadline = begun + header["timeout"]
    if payload:
        feed(child.stdin, payload)
    is_late = watch(child, capture, deadline)
    if is_late or capture.seen > FLOOD_BYTES:
        kill_group(child.pid)
    code = child.wait()
    drain(capture)
    child.stdout.close()
    child.stderr.close()
    reap()
    answer(None if is_late else code, capture, *pipes, begun, is_late=is_late)


def answer(code, capture, out, err, begun, said=b"", is_late=False):
    stdout = bytes(capture.kept.get(out, b""))
    stderr = bytes(capture.kept.get(err, b"")) or said
    send(
        {
            "ok": True,
            "exit_code": code,
            "is_timeout": is_late,
            "is_truncated": capture.is_cut,
            "stdout": len(stdout),
            "elapsed_s": time.monotonic() - begun,
        },
        stdout + stderr,
    )


def feed(pipe, payload):
    try:
        pipe.write(payload)
        pipe.close()
    except OSError:
        pass  # The command ended or closed its input: nothing more to give.


def watch(child, capture, deadline):
    """Takes output until the command ends or floods; True when its time was up."""
    while child.poll() is None and capture.seen <= FLOOD_BYTES:
        left = deadline - time.monotonic()
        if left <= 0:
            return True
        wait_s = min(left, 0.5 if capture.open else 0.01)
        ready = select.select([0, *capture.open], [], [], wait_s)[0]
        if 0 in ready:
            raise Gone  # Nothing is sent during a call, so this is the end of input.
        for pipe in ready:
            capture.take(pipe)
    return False


def drain(capture):
    end = time.monotonic() + DRAIN_S
    while capture.open and capture.seen <= FLOOD_BYTES:
        ready = select.select(list(capture.open), [], [], max(0, end - time.monotonic()))[0]
        if not ready:
            return
        for pipe in ready:
            capture.take(pipe)


class Python:
    """The box's one persistent Python namespace, in a process of its own."""

    def __init__(self):
        self.child = None

    def start(self, header):
        self.results, theirs = os.pipe()
        self.child = subprocess.Popen(
            [sys.executable, "-I", "-u", "-c", REPL, str(theirs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=header["cwd"],
            env=header["env"],
            start_new_session=True,
            pass_fds=(theirs,),
        )
        os.close(theirs)
        prefer_for_oom(self.child.pid)

    def cell(self, header, payload):
        begun = time.monotonic()
        if self.child is None or self.child.poll() is not None:
            self.start(header)
        out, err = self.child.stdout.fileno(), self.child.stderr.fileno()
        capture = Capture((out, err, self.results), header["limit"])
        feed_line(self.child.stdin, payload)
        code, is_late = self.outcome(capture, begun + header["timeout"])
        if code is None:
            kill_group(self.child.pid)
            self.child.wait()
        drain(capture)
        answer(code, capture, out, err, begun, is_late=is_late)

    def outcome(self, capture, deadline):
        while time.monotonic() < deadline and capture.seen <= FLOOD_BYTES:
            left = max(0, deadline - time.monotonic())
            ready = select.select([0, *capture.open], [], [], min(left, 0.5))[0]
            if 0 in ready:
                raise Gone
            for pipe in ready:
                capture.take(pipe)
            if bytes(capture.kept[self.results]).endswith(b"\n"):
                code = capture.kept[self.results].split()[0]
                capture.open.discard(self.results)
                capture.seen -= len(capture.kept.pop(self.results))
                return int(code), False
            if self.results not in capture.open:
                return None, False
        return None, True


def feed_line(pipe, payload):
    try:
        pipe.write(json.dumps(payload.decode()).encode() + b"\n")
        pipe.flush()
    except OSError:
        pass  # It died in between; its results pipe says so.


def get(header, _payload):
    entries, payload = [], bytearray()
    budget = {"bytes": header["limit"], "files": MOST_FILES}
    for path in header["paths"]:
        collect(path, 0, entries, payload, budget)
    if budget["bytes"] < 0 or budget["files"] < 0:
        send({"ok": False, "reason": "the files are larger or more than the limit"})
        return
    send({"ok": True, "files": entries}, bytes(payload))


def collect(path, depth, entries, payload, budget):
    """Regular files and folders alone; whatever can't be read is left out."""
    if depth > MOST_DEPTH or budget["bytes"] < 0 or budget["files"] < 0:
        return
    try:
        found = os.lstat(path)
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISDIR(found.st_mode):
            budget["files"] -= 1
            entries.append({"path": path.rstrip("/") + "/", "size": 0, "mode": mode})
            for name in sorted(os.listdir(path)):
                collect(os.path.join(path, name), depth + 1, entries, payload, budget)
        elif stat.S_ISREG(found.st_mode):
            content = read_file(path, budget["bytes"] + 1)
            path.encode()
            budget["bytes"] -= len(content)
            budget["files"] -= 1
            entries.append({"path": path, "size": len(content), "mode": mode})
            payload += content
    except (OSError, UnicodeEncodeError):
        return


def read_file(path, most):
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        return file.read(most)


def stop_all(_header, _payload):
    """Ends every process but this one; repeats until none is left."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            break
        reap()
        time.sleep(0.002)
    reap()
    send({"ok": True})


def reap():
    """Takes in the dead; PID 1 inherits every orphan."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def kill_group(pid):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def prefer_for_oom(pid):
    """When memory ends, the kernel takes the agent's process, not PID 1."""
    try:
        with open(f"/proc/{pid}/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass  # The process has ended already.


def life(header, _payload):
    signal.setitimer(signal.ITIMER_REAL, header["seconds"])
    send({"ok": True})


def main():
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGALRM, lambda *_: os._exit(3))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 3600)
    python = Python()
    calls = {
        "put": put,
        "run": run,
        "python": python.cell,
        "get": get,
        "stop_all": stop_all,
        "life": life,
    }
    send({"ok": True, "hello": os.getpid()})
    while True:
        header, payload = receive()
        try:
            calls[header["call"]](header, payload)
        except Gone:
            raise
        except OSError as error:
            send({"ok": False, "reason": f"{error.strerror}: {error.filename}"})


if __name__ == "__main__":
    try:
        main()
    except (Gone, BrokenPipeError):
        os._exit(0)
