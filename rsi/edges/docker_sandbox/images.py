"""Images in an engine: our base image, and those that tasks name."""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docker.errors import APIError, ImageNotFound

from rsi.edges.docker_sandbox.calls import client
from rsi.errors import SandboxError, TrialFault

IMAGE_LABEL = "rsi.image"
KEEP_S = 30 * 86400
"""Base images that are older than this, and not the one in use, are removed."""
PULL_LIMIT_S = 900


def load_image(url: str, tag: str, tar: Callable[[], Path]) -> None:
    """Makes sure that the engine has the base image; `tar` writes its file where it hasn't.

    Raises SandboxError when the engine refuses it.
    """
    name, _, version = tag.partition(":")
    try:
        with client(url) as api:
            if api.images(tag):
                return
            with tar().open("rb") as stream:
                api.import_image_from_data(
                    stream, repository=name, tag=version, changes=[f"LABEL {IMAGE_LABEL}=base"]
                )
            _remove_old(api, tag)
    except TrialFault as fault:
        raise SandboxError(f"the base image {tag} can't be loaded: {fault.reason}") from fault


class TaskImages:
    """The images that tasks name: each is looked for, and pulled, once."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._faults: dict[str, str] = {}

    def find(self, image: str) -> None:
        """Makes sure that the engine has the image.

        Raises TrialFault when it can't be had: that says nothing about the agent.
        """
        with self._lock:
            if image not in self._faults:
                self._faults[image] = self._pull(image)
            if self._faults[image]:
                raise TrialFault("sandbox", self._faults[image])

    def _pull(self, image: str) -> str:
        """Why the image can't be had; empty when it is there."""
        with client(self._url) as api:
            if _has(api, image):
                return ""
            said = ""
            deadline = time.monotonic() + PULL_LIMIT_S
            try:
                for line in api.pull(image, stream=True, decode=True):
                    said = line.get("error", said)
                    if time.monotonic() > deadline:
                        said = f"it took over {PULL_LIMIT_S} s"
                        break
            except APIError as error:
                said = str(error.explanation)
            if _has(api, image):
                return ""
        return f"image {image} isn't in the engine and can't be pulled ({said}); load it there"


def _has(api: Any, image: str) -> bool:
    try:
        api.inspect_image(image)
    except ImageNotFound:
        return False
    return True


def _remove_old(api: Any, tag: str) -> None:
    for image in api.images(filters={"label": f"{IMAGE_LABEL}=base"}):
        if tag not in (image.get("RepoTags") or ()) and image["Created"] < time.time() - KEEP_S:
            # An image that boxes still use stays.
            with contextlib.suppress(APIError):
                api.remove_image(image["Id"])
