"""The owner's end of a box's way out: an HTTP proxy for the hosts that a contract names.

A box has no network. Programs in it find a proxy in their environment; what they send there comes
here over the box's own stream, and only named hosts are connected to, from this process. Names
are looked up here. What is allowed is a host, not what it serves: several sites may share one.
"""

import contextlib
import queue
import socket
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

PORT = 3128
PLAIN_PORTS = (80, 443)
"""Where a named host may be reached when no port stands beside its name."""
HEAD_BYTES = 16384
CHUNK_BYTES = 65536
CONNECT_LIMIT_S = 10
IDLE_LIMIT_S = 60
MOST_BYTES = 256 << 20
"""What a box may move in all, both ways together."""
MOST_LINKS = 32

Send = Callable[[dict[str, Any], bytes], None]


def is_allowed(hosts: tuple[str, ...], host: str, port: int) -> bool:
    """Whether one of the names (`host`, `*.host`, with `:port` or without) covers the place."""
    wanted = host.lower().rstrip(".")
    for name in hosts:
        known, _, its_port = name.lower().partition(":")
        is_port = port == int(its_port) if its_port else port in PLAIN_PORTS
        is_below = known.startswith("*.") and wanted.endswith(known[1:])
        if is_port and (wanted == known or is_below):
            return True
    return False


def environment() -> dict[str, str]:
    """What programs in a box need to find the proxy."""
    address = f"http://127.0.0.1:{PORT}"
    names = ("http_proxy", "https_proxy")
    return {**dict.fromkeys(names, address), **{name.upper(): address for name in names}}


class Proxy:
    """The connections of one box."""

    def __init__(self, hosts: tuple[str, ...], send: Send) -> None:
        """`send` gives the box a frame; it may be called from several threads."""
        self._hosts, self._send = hosts, send
        self._lock = threading.Lock()
        self._links: dict[int, _Link] = {}
        self._left_bytes = MOST_BYTES

    def take(self, number: int, what: str, payload: bytes) -> None:
        """What the box says of a connection: `open`, `data` or `end`."""
        with self._lock:
            if what == "open" and len(self._links) < MOST_LINKS:
                self._links[number] = link = _Link(number, self)
                link.start()
            known = self._links.get(number)
        if known is None:
            self.tell(number, "end")
        elif what != "open":
            known.hear(payload if what == "data" else b"")

    def close(self) -> None:
        """Ends every connection."""
        with self._lock:
            links, self._links = list(self._links.values()), {}
        for link in links:
            link.end()

    def tell(self, number: int, what: str, payload: bytes = b"") -> None:
        """Gives the box a frame; one that is gone needs none."""
        with contextlib.suppress(OSError):
            self._send({"net": number, "is": what}, payload)

    def forget(self, number: int) -> None:
        with self._lock:
            self._links.pop(number, None)

    def spend(self, count: int) -> bool:
        """Whether so many bytes may still be moved."""
        with self._lock:
            self._left_bytes -= count
            return self._left_bytes >= 0

    def connect(self, host: str, port: int) -> socket.socket:
        """A connection to a named host. Raises PermissionError, OSError."""
        if not is_allowed(self._hosts, host, port):
            raise PermissionError(f"the contract doesn't name {host}:{port}")
        return socket.create_connection((host, port), CONNECT_LIMIT_S)


class _Link:
    """One connection: reads what is asked for, connects, carries bytes until either side ends."""

    def __init__(self, number: int, proxy: Proxy) -> None:
        self.given: queue.Queue[bytes] = queue.Queue(256)
        self._number, self._proxy = number, proxy
        self._far: socket.socket | None = None

    def hear(self, data: bytes) -> None:
        """Takes bytes of the box, none at the end; a far side that takes none for long is ended."""
        try:
            self.given.put(data, timeout=CONNECT_LIMIT_S)
        except queue.Full:
            self.end()

    def start(self) -> None:
        threading.Thread(target=self._live, name=f"link-{self._number}", daemon=True).start()

    def end(self) -> None:
        """Ends it from another thread."""
        with contextlib.suppress(queue.Full):
            self.given.put_nowait(b"")
        far = self._far
        if far is not None:
            with contextlib.suppress(OSError):
                far.shutdown(socket.SHUT_RDWR)

    def _live(self) -> None:
        try:
            head, rest = self._head()
            words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
            host, port, first = _asked(words, head)
            with self._proxy.connect(host, port) as self._far:
                self._far.settimeout(IDLE_LIMIT_S)
                if first is None:
                    self._say(b"HTTP/1.1 200 Connection established\r\n\r\n")
                self._carry(self._far, (first or b"") + rest)
        except PermissionError as error:
            self._refuse(403, str(error))
        except ValueError as error:
            self._refuse(400, str(error))
        except (OSError, queue.Empty) as error:
            self._refuse(502, f"not reached: {error}")
        finally:
            self._proxy.forget(self._number)
            self._proxy.tell(self._number, "end")

    def _head(self) -> tuple[bytes, bytes]:
        """The head of the request, and what came after it."""
        data = b""
        while b"\r\n\r\n" not in data:
            some = self.given.get(timeout=IDLE_LIMIT_S)
            data += some
            if not some or len(data) > HEAD_BYTES:
                raise ValueError("that is no request to an HTTP proxy")
        head, _, rest = data.partition(b"\r\n\r\n")
        return head + b"\r\n\r\n", rest

    def _carry(self, far: socket.socket, first: bytes) -> None:
        """Bytes both ways; the far side's end ends it."""
        back = threading.Thread(target=self._give, args=(far, first), daemon=True)
        back.start()
        with contextlib.suppress(OSError):
            while data := far.recv(CHUNK_BYTES):
                if not self._proxy.spend(len(data)):
                    break
                self._say(data)
        self.end()
        back.join(CONNECT_LIMIT_S)

    def _give(self, far: socket.socket, first: bytes) -> None:
        data = first
        try:
            while True:
                if data:
                    far.sendall(data)
                data = self.given.get(timeout=IDLE_LIMIT_S)
                if not data or not self._proxy.spend(len(data)):
                    far.shutdown(socket.SHUT_WR)
                    return
        except (OSError, queue.Empty):
            return

    def _say(self, data: bytes) -> None:
        self._proxy.tell(self._number, "data", data)

    def _refuse(self, status: int, reason: str) -> None:
        body = f"{reason}\n".encode("utf-8", "replace")
        self._say(
            f"HTTP/1.1 {status} Refused\r\nConnection: close\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )


def _asked(words: list[str], head: bytes) -> tuple[str, int, bytes | None]:
    """(host, port, head to pass on) of a request line; no head for a tunnel. Raises ValueError."""
    if len(words) != 3:
        raise ValueError("that is no request line")
    method, target, version = words
    if method == "CONNECT":
        host, _, port = target.rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(f"{target[:80]} is no host:port")
        return host.strip("[]"), int(port), None
    parts = urlsplit(target)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"{target[:80]} is no http:// address")
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    lines = [line for line in head.split(b"\r\n")[1:-2] if not _is_about_the_link(line)]
    first = f"{method} {path} {version}".encode("latin-1")
    passed = b"\r\n".join([first, *lines, b"Connection: close", b"", b""])
    return parts.hostname, parts.port or 80, passed


def _is_about_the_link(line: bytes) -> bool:
    return line.lower().startswith((b"proxy-", b"connection:"))
