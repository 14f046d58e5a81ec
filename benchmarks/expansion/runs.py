"""Runs of the study: one search each, in a database of its own, taken up where it was left."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.expansion.methods import METHODS, OURS, Method
from benchmarks.expansion.space import Candidates
from rsi.domain.contract import Example
from rsi.domain.evaluation import Evaluation
from rsi.domain.generation import Generation
from rsi.domain.search import CoveragePoint, Finalist
from rsi.domain.task import Split, Task
from rsi.domain.trial import Trial
from rsi.domain.values import Digest
from rsi.ports import ContractDocument
from rsi.stages.block import Planned, run_block, trial_seed
from rsi.stages.discovery import champion_of
from rsi.stages.expansion import POOL_PER_FAMILY, expand
from rsi.stages.finalists import choose_finalist
from rsi.stages.generation import begin
from rsi.stages.parts import Contender, Parts, contender
from rsi.stages.solved import pool_of, solutions_of

FIRST_SEEDS = 100
"""Trial seeds of a search begin here, beside those that chose the tasks."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one search did."""

    method: str
    seed: int
    tasks: int
    curve: tuple[CoveragePoint, ...]
    finalists: tuple[Finalist, ...]
    fresh: Finalist
    """The chosen one on tasks that didn't choose it."""


def failing(
    parts: Parts,
    evaluation: Evaluation,
    document: ContractDocument,
    drawn: Sequence[Task],
    most: int,
) -> tuple[Task, ...]:
    """The drawn tasks, `most` at most, that the base pair fails in three seeds."""
    generation = begin(parts, evaluation, document)
    parts.ledger.add_tasks(drawn)
    parts.ledger.use_tasks(generation.number, Split.SEARCH, [task.digest for task in drawn])
    base = champion_of(parts, generation)
    parts.progress.stage("select", 3 * len(drawn))
    plan = [
        Planned(base, task, trial_seed(generation, index)) for index in range(3) for task in drawn
    ]
    solved = {
        trial.task for trial in run_block(parts, generation, "select", plan) if trial.is_solved
    }
    return tuple(task for task in drawn if task.digest not in solved)[:most]


def run(
    parts: Parts,
    method: str,
    evaluation: Evaluation,
    document: ContractDocument,
    tasks: Sequence[Task],
) -> Run:
    """The search by the method over the tasks, with its finalists measured."""
    generation = begin(parts, evaluation, document)
    parts.ledger.add_tasks(tasks)
    parts.ledger.use_tasks(generation.number, Split.SEARCH, [task.digest for task in tasks])
    base = champion_of(parts, generation)
    if method == OURS:
        expand(parts, generation)
        found = parts.ledger.coverage(generation.number)
        assert found is not None
        curve, finalists = found.curve, found.finalists
    else:
        curve, ranked = _searched(parts, generation, evaluation, base, METHODS[method], tasks)
        finalists = choose_finalist(parts, generation, evaluation, base, ranked)
    chosen = next(finalist for finalist in finalists if finalist.is_chosen)
    fresh = _fresh(parts, generation, evaluation, base, chosen.contract)
    return Run(method, evaluation.seed, len(tasks), curve, finalists, fresh)


def _searched(
    parts: Parts,
    generation: Generation,
    evaluation: Evaluation,
    base: Contender,
    kind: type[Method],
    tasks: Sequence[Task],
) -> tuple[tuple[CoveragePoint, ...], list[Contender]]:
    """(curve, candidates by what they have shown) of a method that isn't rsi's own."""
    rule = evaluation.expansion
    method = kind(base.contract, evaluation.seed)  # type: ignore[call-arg]
    candidates, known = Candidates(parts, base), {task.digest: task for task in tasks}
    counts: Counter[tuple[Digest, Digest]] = Counter()
    told: list[Trial] = []
    covered: set[Digest] = set()
    points = [CoveragePoint(attempts=0, tokens=0, covered=0)]
    tokens = 0
    measured = (rule.finalists + 2) * rule.holdout_tasks
    parts.progress.stage(kind.__name__, rule.attempts + measured)
    while len(told) < rule.attempts and len(covered) < len(tasks):
        pool = _pool(parts, told)
        left = [task.digest for task in tasks if task.digest not in covered]
        size = min(rule.round_size, rule.attempts - len(told))
        asked = [method.ask(left, has_pool=bool(pool)) for _ in range(size)]
        plan = []
        for task, recipe in asked:
            made = candidates.made(recipe, pool)
            seed = trial_seed(generation, FIRST_SEEDS + counts[task, made.pair])
            counts[task, made.pair] += 1
            plan.append(Planned(made, known[task], seed))
        for (task, recipe), trial in zip(
            asked, run_block(parts, generation, "round", plan), strict=True
        ):
            told.append(trial)
            tokens += trial.usage.input_tokens + trial.usage.output_tokens
            method.tell(task, recipe, is_solved=trial.is_solved)
            if trial.is_solved and task not in covered:
                covered.add(task)
                points.append(
                    CoveragePoint(attempts=len(told), tokens=tokens, covered=len(covered))
                )
    points.append(CoveragePoint(attempts=len(told), tokens=tokens, covered=len(covered)))
    best = method.best()[: rule.finalists]
    return tuple(points), [candidates.made(recipe, _pool(parts, told)) for recipe in best]


def _pool(parts: Parts, told: Sequence[Trial]) -> tuple[Example, ...]:
    keys = {trial.key for trial in told if trial.is_solved}
    found = [one for one in solutions_of(parts, up_to=1) if one.trial.key in keys]
    return pool_of(found, POOL_PER_FAMILY)


def _fresh(
    parts: Parts,
    generation: Generation,
    evaluation: Evaluation,
    base: Contender,
    contract: Digest,
) -> Finalist:
    """The contract on as many further holdout tasks."""
    count = evaluation.expansion.holdout_tasks
    (suite,) = parts.suites
    used = set(parts.ledger.used_tasks(generation.number, Split.HOLDOUT))
    drawn = [
        task
        for task in suite.draw(Split.HOLDOUT, 7_000_000 + evaluation.seed, 2 * count)
        if task.digest not in used
    ][:count]
    parts.ledger.add_tasks(drawn)
    chosen = parts.ledger.contract(contract)
    runner = contender(parts, base.model, chosen, base.chat)
    seed = trial_seed(generation, 1)
    trials = run_block(parts, generation, "fresh", [Planned(runner, task, seed) for task in drawn])
    invalid = sum(trial.is_invalid for trial in trials)
    return Finalist(
        contract=contract,
        solved=sum(trial.is_solved for trial in trials),
        trials=len(trials) - invalid,
        invalid=invalid,
        is_chosen=True,
    )
