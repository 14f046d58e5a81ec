"""Discovery: what the champion fails at, and harder verified tasks aimed at it."""

from collections.abc import Mapping, Sequence
from functools import partial

from pydantic import JsonValue

from rsi.domain.evaluation import Evaluation
from rsi.domain.generation import Generation, Stage
from rsi.domain.task import Split, Task
from rsi.domain.trial import Judgement, Trial
from rsi.domain.values import Digest
from rsi.domain.weakness import Hardened, Weakness
from rsi.ports import BoxFile
from rsi.stages.block import Planned, run_block, trial_seed
from rsi.stages.draw import draw
from rsi.stages.events import Result, staged
from rsi.stages.parts import Contender, Parts, contender, serve
from rsi.steps.harden import harden
from rsi.steps.judge.judge import judge
from rsi.steps.mine import mine
from rsi.steps.verify import Admission, verify


def discover(parts: Parts, generation: Generation) -> None:
    """Runs the champion over the search split, and leaves weaknesses and harder tasks."""
    staged(parts, generation, Stage.DISCOVERY, lambda: _discover(parts, generation))


def _discover(parts: Parts, generation: Generation) -> Result:
    evaluation = parts.ledger.evaluation(generation.evaluation)
    rule = evaluation.discovery
    parts.progress.stage("discovery", rule.tasks * rule.repeats + rule.hardened)
    champion = champion_of(parts, generation)
    tasks = draw(parts, generation, Split.SEARCH, rule.tasks)
    trials = _run(parts, generation, "discovery", champion, tasks, evaluation)
    known = {task.digest: task for task in tasks}
    weaknesses = mine(trials, known, evaluation.gate.confidence)
    made = harden(weaknesses, known, partial(_harder, parts), rule.hardened, generation.seed)
    hardened = _admit(parts, generation, champion, evaluation, known, made)
    return {
        "tasks": len(tasks),
        "weaknesses": [_flat(weakness) for weakness in weaknesses],
        "hardened": [entry.model_dump(mode="json") for entry in hardened],
    }


def champion_of(parts: Parts, generation: Generation) -> Contender:
    """The generation's champion, served."""
    pair = parts.ledger.pair(generation.champion)
    model = parts.ledger.model(pair.model)
    (chat,) = serve(parts, model)
    return contender(parts, model, parts.ledger.contract(pair.contract), chat)


def _run(
    parts: Parts,
    generation: Generation,
    label: str,
    champion: Contender,
    tasks: Sequence[Task],
    evaluation: Evaluation,
) -> list[Trial]:
    plan = [
        Planned(champion, task, trial_seed(generation, index))
        for index in range(evaluation.discovery.repeats)
        for task in tasks
    ]
    return run_block(parts, generation, label, plan)


def _harder(parts: Parts, task: Task, seed: int) -> tuple[Task, ...]:
    suites = [suite for suite in parts.suites if suite.name == task.suite]
    return suites[0].harden(task, seed) if suites else ()


def _admit(
    parts: Parts,
    generation: Generation,
    champion: Contender,
    evaluation: Evaluation,
    known: Mapping[Digest, Task],
    made: Mapping[Digest, tuple[Task, ...]],
) -> list[Hardened]:
    """Verifies the harder tasks, runs the champion on those that are fit, and counts."""
    new = [task for children in made.values() for task in children]
    taken = parts.ledger.split_of([task.digest for task in new])
    new = [task for task in new if taken.get(task.digest, Split.SEARCH) is Split.SEARCH]
    admissions = {
        admission.task.digest: admission
        for admission in parts.workers.map("admission", partial(admit, parts), new)
    }
    fit = [task for task in new if admissions[task.digest].is_admitted]
    parts.ledger.add_tasks(fit)
    parts.ledger.use_tasks(generation.number, Split.SEARCH, [task.digest for task in fit])
    trials = _run(parts, generation, "hardened", champion, fit, evaluation)
    groups: dict[tuple[str, int, int], list[Admission]] = {}
    for origin, children in made.items():
        for task in children:
            if task.digest in admissions:
                key = (task.family, known[origin].level, task.level)
                groups.setdefault(key, []).append(admissions[task.digest])
    return [_hardened(*key, group, trials) for key, group in sorted(groups.items())]


def admit(parts: Parts, task: Task) -> Admission:
    """Whether the task is fit to measure anything."""

    def _judge(task: Task, answer: str, left: Sequence[BoxFile]) -> Judgement:
        return judge(task, answer, left, parts.sandbox, parts.clock)

    return verify(task, parts.sandbox, _judge)


def _hardened(
    family: str,
    from_level: int,
    to_level: int,
    group: Sequence[Admission],
    trials: Sequence[Trial],
) -> Hardened:
    digests = {admission.task.digest for admission in group if admission.is_admitted}
    measured = [trial for trial in trials if trial.task in digests and not trial.is_invalid]
    return Hardened(
        family=family,
        from_level=from_level,
        to_level=to_level,
        made=len(group),
        admitted=len(digests),
        refused=tuple(fault for admission in group for fault in admission.faults),
        trials=len(measured),
        champion_solved=sum(trial.is_solved for trial in measured),
    )


def _flat(weakness: Weakness) -> dict[str, JsonValue]:
    flat: dict[str, JsonValue] = weakness.model_dump(mode="json", exclude={"failure"})
    failure = weakness.failure
    return {**flat, "rate": failure.estimate, "low": failure.low, "high": failure.high}
