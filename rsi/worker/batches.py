"""Makes training batches without padding: the examples of a pack share one sequence.

The tokens that all prompts of a pack begin with (the system text) are computed once. Behind them
lies each example's own part, which sees the common part and itself and counts its positions from
there: the same numbers as one row per example, for half of the work on short examples.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rsi.domain.dataset import DatasetExample
from rsi.worker.base import TrainingBase

_PACK_TOKENS = 1536
"""The attention mask grows with its square; longer batches go in several packs."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """An example as tokens; the completion ends with the end token."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pack:
    """One sequence of several examples, with what is to be learnt."""

    tokens: torch.Tensor
    """(1, T)."""
    positions: torch.Tensor
    """(1, T)."""
    mask: torch.Tensor
    """(1, 1, T, T); true where a row may see a column."""
    rows: torch.Tensor
    """(N,): the places whose next token is learnt."""
    targets: torch.Tensor
    """(N,): those next tokens."""


def encode(base: TrainingBase, example: DatasetExample) -> Encoded:
    """The example's tokens, as the server would see the prompt and make the reply."""
    prompt = base.prompt_ids(example.messages)
    completion = [*base.text_ids(example.completion), base.end_id]
    return Encoded(tuple(prompt), tuple(completion))


def batches(examples: Sequence[Encoded], size: int, steps: int, seed: int) -> list[list[Encoded]]:
    """`steps` batches; every example once before any comes again, in an order drawn from seed."""
    rng = random.Random(seed)
    order: list[Encoded] = []
    while len(order) < steps * size:
        order += rng.sample(examples, len(examples))
    return [order[step * size : (step + 1) * size] for step in range(steps)]


def packs(batch: Sequence[Encoded], limit: int = _PACK_TOKENS) -> list[Pack]:
    """The batch in packs of at most `limit` tokens, a longer example alone in its own."""
    groups: list[list[Encoded]] = []
    room = 0
    for example in sorted(batch, key=lambda e: (len(e.prompt) + len(e.completion), e.prompt)):
        length = len(example.prompt) + len(example.completion)
        if length > room or not groups:
            groups.append([])
            room = limit
        groups[-1].append(example)
        room -= length
    return [_pack(group) for group in groups]


def _pack(examples: Sequence[Encoded]) -> Pack:
    shared = _shared(examples)
    tokens = list(examples[0].prompt[:shared])
    positions, owner = list(range(shared)), [0] * shared
    rows: list[int] = []
    targets: list[int] = []
    for number, example in enumerate(examples, 1):
        own = [*example.prompt[shared:], *example.completion[:-1]]
        first = len(tokens) + len(example.prompt) - shared - 1
        rows += range(first, first + len(example.completion))
        targets += example.completion
        tokens += own
        positions += range(shared, shared + len(own))
        owner += [number] * len(own)
    owners = torch.tensor(owner)
    sees = (owners[None, :] == 0) | (owners[None, :] == owners[:, None])
    mask = torch.tril(sees)
    return Pack(
        tokens=torch.tensor([tokens]),
        positions=torch.tensor([positions]),
        mask=mask[None, None],
        rows=torch.tensor(rows),
        targets=torch.tensor(targets),
    )


def _shared(examples: Sequence[Encoded]) -> int:
    """How many tokens all prompts begin with; each keeps at least its last one to itself."""
    shortest = min(len(example.prompt) for example in examples) - 1
    first = examples[0].prompt
    for place in range(shortest):
        if any(example.prompt[place] != first[place] for example in examples):
            return place
    return shortest
