"""Expansion: the harness is searched while the model stays frozen."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from rsi.domain.contract import Contract, Example
from rsi.domain.evaluation import Evaluation
from rsi.domain.generation import Generation, Stage
from rsi.domain.search import Ask, Attempt, Candidate, Coverage
from rsi.domain.task import Split, Task
from rsi.domain.trial import Trial, TrialKey
from rsi.domain.values import Digest
from rsi.ports import ContractDocument
from rsi.stages.block import Planned, run_block, trial_seed
from rsi.stages.budget import is_spent
from rsi.stages.discovery import champion_of
from rsi.stages.events import Result, staged
from rsi.stages.finalists import choose_finalist
from rsi.stages.parts import Contender, Parts, contender
from rsi.stages.solved import pool_of, reference_pool, solutions_of
from rsi.steps.propose import Recipe, breed, edits_of, is_random, needs_pool, start, with_pool
from rsi.steps.search import Entrant, Search

SEARCH_SEEDS = 100
"""Expansion's trial seeds begin here, so that they never meet Discovery's."""
POOL_PER_FAMILY = 4
"""Verified examples of one family that a candidate carries; more only lengthen the contract."""
MOST_KINDS = 40
"""Kinds of candidates in one search, at most."""


def expand(parts: Parts, generation: Generation) -> None:
    """Searches for contracts that solve what the champion can't, and leaves coverage, its curve,
    the winner of each task and finalists."""
    staged(parts, generation, Stage.EXPANSION, lambda: _expand(parts, generation))


@dataclass(slots=True)
class _Hunt:
    """One search under way."""

    parts: Parts
    generation: Generation
    evaluation: Evaluation
    base: Contender
    document: ContractDocument
    tasks: dict[Digest, Task]
    search: Search
    contenders: dict[Digest, Contender] = field(default_factory=dict)
    recipes: dict[Digest, Recipe] = field(default_factory=dict)
    candidates: list[Candidate] = field(default_factory=list)
    families: dict[Digest, str] = field(default_factory=dict)
    """Task -> family, of every task that an example may come from."""
    shown: tuple[Example, ...] = ()
    """The pool that the newest versions of pool recipes were made with."""


def _expand(parts: Parts, generation: Generation) -> Result:
    evaluation = parts.ledger.evaluation(generation.evaluation)
    rule = evaluation.expansion
    measured = (rule.finalists + 1) * rule.holdout_tasks
    parts.progress.stage("expansion", rule.attempts + measured)
    hunt = _hunt(parts, generation, evaluation)
    stopped = _search(hunt)
    parts.progress.advance(rule.attempts - len(hunt.search.attempts))
    ranked = _ranked(hunt)[: rule.finalists]
    finalists = choose_finalist(parts, generation, evaluation, hunt.base, ranked)
    attempts = hunt.search.attempts
    coverage = Coverage(
        tasks=len(hunt.tasks),
        covered=len(hunt.search.winners),
        attempts=len(attempts),
        tokens=sum(attempt.tokens for attempt in attempts),
        stopped=stopped,
        curve=hunt.search.curve(),
        winners=hunt.search.winners,
        finalists=finalists,
    )
    parts.ledger.add_coverage(generation.number, coverage)
    chosen = next(finalist.contract for finalist in finalists if finalist.is_chosen)
    return {
        "tasks": coverage.tasks,
        "covered": coverage.covered,
        "attempts": coverage.attempts,
        "tokens": coverage.tokens,
        "stopped": stopped,
        "finalist": chosen,
    }


def _hunt(parts: Parts, generation: Generation, evaluation: Evaluation) -> _Hunt:
    base = champion_of(parts, generation)
    digests = parts.ledger.used_tasks(generation.number, Split.SEARCH)
    solved = {trial.task for trial in parts.ledger.trials_of(pair=base.pair, solved=True)}
    tasks = [task for task in parts.ledger.tasks(digests) if task.digest not in solved]
    toml = parts.ledger.contract_toml(base.contract.digest)
    return _Hunt(
        parts,
        generation,
        evaluation,
        base,
        ContractDocument(base.contract, toml),
        {task.digest: task for task in tasks},
        Search(
            {task.digest: task.family for task in tasks},
            generation.seed,
            trial_seed(generation, SEARCH_SEEDS),
        ),
        families={task.digest: task.family for task in tasks},
    )


def _search(hunt: _Hunt) -> str:
    """Rounds until all is covered, the budget is spent or gains have ended; says which."""
    rule = hunt.evaluation.expansion
    begun_s = hunt.parts.clock.monotonic_s()
    since_gain = 0
    while len(hunt.search.winners) < len(hunt.tasks):
        _propose(hunt, len(hunt.search.attempts) // rule.round_size)
        left = rule.attempts - len(hunt.search.attempts)
        asks = hunt.search.ask(min(rule.round_size, left))
        tokens = sum(attempt.tokens for attempt in hunt.search.attempts)
        is_late = rule.seconds and hunt.parts.clock.monotonic_s() - begun_s > rule.seconds
        is_over = is_late or (rule.tokens is not None and tokens >= rule.tokens)
        if left == 0 or is_over or is_spent(hunt.parts, hunt.generation, hunt.evaluation.budget):
            return "budget spent"
        if not asks or since_gain >= rule.patience:
            return "gains ended"
        covered = hunt.search.tell(_attempts(hunt, asks))
        since_gain = 0 if covered else since_gain + len(asks)
    return "all covered"


def _attempts(hunt: _Hunt, asks: Sequence[Ask]) -> list[Attempt]:
    plan = [Planned(hunt.contenders[ask.candidate], hunt.tasks[ask.task], ask.seed) for ask in asks]
    round_number = asks[0].ordinal // hunt.evaluation.expansion.round_size
    trials = run_block(hunt.parts, hunt.generation, f"expansion round {round_number}", plan)
    return [
        Attempt(
            ask=ask, is_solved=None if trial.is_invalid else trial.is_solved, tokens=_tokens(trial)
        )
        for ask, trial in zip(asks, trials, strict=True)
    ]


def _tokens(trial: Trial) -> int:
    return trial.usage.input_tokens + trial.usage.output_tokens


def _propose(hunt: _Hunt, round_number: int) -> None:
    """Enters the candidates of this round: first ones, new versions for a larger pool, a child."""
    contract = hunt.base.contract
    pool = _pool(hunt)
    known = frozenset(hunt.recipes.values())
    wanted: list[Recipe] = []
    if round_number == 0:
        wanted += start(contract)
    if pool != hunt.shown:
        wanted += [
            recipe
            for recipe in dict.fromkeys(hunt.recipes.values())
            if needs_pool(contract, recipe)
        ]
        if not hunt.shown:
            wanted += [recipe for recipe in with_pool(contract) if recipe not in known]
    if round_number > 1 and len(known) < MOST_KINDS:
        wanted += _child(hunt, known, round_number)
    hunt.shown = pool
    for recipe in wanted:
        _enter(hunt, recipe, pool)


def _child(hunt: _Hunt, known: frozenset[Recipe], round_number: int) -> list[Recipe]:
    """One new recipe, bred from the three that have done best so far."""
    kinds = [hunt.recipes[contract] for contract in _ranked_by_belief(hunt)[:3]]
    rng = random.Random(f"{hunt.generation.seed}/breed/{round_number}")
    bred = breed(hunt.base.contract, kinds, known, rng)
    if bred is None or (needs_pool(hunt.base.contract, bred) and not hunt.shown):
        return []
    return [bred]


def _enter(hunt: _Hunt, recipe: Recipe, pool: Sequence[Example]) -> None:
    """Makes the recipe's candidate, records it, and lets the search use it."""
    contract = hunt.base.contract
    edits = edits_of(contract, recipe, pool)
    document = hunt.parts.contract_files.edit(hunt.document, edits)
    digest = document.contract.digest
    if digest in hunt.contenders or digest == contract.digest:
        return
    hunt.parts.ledger.add_contract(document.contract, document.toml)
    hunt.contenders[digest] = contender(
        hunt.parts, hunt.base.model, document.contract, hunt.base.chat
    )
    hunt.recipes[digest] = recipe
    candidate = Candidate(
        contract=digest,
        parent=contract.digest,
        edits=edits,
        author=f"operator:{'+'.join(recipe)}",
        ordinal=len(hunt.candidates),
    )
    hunt.candidates.append(candidate)
    hunt.parts.ledger.add_candidates(hunt.generation.number, [candidate])
    hunt.search.enter(_entrant(hunt, document.contract, recipe, candidate.ordinal))


def _entrant(hunt: _Hunt, contract: Contract, recipe: Recipe, ordinal: int) -> Entrant:
    origins = (
        [example.origin for example in contract.prompt.examples if example.origin is not None]
        if contract.prompt.examples_shown
        else []
    )
    families = frozenset(hunt.families[origin] for origin in origins)
    return Entrant(
        contract.digest,
        "+".join(recipe),
        families,
        is_random(hunt.base.contract, recipe),
        ordinal,
    )


def _pool(hunt: _Hunt) -> tuple[Example, ...]:
    """The verified examples at hand: the pair's own solutions, or references where allowed."""
    if hunt.evaluation.expansion.reference_solutions_shown:
        return reference_pool(list(hunt.tasks.values()), POOL_PER_FAMILY)
    before = hunt.generation.number
    told = {
        TrialKey(hunt.contenders[a.ask.candidate].pair, a.ask.task, a.ask.seed)
        for a in hunt.search.attempts
    }
    # A search that is resumed finds trials of its own future in the ledger: they don't count yet.
    usable = [
        solution
        for solution in solutions_of(hunt.parts, up_to=before)
        if solution.trial.generation < before
        or solution.trial.pair == hunt.base.pair
        or solution.trial.key in told
    ]
    hunt.families.update({s.task.digest: s.task.family for s in usable})
    return pool_of(usable, POOL_PER_FAMILY)


def _ranked(hunt: _Hunt) -> list[Contender]:
    """The newest candidates of each kind, those first that have solved the largest share."""
    return [hunt.contenders[contract] for contract in _ranked_by_belief(hunt)]


def _ranked_by_belief(hunt: _Hunt) -> list[Digest]:
    live = sorted(
        hunt.search.live(),
        key=lambda entrant: (-hunt.search.belief(entrant.kind)[0], entrant.ordinal),
    )
    return [entrant.contract for entrant in live]
