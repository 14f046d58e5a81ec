"""The images that tasks and contracts name, made ready for boxes: each once for all who ask."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rsi.box_protocol import HelperBox
from rsi.domain.task import TaskFile
from rsi.edges.docker_sandbox import own_python
from rsi.edges.docker_sandbox.builds import build
from rsi.edges.docker_sandbox.calls import client
from rsi.edges.docker_sandbox.image_files import folder_files, room_bytes
from rsi.edges.docker_sandbox.images import find_image, pull, remove_old, touch
from rsi.edges.docker_sandbox.once import Once
from rsi.errors import TrialFault
from rsi.ports import BoxFile, BoxSpec

PYTHON = ("python3",)
BUILD_LIMIT_S = 300
MOST_FOLDERS = 32
"""Images whose files are held in memory, each within image_files' limit."""


@dataclass(frozen=True, slots=True)
class ReadyImage:
    """An image that boxes can be made of."""

    name: str
    python: tuple[str, ...] = PYTHON
    """What starts Python in it."""
    volumes: tuple[str, ...] = ()
    """Folders that the image declares as volumes: they would be writable without a limit."""
    digest: str | None = None
    """The engine's own name for its content; None for the base image."""

    @property
    def is_bare(self) -> bool:
        """Whether the Python that starts in it isn't its own."""
        return self.python != PYTHON


Start = Callable[[BoxSpec, ReadyImage], HelperBox]


class TaskImages:
    """Finds, pulls or builds images, and keeps what they have in a task's workdir."""

    def __init__(self, url: str, base: str, owner: str, start: Start) -> None:
        """`base` is our base image; `start` makes a box of an image."""
        self._url, self._base, self._owner, self._start = url, base, owner, start
        self._ready: Once[str, ReadyImage] = Once()
        self._folders: Once[tuple[str, str], tuple[BoxFile, ...]] = Once(MOST_FOLDERS)
        self._python: Once[str, tuple[TaskFile, ...]] = Once()

    def find(self, spec: BoxSpec) -> ReadyImage:
        """The box's image, made ready where nobody has asked for it before.

        Raises TrialFault when it can't be had: that says nothing about the agent.
        """
        name = spec.image
        if name is None:
            return ReadyImage(self._base)
        return self._ready.get(name, lambda: self._made_ready(name, spec))

    def files(self, spec: BoxSpec) -> tuple[BoxFile, ...]:
        """What the box's image has in its workdir.

        Raises TrialFault when that is more than fits.
        """
        if spec.image is None or not spec.has_image_files:
            return ()
        image, folder = spec.image, spec.workdir
        files = self._folders.get((image, folder), lambda: self._read(image, folder))
        needed_mb = -(-room_bytes(files) >> 20)
        if needed_mb > spec.disk_mb:
            raise TrialFault(
                "sandbox",
                f"image {image} has {needed_mb} MB in {folder}, where a box has room for "
                f"{spec.disk_mb} MB (disk_mb); take files out, or lay them outside the workdir",
            )
        return files

    def _read(self, image: str, folder: str) -> tuple[BoxFile, ...]:
        with client(self._url) as api:
            return folder_files(api, image, folder, self._owner)

    def _made_ready(self, name: str, spec: BoxSpec) -> ReadyImage:
        with client(self._url) as api:
            found = find_image(api, name)
            if found is None and spec.context:
                build(api, name, spec.context, spec.build_limit_s)
                remove_old(api, "task")
            elif found is None:
                pull(api, name)
            elif spec.context:
                touch(api, name)
            found = find_image(api, name)
            if found is None:
                raise TrialFault("sandbox", f"image {name} was made and is gone again")
            volumes = tuple((found["Config"] or {}).get("Volumes") or ())
            digest = str(found["Id"]).removeprefix("sha256:")
            ready = ReadyImage(name, PYTHON, volumes, digest)
            if self._has_python(ready):
                return ready
            derived = self._with_python(api, str(found["Id"]))
            return ReadyImage(derived, own_python.COMMAND, volumes, digest)

    def _has_python(self, ready: ReadyImage) -> bool:
        """Whether the box helper runs with the image's own Python, found by trying."""
        try:
            self._start(BoxSpec(), ready).close()
        except TrialFault:
            return False
        return True

    def _with_python(self, api: Any, image_id: str) -> str:
        """The image with a Python of ours beside what it has. No step runs, so it needs nothing
        of the image."""
        words = f"{own_python.RECIPE} {self._base} {image_id}"
        tag = f"rsi-run:{hashlib.sha256(words.encode()).hexdigest()[:12]}"
        if find_image(api, tag) is not None:
            touch(api, tag)
            return tag
        files = self._python.get(self._base, self._python_files)
        lines = f"FROM {image_id}\nCOPY rsi {own_python.PLACE}\n"
        laid = [file.model_copy(update={"path": f"rsi/{file.path}"}) for file in files]
        dockerfile = TaskFile(path="Dockerfile", content=lines.encode())
        build(api, tag, (dockerfile, *laid), BUILD_LIMIT_S)
        return tag

    def _python_files(self) -> tuple[TaskFile, ...]:
        box = self._start(BoxSpec(), ReadyImage(self._base))
        return own_python.python_files(box)
