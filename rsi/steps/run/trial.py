"""Run: one trial of a contract and a model on a task, as steps that can be read afterwards."""

from contextlib import ExitStack
from dataclasses import dataclass

from rsi.domain.contract import Contract
from rsi.domain.task import Answer, Task
from rsi.domain.trial import BoxFacts, Cause, Failed, Outcome, Solved, Trajectory, Usage
from rsi.ports import BoxFile, ChatModel, Clock, Judge, Sandbox
from rsi.steps.run.loop import play
from rsi.steps.run.session import Session


@dataclass(frozen=True, slots=True)
class Finished:
    """A trial's outcome with the steps that led to it."""

    outcome: Outcome
    trajectory: Trajectory
    rewards: dict[str, float]
    usage: Usage
    box: BoxFacts | None = None
    """The agent's box; none when it never acted."""


def run(
    contract: Contract,
    task: Task,
    seed: int,
    chat: ChatModel,
    sandbox: Sandbox,
    judge: Judge,
    clock: Clock,
) -> Finished:
    """The finished trial. Raises TrialFault when the machine broke, PartError when it is down."""
    with ExitStack() as stack:
        session = Session(contract, task, seed, chat, sandbox, clock, stack)
        play(session)
        left = _collect(session)
    if session.box is None:
        outcome: Outcome = Failed(cause=_cause(session, acted=False))
        return Finished(outcome, session.trajectory(), {}, session.usage(0.0))
    if task.answer is Answer.STDOUT and not session.answer.strip():
        # A no-op leaves the same: admission has shown that the verifier fails it.
        outcome = Failed(cause=_cause(session, acted=True))
        return Finished(outcome, session.trajectory(), {}, session.usage(0.0), session.box.facts)
    judgement = judge(task, session.answer, left)
    outcome = Solved() if judgement.is_solved else Failed(cause=_cause(session, acted=True))
    usage = session.usage(judgement.elapsed_s)
    trajectory = session.trajectory()
    return Finished(outcome, trajectory, judgement.rewards, usage, session.box.facts)


def _collect(session: Session) -> tuple[BoxFile, ...]:
    """The files that the verifier gets, taken after every process of the agent is gone."""
    if session.box is None:
        return ()
    begun = session.clock.monotonic_s()
    session.box.stop_all()
    paths = session.task.artifact_paths
    left = session.box.get(paths) if paths else ()
    session.sandbox_s += session.clock.monotonic_s() - begun
    return left


def _cause(session: Session, *, acted: bool) -> Cause:
    """Why the trial failed, read from its steps."""
    if not acted and session.is_over:
        return Cause.GAVE_UP
    if not acted:
        return Cause.LIMIT_REACHED if session.hit_limit else Cause.MALFORMED_ACTION
    inputs = [action.tool_input for action in session.actions if action.tool is not None]
    if len(inputs) > 1 and len(set(inputs)) == 1:
        return Cause.LOOP
    last = session.actions[-1]
    if session.hit_limit or (last.exit_code is None and last.tool is not None):
        return Cause.LIMIT_REACHED
    if last.tool is None and not session.is_over:
        return Cause.MALFORMED_ACTION
    return Cause.TOOL_ERROR if last.exit_code else Cause.WRONG_ANSWER
