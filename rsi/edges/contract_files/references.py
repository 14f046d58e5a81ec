"""Texts that stand in files beside a contract: found, checked and laid into the document."""

import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, get_args, get_origin

from rsi.domain.contract import Contract, Example
from rsi.domain.faults import Fault, check
from rsi.domain.keys import Path as KeyPath
from rsi.domain.keys import join_key, type_at
from rsi.domain.places import places_in
from rsi.domain.values import Value

LIMIT_BYTES = 4 << 20
"""A contract, or a file beside it, is refused when it is larger."""


class ReferenceFault(Exception):
    """Why a file beside a contract can't be used; each text names its own place."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        super().__init__("; ".join(texts))


class ExamplesFile(Value):
    """The file that `examples = { file = … }` names: `[[examples]]` tables."""

    examples: tuple[Example, ...]


def references(document: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Every `{ file = "…" }` in the document: where it stands and what it names."""
    if isinstance(document, dict):
        name = document.get("file")
        if len(document) == 1 and isinstance(name, str):
            yield path, name
            return
        for key, value in document.items():
            yield from references(value, (*path, key))
    elif isinstance(document, list):
        for place, value in enumerate(document):
            yield from references(value, (*path, place))


def resolve(path: KeyPath, name: str, folder: Path | None) -> Any:
    """What the reference at the path stands for: a text, or a list of examples.

    Raises ReferenceFault when it can't be used.
    """
    kind = type_at(Contract, path)
    is_examples = get_origin(kind) is tuple and get_args(kind)[0] is Example
    if kind is not str and not is_examples:
        raise ReferenceFault("can't come from a file; only texts and `examples` can")
    if folder is None:
        raise ReferenceFault(f"names the file {name!r}, but this contract has no folder")
    text = text_of(read_beside(folder, name), name)
    if is_examples:
        return _examples(text, name)
    return text.removesuffix("\n")


def read_beside(folder: Path, name: str) -> bytes:
    """The file's content. Raises ReferenceFault for what is missing, outside or behind a link."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise ReferenceFault(f"names {name!r}; only files below the contract's folder can be used")
    at = folder
    try:
        for part in parts:
            at = at / part
            if stat.S_ISLNK(at.lstat().st_mode):
                raise ReferenceFault(f"names {name!r}, which goes through a link; copy the file")
        if not stat.S_ISREG(at.lstat().st_mode):
            raise ReferenceFault(f"names {name!r}, which is no file")
        if at.lstat().st_size > LIMIT_BYTES:
            raise ReferenceFault(f"names {name!r}, which is larger than {LIMIT_BYTES} bytes")
        return at.read_bytes()
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ReferenceFault(f"names {name!r}, which can't be read: {reason}") from error


def text_of(content: bytes, name: str) -> str:
    """The text with LF line ends and without a byte-order mark. Raises ReferenceFault."""
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ReferenceFault(f"{name} line {line}: byte {error.start} is not UTF-8") from error


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """The plain document. Raises ReferenceFault with the line of the first syntax error."""
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ReferenceFault(f"{name}: is nested too deeply") from error
    except ValueError as error:
        raise ReferenceFault(f"{name}: is not valid TOML: {error}") from error


def _examples(text: str, name: str) -> list[dict[str, Any]]:
    document = parse_toml(text, name)
    checked = check(ExamplesFile, document)
    if checked.value is None:
        raise ReferenceFault(*(_said(text, name, fault) for fault in checked.faults))
    return [example.model_dump(exclude_none=True) for example in checked.value.examples]


def _said(text: str, name: str, fault: Fault) -> str:
    line = places_in(text).line_of(fault.path)
    place = f"{name} line {line}" if line else name
    return f"{place}: {join_key(fault.path)}: {fault.text}"
