"""The Makefile's help tells every target, and CI runs what the README names."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_bare_make_lists_every_target_for_people() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    said = subprocess.run(
        ["make"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True, env=environment
    ).stdout
    for target in ("cycle", "test", "check", "setup", "up", "down", "report", "discovery"):
        assert re.search(rf"\b{target}\b", said), target


def test_ci_runs_the_command_that_the_readme_names() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make test" in readme
    assert "make cycle" in readme
    assert "make test" in (ROOT / ".ci/run").read_text()


def test_a_stage_wants_to_know_its_generation() -> None:
    done = subprocess.run(
        ["make", "--dry-run", "gate"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "say which generation" in done.stdout + done.stderr
