"""Loads the base model and its tokenizer for training, from the GGUF that is served.

The weights are the served file's, as F16 numbers in 32 bits. They are kept as safetensors in a
cache, because reading the GGUF takes seven times as long. The tokenizer is built from the GGUF's
own vocabulary and chat template, so that training sees the tokens that the server makes.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from gguf import GGUFReader
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rsi.domain.rendering import Messages
from rsi.worker.convert import half, write_half
from rsi.worker.llama import (
    LINEAR,
    NORMS,
    Shape,
    UnknownArchitectureError,
    field,
    open_gguf,
    read_shape,
    unpermuted,
)

_CONTROL = 3
"""The token type of control tokens in a GGUF."""
_KNOWN_PRE_TOKENIZERS = ("smollm",)


@dataclass(frozen=True, slots=True)
class TrainingBase:
    """A model to train and the tokenizer that belongs to it."""

    model: LlamaForCausalLM
    tokenizer: PreTrainedTokenizerFast

    def prompt_ids(self, messages: Messages) -> list[int]:
        """The tokens of a conversation up to where the reply begins."""
        turns = [{"role": role, "content": text} for role, text in messages]
        text = self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        return self.text_ids(text)

    def text_ids(self, text: str) -> list[int]:
        """The tokens of a text, control tokens read as such."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    @property
    def end_id(self) -> int:
        """The token that ends a reply."""
        return int(self.tokenizer.eos_token_id)

    @property
    def shape(self) -> Shape:
        """The sizes, as the converter needs them."""
        config = self.model.config
        return Shape(
            layers=config.num_hidden_layers,
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            hidden=config.hidden_size,
            feed_forward=config.intermediate_size,
            vocabulary=config.vocab_size,
            context=config.max_position_embeddings,
            rope_base=float(config.rope_parameters["rope_theta"]),
            norm_epsilon=config.rms_norm_eps,
        )


def load_base(gguf: Path, cache: Path, half_gguf: Path) -> TrainingBase:
    """The base for training. Fills the cache and writes the F16 GGUF where they are missing.

    Raises UnknownArchitectureError when the GGUF isn't one that can be trained.
    """
    if not (cache / "model.safetensors").exists() or not half_gguf.exists():
        reader = open_gguf(gguf)
        shape = read_shape(reader)
        if not half_gguf.exists():
            write_half(reader, half_gguf)
        if not (cache / "model.safetensors").exists():
            _fill(cache, reader, shape)
    model = LlamaForCausalLM.from_pretrained(cache, dtype=torch.float32)
    return TrainingBase(model, PreTrainedTokenizerFast.from_pretrained(cache))


def _fill(cache: Path, reader: GGUFReader, shape: Shape) -> None:
    """Writes the cache beside its place and renames it, so that it is whole or not there."""
    partial = cache.with_name(f"{cache.name}.partial-{os.getpid()}")
    shutil.rmtree(cache, ignore_errors=True)
    partial.mkdir(parents=True)
    weights = _weights(reader, shape)
    is_tied = "lm_head.weight" not in weights
    save_file(weights, partial / "model.safetensors", metadata={"format": "pt"})
    _config(reader, shape, is_tied).save_pretrained(partial)
    _tokenizer(reader).save_pretrained(partial)
    os.replace(partial, cache)


def _weights(reader: GGUFReader, shape: Shape) -> dict[str, torch.Tensor]:
    names = {"token_embd.weight": "model.embed_tokens.weight", "output.weight": "lm_head.weight"}
    names["output_norm.weight"] = "model.norm.weight"
    for layer in range(shape.layers):
        for trained, served in {**LINEAR, **NORMS}.items():
            names[f"blk.{layer}.{served}.weight"] = f"model.layers.{layer}.{trained}.weight"
    weights = {}
    for tensor in reader.tensors:
        if tensor.name not in names:
            raise UnknownArchitectureError(f"the base has a tensor {tensor.name}")
        numbers = half(tensor.data, tensor.tensor_type)
        heads = shape.rotary_heads(tensor.name.split(".")[-2])
        ordered = unpermuted(numbers, heads) if heads else numbers
        weights[names[tensor.name]] = torch.from_numpy(ordered.copy())
    return weights


def _config(reader: GGUFReader, shape: Shape, is_tied: bool) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.feed_forward,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=shape.context,
        rms_norm_eps=shape.norm_epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_base},
        tie_word_embeddings=is_tied,
        bos_token_id=field(reader, "tokenizer.ggml.bos_token_id"),
        eos_token_id=field(reader, "tokenizer.ggml.eos_token_id"),
        pad_token_id=field(reader, "tokenizer.ggml.padding_token_id"),
        architectures=["LlamaForCausalLM"],
    )


def _tokenizer(reader: GGUFReader) -> PreTrainedTokenizerFast:
    kind = field(reader, "tokenizer.ggml.pre")
    if kind not in _KNOWN_PRE_TOKENIZERS:
        raise UnknownArchitectureError(f"the base splits text as {kind!r}, which isn't known here")
    tokens = field(reader, "tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ", 1)) for merge in field(reader, "tokenizer.ggml.merges")]
    built = Tokenizer(BPE({token: place for place, token in enumerate(tokens)}, merges))
    built.pre_tokenizer = Sequence(
        [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
    )
    built.decoder = ByteLevelDecoder()
    types = field(reader, "tokenizer.ggml.token_type")
    control = [t for t, kind in zip(tokens, types, strict=True) if kind == _CONTROL]
    built.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in control]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=built,
        bos_token=tokens[field(reader, "tokenizer.ggml.bos_token_id")],
        eos_token=tokens[field(reader, "tokenizer.ggml.eos_token_id")],
        pad_token=tokens[field(reader, "tokenizer.ggml.padding_token_id")],
        chat_template=field(reader, "tokenizer.chat_template"),
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
