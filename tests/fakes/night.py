"""A whole generation on fakes: words to echo instead of shell jobs, a model that copies."""

import random
import re
from collections.abc import Callable, Mapping, Sequence

from rsi.domain.evaluation import (
    DiscoveryRule,
    Evaluation,
    ExpansionRule,
    GateRule,
    SuiteChoice,
    UpdateRule,
)
from rsi.domain.lora import Model
from rsi.domain.task import Family, Split, Task
from rsi.edges.contract_files.files import TomlContractFiles
from rsi.edges.trace_files import AtifFiles
from rsi.ports import Blobs, ChatRequest, ContractDocument, Ledger, Sandbox
from rsi.stages.parts import Parts
from tests.fakes.clock import FakeClock
from tests.fakes.model import FAKE_BASE, FakeEngine
from tests.fakes.progress import FakeProgress
from tests.fakes.sandbox import FakeSandbox
from tests.fakes.trainer import FakeTrainer
from tests.fakes.workers import InlineWorkers
from tests.samples import task

FAMILIES = ("tree", "bird", "stone", "river")
EVALUATION = Evaluation(
    evaluation="1",
    name="fake-night",
    seed=3,
    suites=(SuiteChoice(kind="shell"),),
    discovery=DiscoveryRule(tasks=12, hardened=4),
    expansion=ExpansionRule(attempts=60, round_size=6, patience=40, holdout_tasks=8, finalists=2),
    update=UpdateRule(min_examples=2, harvest_tasks=8, max_steps=4),
    gate=GateRule(exam_tasks=32, regression_tasks=8),
)
CONTRACT = """
hcp = "1"
name = "fake"
version = "1.0.0"
[tools.bash]
kind = "bash"
[[skills]]
name = "cookbook"
[[skills.examples]]
instruction = "Print the word kite."
reply = "echo kite"
[search]
space = ["prompt.system", "prompt.examples", "prompt.examples_shown", "agent.action",
         "agent.retries", "agent.votes", "model.sampling.*", "skills.*.shown", "hooks"]
"""


class EchoSuite:
    """Keeps the `TaskSource` port: tasks that are solved by echoing a word."""

    name = "test"

    def families(self) -> tuple[Family, ...]:
        return tuple(Family(suite="test", name=family, levels=(1, 2)) for family in FAMILIES)

    def draw(
        self, split: Split, seed: int, n: int, levels: Mapping[str, int] = {}
    ) -> tuple[Task, ...]:
        rng = random.Random(f"{split}/{seed}")
        return tuple(
            task(
                f"{split.value}{rng.randrange(10**9)}",
                family=FAMILIES[place % 4],
                level=levels.get(FAMILIES[place % 4], 1),
            )
            for place in range(n)
        )

    def harden(self, one: Task, seed: int) -> tuple[Task, ...]:
        if one.level == 2:
            return ()
        return (task(f"hard{one.digest[:8]}{seed}", family=one.family, level=2),)


def copying(model: Model, request: ChatRequest) -> str:
    """A model that talks unless it was trained or sees an example, and then echoes the word;
    even then it misses one word in five."""
    asked = [text for role, text in request.messages if role == "user"]
    word = re.findall(r"the word (\w+)", "\n".join(asked))[-1]
    can = bool(model.loras) or any(role == "assistant" for role, _ in request.messages[:-1])
    misses = sum(word.encode()) % 5 == 0
    return f"echo {word}" if can and not misses else f"The word is {word}."


def document() -> ContractDocument:
    """The first champion's contract."""
    return TomlContractFiles().parse(CONTRACT, "fake contract")


def parts(
    ledger: Ledger,
    blobs: Blobs,
    *,
    sandbox: Sandbox | None = None,
    answer: Callable[[Model, ChatRequest], str] = copying,
    suites: Sequence[EchoSuite] = (),
) -> Parts:
    """Every part as a fake, around the ledger and the blobs."""
    return Parts(
        ledger=ledger,
        blobs=blobs,
        contract_files=TomlContractFiles(),
        traces=AtifFiles(),
        engine=FakeEngine(answer),
        sandbox=sandbox or FakeSandbox(),
        trainer=FakeTrainer(blobs, (FAKE_BASE,)),
        suites=tuple(suites) or (EchoSuite(),),
        workers=InlineWorkers(),
        progress=FakeProgress(),
        clock=FakeClock(),
    )
