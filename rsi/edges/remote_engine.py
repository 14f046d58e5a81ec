"""Serves models from an OpenAI-compatible server that is already running somewhere."""

import hashlib
from collections.abc import Mapping, Sequence

from rsi.domain.contract import Slot
from rsi.domain.lora import Base, Lora, Model
from rsi.domain.values import Digest, short
from rsi.errors import ModelError
from rsi.ports import ChatModel, Connect


class RemoteEngine:
    """The Engine behind an address (RSI_MODEL_URL).

    `adapters` says under which name the server offers a LoRA (vLLM and SGLang give each its own
    model name). A revision that has no name there can't be served.
    """

    def __init__(
        self,
        url: str,
        name: str,
        connect: Connect,
        *,
        key: str | None = None,
        adapters: Mapping[Digest, str] = {},
    ) -> None:
        self._url = url.rstrip("/").removesuffix("/v1")
        self._name = name
        self._connect = connect
        self._key = key
        self._adapters = dict(adapters)

    def base(self) -> Base:
        """The base named by its address and name: the weights themselves are out of sight."""
        identity = f"{self._url}\n{self._name}".encode()
        digest = hashlib.sha256(identity).hexdigest()
        return Base(name=self._name, digest=digest, format="remote")

    def serve(self, model: Model, loras: Sequence[Lora]) -> ChatModel:
        """A ChatModel for the model. Raises ModelError when the server doesn't offer it."""
        known = {lora.digest for lora in loras}
        if model.base != self.base().digest:
            raise ModelError(
                f"The model's base {short(model.base)} isn't {self._name} at {self._url} "
                f"({short(self.base().digest)}): set RSI_MODEL_URL to where it is served."
            )
        for slot, digest in model.loras.items():
            if digest not in self._adapters or digest not in known:
                raise ModelError(
                    f"{self._url} offers no LoRA {short(digest)} (slot {slot}): load it into the "
                    "server and give its name there, or use the embedded engine."
                )

        def route(slot: Slot) -> Mapping[str, object]:
            chosen = model.loras.get(slot)
            return {"model": self._adapters[chosen] if chosen else self._name}

        return self._connect(lambda: self._url, route, self._key)

    def serve_all(self, models: Sequence[Model], loras: Sequence[Lora]) -> tuple[ChatModel, ...]:
        """ChatModels in the order given."""
        return tuple(self.serve(model, loras) for model in models)

    def close(self) -> None:
        """Nothing was started."""
