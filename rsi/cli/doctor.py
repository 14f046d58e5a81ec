"""`rsi doctor`: what this machine lacks, and how to mend it."""

import argparse
import sys
from collections.abc import Sequence

from rsi.cli.answer import Answer, Table, command, plain
from rsi.cli.checks import Check, examine, is_well
from rsi.errors import PartError


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the command."""
    command(
        commands,
        "doctor",
        _doctor,
        "check every part of this machine, and say how to mend it",
        is_long=True,
    )


def diagnosis(checks: Sequence[Check]) -> Answer:
    """The checks with their remedies; exit status 3 when something that is needed is missing."""
    table = Table(
        ("", "part", "found"), tuple((check.status, check.name, check.found) for check in checks)
    )
    remedies = [f"{check.name}: {check.mend}" for check in checks if check.mend]
    told = ["", "To mend:", *(f"  {remedy}" for remedy in remedies)] if remedies else []
    well = is_well(checks)
    closing = "A generation can run." if well else "A generation can't run yet."
    return Answer(
        {"well": well, "checks": [plain(check) for check in checks]},
        (table, "\n".join([*told, "", closing])),
        0 if well else PartError.exit_code,
    )


def _doctor(_: argparse.Namespace) -> Answer:
    from rsi import wiring

    sys.stderr.write("Looking at every part; the sandbox takes a few seconds.\n")
    return diagnosis(tuple(examine(wiring.settings())))
