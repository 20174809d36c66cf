"""What a library function is: signatures with typed parameters, a rule for the type of its result, and its code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bicameral.types import Type

from ._kinds import ANYTHING, Kind


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: a value of a kind or, with `takes` > 0, a lambda of that many names."""

    name: str
    kind: Kind = ANYTHING
    required: bool = True
    many: bool = False
    named_only: bool = False
    takes: int = 0

    def __str__(self) -> str:
        shown = "lambda" if self.takes else self.kind.shown
        if self.many:
            return f"*{self.name}: {shown}"
        return f"{self.name}: {shown}" + ("" if self.required else " = …")


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a call as the check sees them, by parameter; lambdas are typed on demand."""

    types: dict[str, Type]
    rest: tuple[Type, ...]
    constants: dict[str, object]
    returns: Callable[[str, tuple[Type, ...]], Type | None]
    """The type that the lambda given for a parameter returns for these types; None if none is given."""
    report: Callable[[str, str, str], None]
    """Tell what is wrong: a code, a message, what to do."""

    def __getitem__(self, name: str) -> Type:
        return self.types[name]

    def get(self, name: str) -> Type | None:
        return self.types.get(name)


Rule = Callable[[Given], Type]


@dataclass(frozen=True, slots=True)
class Signature:
    """One way to call a function. `result` is the type of the result or the rule for it."""

    parameters: tuple[Parameter, ...]
    result: Type | Rule
    run: Callable[..., Any]

    def bind(self, positional: int, named: Sequence[str]) -> tuple[Parameter, ...] | None:
        """The parameter of each argument (positional, then named), or None if the call has not this shape."""
        places = [p for p in self.parameters if not p.named_only]
        rest = places.pop() if places and places[-1].many else None
        if positional > len(places) and rest is None:
            return None
        bound = places[:positional]
        by_name = {p.name: p for p in self.parameters if not p.many}
        for name in named:
            if name not in by_name or by_name[name] in bound:
                return None
            bound.append(by_name[name])
        if any(p.required and not p.many and p not in bound for p in self.parameters):
            return None
        extra = positional - len(places)
        if rest is not None and extra > 0:
            bound[positional - extra : positional - extra] = [rest] * extra
        if rest is not None and rest.required and extra <= 0:
            return None
        return tuple(bound)


Cost = Literal["constant", "flat", "deep"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the closed library, pure and total."""

    name: str
    doc: str
    group: str
    signatures: tuple[Signature, ...]
    method: bool = False
    """Whether a plan writes it as a method: `text.lower()`."""
    cost: Cost = "flat"
    """How its work grows: not at all, with the length of its arguments, or with everything in them."""
    grows: bool = False
    """Whether its result can be larger than its arguments, so that it must be weighed."""

    @property
    def usage(self) -> str:
        """How to call it, one form after the other: `count(text: str, part: str) or count(xs: list, value)`."""
        return " or ".join(f"{self.name}({', '.join(map(str, s.parameters))})" for s in self.signatures)


def need(name: str, kind: Kind = ANYTHING) -> Parameter:
    return Parameter(name, kind)


def may(name: str, kind: Kind = ANYTHING, *, named_only: bool = False) -> Parameter:
    return Parameter(name, kind, required=False, named_only=named_only)
