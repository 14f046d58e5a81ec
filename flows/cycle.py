"""The commands behind `make`: provide the parts, start the server, run flows, tell the story.

Prefect is imported only after its server has been started, since both take seconds.
"""

import argparse
import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

from flows import server
from flows.stopping import INTERRUPTED, ended_by_signals
from rsi import wiring
from rsi.errors import DiskError, RsiError, SettingsError
from rsi.provision import leave_engine, provision, undo
from rsi.settings import Settings

GOES_ON = "rsi: interrupted; run the same command again and it goes on where it was"
DISK_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES}
STAGES = ("discovery", "expansion", "update", "gate")


def main() -> int:
    """The exit status: 0, or that of the error, which is told in one message."""
    parser = argparse.ArgumentParser(prog="python -m flows.cycle")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("setup", "cycle", "nightly", "up", "down", "sweep"):
        commands.add_parser(name)
    for name in STAGES:
        commands.add_parser(name).add_argument("number", type=int)
    arguments = parser.parse_args()
    try:
        _run(arguments)
    except RsiError as error:
        say(f"rsi: {error}")
        return error.exit_code
    except OSError as error:
        # A full or unwritable disk can show anywhere; the ledger is as it was before.
        if error.errno not in DISK_FAULTS:
            raise
        say(f"rsi: {error}: make room or mend the rights there, and run the same command again")
        return DiskError.exit_code
    except KeyboardInterrupt:
        say(GOES_ON)
        return INTERRUPTED
    return 0


def _run(arguments: argparse.Namespace) -> None:
    chosen = wiring.settings()
    _make_state(chosen.state_dir)
    if arguments.command == "setup":
        provision(chosen, say)
    elif arguments.command == "up":
        _up(chosen)
    elif arguments.command == "down":
        _down(chosen)
    elif arguments.command == "sweep":
        leave_engine(chosen)
    elif arguments.command == "nightly":
        with_server(chosen, _nightly)
    elif arguments.command == "cycle":
        # What people wrote is checked before anything is started or fetched.
        wiring.contract_files().read(chosen.contract)
        wiring.contract_files().read_evaluation(chosen.evaluation)
        with_server(chosen, _cycle)
    else:
        with_server(chosen, lambda: _stage(arguments.command, arguments.number))


def _make_state(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"the state folder {folder} can't be made: {error}; name another one in RSI_STATE_DIR"
        ) from error


def with_server(chosen: Settings, work: Callable[[], None]) -> None:
    """Runs the work with every part provided and a Prefect server that answers."""
    was_running = server.running(chosen.state_dir / "prefect") is not None
    prefect = server.start(chosen.state_dir / "prefect")

    def last() -> None:
        say(GOES_ON)
        if not was_running:
            prefect.kill()
        _sweep()

    with ExitStack() as stack:
        stack.enter_context(ended_by_signals(last))
        if not was_running:
            stack.callback(prefect.stop)
        provision(chosen, say)
        # One engine for all stages: each stage would start and stop its own otherwise.
        sandbox = stack.enter_context(wiring.open_sandbox(chosen, say))
        if sandbox.check().engine == "namespaces":
            # It has been said once, and holds for every stage of this command.
            os.environ["RSI_SANDBOX"] = "namespaces"
        # The long import goes on while the server starts on another core.
        import_module("flows.generation")
        prefect.wait()
        from flows.outbox import send_all

        stack.callback(send_all)
        say(f"Prefect shows the run at {prefect.ui}")
        work()


def _sweep() -> None:
    """Stops our own Docker engine as soon as this process, its user, is gone."""
    subprocess.Popen(
        [sys.executable, "-m", "flows.cycle", "sweep"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parent.parent,
        start_new_session=True,
    )


def _cycle() -> None:
    from flows.generation import run_generation

    begun_s = time.monotonic()
    number = run_generation()
    _tell(number)
    say(f"Done in {(time.monotonic() - begun_s) / 60:.1f} min.")


def _nightly() -> None:
    from flows import nights

    nights.deploy()
    say("The worker runs a generation each night (the time is in prefect.yaml) until Ctrl-C.")
    nights.work()


def _stage(name: str, number: int) -> None:
    getattr(import_module(f"flows.{name}"), name)(number)
    _tell(number)


def _tell(number: int) -> None:
    """The story on standard output, and the report as a page."""
    from rsi.cli.generations import write_report
    from rsi.report.story import tell
    from rsi.report.text import render_text

    chosen = wiring.settings()
    ledger = wiring.open_ledger(chosen)
    try:
        target = chosen.state_dir / "reports" / f"generation-{number}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        write_report(ledger, number, target)
        sys.stdout.write(render_text(tell(ledger, number)) + "\n")
        sys.stdout.flush()
    finally:
        ledger.close()
    say(f"Report: {os.path.relpath(target)}   More: .venv/bin/rsi show {number}")


def _up(chosen: Settings) -> None:
    prefect = server.start(chosen.state_dir / "prefect")
    provision(chosen, say)
    prefect.wait()
    say(f"Prefect runs at {prefect.ui}; `make down` stops it and the database")


def _down(chosen: Settings) -> None:
    prefect = server.running(chosen.state_dir / "prefect")
    if prefect is not None:
        prefect.stop()
    undo(chosen)
    say("Stopped what rsi had started.")


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
