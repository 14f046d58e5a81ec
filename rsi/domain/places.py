"""Where each key of a TOML document stands: lines for people, spans for edits of the text.

The text must be valid TOML with LF line ends; what it means is `tomllib`'s work. Spans let an
edit replace one value and leave every other byte as it is.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field

from rsi.domain.keys import Path

_STRINGS = (
    re.compile(r'"""(?:\\.|[^\\])*?"""(?!")', re.DOTALL),
    re.compile(r"'''.*?'''(?!')", re.DOTALL),
    re.compile(r'"(?:\\.|[^"\\\n])*"'),
    re.compile(r"'[^'\n]*'"),
)
_BARE = re.compile(r"[^,\]}#\n]*[^,\]}#\s]")
_KEY = re.compile(r"""[ \t]*([A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')[ \t]*""")
_GAP = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_REST_OF_LINE = re.compile(r"[^\n]*\n?")


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the text, from `start` up to before `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Statement:
    """One `key = value`; `whole` takes in its lines with what stands behind the value."""

    path: Path
    section: int
    """Place of the section that it stands in."""
    value: Span
    whole: Span
    is_inline: bool = False
    """It stands inside a value: an inline table's key or a list's element."""


@dataclass(slots=True)
class Section:
    """A table's header and the keys below it; the first section is the root, without a header."""

    path: Path
    start: int
    body_end: int
    """Behind its last key, or behind its header when it has none."""


@dataclass(slots=True)
class Places:
    """Everything that stands in a document, by its path."""

    text: str
    statements: list[Statement] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    def line_of(self, path: Path) -> int | None:
        """The line of the key, or of the nearest table above it that is written out."""
        starts: dict[Path, int] = {}
        for section in reversed(self.sections[1:]):
            starts[section.path] = section.start
        for statement in reversed(self.statements):
            starts[statement.path] = statement.whole.start
        while path:
            if path in starts:
                return self.text.count("\n", 0, starts[path]) + 1
            path = path[:-1]
        return None


def places_in(text: str) -> Places:
    """The places of a valid document's keys."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places = Places(text, sections=[Section((), 0, 0)])
        self.counts: dict[Path, int] = {}

    def scan(self) -> Places:
        while self._skip(_GAP) < len(self.text):
            if self.text[self.at] == "[":
                self._header()
            else:
                self._statement()
        return self.places

    def _header(self) -> None:
        start = self.at
        is_list = self.text.startswith("[[", start)
        self.at += 2 if is_list else 1
        keys = self._keys()
        path = self._resolved(keys[:-1])
        if is_list:
            name = (*path, keys[-1])
            place = self.counts.get(name, 0)
            self.counts[name] = place + 1
            path = (*name, place)
        else:
            path = self._resolved(keys)
        start = self._line_start(start)
        self._skip(_REST_OF_LINE)
        self.places.sections.append(Section(path, start, self.at))

    def _resolved(self, keys: tuple[str, ...]) -> Path:
        """The path of a header, with the newest place of each list of tables on the way."""
        path: Path = ()
        for key in keys:
            path = (*path, key)
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
        return path

    def _statement(self) -> None:
        start = self.at
        section = self.places.sections[-1]
        path = (*section.path, *self._keys())
        self.at += 1
        self._skip(_GAP)
        inner: list[Statement] = []
        value = self._value(path, inner)
        self._skip(_REST_OF_LINE)
        section.body_end = self.at
        place = len(self.places.sections) - 1
        whole = Span(self._line_start(start), self.at)
        self.places.statements.append(Statement(path, place, value, whole))
        self.places.statements += inner

    def _value(self, path: Path, inner: list[Statement]) -> Span:
        start = self.at
        if self.text[start] == "[":
            self._list(path, inner)
        elif self.text[start] == "{":
            self._table(path, inner)
        else:
            self._scalar()
        return Span(start, self.at)

    def _list(self, path: Path, inner: list[Statement]) -> None:
        place = 0
        self.at += 1
        self._skip(_GAP)
        while self.text[self.at] != "]":
            self._inner((*path, place), inner)
            place += 1
        self.at += 1

    def _table(self, path: Path, inner: list[Statement]) -> None:
        self.at += 1
        self._skip(_GAP)
        while self.text[self.at] != "}":
            keys = self._keys()
            self.at += 1
            self._skip(_GAP)
            self._inner((*path, *keys), inner)
        self.at += 1

    def _inner(self, path: Path, inner: list[Statement]) -> None:
        """One element, with the comma and the gaps around it."""
        below: list[Statement] = []
        value = self._value(path, below)
        section = len(self.places.sections) - 1
        inner.append(Statement(path, section, value, value, is_inline=True))
        inner += below
        self._skip(_GAP)
        if self.text[self.at] == ",":
            self.at += 1
            self._skip(_GAP)

    def _scalar(self) -> None:
        for pattern in (*_STRINGS, _BARE):
            if found := pattern.match(self.text, self.at):
                self.at = found.end()
                return
        raise ValueError(f"no value at character {self.at}")

    def _keys(self) -> tuple[str, ...]:
        keys: list[str] = []
        while found := _KEY.match(self.text, self.at):
            keys.append(_unquoted(found[1]))
            self.at = found.end()
            if self.text[self.at] != ".":
                return tuple(keys)
            self.at += 1
        raise ValueError(f"no key at character {self.at}")

    def _line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def _skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return self.at


def _unquoted(key: str) -> str:
    if key[0] == "'":
        return key[1:-1]
    if key[0] == '"':
        table: Mapping[str, int] = tomllib.loads(f"{key} = 0")
        return next(iter(table))
    return key
