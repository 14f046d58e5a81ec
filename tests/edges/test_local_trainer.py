"""The local trainer: an adapter is trained, stored, and served as it was trained."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rsi.domain.contract import Slot
from rsi.domain.dataset import Dataset
from rsi.domain.lora import Base, Fidelity, Lora, Model
from rsi.edges.embedded_engine import EmbeddedEngine
from rsi.edges.line_progress import LineProgress
from rsi.edges.local_trainer import Checked, LocalTrainer, least_loss_first
from rsi.edges.thread_workers import ThreadWorkers
from rsi.errors import TrainerError
from rsi.ports import ChatRequest, Trainer, TrainingJob
from tests.fakes.blobs import FakeBlobs
from tests.fakes.model import FAKE_BASE, FakeEngine
from tests.fakes.trainer import FakeTrainer
from tests.worker.recipes import RECIPE, dataset

BEST = RECIPE.model_copy(update={"max_steps": 6, "rank": 8, "alpha": 16, "learning_rate": 3e-3})


def progress(said: list[str]) -> LineProgress:
    return LineProgress(said.append, time.monotonic)


def job(base: Base, **changes: object) -> TrainingJob:
    told: dict[str, object] = {
        "base": base,
        "slot": Slot.AGENT,
        "dataset": dataset(32),
        "recipe": BEST,
        "parent": None,
    }
    return TrainingJob(**{**told, **changes})  # type: ignore[arg-type]  # the fields above


@pytest.fixture
def local(
    model_file: Path, engine: EmbeddedEngine, engine_blobs: FakeBlobs, training_folder: Path
) -> LocalTrainer:
    return LocalTrainer(model_file, engine, engine_blobs, ThreadWorkers(4), training_folder)


def without_model(folder: Path) -> LocalTrainer:
    """A trainer whose process can't find a model."""
    engine = FakeEngine(lambda *_: "")
    workers = ThreadWorkers(1)
    return LocalTrainer(folder / "none.gguf", engine, FakeBlobs(folder), workers, folder / "runs")


@pytest.fixture(params=["fake", "local"])
def any_trainer(request: pytest.FixtureRequest, tmp_path: Path) -> Trainer:
    if request.param == "fake":
        return FakeTrainer(FakeBlobs(tmp_path))
    return without_model(tmp_path)


def test_trainer_contract_refuses_an_empty_dataset(any_trainer: Trainer) -> None:
    empty = Dataset(contract="0" * 64, examples=())
    with pytest.raises(TrainerError, match="nothing to learn from"):
        any_trainer.train(job(FAKE_BASE, dataset=empty), progress([]))


def test_fake_trainer_gives_one_adapter_for_one_job(tmp_path: Path) -> None:
    blobs = FakeBlobs(tmp_path)
    one = FakeTrainer(blobs).train(job(FAKE_BASE), progress([]))
    assert one == FakeTrainer(blobs).train(job(FAKE_BASE), progress([]))
    assert blobs.has(one.lora.digest)


@pytest.mark.model
@pytest.mark.torch
def test_an_adapter_is_trained_stored_and_served_as_it_was_trained(
    local: LocalTrainer, engine: EmbeddedEngine, engine_blobs: FakeBlobs
) -> None:
    said: list[str] = []
    probes = tuple(example.messages for example in dataset(6, seed=5).examples)
    told = job(engine.base(), probes=probes, probe_max_tokens=12)
    made = local.train(told, progress(said))
    assert (made.lora.dataset, made.lora.base) == (told.dataset.digest, engine.base().digest)
    assert made.steps == len(made.losses) == 6
    assert made.last_loss < made.first_loss / 2
    assert engine_blobs.has(made.lora.digest)
    assert made.lora.source is not None
    assert engine_blobs.has(made.lora.source)
    assert {fidelity.base for fidelity in made.fidelity} == {base.digest for base in made.bases}
    assert {base.format for base in made.bases} == {"gguf:Q4_1", "gguf:F16"}
    assert all(f.changed > 0.5 and f.agreement >= 0.5 for f in made.fidelity)
    assert any("train: 6 steps" in line for line in said)
    model = Model(base=made.bases[0].digest, loras={Slot.AGENT: made.lora.digest})
    reply = engine.serve(model, (made.lora,)).chat(
        ChatRequest(messages=probes[0], slot=Slot.AGENT, seed=0, max_tokens=12)
    )
    assert reply.text.split()[0] in ("wc", "head", "sort")


@pytest.mark.model
@pytest.mark.torch
def test_a_training_longer_than_its_limit_is_ended(
    local: LocalTrainer, engine: EmbeddedEngine, training_folder: Path
) -> None:
    hurried = BEST.model_copy(update={"seconds": 2.0})
    with pytest.raises(TrainerError, match="did not end within"):
        local.train(job(engine.base(), recipe=hurried), progress([]))
    assert list(training_folder.glob("run-*")) == []
    assert worker_pids() == set()


@pytest.mark.model
@pytest.mark.torch
def test_a_killed_training_says_so(local: LocalTrainer, engine: EmbeddedEngine) -> None:
    killer = threading.Thread(target=kill_when_there, args=(worker_pids,))
    killer.start()
    with pytest.raises(TrainerError, match="was killed"):
        local.train(job(engine.base()), progress([]))
    killer.join(30)


@pytest.mark.torch
def test_a_training_that_breaks_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match=r"ended with status 1: .*none\.gguf"):
        without_model(tmp_path).train(job(FAKE_BASE), progress([]))
    assert list((tmp_path / "runs").iterdir()) == []


def test_another_base_is_not_trained(tmp_path: Path) -> None:
    other = Base(name="other", digest="0" * 64, format="remote")
    with pytest.raises(TrainerError, match="has the weights of fake"):
        without_model(tmp_path).train(job(other), progress([]))


def test_a_parent_without_weights_is_refused(tmp_path: Path) -> None:
    parent = Lora(
        digest="1" * 64, base=FAKE_BASE.digest, slot=Slot.AGENT, dataset="2" * 64, recipe=RECIPE
    )
    with pytest.raises(TrainerError, match="Train without a parent"):
        without_model(tmp_path).train(job(FAKE_BASE, parent=parent), progress([]))


@pytest.mark.parametrize(
    ("first", "second", "is_first_kept"),
    [(1.0, 1.0, True), (0.98, 1.0, True), (0.97, 1.0, False), (1.0, 0.5, True)],
)
def test_the_first_base_is_kept_unless_another_loses_clearly_less(
    first: float, second: float, is_first_kept: bool
) -> None:
    checked = tuple(
        Checked(
            Base(name=name, digest=name * 64, format="gguf"),
            Fidelity(base=name * 64, prompts=50, agreement=agreement, changed=1.0),
        )
        for name, agreement in (("a", first), ("b", second))
    )
    ordered = least_loss_first(checked)
    assert (ordered[0] == checked[0]) is is_first_kept
    assert set(ordered) == set(checked)


def worker_pids() -> set[int]:
    """The training processes that this process started."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        if parent == os.getpid() and b"rsi.worker.train" in words:
            found.add(int(folder.name))
    return found


def kill_when_there(pids: Callable[[], set[int]]) -> None:
    deadline_s = time.monotonic() + 20
    while time.monotonic() < deadline_s:
        for pid in pids():
            os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.05)
