"""A contract written as a TOML document of its own."""

from collections.abc import Iterator, Mapping
from typing import Any

from rsi.domain.contract import Contract
from rsi.domain.contract_rules import NAMED_LISTS
from rsi.edges.contract_files.values import toml_key, toml_value


def written(contract: Contract) -> str:
    """The whole contract, defaults too, so that it means the same under later releases."""
    document = contract.model_dump(mode="json", exclude_none=True)
    named = {name: document.pop(name) for name in NAMED_LISTS}
    lines = list(_table((), document))
    for name, rows in named.items():
        for row in rows:
            lines += ["", f"[[{name}]]", *_pairs(row)]
    return "\n".join(lines) + "\n"


def _table(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    """A table's own keys, then the tables below it."""
    if path:
        yield ""
        yield f"[{'.'.join(toml_key(part) for part in path)}]"
    yield from _pairs({key: value for key, value in table.items() if not isinstance(value, dict)})
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _table((*path, key), value)


def _pairs(table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        yield f"{toml_key(key)} = {toml_value(value)}"
