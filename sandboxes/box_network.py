"""A box's way out: a local port whose connections go to the owner, over the owner's own stream.

The box has no network. What connects to the port is only carried: the owner reads what is asked
for, as an HTTP proxy does, and decides. Standard library only; it never imports rsi.
"""

import contextlib
import socket

from box_frames import send

PORT = 3128
MOST_LINKS = 32
CHUNK_BYTES = 65536
MOST_WAITING_BYTES = 1 << 20
"""What may wait for a program that doesn't read; more, and its connection is closed."""


class Network:
    """The connections of a box; nothing until the owner opens the port."""

    def __init__(self):
        self.listener = None
        self.links = {}
        self.waiting = {}
        self.count = 0

    def open(self, _header, _payload):
        """Listens. Raises OSError."""
        self.listener = socket.create_server(("127.0.0.1", PORT))
        self.listener.setblocking(False)
        send({"ok": True})

    def readers(self):
        """What to read from; a connection whose owner still has to take bytes is read as well."""
        return [self.listener, *self.links.values()] if self.listener else []

    def writers(self):
        return [self.links[number] for number, left in self.waiting.items() if left]

    def move(self, readable, writable):
        """Takes what is ready: new connections, bytes of programs, bytes for programs."""
        for number, link in list(self.links.items()):
            if link in writable:
                self.flush(number)
            if link in readable and number in self.links:
                self.read(number, link)
        if self.listener in readable:
            self.accept()

    def accept(self):
        try:
            link, _ = self.listener.accept()
        except OSError:
            return
        if len(self.links) >= MOST_LINKS:
            link.close()
            return
        link.setblocking(False)
        self.count += 1
        self.links[self.count], self.waiting[self.count] = link, bytearray()
        send({"net": self.count, "is": "open"})

    def read(self, number, link):
        try:
            data = link.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            send({"net": number, "is": "data"}, (data,))
        else:
            self.close(number)
            send({"net": number, "is": "end"})

    def take(self, header, payload):
        """What the owner says of a connection; one that is gone already is passed over."""
        number = header["net"]
        if number not in self.links:
            return
        self.waiting[number] += payload
        self.flush(number)
        if number in self.links and (
            header["is"] == "end" or len(self.waiting[number]) > MOST_WAITING_BYTES
        ):
            self.finish(number)

    def flush(self, number):
        try:
            sent = self.links[number].send(self.waiting[number])
            del self.waiting[number][:sent]
        except BlockingIOError:
            return
        except OSError:
            self.close(number)
            send({"net": number, "is": "end"})

    def finish(self, number):
        """The last bytes, with a little patience, and the end."""
        link, left = self.links[number], bytes(self.waiting[number])
        link.settimeout(1)
        # The program may have gone, or not read.
        with contextlib.suppress(OSError):
            link.sendall(left)
        self.close(number)

    def close(self, number):
        self.links.pop(number).close()
        del self.waiting[number]
