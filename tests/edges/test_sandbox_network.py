"""A box reaches the hosts that its contract names, through a proxy, and nothing else."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsi.box_proxy import is_allowed
from rsi.errors import TrialFault
from rsi.ports import Box, BoxSpec, Ran, Sandbox

BODY = bytes(range(256)) * 20_000
FETCH = (
    "import sys, urllib.request, urllib.error\n"
    "try:\n"
    "    with urllib.request.urlopen(sys.argv[1], timeout=20) as answer:\n"
    "        print(answer.status, len(answer.read()))\n"
    "except urllib.error.HTTPError as error: print(error.code, error.read().decode())\n"
    "except OSError as error: print('none', error)\n"
)
TUNNEL = (
    "import os, socket, sys\n"
    "proxy = os.environ['https_proxy'].rpartition(':')\n"
    "with socket.create_connection(('127.0.0.1', int(proxy[2])), 10) as link:\n"
    "    link.sendall(f'CONNECT {sys.argv[1]} HTTP/1.1\\r\\n\\r\\n'.encode())\n"
    "    print(link.recv(4096).split(b'\\r\\n')[0].decode())\n"
    "    link.sendall(b'ping')\n"
    "    print(link.recv(4096))\n"
)


class Site(BaseHTTPRequestHandler):
    """Says what it was asked for."""

    def do_GET(self) -> None:
        self.server.asked.append((self.path, dict(self.headers)))  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def site() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(10)


@contextmanager
def echo() -> Iterator[int]:
    """A port that says back what it is told."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            link, _ = listener.accept()
            with link:
                link.sendall(link.recv(64).upper())

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def fetch(box: Box, address: str) -> Ran:
    return box.run(["python3", "-c", FETCH, address], timeout_s=60)


def test_a_named_host_is_reached_by_http(sandbox: Sandbox, site: ThreadingHTTPServer) -> None:
    place = f"127.0.0.1:{site.server_port}"
    with sandbox.box(BoxSpec(hosts=(place,))) as box:
        for _ in range(2):
            ran = fetch(box, f"http://{place}/a?b=c")
            assert ran.stdout == b"200 %d\n" % len(BODY), ran
        assert box.run(["true"], timeout_s=20).exit_code == 0
    path, headers = site.asked[0]  # type: ignore[attr-defined]
    assert path == "/a?b=c"
    assert headers["Host"] == place
    assert not [name for name in headers if name.lower().startswith("proxy")]


def test_a_named_host_is_reached_by_a_tunnel(sandbox: Sandbox) -> None:
    with echo() as port, sandbox.box(BoxSpec(hosts=(f"localhost:{port}",))) as box:
        ran = box.run(["python3", "-c", TUNNEL, f"localhost:{port}"], timeout_s=30)
        assert ran.stdout == b"HTTP/1.1 200 Connection established\nb'PING'\n", ran


def test_nothing_else_is_reached(sandbox: Sandbox, site: ThreadingHTTPServer) -> None:
    place = f"127.0.0.1:{site.server_port}"
    with sandbox.box(BoxSpec(hosts=("example.org", "127.0.0.1:1"))) as box:
        said = fetch(box, f"http://{place}/").stdout
        assert said.startswith(b"403 the contract doesn't name 127.0.0.1:"), said
        assert fetch(box, "http://169.254.169.254/latest").stdout.startswith(b"403 ")
        direct = (
            "import socket\n"
            f"try: socket.create_connection(('127.0.0.1', {site.server_port}), 3); print('in')\n"
            "except OSError: print('closed')\n"
            "try: socket.create_connection(('192.0.2.1', 80), 3); print('out')\n"
            "except OSError: print('closed')\n"
        )
        assert box.run(["python3", "-c", direct], timeout_s=30).stdout == b"closed\nclosed\n"
    assert site.asked == []  # type: ignore[attr-defined]


def test_a_host_that_does_not_answer_is_told(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with sandbox.box(BoxSpec(hosts=(f"127.0.0.1:{port}",))) as box:
        assert fetch(box, f"http://127.0.0.1:{port}/").stdout.startswith(b"502 not reached")


def test_a_box_without_hosts_has_no_proxy(box: Box, site: ThreadingHTTPServer) -> None:
    assert fetch(box, f"http://127.0.0.1:{site.server_port}/").stdout.startswith(b"none ")
    assert b"proxy" not in box.run(["env"], timeout_s=20).stdout


@pytest.mark.parametrize("head", ["", "GET", "GET ftp://a/ HTTP/1.1", "CONNECT nowhere HTTP/1.1"])
def test_nonsense_is_refused_and_the_box_goes_on(sandbox: Sandbox, head: str) -> None:
    code = (
        "import socket, sys\n"
        "with socket.create_connection(('127.0.0.1', 3128), 10) as link:\n"
        "    link.sendall(sys.argv[1].encode() + b'\\r\\n\\r\\n')\n"
        "    print(link.recv(4096)[:12].decode())\n"
    )
    with sandbox.box(BoxSpec(hosts=("example.org",))) as box:
        assert box.run(["python3", "-c", code, head], timeout_s=30).stdout == b"HTTP/1.1 400\n"
        assert box.run(["true"], timeout_s=20).exit_code == 0


def test_many_connections_at_once_and_none_read(sandbox: Sandbox) -> None:
    code = (
        "import socket\n"
        "links = [socket.create_connection(('127.0.0.1', 3128), 10) for _ in range(60)]\n"
        "for link in links:\n"
        "    try: link.sendall(b'x' * 30000)\n"
        "    except OSError: pass\n"
        "print('done')\n"
    )
    with sandbox.box(BoxSpec(hosts=("example.org",), memory_mb=128)) as box:
        assert box.run(["python3", "-c", code], timeout_s=60).stdout == b"done\n"
        assert box.run(["true"], timeout_s=20).exit_code == 0


def test_a_box_that_ends_leaves_no_thread(sandbox: Sandbox) -> None:
    before = threading.active_count()
    with echo() as port, sandbox.box(BoxSpec(hosts=(f"localhost:{port}",), life_s=2)) as box:
        slow = TUNNEL.replace("link.sendall(b'ping')", "import time; time.sleep(60)")
        with pytest.raises(TrialFault):
            box.run(["python3", "-c", slow, f"localhost:{port}"], timeout_s=60)
    deadline = time.monotonic() + 15
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [one for one in threading.enumerate() if one.name.startswith("link-")]


@pytest.mark.parametrize(
    ("names", "host", "port", "is_in"),
    [
        (("a.org",), "a.org", 443, True),
        (("a.org",), "A.ORG.", 80, True),
        (("a.org",), "a.org", 8080, False),
        (("a.org:8080",), "a.org", 8080, True),
        (("a.org:8080",), "a.org", 443, False),
        (("a.org",), "b.a.org", 443, False),
        (("*.a.org",), "b.a.org", 443, True),
        (("*.a.org",), "c.b.a.org", 443, True),
        (("*.a.org",), "a.org", 443, False),
        (("*.a.org",), "xa.org", 443, False),
        ((), "a.org", 443, False),
    ],
)
def test_names_cover_hosts(names: tuple[str, ...], host: str, port: int, is_in: bool) -> None:
    assert is_allowed(names, host, port) is is_in


@given(st.text(max_size=12), st.integers(0, 70000))
def test_no_host_is_covered_by_chance(host: str, port: int) -> None:
    assert not is_allowed(("named.example", "*.below.example:8443"), host, port)
