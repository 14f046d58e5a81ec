"""The ContractFiles port: contracts as TOML documents, read strictly and edited in place.

`tomllib` reads, since it is strict and quick; tomlkit writes values; an edit replaces one key's
piece of the text, so that comments, order and every other byte stay.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rsi.domain import edits as domain_edits
from rsi.domain.contract import Contract, Edit
from rsi.domain.contract_rules import check_contract
from rsi.domain.evaluation import Evaluation
from rsi.domain.faults import Fault, check
from rsi.domain.keys import join_key
from rsi.domain.places import Places, places_in
from rsi.edges.contract_files.evaluation_rules import suite_faults, with_resolved_suites
from rsi.edges.contract_files.references import (
    ReferenceFault,
    parse_toml,
    read_beside,
    references,
    resolve,
    text_of,
)
from rsi.edges.contract_files.splicing import with_value, without_key
from rsi.edges.contract_files.writing import written
from rsi.errors import ContractError
from rsi.ports import ContractDocument


class TomlContractFiles:
    """Reads, edits and writes contracts."""

    def read(self, path: Path) -> ContractDocument:
        """The contract, with a text that needs no other file.

        Raises ContractError with every fault, each with its line.
        """
        return self.parse(_text(path), str(path), path.parent)

    def parse(self, toml: str, source: str, folder: Path | None = None) -> ContractDocument:
        """The contract of a text; `folder` is where its files lie.

        Raises ContractError with every fault, each with its line.
        """
        original = text = _normal(toml)
        document = _parsed(text, source)
        faults: list[Fault] = []
        for path, name in list(references(document)):
            try:
                value = resolve(path, name, folder)
            except ReferenceFault as fault:
                faults += [Fault(path, each) for each in fault.texts]
                continue
            _put(document, path, value)
            text = with_value(text, path, value)
        checked = check_contract(document)
        named = {fault.path for fault in faults}
        faults += [fault for fault in checked.faults if not _is_below(fault, named)]
        if checked.value is None or faults:
            raise ContractError(source, _listed(places_in(original), faults))
        return ContractDocument(checked.value, text)

    def read_evaluation(self, path: Path) -> Evaluation:
        """The evaluation contract, with suite folders as absolute paths.

        Raises ContractError with every fault, each with its line.
        """
        text = _text(path)
        document = _parsed(text, str(path))
        checked = check(Evaluation, document)
        faults = [*checked.faults, *suite_faults(document, path.parent)]
        if checked.value is None or faults:
            raise ContractError(str(path), _listed(places_in(text), faults))
        return with_resolved_suites(checked.value, path.parent)

    def write(self, contract: Contract) -> ContractDocument:
        """The contract as a TOML document of its own, without comments."""
        return ContractDocument(contract, written(contract))

    def edit(self, document: ContractDocument, edits: Sequence[Edit]) -> ContractDocument:
        """The child document; comments, order and every other byte stay.

        Raises ContractError when a key lies outside the declared search space, or the result
        isn't a valid contract.
        """
        child = domain_edits.apply(document.contract, edits)
        text = document.toml
        for edit in edits:
            path = domain_edits.path_of(document.contract, edit.key)
            if edit.op == "unset" or edit.value is None:
                text = without_key(text, path)
            else:
                text = with_value(text, path, edit.value)
        edited = self.parse(text, f"the edit of contract {child.name!r}")
        if edited.contract != child:
            changes = domain_edits.diff(child, edited.contract)
            faults = tuple(f"{change.key}: the text says otherwise" for change in changes)
            raise ContractError(f"the edit of contract {child.name!r}", faults)
        return edited


def _text(path: Path) -> str:
    try:
        return text_of(read_beside(path.parent, path.name), path.name)
    except ReferenceFault as fault:
        raise ContractError(str(path), fault.texts) from fault


def _normal(toml: str) -> str:
    return toml.removeprefix("\ufeff").replace("\r\n", "\n")


def _parsed(text: str, source: str) -> dict[str, Any]:
    try:
        return parse_toml(text, "the document")
    except ReferenceFault as fault:
        raise ContractError(source, fault.texts) from fault


def _put(document: Any, path: tuple[str | int, ...], value: Any) -> None:
    for part in path[:-1]:
        document = document[part]
    document[path[-1]] = value


def _is_below(fault: Fault, named: set[tuple[str | int, ...]]) -> bool:
    """Whether the fault comes of a file that could not be used, which is told already."""
    return any(fault.path[:depth] in named for depth in range(1, len(fault.path) + 1))


def _listed(places: Places, faults: Sequence[Fault]) -> tuple[str, ...]:
    """The faults in the order of their lines."""
    found = []
    for fault in faults:
        line = places.line_of(fault.path)
        place = f"line {line}: " if line else ""
        found.append((line or 0, f"{place}{join_key(fault.path)}: {fault.text}"))
    return tuple(text for _, text in sorted(found, key=lambda entry: entry[0]))
