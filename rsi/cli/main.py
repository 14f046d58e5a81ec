"""The entry of the `rsi` command: arguments in, an answer out, an exit status."""

import argparse
import atexit
import gc
import os
import sys
from collections.abc import Sequence

from rsi.errors import RsiError

INTERRUPTED = 130
"""What shells give for a command that ended by an interrupt."""


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status: 0, or that of the error, which is told on standard error."""
    # A reading command lives for half a second: looking for garbage, at the end too, and for
    # plug-ins of pydantic that nobody has installed, would be a third of it.
    gc.disable()
    atexit.register(gc.freeze)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    try:
        made = parser()
        arguments = made.parse_args(argv)
        if not hasattr(arguments, "run"):
            made.print_help(sys.stderr)
            return 2
        if arguments.is_long:
            gc.enable()
        return _run(arguments)
    finally:
        gc.enable()


def _run(arguments: argparse.Namespace) -> int:
    from rsi.cli.printing import show
    from rsi.report.shown import clean

    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character must not end the command.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        answer = arguments.run(arguments)
        show(answer, sys.stdout, as_json=arguments.json)
        sys.stdout.flush()
    except RsiError as error:
        sys.stderr.write(f"rsi: {clean(str(error))}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("rsi: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has seen enough; what is still buffered must not raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return int(answer.exit_code)


def parser() -> argparse.ArgumentParser:
    """The parser of every command."""
    from rsi.cli import contracts, doctor, generations, pairs, tasks, trials

    made = argparse.ArgumentParser(
        prog="rsi",
        description="Reads, validates and rolls back what the pipeline has done.",
        epilog="Every reading command takes --json. docs/cli.md describes the keys.",
    )
    commands = made.add_subparsers(metavar="COMMAND")
    for module in (generations, pairs, trials, contracts, tasks, doctor):
        module.add(commands)
    return made
