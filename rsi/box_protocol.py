"""A box spoken to over one byte stream; the helper in `sandboxes/` is the other end.

A frame is a 4-byte length, a JSON header of that length, then the header's `payload` bytes.
One request is answered before the next is sent.
"""

import json
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rsi.box_proxy import Proxy, environment
from rsi.domain.trial import BoxFacts
from rsi.errors import TrialFault
from rsi.ports import BoxFile, BoxSpec, Ran

ANSWER_SLACK_S = 15.0
"""How much longer than a command's own limit an answer may take, on a busy machine."""
MOST_ANSWER_BYTES = 1 << 28
ENVIRONMENT = {
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TMPDIR": "/tmp",
}
"""What a command sees; nothing of the host's environment ever enters a box."""

HELPER_PARTS = (
    "box_frames",
    "box_files",
    "box_network",
    "box_processes",
    "box_commands",
    "box_helper",
)
"""The helper's modules, each after those that it imports."""
BOOTSTRAP = (
    "import sys;n=int(sys.stdin.buffer.readline());"
    "exec(compile(sys.stdin.buffer.read(n),'box','exec'))"
)
"""Python that reads the helper's source from its input, so that no file has to be in the image."""


def helper_source(sandboxes: Path) -> bytes:
    """The helper as one Python program, for `BOOTSTRAP` to run."""
    lines = ["import sys"]
    for name in HELPER_PARTS:
        text = (sandboxes / f"{name}.py").read_text(encoding="utf-8")
        lines.append(f"sys.modules[{name!r}] = part = type(sys)({name!r})")
        lines.append(f"exec(compile({text!r}, {name!r}, 'exec'), part.__dict__)")
    return "\n".join([*lines, "part.serve()"]).encode()


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
        self._broken = ""
        self._sending = threading.Lock()
        self._proxy: Proxy | None = None
        self._environment = ENVIRONMENT

    @property
    def facts(self) -> BoxFacts:
        return self._facts

    def greet(self, helper: bytes, limit_s: float) -> None:
        """Sends the helper's source, where it isn't there yet, and waits for its first word."""
        with self._faults("start"):
            if helper:
                self._stream.send(b"%d\n" % len(helper) + helper)
            answer = self._receive(limit_s)
        _check_ok("start", answer)

    def open_network(self, hosts: tuple[str, ...]) -> None:
        """Gives the box a proxy that reaches the named hosts, and nothing else."""
        if hosts:
            self._call({"call": "network"})
            self._proxy = Proxy(hosts, self._send)
            self._environment = {**ENVIRONMENT, **environment()}

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
            "env": {
                **self._environment,
                **{_bare(name): _bare(text) for name, text in env.items()},
            },
            "cwd": _bare(cwd or self._workdir),
        }
        return self._ran(request, stdin, timeout_s)

    def python(self, code: str, *, timeout_s: float, output_limit_bytes: int = 65536) -> Ran:
        request = {
            "call": "python",
            "timeout": timeout_s,
            "limit": output_limit_bytes,
            "env": self._environment,
            "cwd": self._workdir,
        }
        return self._ran(request, code.encode("utf-8", "replace"), timeout_s)

    def _ran(self, request: dict[str, Any], payload: bytes, timeout_s: float) -> Ran:
        answer = self._call(request, payload, timeout_s)
        with self._faults(request["call"]):
            return _ran(answer)

    def stop_all(self) -> None:
        self._call({"call": "stop_all"})

    def get(self, paths: Sequence[str], *, limit_bytes: int = 1 << 24) -> tuple[BoxFile, ...]:
        answer = self._call({"call": "get", "paths": list(paths), "limit": limit_bytes})
        with self._faults("get"):
            return _files(answer, paths)

    def close(self) -> None:
        """Ends the connection, and with it the box."""
        self.close_network()
        self._stream.close()

    def close_network(self) -> None:
        """Ends the connections of the box's programs."""
        if self._proxy is not None:
            self._proxy.close()

    def _call(self, header: dict[str, Any], payload: bytes = b"", limit_s: float = 0.0) -> _Answer:
        if self._broken:
            raise TrialFault("sandbox", f"the box ended earlier ({self._broken})")
        with self._faults(header["call"]):
            self._send(header, payload)
            answer = self._answer(limit_s + ANSWER_SLACK_S)
        _check_ok(header["call"], answer)
        return answer

    @contextmanager
    def _faults(self, call: str) -> Iterator[None]:
        """Turns a broken conversation into a TrialFault; the box isn't spoken to again."""
        try:
            yield
        except (EOFError, ConnectionError) as error:
            self._broken = f"the box ended during {call}"
            raise TrialFault("sandbox", f"{self._broken} {error}".strip()) from error
        except (
            OSError,
            ValueError,
            LookupError,
            TypeError,
            OverflowError,
            RecursionError,
        ) as error:
            self._broken = f"{call}: {error!r}"
            raise TrialFault("sandbox", self._broken) from error

    def _send(self, header: dict[str, Any], payload: bytes = b"") -> None:
        text = json.dumps({**header, "payload": len(payload)}).encode()
        with self._sending:
            self._stream.send(struct.pack(">I", len(text)) + text + payload)

    def _answer(self, limit_s: float) -> _Answer:
        """The answer to a call; what the box's connections say meanwhile goes to the proxy."""
        deadline = time.monotonic() + limit_s
        while True:
            answer = self._receive(max(0.01, deadline - time.monotonic()))
            if "net" not in answer.header:
                return answer
            if self._proxy is None:
                raise ValueError("it speaks of a network that it hasn't got")
            self._proxy.take(int(answer.header["net"]), str(answer.header["is"]), answer.payload)

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
    header, cut = answer.header, int(answer.header["stdout"])
    return Ran(
        exit_code=None if header["exit_code"] is None else int(header["exit_code"]),
        stdout=answer.payload[:cut],
        stderr=answer.payload[cut:],
        is_timeout=bool(header["is_timeout"]),
        is_truncated=bool(header["is_truncated"]),
        elapsed_s=float(header["elapsed_s"]),
    )


def _files(answer: _Answer, asked: Sequence[str]) -> tuple[BoxFile, ...]:
    files, place = [], 0
    for entry in answer.header["files"]:
        path, size = str(entry["path"]), int(entry["size"])
        content = answer.payload[place : place + size]
        if size < 0 or len(content) != size:
            raise ValueError(f"{path[:80]!r} is cut off")
        files.append(BoxFile(_inside(path, asked), content, int(entry["mode"]) & 0o777))
        place += size
    return tuple(files)


def _inside(path: str, asked: Sequence[str]) -> str:
    """The path, if it lies where it was asked for: the box's word alone isn't trusted."""
    parts = path.split("/")
    roots = [root.rstrip("/") for root in asked]
    if ".." not in parts and any(path == r or path.startswith(r + "/") for r in roots):
        return path
    raise TrialFault("sandbox", f"the box gave a file at {path[:80]!r}, where none was asked for")


def _check_ok(call: str, answer: _Answer) -> None:
    if not answer.header.get("ok"):
        raise TrialFault("sandbox", f"{call}: {answer.header.get('reason')}")


def _checked(length: int) -> int:
    if not 0 <= length <= MOST_ANSWER_BYTES:
        raise ValueError(f"a frame of {length} bytes")
    return length
