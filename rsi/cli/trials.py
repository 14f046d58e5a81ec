"""`rsi trials | verdict`: single runs, and what was decided on them."""

import argparse
from collections.abc import Sequence

from pydantic import AwareDatetime, JsonValue

from rsi.cli.answer import Answer, Table, command, plain, positive
from rsi.cli.digests import pair_digest, resolve, task_digest
from rsi.cli.opening import opened_ledger
from rsi.domain.task import Split, Task
from rsi.domain.trial import Failed, Invalid, Trial, Usage
from rsi.domain.values import Digest, Value, short
from rsi.domain.verdict import Verdict
from rsi.errors import UsageError
from rsi.ports import Ledger
from rsi.report.shown import cause
from rsi.report.tell_gate import tell_gate
from rsi.report.text import verdict_lines
from rsi.report.text_rows import block

OUTCOMES = ("solved", "failed", "invalid")


class TrialRow(Value):
    """One trial of the list."""

    pair: Digest
    task: Digest
    seed: int
    generation: int
    suite: str
    family: str
    level: int
    outcome: str
    cause: str | None
    """Of a failed one."""
    where: str | None
    """Of an invalid one, as is the reason."""
    reason: str | None
    rewards: dict[str, float]
    usage: Usage
    sandbox: str
    sandbox_level: str
    trajectory: Digest | None
    started_at: AwareDatetime
    elapsed_s: float


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the commands."""
    one = command(commands, "trials", _trials, "list trials; every filter given must hold")
    one.add_argument("-g", "--generation", type=int, metavar="GEN")
    one.add_argument("--pair", metavar="DIGEST")
    one.add_argument("--task", metavar="DIGEST")
    one.add_argument("--split", choices=[split.value for split in Split])
    one.add_argument("--family", metavar="NAME")
    one.add_argument("--outcome", choices=OUTCOMES)
    one.add_argument("--limit", type=positive, default=50, help="the newest so many (50)")
    one = command(commands, "verdict", _verdict, "a verdict with its numbers and its evidence")
    one.add_argument("which", nargs="?", metavar="GEN|DIGEST", help="default: the newest verdict")


def list_trials(
    ledger: Ledger,
    *,
    generation: int | None = None,
    pair: str | None = None,
    task: str | None = None,
    split: str | None = None,
    family: str | None = None,
    outcome: str | None = None,
    limit: int = 50,
) -> Answer:
    """The newest trials that every filter lets through, the newest last."""
    by_ledger = outcome in (None, "solved") and family is None
    found: Sequence[Trial] = ledger.trials_of(
        generation=generation,
        pair=pair_digest(ledger, pair) if pair else None,
        task=task_digest(ledger, task) if task else None,
        split=Split(split) if split else None,
        solved=None if outcome is None else outcome == "solved",
        limit=limit if by_ledger else None,
    )
    found = [trial for trial in found if outcome in (None, trial.outcome.kind)]
    digests = sorted({trial.task for trial in found})
    tasks = dict(zip(digests, ledger.tasks(digests), strict=True))
    rows = [_row(trial, tasks[trial.task]) for trial in found]
    rows = [row for row in rows if family in (None, row.family)][-limit:]
    table = Table(
        ("generation", "pair", "task", "seed", "family", "outcome", "tokens", "seconds"),
        tuple(_cells(row) for row in rows),
        "no trial matches",
    )
    return Answer({"trials": [plain(row) for row in rows], "limit": limit}, (table,))


def show_verdict(ledger: Ledger, which: str | None) -> Answer:
    """The newest verdict, that of a generation, or the one that the digest names."""
    verdict = _find(ledger, which)
    confidence = ledger.evaluation(verdict.evaluation).gate.confidence
    note = tell_gate(verdict, confidence)
    keys: list[JsonValue] = [
        {"pair": k.pair, "task": k.task, "seed": k.seed} for k in verdict.evidence
    ]
    return Answer(
        {**plain(note), "confidence": confidence, "trials": keys},
        (block(verdict_lines(note)).lstrip("\n"),),
    )


def _find(ledger: Ledger, which: str | None) -> Verdict:
    verdicts = ledger.verdicts()
    if not verdicts:
        raise UsageError("there is no verdict yet; run `make cycle`")
    if which is None:
        return verdicts[-1]
    if which.isdecimal() and int(which) in {one.number for one in ledger.generations()}:
        found = [verdict for verdict in verdicts if verdict.generation == int(which)]
        if not found:
            raise UsageError(f"generation {which} has no verdict yet; `rsi show {which}` tells why")
        return found[-1]
    if which.isdecimal() and len(which) < 6:
        raise UsageError(f"there is no generation {which}; `rsi generations` lists them")
    by_digest = {verdict.digest: verdict for verdict in verdicts}
    return by_digest[resolve(which, by_digest, "verdict", "rsi generations")]


def _row(trial: Trial, task: Task) -> TrialRow:
    outcome = trial.outcome
    return TrialRow(
        pair=trial.pair,
        task=trial.task,
        seed=trial.seed,
        generation=trial.generation,
        suite=task.suite,
        family=task.family,
        level=task.level,
        outcome=outcome.kind,
        cause=outcome.cause.value if isinstance(outcome, Failed) else None,
        where=outcome.where if isinstance(outcome, Invalid) else None,
        reason=outcome.reason if isinstance(outcome, Invalid) else None,
        rewards=trial.rewards,
        usage=trial.usage,
        sandbox=trial.box.engine,
        sandbox_level=trial.box.level,
        trajectory=trial.trajectory,
        started_at=trial.started_at,
        elapsed_s=trial.elapsed_s,
    )


def _cells(row: TrialRow) -> tuple[str, ...]:
    return (
        str(row.generation),
        short(row.pair),
        short(row.task),
        str(row.seed),
        f"{row.family} L{row.level}",
        _told(row),
        str(row.usage.input_tokens + row.usage.output_tokens),
        f"{row.elapsed_s:.1f}",
    )


def _told(row: TrialRow) -> str:
    if row.cause is not None:
        return f"failed: {cause(row.cause)}"
    return f"invalid: {row.where}: {row.reason}" if row.where is not None else row.outcome


def _trials(arguments: argparse.Namespace) -> Answer:
    names = ("generation", "pair", "task", "split", "family", "outcome", "limit")
    with opened_ledger() as ledger:
        return list_trials(ledger, **{name: getattr(arguments, name) for name in names})


def _verdict(arguments: argparse.Namespace) -> Answer:
    with opened_ledger() as ledger:
        return show_verdict(ledger, arguments.which)
