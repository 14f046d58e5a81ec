"""Training the small model: what it sees is what is served, and a repeat gives the same bits."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx
import pytest
import torch
from torch.nn import functional

from rsi.domain.contract import Slot
from rsi.domain.dataset import DatasetExample
from rsi.domain.job import TrainJob, TrainProgress, TrainResult
from rsi.domain.lora import Model
from rsi.domain.rendering import Messages
from rsi.edges.embedded_engine import EmbeddedEngine
from rsi.ports import ChatModel
from rsi.worker.base import TrainingBase, load_base
from rsi.worker.batches import batches, encode, packs
from rsi.worker.train import planned_steps, run
from tests.fakes.blobs import FakeBlobs
from tests.fakes.model import FakeChatModel
from tests.worker.recipes import RECIPE, dataset

pytestmark = [pytest.mark.model, pytest.mark.torch]

CONVERSATIONS: tuple[Messages, ...] = (
    (("user", "Print 1234 lines of a12.txt"),),
    (("system", ""), ("user", "  two  spaces\n\n\nand lines\t7\n")),
    (
        ("system", "Be brief."),
        ("user", "naïve 日本 🙂 x=42;"),
        ("assistant", "ls -la"),
        ("user", ""),
    ),
    (("system", "a<|im_end|>b"), ("user", "don't I'LL we've 3.14e-10 ~/x_y-z")),
)


@pytest.fixture(scope="session")
def files(model_file: Path, training_folder: Path) -> TrainJob:
    """A job that says where the base's files are."""
    return TrainJob(
        model=model_file,
        cache=training_folder / "weights-b179c9523d0e",
        half=model_file.with_name("SmolLM2-135M-Instruct-b179c9523d0e.F16.gguf"),
        output=training_folder,
        dataset=dataset(12),
        recipe=RECIPE,
        threads=2,
    )


@pytest.fixture(scope="session")
def base(files: TrainJob) -> TrainingBase:
    files.cache.parent.mkdir(parents=True, exist_ok=True)
    return load_base(files.model, files.cache, files.half)


class Asking:
    """Remembers where the engine's server listens, and asks it for more than replies."""

    def __init__(self) -> None:
        self.url, self.key = "", ""

    def __call__(
        self,
        address: Callable[[], str],
        route: Callable[[Slot], Mapping[str, object]],
        key: str | None,
    ) -> ChatModel:
        self.url, self.key = address(), key or ""
        assert route(Slot.AGENT)["lora"] == []
        return FakeChatModel(lambda _: "")

    def post(self, path: str, body: object) -> dict[str, object]:
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = httpx.post(f"{self.url}{path}", json=body, headers=headers, trust_env=False)
        document: dict[str, object] = answer.raise_for_status().json()
        return document


def test_prompts_have_the_tokens_that_the_server_makes(
    base: TrainingBase, model_file: Path, engine_blobs: FakeBlobs, tmp_path: Path
) -> None:
    asking = Asking()
    engine = EmbeddedEngine(model_file, engine_blobs, asking, tmp_path / "log")
    engine.serve(Model(base=engine.base().digest), ())
    for messages in CONVERSATIONS:
        turns = [{"role": role, "content": text} for role, text in messages]
        prompt = asking.post("/apply-template", {"messages": turns})["prompt"]
        told = {"content": prompt, "parse_special": True}
        assert base.prompt_ids(messages) == asking.post("/tokenize", told)["tokens"]
    engine.close()
    assert "You are a helpful AI assistant" in base.tokenizer.decode(
        base.prompt_ids((("user", "x"),))
    )


def plain_loss(base: TrainingBase, examples: Sequence[DatasetExample]) -> float:
    """The same loss, one example at a time and with all logits."""
    total, count = 0.0, 0
    for example in examples:
        one = encode(base, example)
        tokens = torch.tensor([[*one.prompt, *one.completion]])
        with torch.inference_mode():
            logits = base.model(tokens).logits[0, len(one.prompt) - 1 : -1]
        targets = torch.tensor(one.completion)
        total += float(functional.cross_entropy(logits, targets, reduction="sum"))
        count += len(one.completion)
    return total / count


def test_a_pack_gives_the_loss_of_its_examples_one_by_one(base: TrainingBase) -> None:
    examples = dataset(5).examples
    encoded = [encode(base, example) for example in examples]
    (pack,) = packs(encoded)
    together = len(pack.tokens[0])
    assert together < sum(len(e.prompt) + len(e.completion) for e in encoded)
    with torch.inference_mode():
        hidden = base.model.model(
            input_ids=pack.tokens, position_ids=pack.positions, attention_mask=pack.mask
        ).last_hidden_state[0]
        logits = base.model.lm_head(hidden[pack.rows])
    packed = float(functional.cross_entropy(logits, pack.targets))
    assert packed == pytest.approx(plain_loss(base, examples), rel=1e-4)


def test_packs_keep_to_their_limit_and_lose_no_target(base: TrainingBase) -> None:
    encoded = [encode(base, example) for example in dataset(9).examples]
    made = packs(encoded, limit=120)
    assert len(made) > 1
    assert all(pack.tokens.shape[1] <= 120 for pack in made)
    targets = sorted(int(token) for pack in made for token in pack.targets)
    assert targets == sorted(token for example in encoded for token in example.completion)


def test_every_example_comes_once_before_any_comes_again(base: TrainingBase) -> None:
    encoded = [encode(base, example) for example in dataset(10).examples]
    made = [example for batch in batches(encoded, 5, 4, seed=3) for example in batch]
    assert sorted(made[:10], key=repr) == sorted(made[10:], key=repr) == sorted(encoded, key=repr)
    assert made[:10] != made[10:]


@pytest.mark.parametrize(
    ("epochs", "limit", "steps"), [(1, 99, 6), (0.5, 99, 3), (3, 4, 4), (1e-9, 9, 1)]
)
def test_steps_follow_epochs_up_to_their_limit(epochs: float, limit: int, steps: int) -> None:
    recipe = RECIPE.model_copy(update={"epochs": epochs, "max_steps": limit, "batch_size": 2})
    assert planned_steps(recipe, 12) == steps


def trained(job: TrainJob, output: Path, **changes: object) -> TrainResult:
    output.mkdir()
    told = job.model_copy(update={"output": output, **changes})
    seen: list[TrainProgress] = []
    torch.set_num_threads(2)
    result = run(told, time.monotonic(), seen.append)
    assert [p.loss for p in seen if p.step] == list(result.losses)
    return result


def test_the_same_job_gives_the_same_bits_and_a_child_goes_on_from_its_parent(
    files: TrainJob, tmp_path: Path
) -> None:
    first = trained(files, tmp_path / "first")
    again = trained(files, tmp_path / "again")
    assert first.adapter.read_bytes() == again.adapter.read_bytes()
    assert first.losses == again.losses
    assert first.stopped == "max_steps reached"
    child = trained(files, tmp_path / "child", parent=first.source)
    assert child.losses[0] < first.losses[0] - 0.1
    assert all(math.isfinite(loss) for loss in child.losses)


def test_a_parent_of_another_rank_is_refused(files: TrainJob, tmp_path: Path) -> None:
    short = RECIPE.model_copy(update={"max_steps": 1})
    first = trained(files, tmp_path / "first", recipe=short)
    other = RECIPE.model_copy(update={"rank": 2})
    with pytest.raises(SystemExit, match=r"rank \[4\], the recipe 2"):
        trained(files, tmp_path / "child", parent=first.source, recipe=other)


def test_learning_stops_when_its_time_is_spent(files: TrainJob, tmp_path: Path) -> None:
    hurried = RECIPE.model_copy(update={"seconds": 0.001, "max_steps": 50, "epochs": 90.0})
    result = trained(files, tmp_path / "hurried", recipe=hurried)
    assert (result.stopped, len(result.losses)) == ("time spent", 1)
