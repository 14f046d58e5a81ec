"""The process that makes boxes, and the streams to the boxes that it made."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from rsi.errors import SandboxError, TrialFault

GREET_LIMIT_S = 30
END_LIMIT_S = 2
SEND_LIMIT_S = 60
NO_HOLDER = 0xFFFFFFFF


class Launcher:
    """The process that makes boxes: started at the first one, and again should it die."""

    def __init__(self, program: Path, process: Path) -> None:
        self._program, self._process_files = program, process
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._closed = False

    def launch(self, request: dict[str, object], stream: socket.socket) -> int:
        """The process that holds a new box, whose helper speaks over the stream."""
        with self._lock:
            if self._closed:
                raise SandboxError("this sandbox is closed; open another one")
            holder = self._ask(request, [stream.fileno()])
            if holder in (0, NO_HOLDER):
                self._stop()
                raise TrialFault("sandbox", "the namespace launcher could not make a process")
            return holder

    def stops(self, holder: int) -> int:
        """How often the kernel has stopped a box for having used its share of the processor."""
        with self._lock:
            return self._ask({"stops": holder}, [])

    def _ask(self, request: dict[str, object], descriptors: list[int]) -> int:
        """The launcher's answer, a number. Raises SandboxError."""
        try:
            channel = self._open()
            channel.settimeout(GREET_LIMIT_S)
            socket.send_fds(channel, [json.dumps(request).encode()], descriptors)
            return int.from_bytes(channel.recv(4), "big")
        except OSError as error:
            self._stop()
            raise SandboxError(
                f"the namespace launcher {self._program} can't be used: {error}"
            ) from error

    def end(self, holder: int) -> None:
        """Kills a box whose end of the stream didn't end it."""
        with self._lock:
            if self._channel is not None:
                with contextlib.suppress(OSError):
                    self._channel.sendall(json.dumps({"end": holder}).encode())

    def close(self) -> None:
        """Ends the launcher, and with it every box."""
        with self._lock:
            self._closed = True
            self._stop()

    def _open(self) -> socket.socket:
        if self._channel is not None and self._process is not None and self._process.poll() is None:
            return self._channel
        self._stop()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", str(self._program), str(self._process_files)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
                start_new_session=True,
                cwd="/",
            )
        return self._channel

    def _stop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            try:
                self._process.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(END_LIMIT_S)
            self._process = None


class SocketStream:
    """The two-way stream of a launched box."""

    def __init__(self, launcher: Launcher, request: dict[str, object]) -> None:
        self._launcher = launcher
        self._channel, theirs = socket.socketpair()
        try:
            with theirs:
                self._holder = launcher.launch(request, theirs)
        except BaseException:
            self._channel.close()
            raise

    def send(self, data: bytes) -> None:
        self._channel.settimeout(SEND_LIMIT_S)
        self._channel.sendall(data)

    def receive(self, count: int, limit_s: float) -> bytes:
        deadline = time.monotonic() + limit_s
        data = bytearray()
        while len(data) < count:
            self._channel.settimeout(max(0.001, deadline - time.monotonic()))
            chunk = self._channel.recv(min(1 << 20, count - len(data)))
            if not chunk:
                raise EOFError
            data += chunk
        return bytes(data)

    def stops(self) -> int:
        """How often the kernel has stopped the box for having used its share of the processor."""
        return self._launcher.stops(self._holder)

    def close(self) -> None:
        """The end of input ends the helper, and with it every process of the box."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)
        if not self._has_ended():
            self._launcher.end(self._holder)
        self._channel.close()

    def _has_ended(self) -> bool:
        """Whether the other side closes the stream within the limit."""
        deadline = time.monotonic() + END_LIMIT_S
        while (left_s := deadline - time.monotonic()) > 0:
            self._channel.settimeout(left_s)
            try:
                if not self._channel.recv(1 << 16):
                    return True
            except TimeoutError:
                return False
            except OSError:
                return True
        return False
