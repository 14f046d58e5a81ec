"""What GGUF and transformers call the same weights of a Llama, and how they order them.

llama.cpp interleaves the two halves of each rotary head; transformers keeps them apart. The rows
of the query and key projections are therefore permuted on the way from one to the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader
from numpy.typing import NDArray

LINEAR: Mapping[str, str] = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""transformers' name -> GGUF's name, within one layer."""
NORMS: Mapping[str, str] = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
TARGETS = tuple(name.rpartition(".")[2] for name in LINEAR)
"""The linear modules by their last name, as peft wants them."""


class UnknownArchitectureError(ValueError):
    """The GGUF isn't a Llama, or has tensors that a Llama hasn't."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a Llama."""

    layers: int
    heads: int
    kv_heads: int
    hidden: int
    feed_forward: int
    vocabulary: int
    context: int
    rope_base: float
    norm_epsilon: float

    def rotary_heads(self, name: str) -> int:
        """How many rotary heads the rows of a linear module hold; 0 when they aren't rotary."""
        return {"attn_q": self.heads, "attn_k": self.kv_heads}.get(name, 0)


def read_shape(reader: GGUFReader) -> Shape:
    """The sizes that a GGUF declares. Raises UnknownArchitectureError for anything else."""
    architecture = field(reader, "general.architecture")
    if architecture != "llama":
        raise UnknownArchitectureError(f"the base is a {architecture}; only llama can be trained")
    return Shape(
        layers=field(reader, "llama.block_count"),
        heads=field(reader, "llama.attention.head_count"),
        kv_heads=field(reader, "llama.attention.head_count_kv"),
        hidden=field(reader, "llama.embedding_length"),
        feed_forward=field(reader, "llama.feed_forward_length"),
        vocabulary=len(reader.fields["tokenizer.ggml.tokens"].data),
        context=field(reader, "llama.context_length"),
        rope_base=field(reader, "llama.rope.freq_base"),
        norm_epsilon=field(reader, "llama.attention.layer_norm_rms_epsilon"),
    )


def field(reader: GGUFReader, name: str) -> Any:
    """The value of one metadata key. Raises UnknownArchitectureError when it isn't there."""
    if name not in reader.fields:
        raise UnknownArchitectureError(f"the base's GGUF has no {name}")
    return reader.fields[name].contents()


def open_gguf(path: Path) -> GGUFReader:
    """A reader of the file; its tensors are mapped, not loaded."""
    return GGUFReader(path)


def permuted(rows: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows in llama.cpp's order, from transformers' order."""
    parts = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return np.ascontiguousarray(parts.swapaxes(1, 2)).reshape(rows.shape)


def unpermuted(rows: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows in transformers' order, from llama.cpp's order."""
    parts = rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:])
    return np.ascontiguousarray(parts.swapaxes(1, 2)).reshape(rows.shape)
