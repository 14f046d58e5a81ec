"""Greedy replies of a model in training, to compare with those of the served one."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from rsi.domain.rendering import Messages
from rsi.worker.base import TrainingBase

_AT_ONCE = 16


def greedy_replies(
    base: TrainingBase, model: PreTrainedModel, prompts: Sequence[Messages], max_tokens: int
) -> tuple[str, ...]:
    """The reply to each prompt, in their order, without the end token."""
    encoded = [base.prompt_ids(messages) for messages in prompts]
    by_length = sorted(range(len(encoded)), key=lambda place: len(encoded[place]))
    replies = [""] * len(encoded)
    for start in range(0, len(by_length), _AT_ONCE):
        places = by_length[start : start + _AT_ONCE]
        for place, reply in zip(
            places, _generate(base, model, [encoded[p] for p in places], max_tokens), strict=True
        ):
            replies[place] = reply
    return tuple(replies)


def _generate(
    base: TrainingBase, model: PreTrainedModel, prompts: Sequence[list[int]], max_tokens: int
) -> list[str]:
    width = max(map(len, prompts))
    pad = base.end_id
    tokens = torch.tensor([[pad] * (width - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    with torch.inference_mode():
        made = model.generate(
            input_ids=tokens,
            attention_mask=mask,
            max_new_tokens=max_tokens,
            do_sample=False,
            pad_token_id=pad,
            eos_token_id=base.end_id,
        )
    return [base.tokenizer.decode(row[width:], skip_special_tokens=True) for row in made.tolist()]
