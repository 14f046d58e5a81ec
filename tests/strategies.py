"""Hypothesis strategies for contracts and edits."""

from typing import Any

from hypothesis import strategies as st

from rsi.domain.contract import (
    ActionFormat,
    AgentTable,
    Contract,
    Edit,
    Example,
    ExamplePick,
    Hook,
    HookAction,
    ModelTable,
    PromptTable,
    Sampling,
    SearchTable,
    Skill,
    StopRule,
    Tool,
    ToolKind,
)
from rsi.domain.contract_rules import event_of
from rsi.domain.keys import join_key

NAMES = st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,6}", fullmatch=True)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=20
) | st.sampled_from(
    ['"""', "'''", "a\nb", "\n", "\\", 'a\\\n"', "\r\n", "#x", "[x]\ny = 1", "\x7f\u0085\u2028"]
)
EXAMPLES = st.lists(st.builds(Example, instruction=TEXTS, reply=TEXTS), max_size=3).map(tuple)
HOOKS = st.lists(st.sampled_from(HookAction), max_size=3, unique=True).map(
    lambda actions: tuple(Hook(event=event_of(action), action=action) for action in actions)
)
TEMPERATURES = st.floats(0, 2)
SPACE = (
    "prompt.*",
    "agent.*",
    "model.sampling.*",
    "skills.*.shown",
    "skills.*.text",
    "skills.*.examples",
    "tools.*.exposed",
    "tools.*.policy.deny",
    "session.carries_over",
    "hooks",
)


@st.composite
def contracts(draw: st.DrawFn) -> Contract:
    """A valid contract with a wide search space."""
    skills = draw(st.lists(NAMES, max_size=3, unique=True))
    tools = draw(st.lists(NAMES, max_size=3, unique=True))
    return Contract(
        hcp="1",
        name=draw(NAMES),
        version="1.0.0",
        model=ModelTable(
            sampling=Sampling(
                temperature=draw(TEMPERATURES), stop=tuple(draw(st.lists(TEXTS, max_size=2)))
            )
        ),
        prompt=PromptTable(system=draw(TEXTS), examples=draw(EXAMPLES)),
        agent=AgentTable(turns=draw(st.integers(1, 9)), action=draw(st.sampled_from(ActionFormat))),
        tools={name: Tool(kind=draw(st.sampled_from(ToolKind))) for name in tools},
        skills=tuple(
            Skill(name=name, text=draw(TEXTS), examples=draw(EXAMPLES)) for name in skills
        ),
        hooks=draw(HOOKS),
        search=SearchTable(space=SPACE),
    )


def edits_for(made: Contract) -> st.SearchStrategy[list[Edit]]:
    """Valid edits of the contract."""
    choices: dict[str, st.SearchStrategy[Any]] = {
        "prompt.system": TEXTS,
        "prompt.examples": _plain(EXAMPLES),
        "prompt.examples_shown": st.integers(0, 32),
        "prompt.examples_pick": st.sampled_from([pick.value for pick in ExamplePick]),
        "agent.turns": st.integers(1, 200),
        "agent.votes": st.integers(1, 16),
        "agent.stop": st.sampled_from([rule.value for rule in StopRule]),
        "model.sampling.temperature": TEMPERATURES | st.integers(0, 2),
        "model.sampling.top_p": st.none() | st.floats(0.1, 1),
        "model.sampling.stop": st.lists(TEXTS, max_size=3),
        "session.carries_over": st.lists(TEXTS, max_size=3),
        "hooks": _plain(HOOKS),
    }
    for name in made.tools:
        choices[join_key(("tools", name, "exposed"))] = st.booleans()
        choices[join_key(("tools", name, "policy", "deny"))] = st.lists(TEXTS, max_size=2)
    for skill in made.skills:
        choices[join_key(("skills", skill.name, "shown"))] = st.integers(0, 32)
        choices[join_key(("skills", skill.name, "text"))] = TEXTS
        choices[join_key(("skills", skill.name, "examples"))] = _plain(EXAMPLES)
    one = st.sampled_from(sorted(choices)).flatmap(
        lambda key: (
            st.builds(Edit, key=st.just(key), value=choices[key])
            | st.just(Edit(key=key, op="unset"))
        )
    )
    return st.lists(one, min_size=1, max_size=4)


def _plain(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values.map(lambda rows: [row.model_dump(mode="json", exclude_none=True) for row in rows])
