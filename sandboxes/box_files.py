"""Files into a box and out of it: only regular files and folders ever leave.

It does not protect the agent's folders from the agent. Standard library only; it never imports
rsi.
"""

import os
import stat

from box_frames import send

MOST_FILES = 20_000
MOST_DEPTH = 64


def put(header, payload):
    """Lays the files of the payload, one after another."""
    place = 0
    for entry in header["files"]:
        path, size = entry["path"], entry["size"]
        if path.endswith("/"):
            os.makedirs(path, exist_ok=True)
            os.chmod(path, entry["mode"])
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(payload[place : place + size])
            os.fchmod(handle, entry["mode"])
        place += size
    send({"ok": True})


def get(header, _payload):
    """Gives the files at and below the paths, or a reason when they are too much."""
    entries, chunks = [], []
    budget = {"bytes": header["limit"], "files": MOST_FILES}
    for path in header["paths"]:
        collect(path, 0, entries, chunks, budget)
    if budget["bytes"] < 0 or budget["files"] < 0:
        send({"ok": False, "reason": "the files are larger or more than the limit"})
        return
    send({"ok": True, "files": entries}, chunks)


def collect(path, depth, entries, chunks, budget):
    """Adds what is at the path; whatever can't be read is left out."""
    if depth > MOST_DEPTH or budget["bytes"] < 0 or budget["files"] < 0:
        return
    try:
        path.encode()  # A name that isn't text can't travel in JSON.
        found = os.lstat(path)
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISDIR(found.st_mode):
            names = sorted(os.listdir(path))
            budget["files"] -= 1
            entries.append({"path": path.rstrip("/") + "/", "size": 0, "mode": mode})
            for name in names:
                collect(os.path.join(path, name), depth + 1, entries, chunks, budget)
        elif stat.S_ISREG(found.st_mode):
            content = read_file(path, budget["bytes"] + 1)
            budget["bytes"] -= len(content)
            budget["files"] -= 1
            entries.append({"path": path, "size": len(content), "mode": mode})
            chunks.append(content)
    except (OSError, UnicodeEncodeError):
        return


def read_file(path, most):
    """So many bytes of a file that isn't a link, without ever waiting for one that is a pipe."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        return file.read(most)
