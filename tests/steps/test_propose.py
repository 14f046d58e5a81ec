"""Proposals stay inside the declared space, and every recipe makes a valid child."""

import random

import pytest

from rsi.domain.contract import Contract, Example, Skill, Tool, ToolKind
from rsi.domain.edits import apply
from rsi.steps.propose import (
    breed,
    edits_of,
    is_random,
    needs_pool,
    operators,
    recipe_of,
    start,
    with_pool,
)
from tests.samples import contract

POOL = (Example(instruction="Say hi.", reply="echo hi"),)
BASE = contract(
    skills=(Skill(name="cookbook", examples=POOL),),
    tools={"bash": Tool(kind=ToolKind.BASH), "python": Tool(kind=ToolKind.PYTHON, exposed=False)},
)


def every_recipe(base: Contract) -> list[tuple[str, ...]]:
    return [*start(base), *with_pool(base), *((name,) for name in operators(base))]


def test_every_recipe_makes_a_valid_child_of_its_own() -> None:
    children = {apply(BASE, edits_of(BASE, recipe, POOL)).digest for recipe in every_recipe(BASE)}
    assert len(children) == len(set(every_recipe(BASE)))
    assert BASE.digest not in children


@pytest.mark.parametrize("space", [(), ("prompt.system",), ("agent.*", "model.sampling.*")])
def test_nothing_outside_the_space_is_proposed(space: tuple[str, ...]) -> None:
    narrow = BASE.model_copy(update={"search": BASE.search.model_copy(update={"space": space})})
    for recipe in every_recipe(narrow):
        apply(narrow, edits_of(narrow, recipe, POOL))


def test_a_contract_without_skills_can_still_be_searched() -> None:
    assert start(contract(skills=()))


def test_recipes_that_show_solutions_wait_for_some() -> None:
    assert not any(needs_pool(BASE, recipe) for recipe in start(BASE))
    assert all(needs_pool(BASE, recipe) for recipe in with_pool(BASE))


def test_a_child_differs_from_all_known_and_keeps_one_operator_a_group() -> None:
    known = frozenset(start(BASE))
    groups = {name: operator.group for name, operator in operators(BASE).items()}
    for seed in range(20):
        child = breed(BASE, start(BASE)[:3], known, random.Random(seed))
        assert child is not None
        assert child not in known
        assert len({groups[name] for name in child}) == len(child)


def test_breeding_ends_when_nothing_is_left() -> None:
    one = recipe_of("terse")
    narrow = BASE.model_copy(
        update={"search": BASE.search.model_copy(update={"space": ("prompt.system",)})}
    )
    assert breed(narrow, [one], frozenset({one}), random.Random(1)) is None


def test_only_sampling_makes_another_seed_worth_while() -> None:
    assert is_random(BASE, ("warm",))
    assert not is_random(BASE, ("terse",))
