"""Typed edits of a contract, and the difference of two contracts by key.

What a search proposes is a list of edits; each names a leaf key: a scalar, or a list that is set
whole (`prompt.examples`, `hooks`). Keys outside the contract's declared space are refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from rsi.domain.contract import Contract, Edit
from rsi.domain.contract_rules import NAMED_LISTS, PROTECTED, check_contract, placed
from rsi.domain.keys import (
    Path,
    fields_at,
    is_table,
    join_key,
    matches,
    nearest,
    place_of,
    split_key,
    type_at,
)
from rsi.domain.values import Value
from rsi.errors import ContractError


class KeyChange(Value):
    """A key whose value differs; None stands for a table or value that isn't there."""

    key: str
    old: JsonValue = None
    new: JsonValue = None


def is_in_space(contract: Contract, key: str) -> bool:
    """Whether the contract lets a search edit the key."""
    parts = parts_of(contract, key)
    if not parts or parts[0] in PROTECTED:
        return False
    return any(matches(parts_of(contract, pattern), parts) for pattern in contract.search.space)


def apply(contract: Contract, edits: Sequence[Edit]) -> Contract:
    """The child contract. Raises ContractError with every edit that can't be made."""
    document = contract.model_dump(mode="json")
    faults: list[str] = []
    for edit in edits:
        path = _target(contract, edit.key, faults)
        if path is not None:
            _put(document, path, edit)
    if not faults:
        checked = check_contract(document)
        if checked.value is not None:
            return checked.value
        faults = [f"{join_key(fault.path)}: {fault.text}" for fault in checked.faults]
    raise ContractError(f"the edit of contract {contract.name!r}", tuple(faults))


def path_of(contract: Contract, key: str) -> Path:
    """The way to the key in the contract's document. Raises ContractError when it isn't a leaf."""
    faults: list[str] = []
    path = _path(contract, key, faults)
    if path is None:
        raise ContractError(f"the edit of contract {contract.name!r}", tuple(faults))
    return path


def parts_of(contract: Contract, key: str) -> tuple[str, ...]:
    """The parts of a dotted key; a name with dots in it is one part, in quotes or not."""
    parts = split_key(key)
    names = _names(contract, parts[0]) if parts else ()
    for end in range(len(parts), 2, -1):
        if (name := ".".join(parts[1:end])) in names:
            return (parts[0], name, *parts[end:])
    return parts


def diff(a: Contract, b: Contract) -> tuple[KeyChange, ...]:
    """The keys whose values differ, in the order of the contract; () only for equal contracts."""
    return tuple(_changes((), a.model_dump(mode="json"), b.model_dump(mode="json")))


def _changes(above: tuple[str, ...], old: JsonValue, new: JsonValue) -> Iterator[KeyChange]:
    if old == new:
        return
    is_named = len(above) == 1 and above[0] in NAMED_LISTS
    if is_named and isinstance(old, list) and isinstance(new, list):
        rows, other = _by_name(old), _by_name(new)
        yield from _changes_below(above, rows, other)
        kept = [name for name in rows if name in other]
        now = [name for name in other if name in rows]
        if kept != now:
            yield KeyChange(key=join_key(above), old=list(rows), new=list(other))
    elif isinstance(old, dict) and isinstance(new, dict) and not _is_leaf(above):
        yield from _changes_below(above, old, new)
    else:
        yield KeyChange(key=join_key(above), old=old, new=new)


def _changes_below(
    above: tuple[str, ...], old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]
) -> Iterator[KeyChange]:
    for name in dict.fromkeys((*old, *new)):
        yield from _changes((*above, name), old.get(name), new.get(name))


def _is_leaf(above: tuple[str, ...]) -> bool:
    return bool(above) and not is_table(type_at(Contract, placed(above)))


def _by_name(rows: list[JsonValue]) -> dict[str, JsonValue]:
    return {str(row["name"]): row for row in rows if isinstance(row, dict)}


def _names(contract: Contract, table: str) -> tuple[str, ...]:
    if table == "tools":
        return tuple(contract.tools)
    rows: Sequence[Any] = getattr(contract, table) if table in NAMED_LISTS else ()
    return tuple(row.name for row in rows)


def _target(contract: Contract, key: str, faults: list[str]) -> Path | None:
    """The way to a key that may be edited; a fault is noted otherwise."""
    path = _path(contract, key, faults)
    if path is None or is_in_space(contract, key):
        return path
    listed = ", ".join(contract.search.space) or "nothing"
    faults.append(f"{key}: is outside the declared search space ({listed})")
    return None


def _path(contract: Contract, key: str, faults: list[str]) -> Path | None:
    parts = parts_of(contract, key)
    if not parts:
        faults.append(f"{key!r}: is no dotted key")
        return None
    if len(parts) > 1 and parts[0] in ("tools", *NAMED_LISTS):
        names = _names(contract, parts[0])
        if parts[1] not in names:
            faults.append(f"{key}: {parts[0]} has no {parts[1]!r}{_hint(parts[1], names)}")
            return None
    kind = type_at(Contract, placed(parts))
    if kind is None:
        known = fields_at(Contract, placed(parts)[:-1])
        faults.append(f"{key}: is no known key{_hint(parts[-1], known)}")
        return None
    if is_table(kind):
        faults.append(f"{key}: is a table; edit its keys one by one")
        return None
    if parts[0] not in NAMED_LISTS:
        return parts
    rows = [row.model_dump() for row in getattr(contract, parts[0])]
    place = place_of(rows, parts[1])
    assert place is not None
    return (parts[0], place, *parts[2:])


def _hint(word: str, known: Sequence[str]) -> str:
    near = nearest(word, known)
    return f"; did you mean `{near}`?" if near else ""


def _put(document: Any, path: Path, edit: Edit) -> None:
    for part in path[:-1]:
        document = document[part]
    if edit.op == "set":
        document[path[-1]] = edit.value
    else:
        document.pop(path[-1], None)
