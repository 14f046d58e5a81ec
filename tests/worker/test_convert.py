"""Adapters and bases as GGUF: what is written is what was read, and nothing is dropped."""

from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader, GGUFWriter
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from rsi.worker.convert import UnconvertibleError, convert_adapter, write_half
from rsi.worker.llama import LINEAR, Shape, open_gguf, permuted, read_shape, unpermuted
from tests.worker.adapters import write_peft

SHAPE = Shape(
    layers=2,
    heads=4,
    kv_heads=2,
    hidden=32,
    feed_forward=48,
    vocabulary=8,
    context=64,
    rope_base=10000.0,
    norm_epsilon=1e-5,
)


def matrices(path: Path) -> dict[str, NDArray[np.float32]]:
    return {tensor.name: np.array(tensor.data) for tensor in GGUFReader(path).tensors}


def rotated(rows: NDArray[np.float32], heads: int, is_interleaved: bool) -> NDArray[np.float32]:
    """A rotary rotation by angles of the place in the head, in either order of rows."""
    half = rows.shape[0] // heads // 2
    shaped = rows.reshape((heads, half, 2) if is_interleaved else (heads, 2, half))
    parts = shaped if not is_interleaved else shaped.swapaxes(1, 2)
    angle = np.arange(half) / 3
    one, other = parts[:, 0], parts[:, 1]
    turned = np.stack(
        [one * np.cos(angle) - other * np.sin(angle), one * np.sin(angle) + other * np.cos(angle)],
        axis=1,
    )
    return (turned.swapaxes(1, 2) if is_interleaved else turned).reshape(rows.shape)


@given(heads=st.integers(1, 6), half=st.integers(1, 8), seed=st.integers(0, 1000))
def test_permuting_carries_one_rotary_order_into_the_other(
    heads: int, half: int, seed: int
) -> None:
    rows = np.random.default_rng(seed).normal(size=heads * half * 2).astype(np.float32)
    served = rotated(permuted(rows, heads), heads, is_interleaved=True)
    assert np.allclose(unpermuted(served, heads), rotated(rows, heads, is_interleaved=False))
    assert np.array_equal(unpermuted(permuted(rows, heads), heads), rows)


def test_every_product_of_an_adapter_is_exact_under_its_served_name(tmp_path: Path) -> None:
    write_peft(tmp_path / "peft", SHAPE)
    written = convert_adapter(tmp_path / "peft", tmp_path / "adapter.gguf", SHAPE)
    source = load_file(tmp_path / "peft" / "adapter_model.safetensors")
    served = matrices(tmp_path / "adapter.gguf")
    assert written == len(source) == len(served) == 2 * 7 * SHAPE.layers
    for layer in range(SHAPE.layers):
        for name, short in LINEAR.items():
            stem = f"base_model.model.model.layers.{layer}.{name}"
            product = source[f"{stem}.lora_B.weight"] @ source[f"{stem}.lora_A.weight"]
            stem = f"blk.{layer}.{short}.weight"
            delta = served[f"{stem}.lora_b"] @ served[f"{stem}.lora_a"]
            heads = {"attn_q": SHAPE.heads, "attn_k": SHAPE.kv_heads}.get(short)
            assert np.array_equal(unpermuted(delta, heads) if heads else delta, product)


@pytest.mark.parametrize(("config", "alpha"), [({}, 4.0), ({"use_rslora": True}, 4.0 * 2**0.5)])
def test_scale_is_carried_over(tmp_path: Path, config: dict[str, object], alpha: float) -> None:
    write_peft(tmp_path / "peft", SHAPE, config=config)
    convert_adapter(tmp_path / "peft", tmp_path / "adapter.gguf", SHAPE)
    fields = GGUFReader(tmp_path / "adapter.gguf").fields
    assert fields["adapter.lora.alpha"].contents() == pytest.approx(alpha)
    assert fields["general.type"].contents() == "adapter"
    assert fields["adapter.type"].contents() == "lora"
    assert fields["general.architecture"].contents() == "llama"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"bias": "lora_only"}, "bias"),
        ({"rank_pattern": {"q_proj": 4}}, "rank_pattern"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(
    tmp_path: Path, config: dict[str, object], words: str
) -> None:
    write_peft(tmp_path / "peft", SHAPE, config=config)
    with pytest.raises(UnconvertibleError, match=words):
        convert_adapter(tmp_path / "peft", tmp_path / "adapter.gguf", SHAPE)
    assert not (tmp_path / "adapter.gguf").exists()


@pytest.mark.parametrize(
    "name",
    [
        "base_model.model.lm_head.lora_A.weight",
        "base_model.model.model.layers.2.mlp.up_proj.lora_A.weight",
        "base_model.model.model.layers.0.mlp.gate.lora_A.weight",
        "base_model.model.model.layers.0.mlp.up_proj.lora_magnitude_vector",
    ],
)
def test_every_unknown_tensor_is_named(tmp_path: Path, name: str) -> None:
    write_peft(tmp_path / "peft", SHAPE)
    file = tmp_path / "peft" / "adapter_model.safetensors"
    save_file({**load_file(file), name: np.zeros((2, 32), np.float32)}, file)
    with pytest.raises(UnconvertibleError) as caught:
        convert_adapter(tmp_path / "peft", tmp_path / "adapter.gguf", SHAPE)
    assert caught.value.faults == (f"unknown tensor {name}",)


def test_a_matrix_without_its_partner_is_refused(tmp_path: Path) -> None:
    write_peft(tmp_path / "peft", SHAPE)
    file = tmp_path / "peft" / "adapter_model.safetensors"
    tensors = load_file(file)
    del tensors["base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight"]
    save_file(tensors, file)
    with pytest.raises(UnconvertibleError, match=r"blk\.1\.attn_q\.weight\.lora_a has no partner"):
        convert_adapter(tmp_path / "peft", tmp_path / "adapter.gguf", SHAPE)


def test_half_base_keeps_names_metadata_and_rounded_weights(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(size=(4, 32)).astype(np.float32)
    writer = GGUFWriter(tmp_path / "base.gguf", "llama")
    writer.add_name("tiny")
    writer.add_file_type(3)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
    writer.add_tensor("token_embd.weight", matrix.astype(np.float16))
    writer.add_tensor("output_norm.weight", matrix[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    write_half(open_gguf(tmp_path / "base.gguf"), tmp_path / "half.gguf")
    reader = GGUFReader(tmp_path / "half.gguf")
    assert reader.fields["general.name"].contents() == "tiny"
    assert reader.fields["general.file_type"].contents() == 1
    assert reader.fields["tokenizer.ggml.tokens"].contents() == ["a", "b"]
    half = matrices(tmp_path / "half.gguf")
    assert np.array_equal(half["token_embd.weight"], matrix.astype(np.float16))
    assert np.array_equal(half["output_norm.weight"], matrix[0])
    assert list(tmp_path.glob("*.partial")) == []


@pytest.mark.model
def test_the_small_model_has_the_shape_it_is_known_for(model_file: Path) -> None:
    shape = read_shape(open_gguf(model_file))
    assert (shape.layers, shape.heads, shape.kv_heads, shape.hidden) == (30, 9, 3, 576)
