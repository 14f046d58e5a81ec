"""`rsi contract show | validate | diff | render`: harness contracts, from files and the ledger."""

import argparse
import json
import tomllib
from pathlib import Path

from pydantic import JsonValue

from rsi.cli.answer import Answer, Table, command, plain
from rsi.cli.digests import contract_digest, is_prefix, task_digest
from rsi.cli.opening import opened_ledger
from rsi.domain.contract import Contract
from rsi.domain.edits import diff
from rsi.domain.rendering import Messages, render, render_instruction
from rsi.domain.task import Task
from rsi.domain.values import short
from rsi.errors import ContractError, UsageError
from rsi.ports import ContractDocument, ContractFiles, Ledger
from rsi.report.shown import line


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the commands."""
    about = "show, validate, diff and render harness contracts"
    group = commands.add_parser("contract", help=about, description=about)
    inner = group.add_subparsers(metavar="COMMAND", required=True)
    one = command(inner, "show", _show, "print a contract as TOML")
    one.add_argument("contract", metavar="FILE|DIGEST")
    one = command(inner, "validate", _validate, "say every fault of a file", aliases=("check",))
    one.add_argument("file", type=Path, metavar="FILE")
    one = command(inner, "diff", _diff, "the keys in which two contracts differ")
    one.add_argument("a", metavar="A", help="a file or a digest")
    one.add_argument("b", metavar="B", help="a file or a digest")
    one = command(inner, "render", _render, "exactly what the model will see")
    one.add_argument("contract", metavar="FILE|DIGEST")
    what = one.add_mutually_exclusive_group()
    what.add_argument("--task", metavar="DIGEST", help="a recorded task")
    what.add_argument("--instruction", metavar="TEXT", help="any instruction")


def show_contract(document: ContractDocument) -> Answer:
    """The contract, whole."""
    contract = document.contract
    return Answer(
        {
            "digest": contract.digest,
            "name": contract.name,
            "version": contract.version,
            "contract": plain(contract),
            "toml": document.toml,
        },
        (f"# digest {contract.digest}", document.toml),
    )


def validate(files: ContractFiles, path: Path) -> Answer:
    """Whether the file is a valid contract or evaluation contract, with every fault."""
    try:
        kind, name, digest = _read_either(files, path)
    except ContractError as error:
        faults: list[JsonValue] = [*error.faults]
        document: dict[str, JsonValue] = {"file": str(path), "valid": False, "faults": faults}
        return Answer(document, (str(error),), ContractError.exit_code)
    told = f"{path} is a valid {kind}: {name}, digest {short(digest)}"
    return Answer(
        {
            "file": str(path),
            "valid": True,
            "faults": [],
            "kind": kind,
            "name": name,
            "digest": digest,
        },
        (told,),
    )


def diff_contracts(a: Contract, b: Contract) -> Answer:
    """The keys in which the contracts differ, with both values."""
    changes = diff(a, b)
    table = Table(
        ("key", short(a.digest), short(b.digest)),
        tuple((each.key, _value(each.old), _value(each.new)) for each in changes),
        "no difference",
    )
    listed: list[JsonValue] = [plain(each) for each in changes]
    return Answer({"a": a.digest, "b": b.digest, "changes": listed}, (table,))


def render_contract(contract: Contract, task: Task | None, instruction: str) -> Answer:
    """The messages that open a trial on the task, or on a bare instruction."""
    messages = render(contract, task) if task else render_instruction(contract, instruction)
    sampling = contract.model.sampling
    listed: list[JsonValue] = [{"role": role, "text": text} for role, text in messages]
    exposed: list[JsonValue] = [name for name, tool in contract.tools.items() if tool.exposed]
    document: dict[str, JsonValue] = {
        "contract": contract.digest,
        "task": task.digest if task else None,
        "slot": contract.model.slot.value,
        "action": contract.agent.action.value,
        "tools": exposed,
        "sampling": plain(sampling),
        "messages": listed,
    }
    return Answer(document, (_told(messages),))


def read_contract(files: ContractFiles, ledger: Ledger, text: str) -> ContractDocument:
    """The recorded contract that a digest or its beginning names."""
    digest = contract_digest(ledger, text)
    return files.parse(ledger.contract_toml(digest), f"contract {short(digest)}")


def _read_either(files: ContractFiles, path: Path) -> tuple[str, str, str]:
    """(kind, name, digest) of the contract or evaluation contract in the file."""
    if _is_evaluation(path):
        evaluation = files.read_evaluation(path)
        return "evaluation contract", evaluation.name, evaluation.digest
    contract = files.read(path).contract
    return "contract", f"{contract.name} {contract.version}", contract.digest


def _is_evaluation(path: Path) -> bool:
    """Whether the file says so; one that can't be read is left to the strict reader."""
    try:
        return "evaluation" in tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return False


def _value(value: JsonValue) -> str:
    if value is None:
        return "(none)"
    return line(json.dumps(value, ensure_ascii=False), 60)


def _told(messages: Messages) -> str:
    return "\n".join(f"--- {role}\n{text}" for role, text in messages)


def _document(text: str) -> ContractDocument:
    """The contract of a file, or of a digest in the ledger."""
    from rsi import wiring

    files = wiring.contract_files()
    if Path(text).exists():
        return files.read(Path(text))
    if not is_prefix(text):
        raise UsageError(f"{text!r} is neither a file that exists nor a digest of a contract")
    with opened_ledger() as ledger:
        return read_contract(files, ledger, text)


def _show(arguments: argparse.Namespace) -> Answer:
    return show_contract(_document(arguments.contract))


def _validate(arguments: argparse.Namespace) -> Answer:
    from rsi import wiring

    return validate(wiring.contract_files(), arguments.file)


def _diff(arguments: argparse.Namespace) -> Answer:
    return diff_contracts(_document(arguments.a).contract, _document(arguments.b).contract)


def _render(arguments: argparse.Namespace) -> Answer:
    contract = _document(arguments.contract).contract
    if arguments.task is None:
        text = arguments.instruction or "How many lines are in kiwi.txt?"
        return render_contract(contract, None, text)
    with opened_ledger() as ledger:
        (task,) = ledger.tasks([task_digest(ledger, arguments.task)])
    return render_contract(contract, task, "")
