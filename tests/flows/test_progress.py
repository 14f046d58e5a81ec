"""Progress is bars in a terminal, lines elsewhere, and quiet where nobody looks."""

import io

from rich.console import Console

from flows.progress import BarProgress, FlowProgress, open_progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_lines_without_control_characters() -> None:
    pipe = io.StringIO()
    with open_progress(pipe) as progress:
        assert isinstance(progress, FlowProgress)
        progress.stage("discovery", 3)
        progress.advance()
        progress.say("[generation 1] is open")
    assert pipe.getvalue() == "discovery: 3 steps\n[generation 1] is open\n"


def test_a_terminal_gets_a_bar_for_each_stage() -> None:
    terminal = Terminal()
    with open_progress(terminal) as progress:
        progress.stage("discovery", 2)
        progress.advance(2)
        progress.stage("expansion", 7)
        progress.advance(3, "four to go")
    shown = terminal.getvalue()
    for part in ("discovery", "2/2", "expansion", "3/7", "four to go"):
        assert part in shown


def test_what_is_said_is_no_markup() -> None:
    terminal = Terminal()
    with BarProgress(Console(file=terminal, force_terminal=True)) as bars:
        bars.say("a[/b] ] [red]")
        bars.advance()
    assert "a[/b] ] [red]" in terminal.getvalue()
