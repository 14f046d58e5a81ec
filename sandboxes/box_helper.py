"""PID 1 of a box: takes requests over stdin, answers over stdout, and dies with its owner.

One request, one answer (see box_frames). End of input ends the box, and so does a timer.

It keeps its own memory and descriptors from the agent (PR_SET_DUMPABLE), keeps the agent's output
within a cap, and can end every other process at once. It does not protect against a hole in the
kernel, nor against the agent filling its own folders. Standard library only; it never imports rsi.
"""

import contextlib
import ctypes
import os
import signal
import time

from box_commands import Commands
from box_files import get, put
from box_frames import Gone, receive, send
from box_network import Network
from box_processes import Children

PR_SET_DUMPABLE = 4
LONGEST_LIFE_S = 3600


def main():
    """Serves requests until the owner is gone."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    # The agent may send signals to PID 1. Those without a handler don't arrive, and the handlers
    # that are here do nothing that it could want.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    life = Life(LONGEST_LIFE_S)
    network = Network()
    children = Children(network)
    commands = Commands(children)
    calls = {
        "put": put,
        "run": commands.run,
        "python": commands.cell,
        "get": get,
        "stop_all": children.stop_all,
        "life": life.set,
        "network": network.open,
    }
    send({"ok": True})
    while True:
        header, payload = receive()
        if "net" in header:
            network.take(header, payload)
            continue
        try:
            calls[header["call"]](header, payload)
        except Gone:
            raise
        except OSError as error:
            send({"ok": False, "reason": f"{error.strerror}: {error.filename}"})
        except Exception as error:  # noqa: BLE001 - one bad request must not end the box.
            send({"ok": False, "reason": repr(error)})
        children.reap()


class Life:
    """Ends the box when its time is over; a signal that the agent forges ends nothing."""

    def __init__(self, seconds):
        signal.signal(signal.SIGALRM, self.look)
        self.begin(seconds)

    def begin(self, seconds):
        self.end_s = time.monotonic() + seconds
        signal.setitimer(signal.ITIMER_REAL, seconds + 0.01, 1)

    def set(self, header, _payload):
        self.begin(header["seconds"])
        send({"ok": True})

    def look(self, *_):
        if time.monotonic() >= self.end_s:
            os._exit(3)


def serve():
    """Runs the box to its end."""
    with contextlib.suppress(Gone, ConnectionError):
        main()
    os._exit(0)


if __name__ == "__main__":
    serve()
