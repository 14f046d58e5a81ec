"""A box spoken to over one byte stream; `sandboxes/box_helper.py` is the other end.

A frame is a 4-byte length, a JSON header of that length, then the header's `payload` bytes.
One request is answered before the next is sent.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rsi.domain.trial import BoxFacts
from rsi.errors import TrialFault
from rsi.ports import BoxFile, BoxSpec, Ran

ANSWER_SLACK_S = 15.0
"""How much longer than a command's own limit an answer may take, on a busy machine."""
MOST_ANSWER_BYTES = 1 << 28
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TMPDIR": "/tmp",
}
"""What a command sees; nothing of the host's environment ever enters a box."""

BOOTSTRAP = (
    "import sys;n=int(sys.stdin.buffer.readline());"
    "exec(compile(sys.stdin.buffer.read(n),'box_helper','exec'))"
)
"""Python that reads the helper's source from its input, so that no file has to be in the image."""

FORK_PROBE = """
import os, time
made = 0
try:
    for _ in range(64):
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made)
"""
"""Prints how many of 64 processes a box lets one make."""
MEMORY_PROBE = """
import os, time
for _ in range(5):
    if os.fork() == 0:
        held = bytearray(b"x") * (90 << 20)
        time.sleep(1)
        os._exit(0)
alive = sum(os.wait()[1] == 0 for _ in range(5))
print("held" if alive == 5 else "limited")
"""
"""Prints `held` when five processes may hold 450 MB together."""


class Stream(Protocol):
    """Two-way bytes with a deadline; every failure is an OSError or TimeoutError."""

    def send(self, data: bytes) -> None: ...

    def receive(self, count: int, limit_s: float) -> bytes:
        """Exactly so many bytes; EOFError at the end of the stream."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Answer:
    header: dict[str, Any]
    payload: bytes


class HelperBox:
    """Keeps the `Box` port over a stream to a box helper."""

    def __init__(self, stream: Stream, facts: BoxFacts, workdir: str) -> None:
        self._stream, self._facts, self._workdir = stream, facts, workdir

    @property
    def facts(self) -> BoxFacts:
        return self._facts

    def greet(self, helper: bytes, limit_s: float) -> None:
        """Sends the helper's source and waits for its first word."""
        try:
            self._stream.send(b"%d\n" % len(helper) + helper)
            self._receive(limit_s)
        except (OSError, EOFError, ValueError, struct.error) as error:
            raise TrialFault("sandbox", f"the box didn't start: {error!r}") from error

    def live(self, seconds: float) -> None:
        """Ends the box by itself after so long."""
        self._call({"call": "life", "seconds": seconds})

    def put(self, files: Sequence[BoxFile]) -> None:
        entries = [
            {"path": file.path, "size": len(file.content), "mode": file.mode} for file in files
        ]
        payload = b"".join(file.content for file in files)
        self._call({"call": "put", "files": entries}, payload)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        output_limit_bytes: int = 65536,
        stdin: bytes = b"",
        env: Mapping[str, str] = {},
        cwd: str | None = None,
    ) -> Ran:
        request = {
            "call": "run",
            "argv": [_bare(word) for word in argv],
            "timeout": timeout_s,
            "limit": output_limit_bytes,
            "env": {**ENVIRONMENT, **env},
            "cwd": cwd or self._workdir,
        }
        return _ran(self._call(request, stdin, timeout_s))

    def python(self, code: str, *, timeout_s: float, output_limit_bytes: int = 65536) -> Ran:
        request = {
            "call": "python",
            "timeout": timeout_s,
            "limit": output_limit_bytes,
            "env": ENVIRONMENT,
            "cwd": self._workdir,
        }
        return _ran(self._call(request, code.encode("utf-8", "replace"), timeout_s))

    def stop_all(self) -> None:
        self._call({"call": "stop_all"})

    def get(self, paths: Sequence[str], *, limit_bytes: int = 1 << 24) -> tuple[BoxFile, ...]:
        answer = self._call({"call": "get", "paths": list(paths), "limit": limit_bytes})
        files, place = [], 0
        for entry in answer.header["files"]:
            content = answer.payload[place : place + entry["size"]]
            files.append(BoxFile(_inside(entry["path"], paths), content, entry["mode"] & 0o777))
            place += entry["size"]
        return tuple(files)

    def close(self) -> None:
        """Ends the connection, and with it the box."""
        self._stream.close()

    def _call(self, header: dict[str, Any], payload: bytes = b"", limit_s: float = 0.0) -> _Answer:
        try:
            text = json.dumps({**header, "payload": len(payload)}).encode()
            self._stream.send(struct.pack(">I", len(text)) + text + payload)
            answer = self._receive(limit_s + ANSWER_SLACK_S)
        except EOFError as error:
            raise TrialFault("sandbox", f"the box ended during {header['call']}") from error
        except (OSError, ValueError, struct.error) as error:
            raise TrialFault("sandbox", f"{header['call']}: {error!r}") from error
        if not answer.header.get("ok"):
            raise TrialFault("sandbox", f"{header['call']}: {answer.header.get('reason')}")
        return answer

    def _receive(self, limit_s: float) -> _Answer:
        (length,) = struct.unpack(">I", self._stream.receive(4, limit_s))
        header = json.loads(self._stream.receive(_checked(length), limit_s))
        payload = self._stream.receive(_checked(int(header["payload"])), limit_s)
        return _Answer(header, payload)


def folders(spec: BoxSpec) -> dict[str, int]:
    """The writable folders of a box, each with its size in MB; all else is read-only."""
    return {spec.workdir: spec.disk_mb, "/tmp": 16, "/logs": 4, "/tests": 16, "/solution": 4}


def _bare(word: str) -> str:
    """A word as a command line can hold it: C strings end at NUL."""
    return word.replace("\x00", "").encode("utf-8", "replace").decode()


def _ran(answer: _Answer) -> Ran:
    header = answer.header
    cut = int(header["stdout"])
    return Ran(
        exit_code=header["exit_code"],
        stdout=answer.payload[:cut],
        stderr=answer.payload[cut:],
        is_timeout=bool(header["is_timeout"]),
        is_truncated=bool(header["is_truncated"]),
        elapsed_s=float(header["elapsed_s"]),
    )


def _inside(path: str, asked: Sequence[str]) -> str:
    """The path, if it lies where it was asked for: the box's word alone isn't trusted."""
    parts = path.split("/")
    roots = [root.rstrip("/") for root in asked]
    if ".." not in parts and any(path == r or path.startswith(r + "/") for r in roots):
        return path
    raise TrialFault("sandbox", f"the box gave a file at {path[:80]!r}, where none was asked for")


def _checked(length: int) -> int:
    if not 0 <= length <= MOST_ANSWER_BYTES:
        raise ValueError(f"a frame of {length} bytes")
    return length
