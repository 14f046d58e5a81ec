"""Tasks: an instruction, the files around it, a verifier, a reference solution."""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any

from pydantic import Field

from rsi.domain.cases import Case
from rsi.domain.values import Digest, Value, canonical_json, digest_bytes, digest_value, short

BUILT_IMAGES = "rsi-task"
"""The name of images that are built of tasks' contexts; each has a tag of its own."""


class Split(StrEnum):
    """What a task may be used for."""

    SEARCH = "search"
    HOLDOUT = "holdout"
    EXAM = "exam"
    REGRESSION = "regression"


class Answer(StrEnum):
    """Where the verifier looks: at what the last command printed, or at the files it left."""

    STDOUT = "stdout"
    FILES = "files"


class TaskFile(Value):
    """A file of a task, by its path from the folder that it belongs to."""

    path: str
    content: bytes
    executable: bool = False


class Task(Value):
    """One task, whole; its digest covers everything that a trial or its verdict depends on."""

    name: str
    """`org/name`, as in Harbor's task.toml."""
    suite: str
    family: str
    level: int = Field(ge=0)
    instruction: str
    answer: Answer = Answer.FILES
    workdir: str = "/work"
    files: tuple[TaskFile, ...] = ()
    """Laid into `workdir` before the agent starts."""
    tests: tuple[TaskFile, ...]
    """Mounted at /tests after the agent has ended; `test.sh` is run."""
    cases: tuple[Case, ...] = ()
    """What the solution must return or print, compared outside the box; instead of `tests`."""
    solution: tuple[TaskFile, ...] = ()
    """Mounted at /solution for the reference run; `solve.sh` is run."""
    artifacts: tuple[str, ...] = ()
    """What is copied from the agent's box to the verifier's; none stands for all of `workdir`."""
    image: str | None = None
    context: tuple[TaskFile, ...] = ()
    """What the image is built from, a Dockerfile among it, where that is how it is had."""
    build_timeout_s: float = Field(default=600, gt=0)
    agent_timeout_s: float = Field(default=60, gt=0)
    verifier_timeout_s: float = Field(default=30, gt=0)
    made_by: str = "suite"
    """`suite`, `harden` or a folder's name: where the task came from."""

    @cached_property
    def digest(self) -> Digest:
        """SHA-256 of the canonical form."""
        return digest_value(self)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> "Task":
        """A copy with some fields changed, and with a digest of its own."""
        copied = super().model_copy(update=update, deep=deep)
        # pydantic copies cached properties too: the digest would be the original's.
        for name in ("digest", "image_name"):
            copied.__dict__.pop(name, None)
        return copied

    @cached_property
    def image_name(self) -> str | None:
        """The image of its boxes; None stands for rsi's own. One that is built is named by its
        context, so that the same context is built once."""
        if self.image is not None or not self.context:
            return self.image
        files = [file.model_dump(mode="json") for file in self.context]
        return f"{BUILT_IMAGES}:{short(digest_bytes(canonical_json(files)))}"

    @property
    def is_judged_outside(self) -> bool:
        """Whether no verdict is formed where something that the agent wrote may run: by its
        cases, or by nothing but the text that it printed. A test.sh beside the agent's files may
        run them, and can then be fooled by them."""
        return bool(self.cases) or (self.answer is Answer.STDOUT and not self.artifacts)

    @property
    def travels_whole(self) -> bool:
        """Whether the verifier gets all of `workdir`, so that it also sees what was removed."""
        return self.answer is Answer.FILES and not self.artifacts

    @property
    def artifact_paths(self) -> tuple[str, ...]:
        """The absolute paths that go from the agent's box to the verifier's; none for a task
        that is judged by its printed answer alone."""
        if self.artifacts:
            return tuple(
                path if path.startswith("/") else f"{self.workdir}/{path}"
                for path in self.artifacts
            )
        return (self.workdir,) if self.answer is Answer.FILES else ()


class Family(Value):
    """A kind of task, with the levels it comes in."""

    suite: str
    name: str
    levels: tuple[int, ...]
    about: str = ""
