"""Contracts as TOML: read strictly, told apart from their line ends, edited in place."""

import os
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsi.domain.contract import Contract, Edit
from rsi.domain.edits import apply, path_of
from rsi.domain.evaluation import Evaluation
from rsi.domain.keys import is_table, join_key, schema_keys, type_at
from rsi.domain.places import places_in
from rsi.domain.values import Value
from rsi.edges.contract_files.files import TomlContractFiles
from rsi.edges.contract_files.splicing import with_value, without_key
from rsi.errors import ContractError
from rsi.ports import ContractDocument
from tests.strategies import TEXTS, contracts, edits_for

FILES = TomlContractFiles()
ROOT = Path(__file__).parents[2]
SMALL = """\
# a harness
hcp = "1"
name = "small"
version = "1.0.0"
agent.turns = 2  # by a dotted key

[model.sampling]
temperature = 0.5 # warm

[tools.bash]
kind = "bash"

[[skills]]
name = "one"
text = '''
raw \\ text'''

[[skills]]
name = "two" # the second
  [[skills.examples]]
  instruction = "count"
  reply = "wc -l < a.txt"

[[hooks]]
event = "before_model"
action = "list_files"

[search]
space = ["agent.*", "prompt.*", "model.sampling.*", "skills.*.*", "tools.bash.exposed", "hooks"]
"""
PLACED = """\
hcp = "1"
name = "folder"
version = "1.0.0"
skills = [{ name = "book", examples = { file = "skills/book.toml" }, shown = 1 }]

[prompt]
system = { file = "prompts/system.md" } # long
"""
BOOK = """\
[[examples]]
instruction = "How many lines?"
reply = "wc -l < a.txt"
"""


def _parse(text: str) -> ContractDocument:
    return FILES.parse(text, "here")


def _faults(text: str, folder: Path | None = None) -> tuple[str, ...]:
    with pytest.raises(ContractError) as caught:
        FILES.parse(text, "here", folder)
    return caught.value.faults


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "placed.toml": PLACED,
        "skills/book.toml": BOOK,
        "prompts/system.md": "Be brief.\nBe right.\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


# --- reading


def test_the_shipped_contract_is_sound_and_shows_no_example() -> None:
    document = FILES.read(ROOT / "contracts" / "shell.toml")
    assert document.contract.skills[0].examples
    assert document.contract.skills[0].shown == 0
    assert document.contract.tools["bash"].exposed
    assert not document.contract.tools["python"].exposed
    assert _parse(document.toml).contract.digest == document.contract.digest


def test_the_shipped_evaluation_contract_is_sound() -> None:
    evaluation = FILES.read_evaluation(ROOT / "contracts" / "evaluation.toml")
    assert not evaluation.expansion.reference_solutions_shown
    assert evaluation.gate.min_pairs <= evaluation.gate.exam_tasks


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.removesuffix("\n"),
        lambda text: "\ufeff" + text.replace("\n", "\r\n").removesuffix("\r\n"),
        lambda text: text.replace("# a harness\n", ""),
        lambda text: text.replace("version", "# why\nversion"),
    ],
)
def test_marks_line_ends_and_comments_do_not_change_the_digest(
    change: Callable[[str], str], tmp_path: Path
) -> None:
    path = tmp_path / "small.toml"
    path.write_bytes(change(SMALL).encode())
    assert FILES.read(path).contract.digest == _parse(SMALL).contract.digest


def test_every_fault_is_told_at_once_with_its_line_and_the_nearest_key() -> None:
    text = """\
hcp = "1"
name = "Bad Name"
version = "1.0.0"
[agnet]
turns = 1
[agent]
turnz = 2
votes = 0
retries = "3"
temperature = 1.0
[model.sampling]
temperature = nan
stop = ["a", 2024-01-01]
[tools.bash]
[[skills]]
name = "one"
[[skills]]
name = "one"
[[hooks]]
event = "after_tool"
action = "clean_action"
[[mcp_servers]]
name = "files"
[search]
space = ["agent.turnz", "workspace.pids", "agent"]
"""
    faults = _faults(text)
    for wanted in (
        "line 2: name: ",
        "line 4: agnet: is no known key; did you mean `agent`?",
        "line 7: agent.turnz: is no known key; did you mean `turns`?",
        "line 8: agent.votes: should be greater than or equal to 1, but is 0",
        "line 9: agent.retries: should be a valid integer",
        "line 10: agent.temperature: is no known key here; did you mean `model.sampling.temp",
        "line 12: model.sampling.temperature: must be a finite number",
        "line 13: model.sampling.stop.1: is a date or time",
        "line 14: tools.bash.kind: is missing",
        "line 18: skills.1.name: 'one' is named twice",
        "line 21: hooks.0.action: `clean_action` acts at after_model, not at after_tool",
        "line 22: mcp_servers.0: needs `command`",
        "line 25: search.space.0: `agent.turnz` names no key of a contract; did you mean",
        "line 25: search.space.1: `workspace.pids` can't be searched",
        "line 25: search.space.2: `agent` is a table",
    ):
        assert any(fault.startswith(wanted) for fault in faults), (wanted, faults)
    assert len(faults) == 15


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('hcp = "1"\nname = \n', "line 2"),
        ("[tools.bash]\n[tools.bash]\n", "line 2"),
        ("a = 1\na = 2\n", "line 2"),
        ('a = "\\ud800"\n', "line 1"),
        ("a = " + "[" * 5000, "too deeply"),
        ("a = " + "9" * 5000, "not valid TOML"),
    ],
)
def test_a_syntax_error_has_its_line(text: str, wanted: str) -> None:
    assert wanted in _faults(text)[0]


@pytest.mark.parametrize("content", [b"\xff\xfe", b'hcp = "1"\nname = "\xe9"\n'])
def test_bytes_that_are_no_text_are_a_fault(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    with pytest.raises(ContractError, match="UTF-8"):
        FILES.read(path)


def test_a_missing_contract_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="can't be read"):
        FILES.read(tmp_path / "none.toml")


@given(st.text())
def test_any_text_is_a_contract_or_a_contract_error(text: str) -> None:
    with suppress(ContractError):
        assert _parse(text).contract.digest


# --- files beside the contract


def test_files_beside_the_contract_are_part_of_it(folder: Path) -> None:
    document = FILES.read(folder / "placed.toml")
    assert document.contract.prompt.system == "Be brief.\nBe right."
    assert document.contract.skills[0].examples[0].reply == "wc -l < a.txt"
    before = document.contract.digest
    (folder / "prompts/system.md").write_bytes(b"\xef\xbb\xbfBe brief.\r\nBe right.")
    assert FILES.read(folder / "placed.toml").contract.digest == before
    (folder / "prompts/system.md").write_text("Be long.")
    assert FILES.read(folder / "placed.toml").contract.digest != before


def test_the_stored_text_needs_no_other_file_and_keeps_comments(folder: Path) -> None:
    document = FILES.read(folder / "placed.toml")
    assert "file =" not in document.toml
    assert "# long" in document.toml
    assert _parse(document.toml) == document


@pytest.mark.parametrize(
    "name", ["../outside.md", "/etc/hostname", "prompts/../../outside.md", "none.md", "prompts", ""]
)
def test_no_file_outside_the_folder_is_read(folder: Path, name: str) -> None:
    (folder.parent / "outside.md").write_text("secret")
    faults = _faults(PLACED.replace("prompts/system.md", name), folder)
    assert len(faults) == 1
    assert faults[0].startswith("line 7: prompt.system: names")


def test_no_link_is_followed(folder: Path) -> None:
    os.symlink(folder / "prompts", folder / "linked")
    os.symlink("/etc/hostname", folder / "prompts" / "link.md")
    for name in ("linked/system.md", "prompts/link.md"):
        assert "link" in _faults(PLACED.replace("prompts/system.md", name), folder)[0]


def test_faults_of_a_cookbook_name_its_own_lines(folder: Path) -> None:
    (folder / "skills/book.toml").write_text(BOOK + '[[examples]]\ninstruktion = "x"\nreply = 1\n')
    faults = _faults(PLACED, folder)
    assert any("skills/book.toml line 5: examples.1.instruktion" in fault for fault in faults)
    assert any("skills/book.toml line 6: examples.1.reply" in fault for fault in faults)


def test_a_number_cannot_come_from_a_file(folder: Path) -> None:
    faults = _faults(PLACED + '[agent]\nturns = { file = "prompts/system.md" }\n', folder)
    assert "only texts and `examples` can" in faults[0]


# --- writing and editing


@given(contracts())
def test_a_written_contract_reads_back_the_same(made: Contract) -> None:
    assert _parse(FILES.write(made).toml).contract == made


@given(st.data())
def test_an_edited_document_says_what_the_edited_contract_says(data: st.DataObject) -> None:
    document = FILES.write(data.draw(contracts()))
    edits = data.draw(edits_for(document.contract))
    child = FILES.edit(document, edits)
    assert child.contract == apply(document.contract, edits)
    assert _parse(child.toml).contract.digest == child.contract.digest


@given(st.data())
def test_an_edit_leaves_every_other_byte_of_a_hand_written_text(data: st.DataObject) -> None:
    document = _parse(SMALL)
    edits = data.draw(edits_for(document.contract).filter(_is_inside))
    child = FILES.edit(document, edits)
    assert child.contract == apply(document.contract, edits)
    touched = {path_of(document.contract, edit.key) for edit in edits}
    kept = [
        place
        for place in places_in(SMALL).statements
        if not any(place.path[: len(path)] == path for path in touched)
    ]
    after = {place.path: place for place in places_in(child.toml).statements}
    for place in kept:
        found = after[place.path]
        assert (
            child.toml[found.whole.start : found.whole.end]
            == SMALL[place.whole.start : place.whole.end]
        )
    assert "# a harness" in child.toml


def _is_inside(edits: list[Edit]) -> bool:
    return not any(edit.key.startswith(("session.", "tools.bash.policy")) for edit in edits)


def test_an_edit_keeps_order_and_comments() -> None:
    edits = [
        Edit(key="agent.votes", value=3),
        Edit(key="model.sampling.temperature", value=0.7),
        Edit(key="skills.one.shown", value=1),
        Edit(key="prompt.system", value="Two\nlines"),
        Edit(key="hooks", value=[]),
    ]
    child = FILES.edit(_parse(SMALL), edits).toml
    assert child == SMALL.replace(
        "# by a dotted key\n", "# by a dotted key\nagent.votes = 3\nhooks = []\n"
    ).replace("temperature = 0.5 # warm", "temperature = 0.7 # warm").replace(
        "raw \\ text'''\n", "raw \\ text'''\nshown = 1\n"
    ).replace('[[hooks]]\nevent = "before_model"\naction = "list_files"\n', "") + (
        '\n[prompt]\nsystem = """\nTwo\nlines"""\n'
    )


def test_an_edit_reaches_into_inline_tables(folder: Path) -> None:
    space = '\n[search]\nspace = ["skills.*.*"]\n'
    document = FILES.parse(PLACED + space, "here", folder)
    edits = [Edit(key="skills.book.shown", op="unset"), Edit(key="skills.book.text", value="x")]
    child = FILES.edit(document, edits)
    assert child.contract == apply(document.contract, edits)
    assert child.toml.count("\n[") == document.toml.count("\n[")


def test_an_edit_outside_the_space_leaves_no_document() -> None:
    with pytest.raises(ContractError, match="outside the declared search space"):
        FILES.edit(_parse(SMALL), [Edit(key="workspace.pids", value=9)])


FORMS = (
    "[a]\nb = 1\n[a.c]\nd = 2\n[e]\nf = 3",
    "a.b = 1\na.c.d = 2\ne.f = 3 # x\n",
    "a = { b = 1, c = { d = 2 } }\n[e]\nf = 3\n",
    "[a]\nc = { d = 2 }\nb = 1\n[e]\n",
    "[a.c]\nd = 2\n[e]\n# only a comment\n",
    'x = """\n[a]\nb = 1"""\n["e"]\n"f" = [1,\n # two\n 2]\n',
    "[a]\nc.d = 2\n# end",
    "",
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", [("a", "b"), ("a", "c", "d"), ("e", "f"), ("g", "h", "i")])
@given(value=st.integers() | TEXTS | st.lists(TEXTS, max_size=3))
def test_a_key_is_set_and_unset_in_any_form_of_table(
    form: str, path: tuple[str, ...], value: object
) -> None:
    wanted = tomllib.loads(form)
    table = wanted
    for part in path[:-1]:
        table = table.setdefault(part, {})
    table[path[-1]] = value
    text = with_value(form, path, value)
    assert tomllib.loads(text) == wanted
    del table[path[-1]]
    assert _without_empty(tomllib.loads(without_key(text, path))) == _without_empty(wanted)


def _without_empty(document: object) -> object:
    if not isinstance(document, dict):
        return document
    kept = {key: _without_empty(value) for key, value in document.items()}
    return {key: value for key, value in kept.items() if value != {}}


# --- evaluation contracts

EVALUATION = """\
evaluation = "1"
name = "here"
[[suites]]
kind = "folder"
path = "tasks"
[discovery]
tasks = 1
hardened = 0
[expansion]
attempts = 1
holdout_tasks = 1
[gate]
exam_tasks = 1
"""


def test_suite_folders_lie_beside_the_evaluation_contract(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    path = tmp_path / "evaluation.toml"
    path.write_bytes(EVALUATION.replace("\n", "\r\n").encode())
    suite = FILES.read_evaluation(path).suites[0]
    assert suite.path == str((tmp_path / "tasks").resolve())


def test_every_fault_of_an_evaluation_contract_is_told(tmp_path: Path) -> None:
    path = tmp_path / "evaluation.toml"
    suites = '[[suites]]\nkind = "shell"\npath = "x"\n[[suites]]\nkind = "folder"\n'
    path.write_text(EVALUATION.replace("exam_tasks = 1", "exam_taks = 1\nseeds = 0") + suites)
    with pytest.raises(ContractError) as caught:
        FILES.read_evaluation(path)
    for wanted in (
        "line 5: suites.0.path: 'tasks' is no folder beside this file",
        "line 12: gate.exam_tasks: is missing",
        "line 13: gate.exam_taks: is no known key; did you mean `exam_tasks`?",
        "line 14: gate.seeds: should be greater",
        "line 17: suites.1.path: belongs to kind `folder` only",
        "line 18: suites.2: needs `path`",
    ):
        assert any(fault.startswith(wanted) for fault in caught.value.faults), wanted


# --- the reference


@pytest.mark.parametrize("kind", [Contract, Evaluation])
def test_the_reference_names_every_key(kind: type[Value]) -> None:
    reference = (ROOT / "docs" / "contracts.md").read_text()
    leaves = [
        join_key(key)
        for key in schema_keys(kind)
        if not is_table(type_at(kind, [0 if part == "*" else part for part in key]))
    ]
    assert [key for key in leaves if f"`{key}`" not in reference and key != "suites"] == []
