"""What the families are made with: names, texts, and a draft that becomes a task."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rsi.domain.task import Answer, Task, TaskFile

SUITE = "shell"
STEMS = (
    "kiwi",
    "plum",
    "mango",
    "cedar",
    "maple",
    "otter",
    "heron",
    "cobalt",
    "amber",
    "delta",
    "harbor",
    "meadow",
    "pepper",
    "saffron",
    "walnut",
    "lagoon",
    "cactus",
    "bamboo",
    "velvet",
    "comet",
    "quartz",
    "raven",
    "tundra",
    "willow",
    "zephyr",
    "basil",
    "clover",
    "fjord",
)
"""File names; the cookbook uses none of them."""
WORDS = (
    "red",
    "stone",
    "river",
    "cloud",
    "paper",
    "green",
    "light",
    "table",
    "winter",
    "music",
    "garden",
    "silver",
    "bread",
    "window",
    "forest",
    "candle",
    "orange",
    "mirror",
    "ocean",
    "button",
    "ladder",
    "pocket",
    "rocket",
    "summer",
    "thunder",
    "violin",
    "yellow",
    "zebra",
    "anchor",
    "bridge",
    "copper",
    "dragon",
    "engine",
    "falcon",
    "guitar",
    "hammer",
    "island",
    "jacket",
    "kettle",
    "lemon",
)
PEOPLE = (
    "ada",
    "bo",
    "cleo",
    "dan",
    "eve",
    "fritz",
    "gina",
    "hugo",
    "ines",
    "jon",
    "kim",
    "lars",
    "mona",
    "nils",
    "olga",
    "paul",
    "quin",
    "rosa",
    "sven",
    "tara",
    "uwe",
    "vera",
    "wim",
    "yara",
)
TOWNS = ("oslo", "bern", "lima", "rome", "kyiv", "cairo", "quito", "delhi")


@dataclass(frozen=True, slots=True)
class Draft:
    """A job before it is a task; every expectation is computed here, never by the reference."""

    instruction: str
    command: str
    """The reference solution, one line of bash."""
    files: dict[str, str] = field(default_factory=dict)
    answer: str | None = None
    """What the last command must print; None for a job that is judged by its files."""
    same: dict[str, str] = field(default_factory=dict)
    """Files that must have this content in the end."""
    absent: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    executable: tuple[str, ...] = ()


Maker = Callable[[random.Random, int], Draft]
"""(rng, level) -> draft; levels start at 1."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A family of jobs."""

    name: str
    about: str
    make: Maker
    levels: tuple[int, ...] = (1, 2, 3)


TEST_HEAD = r"""#!/bin/bash
# Judges what the agent left, by content; white space around lines doesn't count.
mkdir -p /logs/verifier
ok=1
tidy() {
  head -c 1000000 -- "$1" 2>/dev/null | tr -d '\000' | sed 's/^[[:space:]]*//;s/[[:space:]]*$//'
}
prints() {
  got=/logs/agent/answer.txt
  [ -f "$got" ] || got=/logs/agent/oracle.txt
  [ "$(tidy "$got")" = "$(tidy /tests/answer.txt)" ] || ok=0
}
same() { [ -f "$1" ] && [ "$(tidy "$1")" = "$(tidy "/tests/files/$1")" ] || ok=0; }
absent() { [ ! -e "$1" ] || ok=0; }
folder() { [ -d "$1" ] || ok=0; }
runs() { [ -x "$1" ] || ok=0; }
cd /work || ok=0
"""
TEST_TAIL = """printf '{"reward": %d.0}\\n' "$ok" > /logs/verifier/reward.json
"""


def task_of(kind: str, level: int, draft: Draft, made_by: str = "suite") -> Task:
    """The task in the exchange format."""
    checks = ["prints"] if draft.answer is not None else []
    checks += [f"same {path}" for path in draft.same]
    checks += [f"absent {path}" for path in draft.absent]
    checks += [f"folder {path}" for path in draft.folders]
    checks += [f"runs {path}" for path in draft.executable]
    tests = [_file("test.sh", TEST_HEAD + "\n".join(checks) + "\n" + TEST_TAIL, executable=True)]
    if draft.answer is not None:
        tests.append(_file("answer.txt", draft.answer + "\n"))
    tests += [_file(f"files/{path}", text) for path, text in draft.same.items()]
    return Task(
        name=f"rsi/shell-{kind.replace('_', '-')}-{level}",
        suite=SUITE,
        family=kind,
        level=level,
        instruction=draft.instruction,
        answer=Answer.FILES if draft.answer is None else Answer.STDOUT,
        files=tuple(_file(path, text) for path, text in draft.files.items()),
        tests=tuple(tests),
        solution=(_file("solve.sh", f"#!/bin/bash\nset -e\n{draft.command}\n", executable=True),),
        agent_timeout_s=30,
        verifier_timeout_s=20,
        made_by=made_by,
    )


def name(rng: random.Random, ending: str = ".txt") -> str:
    """A file name."""
    return rng.choice(STEMS) + ending


def names(rng: random.Random, count: int, ending: str = ".txt") -> list[str]:
    """Different file names."""
    return [stem + ending for stem in rng.sample(STEMS, count)]


def some(rng: random.Random, low: int, high: int) -> list[str]:
    """Words, some of them more than once."""
    return [rng.choice(WORDS) for _ in range(rng.randint(low, high))]


def distinct(rng: random.Random, low: int, high: int) -> list[str]:
    """Different words in no order."""
    return rng.sample(WORDS, rng.randint(low, high))


def sentences(rng: random.Random, low: int, high: int) -> list[str]:
    """Lines of two to six words."""
    return [
        " ".join(rng.choice(WORDS) for _ in range(rng.randint(2, 6)))
        for _ in range(rng.randint(low, high))
    ]


def numbers(rng: random.Random, low: int, high: int, most: int = 900) -> list[int]:
    """Different whole numbers in no order, of different lengths."""
    count = rng.randint(low, high)
    small = rng.sample(range(1, 10), 2)
    return rng.sample([*small, *rng.sample(range(10, most), count - 2)], count)


def text(lines: Sequence[object]) -> str:
    """Lines as a file has them."""
    return "".join(f"{line}\n" for line in lines)


def joined(lines: Sequence[object]) -> str:
    """Lines as a command's answer."""
    return "\n".join(str(line) for line in lines)


def _file(path: str, content: str, *, executable: bool = False) -> TaskFile:
    return TaskFile(path=path, content=content.encode(), executable=executable)
