"""A sandbox in memory that knows `echo` and how the sample tasks are judged."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rsi.domain.trial import BoxFacts
from rsi.errors import SandboxError, TrialFault
from rsi.ports import Box, BoxFile, BoxSpec, Ran

FACTS = BoxFacts(engine="fake", level="none", image="fake", missing=("everything",))
_WANTED = re.compile(r'answer\.txt\)" = (\S+) \]')


class FakeBox:
    """Keeps the `Box` port over a dictionary of files."""

    def __init__(self, sandbox: "FakeSandbox") -> None:
        self._sandbox = sandbox
        self._files: dict[str, BoxFile] = {}

    @property
    def facts(self) -> BoxFacts:
        return FACTS

    def put(self, files: Sequence[BoxFile]) -> None:
        self._files |= {file.path: file for file in files}

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        output_limit_bytes: int = 65536,
        stdin: bytes = b"",
        env: Mapping[str, str] = {},
        cwd: str | None = None,
    ) -> Ran:
        self._sandbox.run_count += 1
        if self._sandbox.run_count in self._sandbox.broken_runs:
            raise TrialFault("sandbox", "the box died")
        if list(argv) == ["bash", "/tests/test.sh"]:
            self._judge()
            return Ran(0, b"", b"")
        is_script = list(argv) == ["bash", "/solution/solve.sh"]
        script = self._files["/solution/solve.sh"].content.decode() if is_script else argv[-1]
        command = script.strip().splitlines()[-1]
        if command.startswith("echo "):
            return Ran(0, (command.removeprefix("echo ") + "\n").encode(), b"")
        return Ran(127, b"", f"{command.split(' ')[0]}: command not found\n".encode())

    def python(self, code: str, *, timeout_s: float, output_limit_bytes: int = 65536) -> Ran:
        return Ran(1, b"", f"no Python here for {len(code)} characters\n".encode())

    def stop_all(self) -> None:
        """Nothing runs."""

    def get(self, paths: Sequence[str], *, limit_bytes: int = 1 << 24) -> tuple[BoxFile, ...]:
        return tuple(
            file
            for path, file in sorted(self._files.items())
            if any(path.startswith(root) for root in paths)
        )

    def _judge(self) -> None:
        wanted = _WANTED.findall(self._files["/tests/test.sh"].content.decode())[0]
        answer = self._files.get("/logs/agent/answer.txt", BoxFile("", b"")).content
        reward = float(answer.decode().strip() == wanted)
        path = "/logs/verifier/reward.json"
        self._files[path] = BoxFile(path, f'{{"reward": {reward}}}'.encode())


class FakeSandbox:
    """Keeps the `Sandbox` port. The runs whose numbers are in `broken_runs` break; once `is_down`
    no box can be had."""

    def __init__(self, broken_runs: Sequence[int] = ()) -> None:
        self.broken_runs = set(broken_runs)
        self.run_count = 0
        self.is_down = False

    @contextmanager
    def box(self, spec: BoxSpec) -> Iterator[Box]:
        del spec
        if self.is_down:
            raise SandboxError("the fake engine is down; start it")
        yield FakeBox(self)

    def check(self) -> BoxFacts:
        if self.is_down:
            raise SandboxError("the fake engine is down; start it")
        return FACTS

    def close(self) -> None:
        """Nothing to remove."""
