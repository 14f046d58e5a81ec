"""What the model sees is decided in one place, and never shows a task its own solution."""

from hypothesis import given
from hypothesis import strategies as st

from rsi.domain.contract import ActionFormat, Example, HookAction, HookEvent
from rsi.domain.rendering import nearest, plain, render, render_instruction, words
from rsi.domain.task import TaskFile
from tests.samples import contract, task

POOL = (
    Example(instruction="How many lines are in plum.txt?", reply="wc -l < plum.txt"),
    Example(instruction="Sort the numbers in seven.txt.", reply="sort -n seven.txt"),
    Example(instruction="Show the first 3 lines of fig.log.", reply="head -n 3 fig.log"),
)


def test_a_plain_contract_shows_the_instruction_alone() -> None:
    assert render(contract(), task()) == (("user", "Print the word one."),)


def test_the_nearest_example_stands_last() -> None:
    found = nearest(POOL, "How many lines are in kiwi.txt?", 2, None)
    assert found[-1].reply == "wc -l < plum.txt"
    assert len(found) == 2


def test_an_example_from_the_task_itself_is_never_shown() -> None:
    one = task()
    pool = (Example(instruction=one.instruction, reply="echo one", origin=one.digest), *POOL)
    bare = contract(prompt={"examples": pool, "examples_shown": 8})
    shown = render(bare, one)
    assert "echo one" not in {text for _, text in shown}
    assert len(shown) == 2 * len(POOL) + 1


def test_examples_are_framed_as_the_action_format_wants() -> None:
    fenced = contract(
        prompt={"examples": POOL, "examples_shown": 1}, agent={"action": ActionFormat.FENCE}
    )
    assert render(fenced, task())[1] == ("assistant", "```bash\nwc -l < plum.txt\n```") or (
        render(fenced, task())[1][1].startswith("```bash\n")
    )


def test_a_hook_lists_the_files() -> None:
    listing = contract(hooks=({"event": HookEvent.BEFORE_MODEL, "action": HookAction.LIST_FILES},))
    filed = task().model_copy(
        update={"files": (TaskFile(path="b", content=b""), TaskFile(path="a", content=b""))}
    )
    assert render(listing, filed)[-1][1].endswith("Files here: a, b")


def test_the_plain_form_keeps_the_system_text_and_drops_what_a_search_adds() -> None:
    rich = contract(
        prompt={"system": "Be brief.", "examples": POOL, "examples_shown": 3},
        agent={"votes": 3, "retries": 2},
    )
    bare = plain(rich)
    assert render_instruction(bare, "Do it.") == (("system", "Be brief."), ("user", "Do it."))
    assert (bare.agent.votes, bare.agent.retries) == (1, 0)
    assert plain(bare) == bare


def test_words_see_kinds_not_names() -> None:
    assert words("How many lines are in kiwi.txt?") == words("how many lines are in plum.txt")
    assert words("the first 3 lines") == words("the first 12 lines")


@given(st.text(), st.integers(0, 5))
def test_any_instruction_is_rendered(instruction: str, shown: int) -> None:
    rich = contract(prompt={"examples": POOL, "examples_shown": shown})
    messages = render_instruction(rich, instruction)
    assert messages[-1] == ("user", instruction)
    assert len(messages) == 2 * min(shown, len(POOL)) + 1
