"""Adapters made by hand, in peft's files and as GGUF, without torch."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from rsi.worker.llama import LINEAR, Shape

CONFIG = {"r": 2, "lora_alpha": 4, "bias": "none"}


def widths(shape: Shape, served: str) -> tuple[int, int]:
    """(in, out) of a linear module, by GGUF's name."""
    head = shape.hidden // shape.heads
    outs = {
        "attn_k": head * shape.kv_heads,
        "attn_v": head * shape.kv_heads,
        "ffn_gate": shape.feed_forward,
        "ffn_up": shape.feed_forward,
    }
    inner = shape.feed_forward if served == "ffn_down" else shape.hidden
    return inner, outs.get(served, shape.hidden)


def write_peft(
    folder: Path,
    shape: Shape,
    *,
    seed: int = 0,
    rank: int = 2,
    size: float = 0.1,
    config: Mapping[str, object] = {},
) -> None:
    """A peft adapter with random weights in every linear module."""
    rng = np.random.default_rng(seed)
    tensors = {}
    for layer in range(shape.layers):
        for name, served in LINEAR.items():
            inner, outer = widths(shape, served)
            stem = f"base_model.model.model.layers.{layer}.{name}"
            a, b = rng.normal(0, size, (rank, inner)), rng.normal(0, size, (outer, rank))
            tensors[f"{stem}.lora_A.weight"] = a.astype(np.float32)
            tensors[f"{stem}.lora_B.weight"] = b.astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({**CONFIG, "r": rank, **config}))
