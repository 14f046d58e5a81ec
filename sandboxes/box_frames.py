"""Frames between a box and its owner: a 4-byte length, a JSON header, the header's payload.

Standard library only; it never imports rsi.
"""

import json
import os
import sys


class Gone(Exception):
    """The owner has closed the connection."""


def receive():
    """The next header and its payload. Raises Gone at the end of input."""
    header = json.loads(_exactly(int.from_bytes(_exactly(4), "big")))
    return header, _exactly(header.get("payload", 0))


def send(header, chunks=()):
    """Sends a header with the chunks as its payload."""
    text = json.dumps({**header, "payload": sum(map(len, chunks))}).encode()
    out = sys.stdout.buffer
    out.write(len(text).to_bytes(4, "big") + text)
    for chunk in chunks:
        out.write(chunk)
    out.flush()


def _exactly(count):
    # Without a buffer: what is left in one can't be selected on.
    data = bytearray()
    while len(data) < count:
        chunk = os.read(sys.stdin.fileno(), min(count - len(data), 1 << 20))
        if not chunk:
            raise Gone
        data += chunk
    return bytes(data)
