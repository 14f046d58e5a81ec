"""What a box says is not believed: any answer is a plain result or a fault of the trial."""

import json
import struct
from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from rsi.box_protocol import HelperBox
from rsi.domain.trial import BoxFacts
from rsi.errors import TrialFault

FACTS = BoxFacts(engine="fake", level="none", image="fake")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {
            "path": st.sampled_from(
                ["/work/a", "/work/../etc/passwd", "/etc/passwd", "a", "/work", "/work/../../x"]
            )
            | st.text(max_size=8),
            "size": st.integers(-3, 9) | st.integers() | st.floats(),
            "mode": st.integers(0, 0o7777) | st.integers() | st.floats(),
        }
    ),
    max_size=3,
)


class Script:
    """A stream whose other end says these bytes and then ends."""

    def __init__(self, said: bytes) -> None:
        self._left = said

    def send(self, data: bytes) -> None:
        """Nobody listens."""

    def receive(self, count: int, limit_s: float) -> bytes:
        del limit_s
        taken, self._left = self._left[:count], self._left[count:]
        if len(taken) < count:
            raise EOFError
        return taken

    def close(self) -> None:
        """Nothing is held."""


def frame(header: object, payload: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack(">I", len(text)) + text + payload


def calls(said: bytes) -> None:
    """Every call gives a plain result or a TrialFault, whatever the box says."""
    every: tuple[Callable[[HelperBox], object], ...] = (
        lambda box: box.greet(b"", 1),
        lambda box: box.run(["true"], timeout_s=1),
        lambda box: box.python("1", timeout_s=1),
        lambda box: box.put([]),
        lambda box: box.stop_all(),
        lambda box: box.live(1),
        lambda box: box.open_network(("a.org",)),
    )
    for call in every:
        try:
            call(HelperBox(Script(said), FACTS, "/work"))
        except TrialFault:
            continue


@given(st.binary(max_size=40))
def test_bytes_without_sense_are_a_fault(said: bytes) -> None:
    calls(said)
    given_files(said)


FIELDS = (
    "ok",
    "payload",
    "exit_code",
    "stdout",
    "is_timeout",
    "is_truncated",
    "elapsed_s",
    "files",
)
HEADERS = st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON)) | st.fixed_dictionaries(
    {"ok": st.just(True), "payload": st.floats() | st.integers(0, 9)},
    optional=dict.fromkeys(FIELDS[2:], st.floats() | st.integers() | st.text(max_size=3)),
)


@example({"ok": True, "payload": float("inf")}, b"")
@example({"ok": True, "payload": 0, "exit_code": 0, "stdout": float("inf")}, b"")
@example({"ok": True, "payload": 0, "files": [{"path": "/work/a", "size": float("inf")}]}, b"")
@given(JSON | HEADERS, st.binary(max_size=9))
def test_any_document_is_a_result_or_a_fault(header: object, payload: bytes) -> None:
    calls(frame(header, payload))
    given_files(frame(header, payload))


@given(ENTRIES, st.binary(max_size=20), st.integers(-1, 30))
def test_files_come_from_where_they_were_asked_for(
    entries: list[dict[str, object]], payload: bytes, length: int
) -> None:
    given_files(frame({"ok": True, "files": entries, "payload": length}, payload))


def given_files(said: bytes) -> None:
    try:
        files = HelperBox(Script(said), FACTS, "/work").get(["/work"])
    except TrialFault:
        return
    for file in files:
        assert file.path == "/work" or file.path.startswith("/work/")
        assert ".." not in file.path.split("/")
        assert 0 <= file.mode <= 0o777
