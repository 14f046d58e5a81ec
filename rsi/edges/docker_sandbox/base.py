"""The base image of boxes, built from an image that somebody chose."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from rsi.domain.task import TaskFile
from rsi.edges.docker_sandbox.builds import build
from rsi.edges.docker_sandbox.calls import client
from rsi.edges.docker_sandbox.images import find_image, pull, touch
from rsi.errors import SandboxError, TrialFault

BUILD_LIMIT_S = 600


def build_base(url: str, base: str, sandboxes: Path, tools: Mapping[str, str]) -> tuple[str, str]:
    """(tag, digest) of the base image, built by `sandboxes/Dockerfile` on first use.

    `base` is fetched where the engine hasn't got it; `tools` are programs for what it may lack.
    Raises SandboxError when it can't be had.
    """
    dockerfile = (sandboxes / "Dockerfile").read_bytes()
    context = [
        TaskFile(path="Dockerfile", content=dockerfile),
        *(
            TaskFile(path=f"tools/{name}", content=text.encode(), executable=True)
            for name, text in sorted(tools.items())
        ),
    ]
    try:
        with client(url) as api:
            if find_image(api, base) is None:
                pull(api, base)
            words = [find_image(api, base)["Id"], *(str(file.content) for file in context)]
            tag = f"rsi-base:{hashlib.sha256(repr(words).encode()).hexdigest()[:12]}"
            if find_image(api, tag) is None:
                build(api, tag, context, BUILD_LIMIT_S, kind="base", arguments={"BASE": base})
            else:
                touch(api, tag)
            return tag, str(find_image(api, tag)["Id"]).removeprefix("sha256:")
    except TrialFault as fault:
        raise SandboxError(
            f"no base image can be made from {base}: {fault.reason}; set RSI_BASE_IMAGE to "
            "another, or unset it to use this machine's own tools, and run again"
        ) from fault
