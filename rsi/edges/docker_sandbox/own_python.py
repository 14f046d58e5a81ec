"""A Python that an image without one is given, so that the box helper can run in it.

It is our base image's, with its loader and libraries, and only the modules that the helper needs.
It lies in a folder of its own and is started by its own loader: nothing that the image has is
used or hidden, and the agent's commands don't see it.
"""

import json
from collections.abc import Iterator
from contextlib import closing

from rsi.box_protocol import HelperBox
from rsi.domain.task import TaskFile
from rsi.errors import TrialFault
from rsi.ports import BoxFile, Ran

RECIPE = "2"
"""Raised when what is laid changes, so that an older image isn't taken for a new one."""
PLACE = "/.rsi"
COMMAND = (f"{PLACE}/lib/ld.so", "--library-path", f"{PLACE}/lib", f"{PLACE}/bin/python3")
LIST_LIMIT_S = 30
LIMIT_BYTES = 64 << 20

LISTING = """
import sys
import codecs, collections, contextlib, ctypes, errno, io, json, os, re, select, signal, socket
import stat, struct, time, traceback
import encodings.ascii, encodings.latin_1, encodings.utf_8
program = os.path.realpath(sys.executable)
modules = set()
for module in list(sys.modules.values()):
    modules |= {getattr(module, "__file__", None), getattr(module, "__cached__", None)}
modules = sorted(path for path in modules if path and os.path.isfile(path))
mapped = {line.split(None, 5)[-1].strip() for line in open("/proc/self/maps") if "/" in line}
mapped -= {program, *modules}
libraries = sorted(path for path in mapped if os.path.isfile(path) and ".so" in path)
print(json.dumps([program, sys.base_prefix, modules, libraries]))
"""
"""Says, in a box of the base image, what the helper loads: program, prefix, modules, libraries."""


def python_files(box: HelperBox) -> tuple[TaskFile, ...]:
    """The files below `PLACE`, by relative path, out of a box of the base image; it is closed.

    Raises TrialFault when they can't be had.
    """
    with closing(box):
        ran = box.run(["python3", "-I", "-S", "-c", LISTING], timeout_s=LIST_LIMIT_S)
        if ran.exit_code != 0:
            said = ran.stderr.decode("utf-8", "replace")[-200:]
            raise TrialFault("sandbox", f"the base image's Python can't be listed: {said}")
        program, prefix, modules, libraries = json.loads(ran.stdout)
        places = {program: "bin/python3"}
        places |= {path: path.removeprefix(prefix).lstrip("/") for path in modules}
        places |= dict(_library_places(libraries))
        found = box.get(sorted(places), limit_bytes=LIMIT_BYTES)
    return tuple(sorted(_laid(found, places), key=lambda file: file.path))


def _library_places(libraries: list[str]) -> Iterator[tuple[str, str]]:
    for path in libraries:
        name = path.rpartition("/")[2]
        yield path, "lib/ld.so" if name.startswith(("ld-", "ld.")) else f"lib/{name}"


def _laid(found: tuple[BoxFile, ...], places: dict[str, str]) -> Iterator[TaskFile]:
    for file in found:
        is_executable = bool(file.mode & 0o111)
        yield TaskFile(path=places[file.path], content=file.content, executable=is_executable)


class BareBox(HelperBox):
    """A box whose image may have no Python of its own for the agent."""

    def python(self, code: str, *, timeout_s: float, output_limit_bytes: int = 65536) -> Ran:
        tried = self.run(["python3", "-c", ""], timeout_s=timeout_s)
        if tried.exit_code in (126, 127):
            return tried
        return super().python(code, timeout_s=timeout_s, output_limit_bytes=output_limit_bytes)
