"""Images in an engine: our base image, and those that tasks name."""

import contextlib
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from docker.errors import APIError, ImageNotFound

from rsi.edges.docker_sandbox.calls import client
from rsi.errors import SandboxError, TrialFault

IMAGE_LABEL = "rsi.image"
"""The kind; an image that somebody builds of ours inherits it, so the name counts too."""
OUR_NAMES = ("rsi-base:", "rsi-task:", "rsi-run:")
KEEP_S = 30 * 86400
"""Thirty days: images of ours that nobody has used for so long are removed."""
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
            remove_old(api, "base", in_use=tag)
    except TrialFault as fault:
        raise SandboxError(f"the base image {tag} can't be loaded: {fault.reason}") from fault


def find_image(api: Any, name: str) -> Any:
    """What the engine says of the image; None when it hasn't got it."""
    try:
        return api.inspect_image(name)
    except ImageNotFound:
        return None


def pull(api: Any, name: str) -> None:
    """Fetches an image. Raises TrialFault when it can't be had."""
    said = ""
    deadline = time.monotonic() + PULL_LIMIT_S
    try:
        for line in api.pull(name, stream=True, decode=True):
            said = line.get("error", said)
            if time.monotonic() > deadline:
                said = f"it took over {PULL_LIMIT_S} s"
                break
    except APIError as error:
        said = str(error.explanation)
    if find_image(api, name) is None:
        raise TrialFault(
            "sandbox",
            f"image {name} isn't in the engine and can't be pulled ({said}); load it there",
        )


def touch(api: Any, tag: str) -> None:
    """Marks an image of ours as used now."""
    name, _, version = tag.partition(":")
    with contextlib.suppress(APIError):
        api.tag(tag, name, version)


def remove_old(api: Any, kind: str, in_use: str = "", keep_s: float = KEEP_S) -> None:
    """Removes our images of the kind, `base` or `task`, that nobody has used for so long."""
    for image in api.images(filters={"label": f"{IMAGE_LABEL}={kind}"}):
        tags = image.get("RepoTags") or ()
        is_ours = all(one.startswith((*OUR_NAMES, "<none>")) for one in tags)
        if is_ours and in_use not in tags and max(_uses(api, image)) < time.time() - keep_s:
            # An image that boxes still use stays.
            with contextlib.suppress(APIError):
                api.remove_image(image["Id"])


def _uses(api: Any, image: Any) -> Iterator[float]:
    """When the image was made, and when it was marked as used."""
    yield float(image["Created"])
    with contextlib.suppress(ImageNotFound, ValueError):
        said = api.inspect_image(image["Id"]).get("Metadata", {}).get("LastTagTime") or ""
        if not said.startswith("0001"):  # Go's word for never.
            yield datetime.fromisoformat(f"{said[:19]}+00:00").timestamp()
