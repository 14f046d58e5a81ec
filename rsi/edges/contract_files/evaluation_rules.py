"""What must hold between the keys of an evaluation contract, and where its suites lie."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rsi.domain.evaluation import Evaluation
from rsi.domain.faults import Fault


def suite_faults(document: Mapping[str, Any], folder: Path) -> Iterator[Fault]:
    """Suites that can't be there: none at all, or a folder that is missing or not asked for."""
    suites = document.get("suites")
    if not isinstance(suites, list):
        return
    if not suites:
        yield Fault(("suites",), 'names no suite; add [[suites]] with kind = "shell"')
    for place, suite in enumerate(suites):
        if not isinstance(suite, Mapping):
            continue
        kind, path = suite.get("kind"), suite.get("path")
        if kind == "folder" and path is None:
            yield Fault(("suites", place), "needs `path`, the folder of Harbor tasks")
        elif kind == "shell" and path is not None:
            yield Fault(("suites", place, "path"), "belongs to kind `folder` only")
        elif kind == "folder" and not _is_folder(folder, path):
            yield Fault(("suites", place, "path"), f"{path!r} is no folder beside this file")


def with_resolved_suites(evaluation: Evaluation, folder: Path) -> Evaluation:
    """The evaluation with absolute suite folders."""
    suites = tuple(
        suite
        if suite.path is None
        else suite.model_copy(update={"path": str((folder / suite.path).resolve())})
        for suite in evaluation.suites
    )
    return evaluation.model_copy(update={"suites": suites})


def _is_folder(folder: Path, path: object) -> bool:
    return isinstance(path, str) and "\0" not in path and (folder / path).is_dir()
