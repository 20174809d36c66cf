"""The plan: the only thing that runs. Steps say what they `do`; their order is the order of effects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from bicameral.types import Type, from_json, to_json

from ._expressions import SURFACE_WORDS, Expr, Name, Node, Text

VERSION = "plan/1"


def _one_way(value: Any) -> Any:
    """The one way to write a type."""
    return to_json(from_json(value))


TypeJson = Annotated[Any, AfterValidator(_one_way)]
"""A type as JSON."""


class Call(Node):
    """Call a tool; `name` is the variable for its result, if anyone wants it."""

    do: Literal["call"] = "call"
    name: Name | None = None
    tool: Name
    args: dict[Name, Expr] = Field(default_factory=dict[str, Any])

    @field_validator("tool")
    @classmethod
    def _not_a_step(cls, value: str) -> str:
        if value in SURFACE_WORDS:
            raise ValueError(f"{value!r} is a word of the plan language and cannot be a tool")
        return value


class Extract(Node):
    """Let the quarantined model read `source` and fill a typed blank. `type` is a type as JSON."""

    do: Literal["extract"] = "extract"
    name: Name
    source: Expr
    instruction: Expr
    type: TypeJson

    @property
    def wanted(self) -> Type:
        return from_json(self.type)


class Compute(Node):
    """Give a name to the value of a pure expression."""

    do: Literal["compute"] = "compute"
    name: Name
    value: Expr


class Update(Node):
    """Add to a variable: `xs.append(v)`, `n += v`, `d[key] = v`."""

    do: Literal["update"] = "update"
    name: Name
    op: Literal["append", "add", "put"]
    key: Annotated[Expr | None, Field(validate_default=True)] = None
    value: Expr

    @field_validator("key")
    @classmethod
    def _key_only_for_put(cls, value: Any, info: ValidationInfo) -> Any:
        if (info.data.get("op") == "put") != (value is not None):
            raise ValueError("an update has a key exactly when its op is 'put'")
        return value


class Each(Node):
    """Do the steps once for each item of a list, in order."""

    do: Literal["each"] = "each"
    names: Annotated[tuple[Name, ...], Field(min_length=1)]
    over: Expr
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]


class When(Node):
    """Do these steps if the condition holds, the others if not."""

    do: Literal["when"] = "when"
    condition: Expr
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    otherwise: tuple[Step, ...] = ()


class Ask(Node):
    """Ask the person who made the request; `type` is the type of the reply as JSON (default text)."""

    do: Literal["ask"] = "ask"
    name: Name
    question: Expr
    type: TypeJson = "str"

    @property
    def wanted(self) -> Type:
        return from_json(self.type)


class Answer(Node):
    """The result of the run; a run that comes here is finished."""

    do: Literal["answer"] = "answer"
    value: Expr


Step = Annotated[
    Call | Extract | Compute | Update | Each | When | Ask | Answer,
    Field(discriminator="do"),
]


class Plan(Node):
    """A versioned list of steps with the goal they serve.

    Example:
        >>> Plan(goal="say hello", steps=(Answer(value=Const(value="hello")),)).hash[:8]
        '…'
    """

    version: Literal["plan/1"] = VERSION
    goal: Text = ""
    steps: tuple[Step, ...] = ()

    def to_json(self) -> str:
        """Canonical JSON: the same plan is always the same bytes."""
        return self.model_dump_json(exclude_defaults=False)

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def walk(steps: tuple[Any, ...], at: str = "") -> Iterator[tuple[str, Any]]:
    """Every step with its path: `1`, `1/0` inside an each, `2/then/0` and `2/else/0` inside a when."""
    for number, step in enumerate(steps):
        path = f"{at}{number}"
        yield path, step
        match step:
            case Each():
                yield from walk(step.steps, f"{path}/")
            case When():
                yield from walk(step.steps, f"{path}/then/")
                yield from walk(step.otherwise, f"{path}/else/")
            case _:
                pass
