"""The embedded engine over the small model; the contract of Engine holds for the fake as well."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rsi.domain.contract import Slot
from rsi.domain.lora import Lora, Model, Recipe
from rsi.edges.chat_http import CONTEXT_EXCEEDED
from rsi.edges.embedded_engine import EmbeddedEngine, EngineLimits
from rsi.edges.model_files import SMALL_MODEL_SHA256
from rsi.errors import ModelError
from rsi.ports import ChatRequest, Connect, Engine
from rsi.worker.convert import convert_adapter
from rsi.worker.llama import open_gguf, read_shape
from tests.fakes.blobs import FakeBlobs
from tests.fakes.model import FakeEngine
from tests.worker.adapters import write_peft

RECIPE = Recipe(rank=2, alpha=4, learning_rate=1, epochs=1, batch_size=1, max_steps=1, seconds=1)
ONE = EngineLimits(servers=1, slots=2)
REAL = pytest.param("real", marks=pytest.mark.model)


def ask(text: str, slot: Slot = Slot.AGENT, tokens: int = 12) -> ChatRequest:
    return ChatRequest(messages=(("user", text),), slot=slot, seed=1, max_tokens=tokens)


def lora_of(engine: Engine, digest: str) -> Lora:
    base = engine.base().digest
    return Lora(digest=digest, base=base, slot=Slot.AGENT, dataset="d" * 64, recipe=RECIPE)


@pytest.fixture(params=["fake", REAL])
def any_engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "fake":
        return FakeEngine(lambda model, asked: f"{model.base[:4]} {asked.messages}")
    engine: Engine = request.getfixturevalue("engine")
    return engine


@pytest.fixture(scope="session")
def adapters(
    model_file: Path, engine_blobs: FakeBlobs, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str]:
    """Two adapters with random weights, in the blob store."""
    shape = read_shape(open_gguf(model_file))
    folder = tmp_path_factory.mktemp("random")
    made = []
    for seed in (1, 2):
        write_peft(folder / str(seed), shape, seed=seed, size=0.05)
        convert_adapter(folder / str(seed), folder / f"{seed}.gguf", shape)
        made.append(engine_blobs.put_file(folder / f"{seed}.gguf"))
    return made[0], made[1]


def test_engine_contract_same_request_same_reply(any_engine: Engine) -> None:
    model = any_engine.serve(Model(base=any_engine.base().digest), ())
    first = model.chat(ask("Say hello"))
    assert first.text
    assert first.output_tokens > 0
    assert first.input_tokens > 0
    assert model.chat(ask("Say hello")).text == first.text


def test_engine_contract_refuses_an_unknown_base_and_a_lora_not_given(any_engine: Engine) -> None:
    with pytest.raises(ModelError):
        any_engine.serve(Model(base="0" * 64), ())
    with pytest.raises(ModelError):
        any_engine.serve(Model(base=any_engine.base().digest, loras={Slot.CHAT: "1" * 64}), ())


@pytest.mark.model
def test_base_is_named_by_the_content_of_its_file(engine: EmbeddedEngine) -> None:
    base = engine.base()
    assert base.digest == SMALL_MODEL_SHA256
    assert (base.name, base.format) == ("SmolLM2-135M-Instruct", "gguf:Q4_1")


@pytest.mark.model
def test_an_adapter_acts_in_its_slot_only_and_leaves_nothing_behind(
    engine: EmbeddedEngine, adapters: tuple[str, str]
) -> None:
    base = engine.base().digest
    alone = engine.serve(Model(base=base), ()).chat(ask("Say hello")).text
    first, second = (Model(base=base, loras={Slot.AGENT: digest}) for digest in adapters)
    loras = tuple(lora_of(engine, digest) for digest in adapters)
    plain, one, two = engine.serve_all((Model(base=base), first, second), loras)
    calls = [(plain, Slot.AGENT), (one, Slot.AGENT), (two, Slot.AGENT), (one, Slot.CHAT)] * 3
    texts = [model.chat(ask("Say hello", slot)).text for model, slot in calls]
    assert texts[:4] * 3 == texts
    assert texts[0] == texts[3] == alone
    assert len(set(texts)) == 3


@pytest.mark.model
def test_a_reply_does_not_depend_on_what_runs_beside_it(engine: EmbeddedEngine) -> None:
    model = engine.serve(Model(base=engine.base().digest), ())
    asked = [ask(f"Print the first {n} lines of notes{n}.txt.", tokens=16) for n in range(12)]
    one_by_one = [model.chat(request).text for request in asked]
    with ThreadPoolExecutor(6) as pool:
        assert [reply.text for reply in pool.map(model.chat, asked)] == one_by_one


@pytest.mark.model
def test_a_model_served_no_longer_says_so(
    engine: EmbeddedEngine, adapters: tuple[str, str]
) -> None:
    base = engine.base().digest
    old, new = (Model(base=base, loras={Slot.AGENT: digest}) for digest in adapters)
    stays = engine.serve(old, (lora_of(engine, adapters[0]),))
    engine.close()
    engine.serve(new, (lora_of(engine, adapters[1]),))
    with pytest.raises(ModelError, match="ask the engine"):
        stays.chat(ask("Say hello"))


@pytest.mark.model
def test_a_prompt_longer_than_the_context_is_an_empty_reply(engine: EmbeddedEngine) -> None:
    model = engine.serve(Model(base=engine.base().digest), ())
    reply = model.chat(ask("word " * 5000))
    assert (reply.text, reply.finish_reason) == ("", CONTEXT_EXCEEDED)


@pytest.fixture
def own_engine(model_file: Path, connect: Connect, tmp_path: Path) -> Iterator[EmbeddedEngine]:
    """An engine whose server may be killed."""
    made = EmbeddedEngine(model_file, FakeBlobs(tmp_path), connect, tmp_path / "log", limits=ONE)
    yield made
    made.close()


def server_pids() -> set[int]:
    """The model servers that this process started."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        if parent == os.getpid() and b"rsi.worker.serve" in words:
            found.add(int(folder.name))
    return found


@pytest.mark.model
def test_a_killed_server_comes_back_for_the_requests_under_way(
    own_engine: EmbeddedEngine,
) -> None:
    before = server_pids()
    model = own_engine.serve(Model(base=own_engine.base().digest), ())
    expected = model.chat(ask("Tell a story", tokens=60)).text
    (pid,) = server_pids() - before
    killer = threading.Timer(0.2, os.kill, (pid, signal.SIGKILL))
    killer.start()
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(model.chat, [ask("Tell a story", tokens=60)] * 4))
    killer.join()
    time.sleep(0.1)
    replies.append(model.chat(ask("Tell a story", tokens=60)))
    assert {reply.text for reply in replies} == {expected}
    assert server_pids() - before != {pid}


@pytest.mark.model
def test_several_servers_of_one_base_answer_alike(
    model_file: Path, connect: Connect, tmp_path: Path
) -> None:
    before = server_pids()
    pair = EmbeddedEngine(
        model_file, FakeBlobs(tmp_path), connect, tmp_path / "log", limits=EngineLimits(servers=2)
    )
    try:
        model = pair.serve(Model(base=pair.base().digest), ())
        assert len(server_pids() - before) == 2
        with ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(model.chat, [ask("Tell a story", tokens=30)] * 8))
        assert len({reply.text for reply in replies}) == 1
    finally:
        pair.close()
    assert server_pids() == before


@pytest.mark.model
def test_a_server_that_dies_again_and_again_is_a_model_error(own_engine: EmbeddedEngine) -> None:
    before = server_pids()
    model = own_engine.serve(Model(base=own_engine.base().digest), ())

    def kill_and_ask() -> None:
        for pid in server_pids() - before:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
        model.chat(ask("Say hello", tokens=2))

    for _ in range(3):
        kill_and_ask()
    with pytest.raises(ModelError, match="died 4 times"):
        kill_and_ask()


@pytest.mark.model
def test_closing_leaves_no_server(own_engine: EmbeddedEngine) -> None:
    before = server_pids()
    own_engine.serve(Model(base=own_engine.base().digest), ())
    assert server_pids() - before
    own_engine.close()
    assert server_pids() == before


@pytest.mark.model
def test_a_server_ends_with_the_process_that_started_it(model_file: Path, tmp_path: Path) -> None:
    script = f"""
import sys, time
from pathlib import Path
from rsi.domain.lora import Model
from rsi.edges.embedded_engine import EmbeddedEngine, EngineLimits
engine = EmbeddedEngine(
    Path({str(model_file)!r}), None, lambda *_: None, Path("log"), limits=EngineLimits(servers=1)
)
engine.serve(Model(base=engine.base().digest), ())
(servers,) = engine._children.values()
print("\\n".join(str(child._process.pid) for child in servers._children), flush=True)
time.sleep(60)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=tmp_path, env=environment
    ) as parent:
        assert parent.stdout is not None
        server = Path("/proc", parent.stdout.readline().decode().strip(), "cmdline")
        assert b"rsi.worker.serve" in server.read_bytes()
        parent.kill()
    deadline_s = time.monotonic() + 10
    while server.exists() and server.read_bytes() and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not server.exists() or not server.read_bytes()


def test_a_missing_model_file_says_what_to_do(tmp_path: Path, connect: Connect) -> None:
    engine = EmbeddedEngine(
        tmp_path / "none.Q4_1.gguf", FakeBlobs(tmp_path), connect, tmp_path / "log"
    )
    with pytest.raises(ModelError, match="Run the set-up again"):
        engine.base()


def test_a_damaged_model_file_is_a_model_error_with_the_end_of_the_log(
    tmp_path: Path, connect: Connect
) -> None:
    (tmp_path / "bad.Q4_1.gguf").write_bytes(b"GGUF" + bytes(100))
    engine = EmbeddedEngine(
        tmp_path / "bad.Q4_1.gguf", FakeBlobs(tmp_path), connect, tmp_path / "log"
    )
    with pytest.raises(ModelError, match=r"could not load its files.*log"):
        engine.serve(Model(base=engine.base().digest), ())
    engine.close()


@pytest.mark.model
def test_a_damaged_adapter_is_a_model_error(
    model_file: Path, connect: Connect, tmp_path: Path
) -> None:
    blobs = FakeBlobs(tmp_path)
    digest = blobs.put(b"not an adapter")
    engine = EmbeddedEngine(model_file, blobs, connect, tmp_path / "log")
    model = Model(base=engine.base().digest, loras={Slot.AGENT: digest})
    with pytest.raises(ModelError, match=r"1 adapter\(s\) could not load"):
        engine.serve(model, (lora_of(engine, digest),))
    engine.close()
