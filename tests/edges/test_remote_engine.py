"""The engine that is an address."""

from collections.abc import Callable, Mapping

import pytest

from rsi.domain.contract import Slot
from rsi.domain.lora import Lora, Model, Recipe
from rsi.edges.remote_engine import RemoteEngine
from rsi.errors import ModelError
from rsi.ports import ChatModel
from tests.fakes.model import FakeChatModel

URL = "http://models.test:8000/v1"
ADAPTER = "a" * 64
RECIPE = Recipe(rank=1, alpha=1, learning_rate=1, epochs=1, batch_size=1, max_steps=1, seconds=1)


class Connected:
    """Remembers what the engine connects."""

    def __init__(self) -> None:
        self.routes: list[Callable[[Slot], Mapping[str, object]]] = []
        self.addresses: list[str] = []

    def __call__(
        self,
        address: Callable[[], str],
        route: Callable[[Slot], Mapping[str, object]],
        key: str | None,
    ) -> ChatModel:
        assert key == "secret"
        self.addresses.append(address())
        self.routes.append(route)
        return FakeChatModel(lambda _: "")


def lora(base: str) -> Lora:
    return Lora(digest=ADAPTER, base=base, slot=Slot.AGENT, dataset="d" * 64, recipe=RECIPE)


def test_base_is_named_by_address_and_name() -> None:
    one = RemoteEngine(URL, "small", Connected(), key="secret").base()
    assert one == RemoteEngine("http://models.test:8000/", "small", Connected()).base()
    assert one != RemoteEngine(URL, "large", Connected()).base()
    assert (one.name, one.format) == ("small", "remote")


def test_an_adapter_acts_by_its_name_in_its_slot_only() -> None:
    connected = Connected()
    engine = RemoteEngine(URL, "small", connected, key="secret", adapters={ADAPTER: "small-r1"})
    base = engine.base().digest
    engine.serve(Model(base=base, loras={Slot.AGENT: ADAPTER}), (lora(base),))
    assert connected.addresses == ["http://models.test:8000"]
    assert connected.routes[0](Slot.AGENT) == {"model": "small-r1"}
    assert connected.routes[0](Slot.CHAT) == {"model": "small"}


def test_an_adapter_that_the_server_does_not_offer_is_refused() -> None:
    engine = RemoteEngine(URL, "small", Connected(), key="secret")
    base = engine.base().digest
    with pytest.raises(ModelError, match="offers no LoRA"):
        engine.serve(Model(base=base, loras={Slot.AGENT: ADAPTER}), (lora(base),))


def test_another_base_is_refused() -> None:
    with pytest.raises(ModelError, match="isn't small"):
        RemoteEngine(URL, "small", Connected()).serve(Model(base="b" * 64), ())
