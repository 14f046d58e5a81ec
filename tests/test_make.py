"""The Makefile's help tells every target, and CI runs what the README names."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_bare_make_lists_every_target_for_people() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    done = subprocess.run(
        ["make"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True, env=environment
    )
    assert done.stderr == ""
    (line,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    listed = re.findall(r"^  make ((?:[a-z-]+ )*[a-z-]+)  ", done.stdout, re.MULTILINE)
    assert sorted(" ".join(listed).split()) == sorted(line.split())


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


def test_every_target_that_the_documents_name_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z -]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    known = {name for line in targets for name in line.split()}
    for page in (ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")):
        named = set(re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE))
        assert named <= known, page


def test_the_layout_names_every_part_of_the_tree() -> None:
    layout = (ROOT / "docs/architecture.md").read_text().split("```")[1]
    for found in (ROOT / "rsi").iterdir():
        if found.name.startswith("__") or (found.is_dir() and not any(found.glob("*.py"))):
            continue
        assert re.search(rf"\b{re.escape(found.name)}", layout), found


def test_every_link_of_the_documents_leads_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page}: {link}"
