"""Commands in a box: input, capped output, time limits, and one persistent Python namespace.

Standard library only; it never imports rsi.
"""

import os
import time

from box_frames import send
from box_processes import now_in_ticks

FLOOD_BYTES = 64 << 20
"""A command that prints more than this is stopped."""
DRAIN_S = 0.05
"""How long output is waited for after a command ended: a daemon may hold the pipe for ever."""
DRAIN_LIMIT_S = 1
OUT, ERR, RESULT = 1, 2, 3

CELLS = """
import os, sys, traceback
results, cells = os.fdopen(3, "w"), os.fdopen(os.dup(0), "rb")
os.set_inheritable(3, False)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
namespace = {"__name__": "__main__"}
while size := cells.readline():
    exit_code = 0
    try:
        exec(compile(cells.read(int(size)), "<cell>", "exec"), namespace)
    except SystemExit as stop:
        exit_code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        exit_code = 1
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        pass  # The cell has closed or replaced them.
    results.write(str(exit_code % 256) + "\\n")
    results.flush()
"""
"""The process that holds the persistent Python namespace: takes sized cells, says exit codes."""


class Command:
    """A process under way: what it is given, and what it says up to a cap."""

    def __init__(self, children, header, extra=()):
        pipes = {number: os.pipe() for number in (0, OUT, ERR, *extra)}
        theirs = {number: pair[number > 0] for number, pair in pipes.items()}
        ours = {number: pair[number == 0] for number, pair in pipes.items()}
        self.children, self.tick = children, now_in_ticks()
        try:
            self.pid = children.start(header, theirs)
        except OSError:
            for descriptor in ours.values():
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs.values():
                os.close(descriptor)
        self.input = ours.pop(0)
        os.set_blocking(self.input, False)
        self.sources = {descriptor: number for number, descriptor in ours.items()}
        self.open = set(self.sources)

    def begin(self, header, given, ends_input):
        """Gives it its input, and its time and output limits from now on."""
        self.begun = time.monotonic()
        self.deadline = self.begun + header["timeout"]
        self.cap, self.seen = header["limit"], 0
        self.kept = {number: bytearray() for number in self.sources.values()}
        self.given, self.ends_input = memoryview(given), ends_input
        self.feed()

    def code(self):
        return self.children.codes[self.pid]

    def is_flood(self):
        return self.seen > FLOOD_BYTES

    def watch(self, is_done):
        """Moves bytes until the work is done; False when it had to be cut short."""
        while not is_done():
            left_s = self.deadline - time.monotonic()
            if left_s <= 0 or self.is_flood():
                self.end()
                return False
            self.move(left_s)
        return True

    def move(self, limit_s):
        """Waits for bytes and moves them; whether there was any output."""
        wants = [self.input] if self.given else []
        ready, writable = self.children.listen(self.open, wants, limit_s)
        if writable:
            self.feed()
        for descriptor in ready:
            self.take(descriptor)
        return bool(ready)

    def take(self, descriptor):
        data, number = os.read(descriptor, 65536), self.sources[descriptor]
        if not data:
            self.open.discard(descriptor)
            return
        cap = 64 if number == RESULT else self.cap
        self.seen += 0 if number == RESULT else len(data)
        self.kept[number] += data[: max(0, cap - len(self.kept[number]))]

    def feed(self):
        try:
            if self.given:
                self.given = self.given[os.write(self.input, self.given) :]
        except BlockingIOError:
            return
        except OSError:
            self.given = b""  # The command ended or closed its input: nothing more to give.
        if not self.given and self.ends_input:
            os.close(self.input)
            self.input, self.ends_input = None, False

    def drain(self, patience_s):
        """Takes what is still in the pipes."""
        end = time.monotonic() + patience_s
        while self.open and not self.is_flood():
            left_s = end - time.monotonic()
            moved = self.move(max(0.0, left_s))
            if left_s <= 0 and (not moved or left_s < -DRAIN_LIMIT_S):
                return

    def end(self):
        self.children.end(self.pid, self.tick)

    def close(self):
        del self.children.codes[self.pid]
        for descriptor in (self.input, *self.sources):
            if descriptor is not None:
                os.close(descriptor)

    def answer(self, code, is_late, patience_s=DRAIN_S):
        self.drain(patience_s)
        out, err = self.kept[OUT], self.kept[ERR]
        send(
            {
                "ok": True,
                "exit_code": code,
                "is_timeout": is_late,
                "is_truncated": self.seen > len(out) + len(err),
                "stdout": len(out),
                "elapsed_s": time.monotonic() - self.begun,
            },
            (out, err),
        )


class Commands:
    """Runs commands one at a time."""

    def __init__(self, children):
        self.children = children
        self.python = None

    def run(self, header, payload):
        """Runs a command to its end or its limit."""
        try:
            command = Command(self.children, header)
        except OSError as error:
            refuse(header, error)
            return
        command.begin(header, payload, ends_input=True)
        is_whole = command.watch(lambda: command.code() is not None)
        is_late = not is_whole and not command.is_flood()
        command.answer(command.code() if is_whole else None, is_late)
        command.close()

    def cell(self, header, payload):
        """Runs code in the persistent namespace; a fresh one where the last has ended."""
        if self.python is None:
            argv = ["python3", "-I", "-u", "-c", CELLS]
            self.python = Command(self.children, {**header, "argv": argv}, extra=(RESULT,))
        python = self.python
        python.tick = now_in_ticks()
        python.begin(header, b"%d\n" % len(payload) + payload, ends_input=False)
        is_whole = python.watch(lambda: python.code() is not None or b"\n" in python.kept[RESULT])
        is_late = not is_whole and not python.is_flood()
        said = python.kept[RESULT].partition(b"\n")[0]
        ended = python.code()
        if is_whole and ended is None and said.isdigit():
            # It flushes before it says that it is done: nothing of the cell is on its way.
            python.answer(int(said), is_late, patience_s=0)
            return
        if ended is None:
            python.end()
        python.answer(ended if is_whole else None, is_late)
        python.close()
        self.python = None


def refuse(header, error):
    """Says, as a shell does, that a command can't be started."""
    what = header["argv"][0] if os.path.isdir(header["cwd"]) else header["cwd"]
    said = f"{what}: {error.strerror}\n".encode("utf-8", "replace")
    fixed = {"is_timeout": False, "is_truncated": False, "stdout": 0, "elapsed_s": 0.0}
    code = 126 if isinstance(error, PermissionError) else 127
    send({"ok": True, "exit_code": code, **fixed}, (said,))
