"""What the model sees: a contract and a task made into messages and tools.

The search, the training set and the served agent all render through here, so that what is
measured is what is trained on and what is served.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

from rsi.domain.contract import (
    ActionFormat,
    AgentTable,
    Contract,
    Example,
    ExamplePick,
    HookAction,
    PromptTable,
)
from rsi.domain.task import Task
from rsi.domain.values import Digest

Messages = tuple[tuple[str, str], ...]
"""(role, text) in order."""

_TOKEN = re.compile(r"[\w./*-]+")
_NUMBER = re.compile(r"\d+")


def render(contract: Contract, task: Task) -> Messages:
    """The messages that open a trial of the contract on the task."""
    return render_instruction(
        contract, task.instruction, tuple(file.path for file in task.files), task.digest
    )


def render_instruction(
    contract: Contract, instruction: str, files: Sequence[str] = (), origin: Digest | None = None
) -> Messages:
    """The messages for a bare instruction; examples that come from task `origin` stay out."""
    messages: list[tuple[str, str]] = []
    system = system_text(contract)
    if system:
        messages.append(("system", system))
    for example in shown_examples(contract, instruction, origin):
        messages.append(("user", example.instruction))
        messages.append(("assistant", framed(contract.agent.action, example.reply)))
    messages.append(("user", _with_files(contract, instruction, files)))
    return tuple(messages)


def plain(contract: Contract) -> Contract:
    """The contract without what a search adds to carry a weak model: no examples, no skills
    shown, one sample of one action a turn. Adapters are trained to do without these."""
    return contract.model_copy(
        update={
            "prompt": PromptTable(system=contract.prompt.system),
            "skills": tuple(
                skill.model_copy(update={"shown": 0, "in_system": False})
                for skill in contract.skills
            ),
            "agent": AgentTable(
                action=contract.agent.action,
                stop=contract.agent.stop,
                turns=contract.agent.turns,
                max_total_tokens=contract.agent.max_total_tokens,
            ),
        }
    )


def framed(action: ActionFormat, command: str) -> str:
    """A command as the contract's action format writes it in a reply."""
    return f"```bash\n{command}\n```" if action is ActionFormat.FENCE else command


def system_text(contract: Contract) -> str:
    """The system message: the contract's own text, then the skills that stand in it."""
    parts = [contract.prompt.system]
    parts += [skill.text for skill in contract.skills if skill.in_system]
    return "\n\n".join(part for part in parts if part)


def shown_examples(
    contract: Contract, instruction: str, origin: Digest | None
) -> tuple[Example, ...]:
    """The examples that a trial shows, the nearest one last; skills' examples come first."""
    shown: list[Example] = []
    for skill in contract.skills:
        shown += nearest(skill.examples, instruction, skill.shown, origin)
    prompt = contract.prompt
    if prompt.examples_pick is ExamplePick.NEAREST:
        shown += nearest(prompt.examples, instruction, prompt.examples_shown, origin)
    else:
        usable = [example for example in prompt.examples if _is_usable(example, origin)]
        shown += usable[: prompt.examples_shown]
    return tuple(shown)


def nearest(
    pool: Sequence[Example], instruction: str, count: int, origin: Digest | None
) -> list[Example]:
    """The `count` examples that share the most telling words, the nearest last.

    Words weigh by their rarity in the pool (inverse document frequency, Spärck Jones 1972) and
    the sum is divided by the square root of the example's length, as in a cosine.
    """
    if count == 0 or not pool:
        return []
    bags = [words(example.instruction) for example in pool]
    seen = Counter(word for bag in bags for word in set(bag))
    wanted = set(words(instruction))
    scored = []
    for place, (example, bag) in enumerate(zip(pool, bags, strict=True)):
        if not _is_usable(example, origin):
            continue
        shared = wanted & set(bag)
        weight = sum(math.log(1 + len(pool) / seen[word]) for word in shared)
        scored.append((-weight / math.sqrt(len(bag) or 1), place, example))
    scored.sort(key=lambda entry: entry[:2])
    return [example for _, _, example in reversed(scored[:count])]


def words(text: str) -> list[str]:
    """The words of a text for likeness: file names become their endings, numbers one sign."""
    found = []
    for token in _TOKEN.findall(text.lower()):
        bare = token.strip("./-")
        if "." in bare:
            found.append("." + bare.rsplit(".", 1)[1])
        elif bare:
            found.append(_NUMBER.sub("0", bare))
    return found


def _is_usable(example: Example, origin: Digest | None) -> bool:
    return origin is None or example.origin != origin


def _with_files(contract: Contract, instruction: str, files: Sequence[str]) -> str:
    if not files or not contract.has_hook(HookAction.LIST_FILES):
        return instruction
    return f"{instruction}\nFiles here: {', '.join(sorted(files))}"
