"""A small recipe and made-up examples of terminal commands."""

import random

from rsi.domain.dataset import Dataset, DatasetExample
from rsi.domain.lora import Recipe

RECIPE = Recipe(
    rank=4, alpha=8, learning_rate=1e-3, epochs=9, batch_size=4, max_steps=2, seconds=300, seed=1
)
_SYSTEM = "You are in a Linux terminal. Reply with one bash command."
_NAMES = ("kiwi", "plum", "notes", "data", "report")


def dataset(count: int, seed: int = 0) -> Dataset:
    """So many examples, the same for the same seed."""
    rng = random.Random(seed)
    return Dataset(contract="0" * 64, examples=tuple(_example(rng, n) for n in range(count)))


def _example(rng: random.Random, number: int) -> DatasetExample:
    name, lines = rng.choice(_NAMES), rng.randint(2, 9)
    instruction, command = rng.choice(
        [
            (f"How many lines are in {name}.txt?", f"wc -l < {name}.txt"),
            (f"Print the first {lines} lines of {name}.txt.", f"head -n {lines} {name}.txt"),
            (f"Sort {name}.csv.", f"sort {name}.csv"),
        ]
    )
    return DatasetExample(
        trial_pair="0" * 64,
        trial_task="0" * 64,
        trial_seed=number,
        family="made-up",
        messages=(("system", _SYSTEM), ("user", instruction)),
        completion=command,
    )
