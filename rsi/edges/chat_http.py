"""Talks to any OpenAI-compatible server over `/v1/chat/completions`.

A failure of the machine never looks like a bad answer: it is retried inside a limit and then
raised. An answer without content and without tokens is such a failure too (gateways turn a 429
into one).
"""

import json
import random
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from rsi.domain.contract import Slot
from rsi.errors import ModelError, TrialFault
from rsi.ports import ChatReply, ChatRequest, Clock, ToolCall

CONTEXT_EXCEEDED = "context_exceeded"
"""The finish reason of the empty reply to a prompt that is longer than the model's context."""


@dataclass(frozen=True, slots=True)
class ChatLimits:
    """How long a request may take, and how it is tried again."""

    total_s: float = 180.0
    """For all tries of one request together."""
    reply_s: float = 90.0
    """For one try."""
    connect_s: float = 5.0
    first_wait_s: float = 0.25
    longest_wait_s: float = 10.0
    odd_replies: int = 3
    """Replies that can't be used, and connections dropped while waiting, before giving up."""


class HttpChatModel:
    """A ChatModel behind an address; safe to call from several threads."""

    def __init__(
        self,
        address: Callable[[], str],
        route: Callable[[Slot], Mapping[str, object]],
        key: str | None = None,
        *,
        clock: Clock,
        limits: ChatLimits = ChatLimits(),
    ) -> None:
        self._address = address
        self._route = route
        self._clock = clock
        self._limits = limits
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        timeout = httpx.Timeout(limits.reply_s, connect=limits.connect_s)
        pool = httpx.Limits(max_connections=None, max_keepalive_connections=16)
        # A proxy named in the environment serves the outside, not this machine's own ports.
        direct = dict.fromkeys(("all://127.0.0.1", "all://localhost", "all://[::1]"))
        self._client = httpx.Client(headers=headers, timeout=timeout, limits=pool, mounts=direct)
        weakref.finalize(self, self._client.close)

    def chat(self, request: ChatRequest) -> ChatReply:
        """The reply; empty with finish reason `context_exceeded` when the prompt is too long.

        Raises TrialFault("model", …) when the limit is spent, ModelError when no server answers
        or the server refuses the request.
        """
        started_s = self._clock.monotonic_s()
        wait_s, odd = self._limits.first_wait_s, 0
        while True:
            try:
                return self._try(request, started_s)
            except _Again as again:
                odd += again.is_odd
                pause_s = again.wait_s if again.wait_s is not None else _jittered(wait_s)
                spent_s = self._clock.monotonic_s() - started_s
                if odd >= self._limits.odd_replies or spent_s + pause_s > self._limits.total_s:
                    raise self._give_up(again, spent_s) from again
            self._clock.sleep(pause_s)
            wait_s = min(2 * wait_s, self._limits.longest_wait_s)

    def _try(self, request: ChatRequest, started_s: float) -> ChatReply:
        address = self._address().rstrip("/")
        body = {**_body(request), **self._route(request.slot)}
        sent_s = self._clock.monotonic_s()
        left_s = self._limits.total_s - (sent_s - started_s)
        timeout = httpx.Timeout(
            max(0.01, min(self._limits.reply_s, left_s)), connect=self._limits.connect_s
        )
        with _foreign_errors(address):
            response = self._client.post(
                f"{address}/v1/chat/completions", json=body, timeout=timeout
            )
        if response.status_code != 200:
            _refuse(address, response)
            return _too_long()
        return _reply(response, self._clock.monotonic_s() - sent_s)

    def _give_up(self, again: "_Again", spent_s: float) -> Exception:
        tried = f"{again} (tried for {spent_s:.0f} s of {self._limits.total_s:.0f} s)"
        if again.is_absent:
            return ModelError(
                f"No model server answers: {tried}. Start it, or mend RSI_MODEL_URL, and run again."
            )
        return TrialFault("model", tried)


class _Again(Exception):
    """One try failed in a way that the next one may not."""

    def __init__(
        self,
        reason: str,
        *,
        wait_s: float | None = None,
        is_odd: bool = False,
        is_absent: bool = False,
    ) -> None:
        super().__init__(reason)
        self.wait_s = wait_s
        """How long the server asked to wait."""
        self.is_odd = is_odd
        """A repeat is likely to bring the same: few are made."""
        self.is_absent = is_absent
        """Nothing listens there."""


def _body(request: ChatRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        "messages": [{"role": role, "content": text} for role, text in request.messages],
        "seed": request.seed,
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
    }
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.stop:
        body["stop"] = list(request.stop)
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in request.tools
        ]
    return body


@contextmanager
def _foreign_errors(address: str) -> Iterator[None]:
    """Turns what httpx raises into a reason to try again, or into ModelError."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise ModelError(
            f"The model's address {address} is none: {error}. Mend RSI_MODEL_URL."
        ) from error
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise _Again(f"{address} can't be reached: {error}", is_absent=True) from error
    except httpx.TimeoutException as error:
        raise _Again(f"{address} gave no reply in time ({type(error).__name__})") from error
    except (httpx.TransportError, httpx.DecodingError) as error:
        raise _Again(f"{address} broke off: {type(error).__name__} {error}", is_odd=True) from error


def _refuse(address: str, response: httpx.Response) -> None:
    """Returns when the prompt was too long; raises for every other status but 200."""
    status, words = response.status_code, _words(response)
    if status in (408, 429) or status >= 500:
        raise _Again(f"{address} answered {status}: {words}", wait_s=_asked_wait_s(response))
    if status == 400 and _is_too_long(words):
        return
    raise ModelError(
        f"{address} refuses the request with status {status}: {words}. "
        "Check the model's address, its name and its key."
    )


def _words(response: httpx.Response) -> str:
    """What the server said, shortened, without the key that some servers quote."""
    words = " ".join(response.text.split()) or response.reason_phrase
    key = response.request.headers.get("authorization", "").removeprefix("Bearer ")
    return (words.replace(key, "***") if key else words)[:300]


def _is_too_long(words: str) -> bool:
    """llama.cpp, OpenAI and vLLM each say it in their own way."""
    signs = ("exceed_context_size", "context_length_exceeded", "maximum context length")
    return any(sign in words for sign in signs)


def _too_long() -> ChatReply:
    return ChatReply("", (), CONTEXT_EXCEEDED, 0, 0, 0, 0.0)


def _asked_wait_s(response: httpx.Response) -> float | None:
    """Retry-After in seconds; a date or nonsense counts as none."""
    text = response.headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdigit() else None


def _reply(response: httpx.Response, elapsed_s: float) -> ChatReply:
    try:
        document = response.json()
        choice = document["choices"][0]
        message = choice["message"]
        usage = document.get("usage") or {}
        text = _text(message.get("content"))
        calls = tuple(_tool_call(call) for call in message.get("tool_calls") or ())
        finish_reason = str(choice.get("finish_reason") or "")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _Again(f"the reply can't be read ({error!r}): {_words(response)}", is_odd=True) from (
            error
        )
    output_tokens = _count(usage, "completion_tokens")
    if not text and not calls and output_tokens == 0:
        raise _Again(f"suspect reply of 0 tokens: {_words(response)}", is_odd=True)
    input_tokens = _count(usage, "prompt_tokens")
    details = usage.get("prompt_tokens_details")
    cached_tokens = min(input_tokens, _count(details, "cached_tokens"))
    return ChatReply(
        text, calls, finish_reason, input_tokens, cached_tokens, output_tokens, elapsed_s
    )


def _text(content: object) -> str:
    """The text of a message, which may come in parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content)
    return ""


def _tool_call(call: Any) -> ToolCall:
    arguments = call["function"].get("arguments") or ""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return ToolCall(str(call["function"]["name"]), arguments)


def _count(counts: object, name: str) -> int:
    """A token count that is never negative; 0 for a missing or odd one."""
    value = counts.get(name) if isinstance(counts, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        return 0
    return max(0, int(value))


def _jittered(wait_s: float) -> float:
    """Between half of the wait and all of it, so that many callers don't return together."""
    return wait_s * random.uniform(0.5, 1.0)
