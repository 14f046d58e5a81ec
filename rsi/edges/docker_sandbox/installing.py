"""Installing a Docker engine, where that is possible and wanted."""

import os
import shutil
import subprocess
from collections.abc import Callable

from rsi.errors import SandboxError

INSTALL_LIMIT_S = 600


def install_engine(say: Callable[[str], None]) -> None:
    """Installs Debian's docker.io, as root. Raises SandboxError when it can't be had."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise SandboxError("installing Docker needs root and Debian's apt-get")
    say("Installing Debian's docker.io (about 1 min)")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-q"],
        ["apt-get", "install", "-y", "-q", "--no-install-recommends", "docker.io"],
    ):
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=INSTALL_LIMIT_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as error:
            raise SandboxError(f"{' '.join(command)} took over {INSTALL_LIMIT_S} s") from error
        if done.returncode:
            raise SandboxError(f"{' '.join(command)} failed: {done.stderr.strip()[-300:]}")
