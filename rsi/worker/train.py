"""Trains a LoRA and leaves its files: `python -m rsi.worker.train JOBFILE`.

JOBFILE holds a `TrainJob`; the result is written to `result.json` in the job's output folder, as a
`TrainResult`. Each line on standard output is a `TrainProgress`. The same job gives the same bits
on the same machine, unless the time runs out.
"""

import os
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model, set_peft_model_state_dict
from safetensors.torch import load_file
from torch.nn import functional
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from transformers.utils import logging

from rsi.domain.job import TrainJob, TrainProgress, TrainResult
from rsi.domain.lora import Recipe
from rsi.worker.base import TrainingBase, load_base
from rsi.worker.batches import Encoded, Pack, batches, encode, packs
from rsi.worker.convert import convert_adapter
from rsi.worker.llama import TARGETS
from rsi.worker.probe import greedy_replies

_LEARNING_SHARE = 0.65
"""Of the recipe's seconds; the rest is for the probes, the conversion and the checks after."""
_WARM_UP_SHARE = 0.06
_LONGEST_GRADIENT = 1.0
OPENING = 8
"""Tokens of the base's reply to a probe: enough to see whether the trained reply is another."""


def main() -> None:
    """Runs the job named on the command line; exits non-zero when it could not."""
    started_s = time.monotonic()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    job = TrainJob.model_validate_json(Path(sys.argv[1]).read_text("utf-8"))
    logging.disable_progress_bar()
    torch.set_num_threads(job.threads)
    torch.use_deterministic_algorithms(True)
    result = run(job, started_s, lambda progress: print(progress.model_dump_json(), flush=True))  # noqa: T201  # the worker's protocol
    partial = job.output / "result.partial"
    partial.write_text(result.model_dump_json(), "utf-8")
    os.replace(partial, job.output / "result.json")


def _end_with_parent() -> None:
    """Ends the process when standard input ends: nobody waits for the result any more."""
    # Not by sys.stdin: its lock, held by this thread, would break the interpreter's own end.
    while os.read(0, 4096):
        pass
    os._exit(1)


def run(job: TrainJob, started_s: float, tell: Callable[[TrainProgress], None]) -> TrainResult:
    """The trained adapter's files and what the learning looked like."""
    tell(TrainProgress(doing="load the base"))
    base = load_base(job.model, job.cache, job.half)
    model = _with_adapter(base, job)
    learnt = _learn(base, model, job, started_s + _LEARNING_SHARE * job.recipe.seconds, tell)
    model.eval()
    tell(TrainProgress(doing="write the adapter"))
    model.save_pretrained(job.output / "peft")
    adapter = job.output / "adapter.gguf"
    convert_adapter(job.output / "peft", adapter, base.shape)
    source = job.output / "adapter.safetensors"
    shutil.copyfile(job.output / "peft" / "adapter_model.safetensors", source)
    tell(TrainProgress(doing="answer the probes"))
    with model.disable_adapter():
        openings = greedy_replies(base, model, job.probes, min(OPENING, job.probe_max_tokens))
    model.merge_adapter()  # half of the time for each token
    trained = greedy_replies(base, model, job.probes, job.probe_max_tokens)
    return TrainResult(
        adapter=adapter,
        source=source,
        stopped=learnt.stopped,
        losses=tuple(learnt.losses),
        tokens=learnt.tokens,
        elapsed_s=time.monotonic() - started_s,
        base_openings=openings,
        trained_outputs=trained,
    )


class _Learnt:
    """What the learning loop leaves behind."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.tokens = 0
        self.stopped = "epochs done"


def planned_steps(recipe: Recipe, examples: int) -> int:
    """How many steps the recipe asks for: its epochs, but never more than `max_steps`."""
    wanted = -(-int(recipe.epochs * examples) // recipe.batch_size)
    return max(1, min(recipe.max_steps, wanted))


def _learn(
    base: TrainingBase,
    model: PeftModel,
    job: TrainJob,
    deadline_s: float,
    tell: Callable[[TrainProgress], None],
) -> _Learnt:
    encoded = [encode(base, example) for example in job.dataset.examples]
    recipe = job.recipe
    steps = planned_steps(recipe, len(encoded))
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = AdamW(weights, lr=recipe.learning_rate, weight_decay=0.0)
    schedule = LambdaLR(optimizer, _rate(steps))
    model.train()
    learnt = _Learnt()
    if steps * recipe.batch_size < int(recipe.epochs * len(encoded)):
        learnt.stopped = "max_steps reached"
    for batch in batches(encoded, min(recipe.batch_size, len(encoded)), steps, recipe.seed):
        if time.monotonic() > deadline_s and learnt.losses:
            learnt.stopped = "time spent"
            break
        loss, tokens = _backward(model, batch)
        torch.nn.utils.clip_grad_norm_(weights, _LONGEST_GRADIENT)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        learnt.losses.append(loss)
        learnt.tokens += tokens
        tell(TrainProgress(doing="train", step=len(learnt.losses), steps=steps, loss=loss))
    return learnt


def _rate(steps: int) -> Callable[[int], float]:
    """The share of the learning rate at a step: a short rise, then down in a line."""
    rise = max(1, round(_WARM_UP_SHARE * steps))
    return lambda step: min((step + 1) / rise, max(0.0, (steps - step) / max(1, steps - rise)))


def _backward(model: PeftModel, batch: list[Encoded]) -> tuple[float, int]:
    """Adds the batch's gradients; its mean loss over completion tokens, and its tokens."""
    parts = packs(batch)
    learnt_tokens = sum(len(part.targets) for part in parts)
    total = 0.0
    for part in parts:
        loss = _loss(model, part) / learnt_tokens
        loss.backward()
        total += loss.item()
    return total, sum(part.tokens.shape[1] for part in parts)


def _loss(model: PeftModel, pack: Pack) -> torch.Tensor:
    """The summed loss over the completion tokens; no other logits are computed."""
    llama = model.get_base_model()
    hidden = llama.model(
        input_ids=pack.tokens,
        position_ids=pack.positions,
        attention_mask=pack.mask,
        use_cache=False,
    ).last_hidden_state[0]
    logits = llama.lm_head(hidden[pack.rows])
    return functional.cross_entropy(logits, pack.targets, reduction="sum")


def _with_adapter(base: TrainingBase, job: TrainJob) -> PeftModel:
    """The base with a fresh adapter, or with the parent's weights in it."""
    torch.manual_seed(job.recipe.seed)
    config = LoraConfig(
        r=job.recipe.rank,
        lora_alpha=job.recipe.alpha,
        target_modules=list(TARGETS),
        lora_dropout=0.0,
        bias="none",
        task_type="CAUSAL_LM",
    )
    with warnings.catch_warnings():
        # peft asks transformers for an attribute that is to be renamed.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        model = get_peft_model(base.model, config)
    if job.parent is not None:
        weights = load_file(job.parent)
        ranks = {tensor.shape[0] for name, tensor in weights.items() if "lora_A" in name}
        if ranks != {job.recipe.rank}:
            sys.exit(f"the parent adapter has rank {sorted(ranks)}, the recipe {job.recipe.rank}")
        outcome = set_peft_model_state_dict(model, weights)
        if outcome.unexpected_keys:
            sys.exit(f"the parent adapter has unknown tensors: {outcome.unexpected_keys[:3]}")
    return model


if __name__ == "__main__":
    main()
