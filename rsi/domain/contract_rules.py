"""What must hold between the keys of a contract, and what a search may touch."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from rsi.domain.contract import Contract, HookAction, HookEvent
from rsi.domain.faults import Checked, Fault, check
from rsi.domain.keys import (
    Path,
    is_table,
    join_key,
    matches,
    nearest,
    schema_keys,
    split_key,
    type_at,
)

PROTECTED = ("hcp", "name", "version", "search", "workspace", "mcp_servers")
"""Never searched: what names a contract, bounds the search or the machine, or starts programs."""
NAMED_LISTS = ("skills", "mcp_servers")


def event_of(action: HookAction) -> HookEvent:
    """The one event that the action belongs to."""
    match action:
        case HookAction.LIST_FILES:
            return HookEvent.BEFORE_MODEL
        case HookAction.CLEAN_ACTION:
            return HookEvent.AFTER_MODEL
        case HookAction.RETRY_ON_ERROR:
            return HookEvent.AFTER_TOOL
        case HookAction.REQUIRE_ANSWER:
            return HookEvent.BEFORE_STOP
        case _:
            assert_never(action)


def check_contract(document: dict[str, Any]) -> Checked[Contract]:
    """The document as a contract, or every fault: of single keys and between keys."""
    checked = check(Contract, document)
    faults = (*checked.faults, *_between(document))
    return Checked(None if faults else checked.value, faults)


def _between(document: Mapping[str, Any]) -> Iterator[Fault]:
    for table in NAMED_LISTS:
        yield from _repeated_names(table, document.get(table))
    yield from _misplaced_hooks(document.get("hooks"))
    yield from _unreachable_servers(document.get("mcp_servers"))
    search = document.get("search")
    if isinstance(search, Mapping):
        yield from _unsearchable(search.get("space"))


def _rows(rows: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if isinstance(rows, list | tuple):
        for place, row in enumerate(rows):
            if isinstance(row, Mapping):
                yield place, row


def _repeated_names(table: str, rows: object) -> Iterator[Fault]:
    seen: Counter[str] = Counter()
    for place, row in _rows(rows):
        name = row.get("name")
        if isinstance(name, str):
            seen[name] += 1
            if seen[name] == 2:
                yield Fault((table, place, "name"), f"{name!r} is named twice; names are unique")


def _misplaced_hooks(rows: object) -> Iterator[Fault]:
    events = {action.value: event_of(action).value for action in HookAction}
    for place, row in _rows(rows):
        event, action = row.get("event"), row.get("action")
        if not isinstance(action, str) or not isinstance(event, str):
            continue
        wanted = events.get(action)
        if wanted is not None and event in events.values() and event != wanted:
            text = f"`{action}` acts at {wanted}, not at {event}"
            yield Fault(("hooks", place, "action"), text)


def _unreachable_servers(rows: object) -> Iterator[Fault]:
    for place, row in _rows(rows):
        needed = "command" if row.get("transport", "stdio") == "stdio" else "url"
        if not row.get(needed):
            yield Fault(("mcp_servers", place), f"needs `{needed}` for its transport")


def _unsearchable(space: object) -> Iterator[Fault]:
    if not isinstance(space, list | tuple):
        return
    known = list(schema_keys(Contract))
    for place, pattern in enumerate(space):
        if not isinstance(pattern, str):
            continue
        parts = split_key(pattern)
        path = ("search", "space", place)
        if parts and parts[0] in PROTECTED:
            yield Fault(path, f"`{pattern}` can't be searched: {', '.join(PROTECTED)} never are")
        elif not any(len(parts) == len(key) and _meets(parts, key) for key in known):
            near = nearest(pattern, [join_key(key) for key in known])
            hint = f"; did you mean `{near}`?" if near else ""
            yield Fault(path, f"`{pattern}` names no key of a contract{hint}")
        elif "*" not in parts and is_table(type_at(Contract, placed(parts))):
            yield Fault(path, f"`{pattern}` is a table; name its keys, such as `{pattern}.*`")


def _meets(pattern: tuple[str, ...], key: tuple[str, ...]) -> bool:
    return (
        matches(key, pattern)
        or matches(pattern, key)
        or all("*" in (want, part) or want == part for want, part in zip(pattern, key, strict=True))
    )


def placed(parts: tuple[str, ...]) -> Path:
    """The way to a key in the schema: a place in a list for a name, the same for all names."""
    return tuple(
        0 if depth == 1 and parts[0] in NAMED_LISTS else part for depth, part in enumerate(parts)
    )
