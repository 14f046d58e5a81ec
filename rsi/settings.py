"""Settings: the environment, read once, as one frozen value. Experiments live in contracts/."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError

from rsi.domain.values import Value
from rsi.errors import SettingsError


class Settings(Value):
    """Where things are on this machine; every field has an environment variable, RSI_…"""

    root: Path
    """The project: `contracts/` and `sandboxes/` are below it."""
    state_dir: Path
    """RSI_STATE_DIR: what rsi keeps on this machine; `.rsi` below the project."""
    database_url: SecretStr | None = None
    """RSI_DATABASE_URL: any Postgres; none stands for the embedded one."""
    model_url: str | None = None
    """RSI_MODEL_URL: any OpenAI-compatible server; none stands for the embedded model."""
    model_name: str = "default"
    """RSI_MODEL_NAME: the model's name at that server."""
    model_key: SecretStr | None = None
    """RSI_MODEL_KEY: the server's bearer key."""
    contract: Path
    """RSI_CONTRACT: the first champion's harness."""
    evaluation: Path
    """RSI_EVALUATION: the yardstick and the scale of a generation."""
    sandbox: Literal["auto", "docker", "namespaces"] = "auto"
    """RSI_SANDBOX: which sandbox to use; `auto` takes Docker where an engine answers."""
    base_image: str | None = None
    """RSI_BASE_IMAGE: the image that Docker's boxes are built from; none stands for this machine's
    own tools."""
    docker_runtime: str | None = None
    """RSI_DOCKER_RUNTIME: the engine's runtime for boxes, such as gVisor's `runsc`."""
    workers: int = Field(default=4, ge=1, le=256)
    """RSI_WORKERS: trials that run side by side."""


def read_settings(environment: Mapping[str, str], cwd: Path) -> Settings:
    """The settings of this environment. Raises SettingsError that names every bad variable."""
    root = _root(cwd)
    known = {
        "RSI_STATE_DIR",
        "RSI_DATABASE_URL",
        "RSI_MODEL_URL",
        "RSI_MODEL_NAME",
        "RSI_MODEL_KEY",
        "RSI_CONTRACT",
        "RSI_EVALUATION",
        "RSI_SANDBOX",
        "RSI_BASE_IMAGE",
        "RSI_DOCKER_RUNTIME",
        "RSI_WORKERS",
    }
    given = {
        name.removeprefix("RSI_").lower(): value
        for name, value in environment.items()
        if name in known and value
    }
    defaults = {
        "root": root,
        "state_dir": root / ".rsi",
        "contract": root / "contracts/shell.toml",
        "evaluation": root / "contracts/evaluation.toml",
    }
    try:
        settings = Settings.model_validate({**defaults, **given})
    except ValidationError as error:
        faults = "; ".join(
            f"RSI_{'_'.join(str(part) for part in fault['loc']).upper()}: {fault['msg']}"
            for fault in error.errors(include_input=False)
        )
        raise SettingsError(f"the environment can't be used: {faults}") from error
    return settings.model_copy(
        update={
            name: getattr(settings, name).expanduser().resolve()
            for name in ("state_dir", "contract", "evaluation")
        }
    )


def current_settings() -> Settings:
    """The settings of this process's environment and working folder."""
    return read_settings(os.environ, Path.cwd())


def _root(cwd: Path) -> Path:
    """The nearest folder, from here upwards, that has contracts; else the one rsi lies in."""
    for folder in (cwd, *cwd.parents):
        if (folder / "contracts").is_dir() and (folder / "sandboxes").is_dir():
            return folder
    return Path(__file__).resolve().parent.parent
