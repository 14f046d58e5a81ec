"""Each part is provided once, in order, and an error ends provisioning where it is."""

import socket
from pathlib import Path

import pytest

from rsi.errors import ModelError
from rsi.provision import Step, provide, steps_of
from rsi.settings import read_settings


class Machine:
    """What a machine has; a part that is named in `broken` can't be had."""

    def __init__(self, *broken: str) -> None:
        self.has: list[str] = []
        self.broken = set(broken)
        self.said: list[str] = []

    def step(self, name: str, cost_s: int) -> Step:
        return Step(name, cost_s, lambda: name in self.has, lambda: self._get(name))

    def _get(self, name: str) -> None:
        if name in self.broken:
            raise ModelError(f"{name} can't be had; free some room and run again")
        self.has.append(name)

    def provide(self) -> None:
        provide(
            [self.step("database", 5), self.step("image", 15), self.step("model", 30)],
            self.said.append,
        )


def test_what_is_there_is_not_provided_again() -> None:
    machine = Machine()
    machine.provide()
    assert machine.has == ["database", "image", "model"]
    machine.said.clear()
    machine.provide()
    assert machine.has == ["database", "image", "model"]
    assert machine.said == []


def test_each_step_says_what_is_left_of_those_to_do() -> None:
    machine = Machine()
    machine.has.append("database")
    machine.provide()
    assert machine.said[0] == "[1/2] image: about 45 s left in all"
    assert machine.said[2] == "[2/2] model: about 30 s left in all"


def test_the_next_run_goes_on_after_the_part_that_could_not_be_had() -> None:
    machine = Machine("image")
    with pytest.raises(ModelError, match="free some room"):
        machine.provide()
    assert machine.has == ["database"]
    machine.broken.clear()
    machine.provide()
    assert machine.has == ["database", "image", "model"]


def test_a_model_behind_an_address_is_not_fetched(tmp_path: Path) -> None:
    own = {"RSI_STATE_DIR": str(tmp_path), "RSI_SANDBOX": "namespaces"}
    embedded = [step.name for step in steps_of(read_settings(own, Path.cwd()), print)]
    assert any("model" in name for name in embedded)
    remote = read_settings({**own, "RSI_MODEL_URL": "http://127.0.0.1:1"}, Path.cwd())
    (step,) = [step for step in steps_of(remote, print) if "model" in step.name]
    assert not step.is_done()
    with pytest.raises(ModelError, match=r"http://127\.0\.0\.1:1 .*mend the address"):
        step.do()


def test_a_model_server_that_listens_will_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        own = {"RSI_STATE_DIR": str(tmp_path), "RSI_MODEL_URL": url}
        steps = steps_of(read_settings(own, Path.cwd()), print)
        (step,) = [step for step in steps if "model" in step.name]
        assert step.is_done()


def test_namespaces_alone_need_no_engine(tmp_path: Path) -> None:
    own = {"RSI_STATE_DIR": str(tmp_path), "RSI_SANDBOX": "namespaces"}
    names = [step.name for step in steps_of(read_settings(own, Path.cwd()), print)]
    assert "sandbox engine" not in names
    own["RSI_SANDBOX"] = "docker"
    assert "sandbox engine" in [s.name for s in steps_of(read_settings(own, Path.cwd()), print)]


def test_looking_changes_nothing(tmp_path: Path) -> None:
    own = {"RSI_STATE_DIR": str(tmp_path / "state"), "RSI_SANDBOX": "namespaces"}
    for step in steps_of(read_settings(own, Path.cwd()), print):
        step.is_done()
    assert not (tmp_path / "state").exists()
