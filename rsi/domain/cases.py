"""Cases: what a solution must return or print, compared outside the box that runs it.

The expected values never enter a box, so nothing that the solution does there can read them,
patch what compares them, or end the comparison early.
"""

from typing import Annotated

from pydantic import Discriminator, Field, JsonValue, StringConstraints, Tag

from rsi.domain.values import Value

Entry = Annotated[str, StringConstraints(pattern=r"^[^:]+\.py:[A-Za-z_]\w*$")]
"""A function of a file below the workdir: `solution.py:normalise`."""


class CallCase(Value):
    """A call of a Python function with JSON values."""

    call: Entry
    args: tuple[JsonValue, ...] = ()
    kwargs: dict[str, JsonValue] = {}
    returns: JsonValue = None
    raises: str | None = None
    """The name of the exception that must end the call instead."""
    tolerance: float = Field(default=0.0, ge=0)
    """How far numbers may be off; 0 asks for the same value of the same type."""


class RunCase(Value):
    """A command in the workdir, with its input and output."""

    run: tuple[str, ...] = Field(min_length=1)
    stdin: str = ""
    prints: str
    """Standard output; white space at the ends of lines doesn't count."""
    exit_code: int = 0


def _kind(case: object) -> str:
    is_run = "run" in case if isinstance(case, dict) else isinstance(case, RunCase)
    return "run" if is_run else "call"


Case = Annotated[
    Annotated[CallCase, Tag("call")] | Annotated[RunCase, Tag("run")], Discriminator(_kind)
]


class CaseFile(Value):
    """tests/cases.json, whole."""

    cases: tuple[Case, ...]


def is_same(found: JsonValue, wanted: JsonValue, tolerance: float = 0.0) -> bool:
    """Whether two JSON values are equal in value and type; True is not 1, and 1 is not 1.0.

    With a tolerance numbers are compared as numbers, so that 1 equals 1.0.
    """
    if tolerance and _is_number(found) and _is_number(wanted):
        return _is_near(found, wanted, tolerance)  # type: ignore[arg-type]
    if type(found) is not type(wanted):
        return False
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(
            is_same(one, other, tolerance) for one, other in zip(found, wanted, strict=True)
        )
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(
            is_same(found[key], wanted[key], tolerance) for key in wanted
        )
    return found == wanted


def is_same_text(found: str, wanted: str) -> bool:
    """Whether two texts are equal but for white space at the ends of lines and of the text."""
    return _bare(found) == _bare(wanted)


def _bare(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _is_near(found: float, wanted: float, tolerance: float) -> bool:
    try:
        return abs(found - wanted) <= tolerance
    except OverflowError:  # A whole number too large for a float.
        return False


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
