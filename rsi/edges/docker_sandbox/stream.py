"""The attach stream of a container.

Raw HTTP on the engine's socket: the Docker SDK's own attach can lose bytes that its HTTP library
has buffered (docker-py issue 2466) and has no limits on reading.
"""

import contextlib
import socket
import time

from rsi.edges.docker_sandbox.engine import connect
from rsi.errors import SandboxError, TrialFault

CALL_LIMIT_S = 30


class AttachStream:
    """A container's input and output, by the engine's attach call (HTTP upgrade)."""

    def __init__(self, url: str, container: str) -> None:
        self._buffer = bytearray()
        try:
            self._channel = connect(url, CALL_LIMIT_S)
        except OSError as error:
            raise _silent(url, error) from error
        try:
            path = f"/containers/{container}/attach?stream=1&stdin=1&stdout=1&stderr=0"
            self._channel.sendall(
                f"POST {path} HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\n"
                "Upgrade: tcp\r\nContent-Length: 0\r\n\r\n".encode()
            )
            head = self._until_blank_line()
        except OSError as error:
            self._channel.close()
            raise _silent(url, error) from error
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            self._channel.close()
            raise TrialFault("sandbox", f"attach was refused: {head[:120]!r}")

    def send(self, data: bytes) -> None:
        self._channel.settimeout(CALL_LIMIT_S)
        self._channel.sendall(data)

    def receive(self, count: int, limit_s: float) -> bytes:
        """Exactly so many bytes of standard output, out of the engine's 8-byte-headed chunks."""
        deadline = time.monotonic() + limit_s
        while len(self._buffer) < count:
            head = self._exactly(8, deadline)
            self._buffer += self._exactly(int.from_bytes(head[4:8], "big"), deadline)
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._channel.close()

    def _exactly(self, count: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < count:
            self._channel.settimeout(max(0.01, deadline - time.monotonic()))
            chunk = self._channel.recv(min(1 << 20, count - len(data)))
            if not chunk:
                raise EOFError
            data += chunk
        return bytes(data)

    def _until_blank_line(self) -> bytes:
        head = bytearray()
        while not head.endswith(b"\r\n\r\n"):
            byte = self._channel.recv(1)
            if not byte or len(head) > 8192:
                break
            head += byte
        return bytes(head)


def _silent(url: str, error: OSError) -> SandboxError:
    return SandboxError(
        f"the Docker engine at {url} doesn't answer ({error}); start it and run again"
    )
