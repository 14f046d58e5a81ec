"""Rewards by cases: the solution runs in the box, and what it gives is compared out here.

What the box says is only a claim about values. A solution that writes the answers of its own
process must know the right ones, and those never enter the box.
"""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from rsi.domain.cases import CallCase, RunCase, is_same, is_same_text
from rsi.domain.task import Task
from rsi.ports import Box, Ran

OUTPUT_LIMIT_BYTES = 1 << 20
CALLER = """
import importlib.util, json, os, sys
say = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # What the solution prints is no answer.
loaded = {}

def function(entry):
    path, _, name = entry.partition(":")
    if path not in loaded:
        stem = os.path.basename(path)[:-3]
        spec = importlib.util.spec_from_file_location(stem, os.path.abspath(path))
        loaded[path] = sys.modules[stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded[path])
    return getattr(loaded[path], name)

calls = json.load(sys.stdin)
sys.path.append(os.getcwd())  # At the end: a file named as a module of Python's doesn't hide it.
for call in calls:
    try:
        said = json.dumps({"returns": function(call["call"])(*call["args"], **call["kwargs"])})
    except BaseException as error:
        said = json.dumps({"raises": type(error).__name__})
    print(said, file=say, flush=True)
"""
"""Runs in the box: makes the calls one after another, says what each returned or raised."""


def rewards_by_cases(task: Task, box: Box) -> dict[str, float]:
    """`reward` is 1 when every case is met, else 0; `cases` is the share of those that are."""
    calls = [case for case in task.cases if isinstance(case, CallCase)]
    runs = [case for case in task.cases if isinstance(case, RunCase)]
    met = _met_calls(task, box, calls) if calls else 0
    met += sum(_is_met(task, box, case) for case in runs)
    share = met / len(task.cases)
    return {"reward": float(met == len(task.cases)), "cases": share}


def _met_calls(task: Task, box: Box, cases: Sequence[CallCase]) -> int:
    asked = [case.model_dump(mode="json", include={"call", "args", "kwargs"}) for case in cases]
    ran = box.run(
        ["python3", "-I", "-B", "-c", CALLER],
        timeout_s=task.verifier_timeout_s,
        output_limit_bytes=OUTPUT_LIMIT_BYTES,
        stdin=json.dumps(asked).encode(),
        cwd=task.workdir,
    )
    box.stop_all()
    said = [_document(line) for line in ran.stdout.splitlines()]
    # More or fewer answers than calls: none of them can be told whose it is.
    return sum(map(_is_right, said, cases)) if len(said) == len(cases) else 0


def _is_right(said: dict[str, JsonValue], case: CallCase) -> bool:
    if case.raises is not None:
        return said == {"raises": case.raises}
    return said.keys() == {"returns"} and is_same(said["returns"], case.returns, case.tolerance)


def _document(line: bytes) -> dict[str, JsonValue]:
    """What a line says; nothing for what isn't a JSON object."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _is_met(task: Task, box: Box, case: RunCase) -> bool:
    ran: Ran = box.run(
        case.run,
        timeout_s=task.verifier_timeout_s,
        output_limit_bytes=OUTPUT_LIMIT_BYTES,
        stdin=case.stdin.encode(),
        cwd=task.workdir,
    )
    box.stop_all()
    printed = ran.stdout.decode("utf-8", "replace")
    is_whole = not ran.is_truncated and ran.exit_code == case.exit_code
    return is_whole and is_same_text(printed, case.prints)
