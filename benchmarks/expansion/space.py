"""The space that every method searches: one operator, or none, of each group."""

import random
from collections.abc import Mapping

from rsi.domain.contract import Contract, Example
from rsi.ports import ContractDocument
from rsi.stages.parts import Contender, Parts, contender
from rsi.steps.propose import Recipe, edits_of, operators, recipe_of

NONE = "none"


def groups(contract: Contract) -> dict[str, tuple[str, ...]]:
    """The choices of each group, with `none` first."""
    found: dict[str, list[str]] = {}
    for name, operator in operators(contract).items():
        found.setdefault(operator.group, [NONE]).append(name)
    return {group: tuple(names) for group, names in found.items()}


def recipe_from(choices: Mapping[str, str]) -> Recipe:
    """The recipe of a choice for each group."""
    return recipe_of(*(name for name in choices.values() if name != NONE))


def random_recipe(contract: Contract, rng: random.Random) -> Recipe:
    """A recipe with each group's choice drawn evenly."""
    return recipe_from({group: rng.choice(names) for group, names in groups(contract).items()})


class Candidates:
    """Contracts of recipes, made and recorded once for each pool of examples."""

    def __init__(self, parts: Parts, base: Contender) -> None:
        self._parts, self._base = parts, base
        toml = parts.ledger.contract_toml(base.contract.digest)
        self._document = ContractDocument(base.contract, toml)

    def made(self, recipe: Recipe, pool: tuple[Example, ...]) -> Contender:
        """The recipe's candidate with these examples; the base where it changes nothing."""
        edits = edits_of(self._base.contract, recipe, pool)
        if not edits:
            return self._base
        document = self._parts.contract_files.edit(self._document, edits)
        self._parts.ledger.add_contract(document.contract, document.toml)
        return contender(self._parts, self._base.model, document.contract, self._base.chat)
