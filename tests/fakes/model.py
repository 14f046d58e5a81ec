"""A model and an engine that answer from a function, at once and the same each time."""

from collections.abc import Callable, Sequence

from rsi.domain.lora import Base, Lora, Model
from rsi.domain.values import digest_bytes, short
from rsi.errors import ModelError
from rsi.ports import ChatModel, ChatReply, ChatRequest

Answer = Callable[[Model, ChatRequest], str]

FAKE_BASE = Base(name="fake", digest=digest_bytes(b"the fake base"), format="fake")


class FakeChatModel:
    """Answers with what the function says; the function may raise what a ChatModel may raise."""

    def __init__(self, answer: Callable[[ChatRequest], str]) -> None:
        self._answer = answer
        self.requests: list[ChatRequest] = []

    def chat(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        text = self._answer(request)
        prompt_tokens = sum(len(content.split()) + 4 for _, content in request.messages)
        words = text.split()
        is_cut = len(words) > request.max_tokens
        return ChatReply(
            text=" ".join(words[: request.max_tokens]) if is_cut else text,
            tool_calls=(),
            finish_reason="length" if is_cut else "stop",
            input_tokens=prompt_tokens,
            cached_tokens=0,
            output_tokens=max(1, min(len(words), request.max_tokens)),
            elapsed_s=0.0,
        )


class FakeEngine:
    """Serves any model of its bases; the answer may depend on the model and its adapters."""

    def __init__(self, answer: Answer, bases: Sequence[Base] = (FAKE_BASE,)) -> None:
        self._answer = answer
        self._bases = tuple(bases)
        self.is_closed = False

    def base(self) -> Base:
        return self._bases[0]

    def serve(self, model: Model, loras: Sequence[Lora]) -> ChatModel:
        known = {lora.digest for lora in loras}
        if model.base not in {base.digest for base in self._bases}:
            raise ModelError(f"The fake engine has no base {short(model.base)}.")
        for digest in model.loras.values():
            if digest not in known:
                raise ModelError(f"The LoRA {short(digest)} wasn't given.")
        return FakeChatModel(lambda request: self._answer(model, request))

    def serve_all(self, models: Sequence[Model], loras: Sequence[Lora]) -> tuple[ChatModel, ...]:
        return tuple(self.serve(model, loras) for model in models)

    def close(self) -> None:
        self.is_closed = True
