"""Typed edits of a contract: by dotted key, inside the declared search space, never by line."""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import JsonValue, ValidationError

from rsi.domain.contract import Contract, Edit
from rsi.domain.values import Value
from rsi.errors import ContractError

SEALED = ("hcp", "name", "version", "search", "workspace", "mcp_servers")
"""Tables that no search may edit, whatever space a contract declares."""


class KeyChange(Value):
    """One key whose value differs between two contracts; None where it isn't set at all."""

    key: str
    old: JsonValue
    new: JsonValue


def is_in_space(contract: Contract, key: str) -> bool:
    """Whether the contract's declared search space lets the search edit the key.

    `*` in a pattern stands for one part, or at its end for all the rest.
    """
    parts = key.split(".")
    if parts[0] in SEALED:
        return False
    return any(_matches(pattern.split("."), parts) for pattern in contract.search.space)


def apply(contract: Contract, edits: Sequence[Edit]) -> Contract:
    """The child contract. Raises ContractError with every edit that lies outside the space, names
    nothing, or leaves an invalid contract."""
    faults = [
        f"{edit.key}: outside the declared search space"
        for edit in edits
        if not is_in_space(contract, edit.key)
    ]
    if faults:
        raise ContractError(f"edit of {contract.name}", tuple(faults))
    document = contract.model_dump(mode="json")
    for edit in edits:
        fault = _edited(document, edit)
        if fault:
            faults.append(fault)
    if faults:
        raise ContractError(f"edit of {contract.name}", tuple(faults))
    try:
        return Contract.model_validate(document)
    except ValidationError as error:
        said = tuple(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise ContractError(f"edit of {contract.name}", said) from error


def diff(old: Contract, new: Contract) -> tuple[KeyChange, ...]:
    """The keys that differ, in the contract's own order of tables."""
    before = dict(_flat(old.model_dump(mode="json"), ""))
    after = dict(_flat(new.model_dump(mode="json"), ""))
    return tuple(
        KeyChange(key=key, old=before.get(key), new=after.get(key))
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key) or (key in before) != (key in after)
    )


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern == ["*"]:
        return bool(parts)
    return bool(parts) and pattern[0] in ("*", parts[0]) and _matches(pattern[1:], parts[1:])


def _edited(document: dict[str, Any], edit: Edit) -> str:
    """Edits the plain document in place; says what is wrong, or nothing."""
    *path, last = edit.key.split(".")
    place: Any = document
    for part in path:
        place = _step(place, part)
        if place is None:
            return f"{edit.key}: there is no {part!r}"
    if not isinstance(place, dict):
        return f"{edit.key}: lies in no table"
    if edit.op == "unset":
        place.pop(last, None)
    else:
        place[last] = edit.value
    return ""


def _step(place: Any, part: str) -> Any:
    """One part deeper: a key of a table, or a named table of a list."""
    if isinstance(place, dict):
        return place.get(part)
    if isinstance(place, list):
        named = [entry for entry in place if isinstance(entry, dict) and entry.get("name") == part]
        return named[0] if named else None
    return None


def _flat(document: Any, prefix: str) -> Iterable[tuple[str, JsonValue]]:
    for key, value in document.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{name}.")
        elif (
            isinstance(value, list)
            and value
            and all(isinstance(entry, dict) and "name" in entry for entry in value)
        ):
            for entry in value:
                yield from _flat(entry, f"{name}.{entry['name']}.")
        else:
            yield name, value
