"""A trial follows its contract: formats, turns, retries, votes, hooks, limits; and says why it
failed."""

from collections.abc import Sequence

import pytest

from rsi.domain.contract import Contract
from rsi.domain.task import Task
from rsi.domain.trial import Cause, Failed, Judgement, Solved
from rsi.errors import TrialFault
from rsi.ports import BoxFile, ChatRequest
from rsi.steps.judge.judge import judge
from rsi.steps.run.trial import Finished, run
from rsi.steps.verify import verify
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeChatModel
from tests.fakes.sandbox import FakeSandbox
from tests.samples import contract, task

CLOCK = FakeClock()


def replying(*replies: str) -> FakeChatModel:
    """A model that says these one after the other, the last one for ever."""
    left = list(replies)
    return FakeChatModel(lambda _: left.pop(0) if len(left) > 1 else left[0])


def played(
    chat: FakeChatModel, terms: Contract | None = None, sandbox: FakeSandbox | None = None
) -> Finished:
    boxes = sandbox or FakeSandbox()

    def judged(one: Task, answer: str, left: Sequence[BoxFile]) -> Judgement:
        return judge(one, answer, left, boxes, CLOCK)

    return run(terms or contract(), task(), 7, chat, boxes, judged, CLOCK)


def cause(finished: Finished) -> Cause:
    assert isinstance(finished.outcome, Failed)
    return finished.outcome.cause


def test_a_right_command_solves() -> None:
    finished = played(replying("echo one"))
    assert isinstance(finished.outcome, Solved)
    assert finished.rewards == {"reward": 1.0}
    assert finished.trajectory.answer == "one\n"
    assert finished.usage.model_calls == 1


def test_a_wrong_answer_is_named() -> None:
    assert cause(played(replying("echo two"))) is Cause.WRONG_ANSWER


def test_a_failing_command_is_named() -> None:
    assert cause(played(replying("The word is one."))) is Cause.TOOL_ERROR


def test_no_action_needs_no_box() -> None:
    sandbox = FakeSandbox()
    assert cause(played(replying(""), sandbox=sandbox)) is Cause.MALFORMED_ACTION
    assert sandbox.run_count == 0


def test_a_malformed_action_is_sampled_again() -> None:
    terms = contract(agent={"retries": 2})
    finished = played(replying("", "", "echo one"), terms)
    assert isinstance(finished.outcome, Solved)
    assert finished.usage.model_calls == 3


def test_votes_take_the_most_frequent_action() -> None:
    terms = contract(agent={"votes": 3})
    finished = played(replying("echo two", "echo one", "echo one"), terms)
    assert isinstance(finished.outcome, Solved)


def test_each_sample_has_a_seed_of_its_own() -> None:
    chat = replying("echo one")
    played(chat, contract(agent={"votes": 3}))
    seeds = [request.seed for request in chat.requests]
    assert len(set(seeds)) == 3


def test_an_error_is_shown_and_tried_again_when_a_hook_says_so() -> None:
    hook = ({"event": "after_tool", "action": "retry_on_error"},)
    chat = replying("oops", "echo one")
    finished = played(chat, contract(hooks=hook))
    assert isinstance(finished.outcome, Solved)
    assert "command not found" in chat.requests[1].messages[-1][1]


def test_an_error_ends_a_trial_of_one_turn() -> None:
    chat = replying("oops", "echo one")
    assert cause(played(chat)) is Cause.TOOL_ERROR
    assert len(chat.requests) == 1


def test_an_empty_answer_is_refused_once_when_a_hook_says_so() -> None:
    hook = ({"event": "before_stop", "action": "require_answer"},)
    finished = played(replying("echo ", "echo one"), contract(hooks=hook, agent={"turns": 2}))
    assert isinstance(finished.outcome, Solved)


def test_the_same_failing_command_over_and_over_is_a_loop() -> None:
    assert cause(played(replying("oops"), contract(agent={"turns": 3}))) is Cause.LOOP


def test_a_model_that_stops_before_acting_gave_up() -> None:
    terms = contract(agent={"stop": "on_done", "turns": 3})
    assert cause(played(replying("done"), terms)) is Cause.GAVE_UP


def test_an_agent_that_says_when_it_is_done_is_judged_by_its_last_answer() -> None:
    terms = contract(agent={"stop": "on_done", "turns": 4})
    finished = played(replying("echo two", "echo one", "done"), terms)
    assert isinstance(finished.outcome, Solved)


def test_an_agent_that_never_ends_reaches_its_limit() -> None:
    terms = contract(agent={"stop": "on_done", "turns": 3})
    assert cause(played(replying("echo a", "echo b", "echo c"), terms)) is Cause.LIMIT_REACHED


def test_a_spent_token_budget_ends_the_trial() -> None:
    terms = contract(agent={"max_total_tokens": 1, "turns": 50})
    finished = played(replying("oops"), terms)
    assert cause(finished) is Cause.LIMIT_REACHED
    assert finished.usage.model_calls == 1


def test_a_dead_box_is_a_fault_of_the_machine() -> None:
    with pytest.raises(TrialFault, match="the box died"):
        played(replying("echo one"), sandbox=FakeSandbox(broken_runs=(1,)))


def test_the_model_never_sees_the_reference() -> None:
    shown: list[ChatRequest] = []
    chat = FakeChatModel(lambda request: shown.append(request) or "echo one")  # type: ignore[func-returns-value]
    played(chat)
    assert all("echo" not in text for request in shown for _, text in request.messages)


def judge_of(sandbox: FakeSandbox) -> object:
    return lambda one, answer, left: judge(one, answer, left, sandbox, CLOCK)


def test_a_sound_task_is_admitted() -> None:
    sandbox = FakeSandbox()
    assert verify(task(), sandbox, judge_of(sandbox)).is_admitted  # type: ignore[arg-type]


def test_a_task_whose_reference_fails_stays_out() -> None:
    sandbox = FakeSandbox()
    wrong = task().model_copy(update={"solution": task("two").solution})
    found = verify(wrong, sandbox, judge_of(sandbox))  # type: ignore[arg-type]
    assert any("reference fails" in fault for fault in found.faults)


def test_a_task_that_a_no_op_passes_stays_out() -> None:
    sandbox = FakeSandbox()
    easy = task("''")
    sandbox_judge = lambda one, answer, left: Judgement(rewards={"reward": 1.0}, elapsed_s=0.0)  # noqa: E731, ARG005
    found = verify(easy, sandbox, sandbox_judge)
    assert any("no-op passes" in fault for fault in found.faults)


def test_a_task_without_a_reference_stays_out() -> None:
    sandbox = FakeSandbox()
    bare = task().model_copy(update={"solution": ()})
    assert not verify(bare, sandbox, judge_of(sandbox)).is_admitted  # type: ignore[arg-type]
