"""The HTTP chat model against a server that answers from a script."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rsi.domain.contract import Slot
from rsi.edges.chat_http import CONTEXT_EXCEEDED, ChatLimits, HttpChatModel
from rsi.errors import ModelError, TrialFault
from rsi.ports import ChatRequest, ToolCall, ToolSpec
from tests.fakes.clock import FakeClock

KEY = "sk-very-secret"
LIMITS = ChatLimits()
REQUEST = ChatRequest(messages=(("user", "How many?"),), slot=Slot.AGENT, seed=7)
GOOD_USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 2,
    "prompt_tokens_details": {"cached_tokens": 4},
}


@dataclass(frozen=True)
class Scripted:
    """One answer of the server; `delay_s` comes before it."""

    status: int = 200
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    is_cut: bool = False


def completion(message: object, usage: object = GOOD_USAGE) -> Scripted:
    choice = {"message": message, "finish_reason": "stop"}
    return Scripted(body=json.dumps({"choices": [choice], "usage": usage}))


GOOD = completion({"content": "wc -l"})


class Server:
    """Answers each request with the next script line, the last one for ever."""

    def __init__(self) -> None:
        self.script: list[Scripted] = [GOOD]
        self.bodies: list[dict[str, object]] = []
        self.keys: list[str | None] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                owner.bodies.append(json.loads(self.rfile.read(length)))
                owner.keys.append(self.headers["authorization"])
                answer = owner.script.pop(0) if len(owner.script) > 1 else owner.script[0]
                owner.send(self, answer)

            def log_message(self, format: str, *args: object) -> None:  # its name there
                """Nothing: tests are silent."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def send(self, handler: BaseHTTPRequestHandler, answer: Scripted) -> None:
        time.sleep(answer.delay_s)
        content = answer.body.encode()
        try:
            handler.send_response(answer.status)
            for name, value in answer.headers.items():
                handler.send_header(name, value)
            handler.send_header("content-length", str(len(content) + 10 * answer.is_cut))
            handler.end_headers()
            handler.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            return  # the client had no more time


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.http.shutdown()
    made.http.server_close()
    thread.join(5)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def connected(
    server: Server, clock: FakeClock, limits: ChatLimits = LIMITS, key: str | None = KEY
) -> HttpChatModel:
    return HttpChatModel(
        lambda: server.url, lambda slot: {"model": slot.value}, key, clock=clock, limits=limits
    )


def test_reply_has_text_reason_and_counts(server: Server, clock: FakeClock) -> None:
    reply = connected(server, clock).chat(REQUEST)
    assert (reply.text, reply.finish_reason) == ("wc -l", "stop")
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens) == (9, 4, 2)


def test_what_is_not_set_is_not_sent_and_the_route_is(server: Server, clock: FakeClock) -> None:
    connected(server, clock).chat(REQUEST)
    assert server.bodies == [
        {
            "messages": [{"role": "user", "content": "How many?"}],
            "seed": 7,
            "temperature": 0.0,
            "max_tokens": 96,
            "model": "L1",
        }
    ]


def test_every_set_field_is_sent(server: Server, clock: FakeClock) -> None:
    tool = ToolSpec("bash", "runs", {"type": "object"})
    request = ChatRequest(
        messages=(("user", "x"),),
        slot=Slot.CHAT,
        seed=1,
        top_p=0.9,
        stop=("\n",),
        tools=(tool,),
    )
    connected(server, clock).chat(request)
    sent = server.bodies[0]
    assert (sent["top_p"], sent["stop"]) == (0.9, ["\n"])
    assert sent["tools"] == [
        {
            "type": "function",
            "function": {"name": "bash", "description": "runs", "parameters": {"type": "object"}},
        }
    ]


def test_key_goes_in_the_header_and_is_left_out_when_there_is_none(
    server: Server, clock: FakeClock
) -> None:
    connected(server, clock).chat(REQUEST)
    connected(server, clock, key=None).chat(REQUEST)
    assert server.keys == [f"Bearer {KEY}", None]


def test_broken_tool_arguments_come_back_as_they_are(server: Server, clock: FakeClock) -> None:
    call = {"function": {"name": "bash", "arguments": '{"a":'}}
    server.script = [completion({"content": None, "tool_calls": [call]})]
    reply = connected(server, clock).chat(REQUEST)
    assert reply.tool_calls == (ToolCall("bash", '{"a":'),)
    assert reply.text == ""


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": -5, "completion_tokens": -1, "prompt_tokens_details": None},
        {"prompt_tokens": "many", "completion_tokens": True},
        {"prompt_tokens": 1e300, "completion_tokens": None},
    ],
)
def test_odd_counts_are_zero(server: Server, clock: FakeClock, usage: object) -> None:
    server.script = [completion({"content": "x"}, usage)]
    reply = connected(server, clock).chat(REQUEST)
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens) == (0, 0, 0)


def test_two_rate_limits_are_waited_out_as_long_as_asked(server: Server, clock: FakeClock) -> None:
    busy = Scripted(429, "slow down", {"retry-after": "3"})
    server.script = [busy, busy, GOOD]
    assert connected(server, clock).chat(REQUEST).text == "wc -l"
    assert clock.slept == [3.0, 3.0]


def test_waits_grow_and_end_in_a_trial_fault_when_the_limit_is_spent(
    server: Server, clock: FakeClock
) -> None:
    server.script = [Scripted(500, "broken")]
    with pytest.raises(TrialFault, match="500: broken") as caught:
        connected(server, clock, ChatLimits(total_s=20, longest_wait_s=4)).chat(REQUEST)
    assert caught.value.where == "model"
    assert sum(clock.slept) <= 20
    assert 0.125 <= clock.slept[0] <= 0.25
    assert 2 <= clock.slept[-1] <= 4


def test_a_rate_limit_longer_than_the_limit_is_not_waited_for(
    server: Server, clock: FakeClock
) -> None:
    server.script = [Scripted(429, "tomorrow", {"retry-after": "86400"})]
    with pytest.raises(TrialFault, match="tomorrow"):
        connected(server, clock).chat(REQUEST)
    assert clock.slept == []


def test_a_slow_server_is_asked_again_and_then_is_a_trial_fault(
    server: Server, clock: FakeClock
) -> None:
    server.script = [Scripted(delay_s=0.5)]
    with pytest.raises(TrialFault, match="no reply in time"):
        connected(server, clock, ChatLimits(total_s=0.6, reply_s=0.05)).chat(REQUEST)
    assert len(server.bodies) >= 2


@pytest.mark.parametrize(
    "odd",
    [
        Scripted(body="<html>"),
        Scripted(body="[]"),
        Scripted(body='{"choices": []}'),
        Scripted(body='{"choices": [{"message": null}]}'),
        Scripted(body="{", is_cut=True),
        completion({"content": "x", "tool_calls": [{"function": None}]}),
        completion({"content": ""}, {"prompt_tokens": 9, "completion_tokens": 0}),
    ],
)
def test_an_unusable_reply_is_tried_a_few_times_and_never_an_answer(
    server: Server, clock: FakeClock, odd: Scripted
) -> None:
    server.script = [odd]
    with pytest.raises(TrialFault):
        connected(server, clock).chat(REQUEST)
    assert len(server.bodies) == 3
    server.script = [odd, GOOD]
    assert connected(server, clock).chat(REQUEST).text == "wc -l"


def test_an_empty_reply_that_cost_tokens_is_an_answer(server: Server, clock: FakeClock) -> None:
    server.script = [completion({"content": ""}, {"completion_tokens": 1})]
    assert connected(server, clock).chat(REQUEST).text == ""


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_names_the_status_and_the_words_but_not_the_key(
    server: Server, clock: FakeClock, status: int
) -> None:
    server.script = [Scripted(status, f"wrong key {KEY}")]
    with pytest.raises(ModelError, match=f"status {status}: wrong key") as caught:
        connected(server, clock).chat(REQUEST)
    assert KEY not in str(caught.value)
    assert len(server.bodies) == 1


def test_a_prompt_longer_than_the_context_is_an_empty_reply(
    server: Server, clock: FakeClock
) -> None:
    server.script = [Scripted(400, '{"error": {"type": "exceed_context_size_error"}}')]
    reply = connected(server, clock).chat(REQUEST)
    assert (reply.text, reply.finish_reason) == ("", CONTEXT_EXCEEDED)


def test_a_server_that_stays_away_is_a_model_error(clock: FakeClock) -> None:
    away = Server()
    away.http.server_close()
    with pytest.raises(ModelError, match="RSI_MODEL_URL"):
        connected(away, clock, ChatLimits(total_s=5)).chat(REQUEST)
    assert 1.875 <= sum(clock.slept) <= 5  # half of 0.25 + 0.5 + 1 + 2; the fifth wait is too long


@pytest.mark.parametrize("address", ["models:8000", "ftp://models", "http://models:port"])
def test_an_address_that_is_none_is_a_model_error(clock: FakeClock, address: str) -> None:
    model = HttpChatModel(lambda: address, lambda _: {}, clock=clock)
    with pytest.raises(ModelError, match="is none"):
        model.chat(REQUEST)
