"""Makes GGUF files: a peft adapter for llama.cpp, and a base with 16-bit weights.

What can't be carried over without a difference is refused by name before anything is written.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, dequantize, quantize
from numpy.typing import NDArray
from safetensors.numpy import load_file

from rsi.worker.llama import LINEAR, Shape, permuted

_PEFT_NAME = re.compile(
    r"^base_model\.model\.model\.layers\.(\d+)\.([a-z_.]+)\.lora_([AB])\.weight$"
)
_MUST_BE_OFF = (
    "use_dora",
    "modules_to_save",
    "fan_in_fan_out",
    "rank_pattern",
    "alpha_pattern",
    "trainable_token_indices",
    "layer_replication",
    "lora_bias",
)
_F16_FILE_TYPE = 1
"""llama.cpp's number for "mostly F16" in general.file_type."""
_Q8_FILE_TYPE = 7
"""llama.cpp's number for "mostly Q8_0"."""


class UnconvertibleError(ValueError):
    """The adapter has parts that llama.cpp would drop; `faults` lists every one."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(faults[:10]))


@dataclass(frozen=True, slots=True)
class Placed:
    """An adapter matrix under its GGUF name, in llama.cpp's order."""

    name: str
    matrix: NDArray[np.float32]


def convert_adapter(folder: Path, target: Path, shape: Shape) -> int:
    """Writes peft's adapter in `folder` as a GGUF; the count of tensors written.

    Raises UnconvertibleError with every part that has no place in the format.
    """
    config = json.loads((folder / "adapter_config.json").read_text("utf-8"))
    tensors = load_file(folder / "adapter_model.safetensors")
    placed = _placed(config, tensors, shape)
    writer = GGUFWriter(None, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", _alpha(config))
    for tensor in placed:
        writer.add_tensor(tensor.name, tensor.matrix)
    _write(writer, target)
    return len(placed)


def write_half(reader: GGUFReader, target: Path) -> None:
    """Writes the base with its matrices as F16; metadata, names and order stay."""
    writer = _like(reader, _F16_FILE_TYPE)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, half(tensor.data, tensor.tensor_type))
    _write(writer, target)


def write_q8(reader: GGUFReader, target: Path) -> None:
    """Writes the base with its matrices as Q8_0; metadata, names and order stay.

    The weights are those of the file within a quarter of a percent, and llama.cpp reads a prompt
    about twice as fast as from Q4_1, for which it has no fast product on these processors.
    """
    writer = _like(reader, _Q8_FILE_TYPE)
    for tensor in reader.tensors:
        numbers = dequantize(tensor.data, tensor.tensor_type)
        if tensor.tensor_type == GGMLQuantizationType.F32:
            writer.add_tensor(tensor.name, numbers)
        else:
            packed = quantize(numbers, GGMLQuantizationType.Q8_0)
            writer.add_tensor(tensor.name, packed, raw_dtype=GGMLQuantizationType.Q8_0)
    _write(writer, target)


def _like(reader: GGUFReader, file_type: int) -> GGUFWriter:
    """A writer with the reader's metadata, for tensors of another type."""
    writer = GGUFWriter(None, reader.fields["general.architecture"].contents())
    for name, entry in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        value = file_type if name == "general.file_type" else entry.contents()
        inner = entry.types[-1] if entry.types[0] == GGUFValueType.ARRAY else None
        writer.add_key_value(name, value, entry.types[0], sub_type=inner)
    return writer


def half(data: NDArray[np.uint8], kind: GGMLQuantizationType) -> NDArray[np.float16 | np.float32]:
    """The weights as numbers: 16 bits for matrices, as they were for vectors of 32 bits."""
    numbers: NDArray[np.float32] = dequantize(data, kind)
    return numbers if kind == GGMLQuantizationType.F32 else numbers.astype(np.float16)


def _placed(
    config: Mapping[str, object], tensors: Mapping[str, NDArray[np.float32]], shape: Shape
) -> list[Placed]:
    faults = [f"{key} = {config[key]!r}" for key in _MUST_BE_OFF if config.get(key)]
    if config.get("bias", "none") != "none":
        faults.append(f"bias = {config['bias']!r}")
    placed = []
    for name, matrix in sorted(tensors.items()):
        found = _PEFT_NAME.match(name)
        if found is None or found[2] not in LINEAR or int(found[1]) >= shape.layers:
            faults.append(f"unknown tensor {name}")
            continue
        served = LINEAR[found[2]]
        heads = shape.rotary_heads(served)
        is_output_side = found[3] == "B"
        ordered = permuted(matrix, heads) if is_output_side and heads else matrix
        placed.append(
            Placed(
                f"blk.{found[1]}.{served}.weight.lora_{found[3].lower()}",
                ordered.astype(np.float32),
            )
        )
    names = {tensor.name for tensor in placed}
    faults += [f"{n} has no partner" for n in sorted(names) if _partner(n) not in names]
    if not placed:
        faults.append("there is no LoRA tensor at all")
    if faults:
        raise UnconvertibleError(faults)
    return placed


def _partner(name: str) -> str:
    return name[:-1] + ("b" if name.endswith("a") else "a")


def _alpha(config: Mapping[str, object]) -> float:
    """llama.cpp scales by alpha / rank; rsLoRA by alpha / sqrt(rank)."""
    alpha, rank = float(str(config["lora_alpha"])), int(str(config["r"]))
    return alpha * rank**0.5 if config.get("use_rslora") else alpha


def _write(writer: GGUFWriter, target: Path) -> None:
    partial = target.with_suffix(".partial")
    writer.write_header_to_file(partial)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(partial, target)
