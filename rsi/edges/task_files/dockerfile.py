"""Dockerfiles as texts: those so plain that they needn't be built (FROM, WORKDIR, ENV, COPY and
ADD of files), and where the others work."""

import fnmatch
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rsi.domain.task import TaskFile

_HARMLESS = frozenset({"CMD", "ENTRYPOINT", "EXPOSE", "LABEL", "MAINTAINER", "STOPSIGNAL"})
_ARCHIVE = re.compile(r"\.(tar(\.\w+)?|t[gbx]z2?)$")
_SPECIAL = re.compile(r"""([\\$'"])""")
_UNESCAPED = re.compile(r"""(?<!\\)(?:\\\\)*[$'"]""")


class NotPlain(Exception):
    """Why a Dockerfile must be built to know what it makes."""


@dataclass(slots=True)
class Laid:
    """What a plain Dockerfile lays out; `files` by absolute path."""

    image: str = ""
    workdir: str | None = None
    files: dict[str, TaskFile] = field(default_factory=dict)
    has_env: bool = False


def laid_out(text: str, context: Sequence[TaskFile]) -> Laid:
    """What the Dockerfile lays out of the files beside it. Raises NotPlain."""
    laid = Laid()
    for name, rest in _instructions(text):
        match name:
            case "FROM":
                if laid.image:
                    raise NotPlain("it has several stages")
                laid.image = rest.split()[0] if rest.split() else ""
                is_one = re.fullmatch(r"\S+(\s+[Aa][Ss]\s+\S+)?", rest)
                if not is_one or rest.startswith("--") or "$" in rest:
                    raise NotPlain(f"`FROM {rest}` isn't one image's name")
            case "WORKDIR":
                (path,) = _words(name, rest, count=1)
                laid.workdir = posixpath.normpath(posixpath.join(laid.workdir or "/", path))
            case "COPY" | "ADD":
                _copy(name, rest, laid, {file.path: file for file in context})
            case "ENV":
                laid.has_env = True
            case _ if name not in _HARMLESS:
                raise NotPlain(f"it has a {name} instruction")
    if not laid.image:
        raise NotPlain("it has no FROM")
    return laid


def has_from(text: str) -> bool:
    """Whether an image can be built of it at all."""
    return any(re.match(r"\s*FROM\s", line, re.IGNORECASE) for line in text.split("\n"))


def workdir_of(text: str) -> str | None:
    """The folder that the last stage ends in; None where the text doesn't tell."""
    stages: dict[str, str | None] = {}
    stage = ""
    try:
        for name, rest in _instructions(text):
            if name == "FROM":
                image, *rest_words = [word for word in rest.split() if word[:2] != "--"] or [""]
                is_named = len(rest_words) == 2 and rest_words[0].lower() == "as"
                stage = rest_words[1].lower() if is_named else f"#{len(stages)}"
                stages[stage] = stages.get(image.lower())
            elif name == "WORKDIR":
                stages[stage] = _moved(stages.get(stage), rest)
    except NotPlain:
        return None
    return stages.get(stage)


def _moved(here: str | None, rest: str) -> str | None:
    try:
        (path,) = _words("WORKDIR", rest, count=1)
    except NotPlain:
        return None
    if not path.startswith("/") and here is None:
        return None
    return posixpath.normpath(posixpath.join(here or "/", path))


def copy_line(source: str, target: str) -> str:
    """The instruction that copies one file, whatever its name."""
    words = [_SPECIAL.sub(r"\\\1", word) for word in (source, target)]
    return f"COPY {json.dumps(words, ensure_ascii=False)}"


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    """(NAME, rest) of each instruction, with continued lines joined and comments left out."""
    whole = ""
    for line in text.split("\n"):
        if line.lstrip().startswith("#"):
            if re.match(r"#\s*escape\s*=\s*`", line.lstrip()):
                raise NotPlain("it changes the escape character")
            continue
        if line.rstrip().endswith("\\") and not line.rstrip().endswith("\\\\"):
            whole += line.rstrip()[:-1]
            continue
        whole = (whole + line).strip()
        if whole:
            name, *rest = whole.split(None, 1)
            yield name.upper(), rest[0] if rest else ""
        whole = ""
    if whole.strip():
        raise NotPlain("its last line goes on")


def _words(name: str, rest: str, count: int | None = None) -> list[str]:
    """The words of an instruction, in the JSON form or the plain one."""
    if "<<" in rest or rest.startswith("--"):
        raise NotPlain(f"`{name} {rest[:60]}` uses options or a here-document")
    try:
        words = json.loads(rest) if rest.startswith("[") else rest.split()
    except ValueError as error:
        raise NotPlain(f"`{name} {rest[:60]}` can't be read") from error
    if not all(isinstance(word, str) and word for word in words) or not words:
        raise NotPlain(f"`{name} {rest[:60]}` can't be read")
    if any(_UNESCAPED.search(word) for word in words) or (count and len(words) != count):
        raise NotPlain(f"`{name} {rest[:60]}` uses variables, quotes or several words")
    return [re.sub(r"\\(.)", r"\1", word) for word in words]


def _copy(name: str, rest: str, laid: Laid, context: Mapping[str, TaskFile]) -> None:
    *sources, target = _words(name, rest)
    if not sources:
        raise NotPlain(f"`{name} {rest[:60]}` names no target")
    place = posixpath.normpath(posixpath.join(laid.workdir or "/", target))
    is_folder = target.endswith(("/", "/.")) or target == "." or len(sources) > 1
    is_folder = is_folder or _is_known_folder(place, laid)
    for source in sources:
        found = list(_matching(name, source, context))
        if len(found) > 1 and not is_folder and not all(below for below, _ in found):
            raise NotPlain(f"`{name} {rest[:60]}` puts several files in the place of one")
        for below, file in found:
            inside = below or (posixpath.basename(file.path) if is_folder else "")
            goal = posixpath.join(place, inside) if inside else place
            laid.files[goal] = file.model_copy(update={"path": goal})


def _is_known_folder(place: str, laid: Laid) -> bool:
    return place in ("/", laid.workdir) or any(path.startswith(f"{place}/") for path in laid.files)


def _matching(
    name: str, source: str, context: Mapping[str, TaskFile]
) -> Iterator[tuple[str, TaskFile]]:
    """(path below the target, file) of what a source names; "" stands for a single file."""
    if "://" in source or (name == "ADD" and _ARCHIVE.search(source)):
        raise NotPlain(f"`{name} {source}` fetches or unpacks")
    wanted = posixpath.normpath(source.lstrip("/"))
    if wanted == ".." or wanted.startswith("../"):
        raise NotPlain(f"`{name} {source}` reaches out of environment/")
    found = False
    for path, file in context.items():
        parts = path.split("/")
        for depth in range(len(parts) + 1):
            head = "/".join(parts[:depth]) or "."
            if _is_match(wanted, head):
                yield "/".join(parts[depth:]), file
                found = True
                break
    if not found:
        raise NotPlain(f"`{name} {source}` names nothing in environment/")


def _is_match(pattern: str, path: str) -> bool:
    wanted, parts = pattern.split("/"), path.split("/")
    return pattern == path or (
        pattern != "."
        and path != "."
        and len(wanted) == len(parts)
        and all(fnmatch.fnmatchcase(part, want) for want, part in zip(wanted, parts, strict=True))
    )
