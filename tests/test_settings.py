"""Settings are read once, and a bad variable is named."""

from pathlib import Path

import pytest

from rsi.errors import SettingsError
from rsi.settings import read_settings


def test_without_variables_everything_lies_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "contracts").mkdir()
    (tmp_path / "sandboxes").mkdir()
    (tmp_path / "deep").mkdir()
    found = read_settings({}, tmp_path / "deep")
    assert found.root == tmp_path
    assert found.state_dir == tmp_path / ".rsi"
    assert found.contract == tmp_path / "contracts/shell.toml"


def test_a_bad_variable_is_named_with_its_fault(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="RSI_WORKERS") as caught:
        read_settings({"RSI_WORKERS": "many", "RSI_SANDBOX": "chroot"}, tmp_path)
    assert "RSI_SANDBOX" in str(caught.value)


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    given = {"RSI_MODEL_KEY": "sk-hidden", "RSI_DATABASE_URL": "postgresql://u:hidden@h/d"}
    found = read_settings(given, tmp_path)
    assert "hidden" not in repr(found)
    assert "hidden" not in found.model_dump_json()


def test_an_empty_variable_is_none(tmp_path: Path) -> None:
    assert read_settings({"RSI_MODEL_URL": ""}, tmp_path).model_url is None
