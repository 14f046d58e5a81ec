"""Propose: candidates as typed edits of a contract, from operators that any contract can use."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from rsi.domain.contract import ActionFormat, Contract, Edit, Example, HookAction
from rsi.domain.contract_rules import event_of
from rsi.domain.edits import is_in_space

TERSE = "Answer with one bash command and nothing else."
WARM = 0.7
"""Sampling temperature for repeated tries; greedy output can't differ from seed to seed."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A named change; a recipe holds at most one operator of each group."""

    name: str
    group: str
    edits: Callable[[Sequence[Example]], tuple[Edit, ...]]
    """From the pool of verified examples."""
    needs_pool: bool = False
    is_random: bool = False
    hooks: tuple[HookAction, ...] = ()


Recipe = tuple[str, ...]
"""Names of operators in alphabetical order: the kind of a candidate."""


def operators(contract: Contract) -> dict[str, Operator]:
    """The operators that stay inside the contract's declared search space, by name."""
    every = [*_example_operators(contract), *_agent_operators(contract), *_hook_operators()]
    return {
        operator.name: operator
        for operator in every
        if all(is_in_space(contract, edit.key) for edit in operator.edits(()))
        and (not operator.hooks or is_in_space(contract, "hooks"))
    }


def start(contract: Contract) -> tuple[Recipe, ...]:
    """The recipes that a search begins with: each way to show a skill's examples, the middle one
    crossed with what changes the form of an action, the shortest one sampled again and again;
    without skills, every operator alone."""
    known = operators(contract)
    shows = _of_group(known, "skill")
    forms = [name for group in ("system", "action", "repair") for name in _of_group(known, group)]
    if not shows:
        others = [name for name, operator in known.items() if not operator.needs_pool]
        return tuple(recipe_of(name) for name in others)
    middle, again = shows[len(shows) // 2], _of_group(known, "sampling")[:1]
    return (
        *map(recipe_of, shows),
        *(recipe_of(middle, form) for form in forms),
        *(recipe_of(shows[0], sampling) for sampling in again),
    )


def with_pool(contract: Contract) -> tuple[Recipe, ...]:
    """The recipes that begin when the first verified solution is there to show: each way to show
    them, alone and after the skills' examples, which stand in where no solution is near."""
    known = operators(contract)
    pools, shows = _of_group(known, "pool"), _of_group(known, "skill")
    beside = [recipe_of(pool, show) for show in shows[:2] for pool in pools[:2]]
    return (*beside, *map(recipe_of, pools[1:2]))


def _of_group(known: dict[str, Operator], group: str) -> list[str]:
    return [name for name, operator in known.items() if operator.group == group]


def breed(
    contract: Contract, parents: Sequence[Recipe], known: frozenset[Recipe], rng: random.Random
) -> Recipe | None:
    """A new recipe: a parent with one operator added or replaced; None when none is left."""
    every = operators(contract)
    children = sorted(
        {
            child
            for parent in parents
            for name in every
            if (child := _changed(every, parent, name)) not in known
        }
    )
    return rng.choice(children) if children else None


def edits_of(contract: Contract, recipe: Recipe, pool: Sequence[Example]) -> tuple[Edit, ...]:
    """The typed edits that make the recipe's candidate from the contract."""
    every = operators(contract)
    edits = [edit for name in recipe for edit in every[name].edits(pool)]
    hooks = [action for name in recipe for action in every[name].hooks]
    if hooks:
        have = {hook.action for hook in contract.hooks}
        listed: list[JsonValue] = [hook.model_dump(mode="json") for hook in contract.hooks]
        listed += [
            {"event": event_of(action).value, "action": action.value}
            for action in dict.fromkeys(hooks)
            if action not in have
        ]
        edits.append(Edit(key="hooks", value=listed))
    return tuple(edits)


def needs_pool(contract: Contract, recipe: Recipe) -> bool:
    """Whether the recipe shows verified solutions, so that a larger pool makes a new version."""
    every = operators(contract)
    return any(every[name].needs_pool for name in recipe)


def is_random(contract: Contract, recipe: Recipe) -> bool:
    """Whether another seed can give another outcome."""
    every = operators(contract)
    is_warm = contract.model.sampling.temperature > 0
    return is_warm or any(every[name].is_random for name in recipe)


def recipe_of(*names: str) -> Recipe:
    """A recipe in its one order."""
    return tuple(sorted(names))


def _changed(every: dict[str, Operator], parent: Recipe, name: str) -> Recipe:
    group = every[name].group
    return recipe_of(name, *(other for other in parent if every[other].group != group))


def _example_operators(contract: Contract) -> list[Operator]:
    made = []
    for skill in contract.skills:
        if not skill.examples:
            continue
        for count in (1, 3, 5):
            edit = Edit(key=f"skills.{skill.name}.shown", value=count)
            made.append(Operator(f"{skill.name}-{count}", "skill", _fixed(edit)))
    for count in (1, 3, 5):
        made.append(Operator(f"solved-{count}", "pool", _pool_edits(count), needs_pool=True))
    return made


def _agent_operators(contract: Contract) -> list[Operator]:
    temperature = Edit(key="model.sampling.temperature", value=WARM)
    votes = Edit(key="agent.votes", value=3)
    # A stop at the line's end would cut a fenced block after its first line.
    fence = (
        Edit(key="agent.action", value=ActionFormat.FENCE.value),
        Edit(key="model.sampling.stop", value=[]),
    )
    made = [
        Operator("terse", "system", _fixed(Edit(key="prompt.system", value=TERSE))),
        Operator("warm", "sampling", _fixed(temperature), is_random=True),
        Operator("votes", "sampling", _fixed(temperature, votes), is_random=True),
        Operator("fence", "action", _fixed(*fence)),
    ]
    if "python" in contract.tools:
        exposed = Edit(key="tools.python.exposed", value=True)
        made.append(Operator("python", "action", _fixed(*fence, exposed)))
    return made


def _hook_operators() -> list[Operator]:
    retry = (HookAction.CLEAN_ACTION, HookAction.RETRY_ON_ERROR)
    return [
        Operator("listing", "listing", _fixed(), hooks=(HookAction.LIST_FILES,)),
        Operator("repair", "repair", _fixed(Edit(key="agent.retries", value=1)), hooks=retry),
        Operator("insist", "insist", _fixed(), hooks=(HookAction.REQUIRE_ANSWER,)),
    ]


def _fixed(*edits: Edit) -> Callable[[Sequence[Example]], tuple[Edit, ...]]:
    return lambda _: edits


def _pool_edits(count: int) -> Callable[[Sequence[Example]], tuple[Edit, ...]]:
    def edits(pool: Sequence[Example]) -> tuple[Edit, ...]:
        listed: list[JsonValue] = [
            example.model_dump(mode="json", exclude_none=True) for example in pool
        ]
        return (
            Edit(key="prompt.examples", value=listed),
            Edit(key="prompt.examples_shown", value=count),
        )

    return edits
