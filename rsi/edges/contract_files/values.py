"""Values written as TOML, by tomlkit."""

from collections.abc import Mapping
from typing import Any

import tomlkit

LONG_LINE_CHARS = 80
"""A list that would be longer is written with one element a line."""


def toml_value(value: Any) -> str:
    """The value as TOML text; texts of several lines and long lists get several lines.

    Keys without a value are left out: TOML has no null.
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        pairs = [
            f"{toml_key(key)} = {toml_value(item)}"
            for key, item in value.items()
            if item is not None
        ]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        items = [toml_value(item) for item in value]
        line = f"[{', '.join(items)}]"
        if len(line) <= LONG_LINE_CHARS and "\n" not in line:
            return line
        return "[\n" + "".join(f"  {item},\n" for item in items) + "]"
    return str(tomlkit.item(value).as_string())


def toml_key(part: str) -> str:
    """One part of a key, quoted where TOML needs it."""
    return tomlkit.key(part).as_string()


def _text(text: str) -> str:
    lines = [tomlkit.item(line).as_string()[1:-1] for line in text.split("\n")]
    if len(lines) == 1:
        return f'"{lines[0]}"'
    # The newline behind the opening quotes isn't part of the text.
    return '"""\n' + "\n".join(lines) + '"""'
