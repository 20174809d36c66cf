"""What a condition is: atoms over a call, put together with `and`, `or` and `not`.

An atom either says that something is one of a few words (`tools` is yes or no, `chamber`, `label`, `hint`, `role`,
`phase`), or compares a number with a bound. `has_tools` and `label: untrusted` are ways to write the first kind; a
deadline is a time that is left which has an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Field = Literal["tools", "schema", "label", "chamber", "hint", "role", "phase"]
Quantity = Literal["message_count", "prompt_tokens", "tokens_left", "money_left", "time_left", "failures", "cost_cap"]
Operator = Literal["<", "<=", ">", ">=", "==", "!="]

WORDS_OF: dict[Field, tuple[str, str]] = {
    "tools": ("yes", "no"),
    "schema": ("yes", "no"),
    "label": ("trusted", "untrusted"),
    "chamber": ("privileged", "quarantined"),
}
"""The fields that can say only one of two things; the others can hold any name, or none."""
COUNTED: frozenset[Quantity] = frozenset({"message_count", "prompt_tokens", "failures"})
"""Whole numbers from 0 on. The others may be fractions, may be overdrawn, and have no end where nobody bounds them."""


@dataclass(frozen=True, slots=True)
class Is:
    """A field of the call is this word."""

    field: Field
    word: str


@dataclass(frozen=True, slots=True)
class Compared:
    """A number of the call stands like this to a bound."""

    quantity: Quantity
    operator: Operator
    bound: float


@dataclass(frozen=True, slots=True)
class Not:
    part: Tree


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Tree, ...]


Tree: TypeAlias = Is | Compared | Not | And | Or

ALWAYS = And(())


def atoms(tree: Tree) -> Iterator[Is | Compared]:
    """Every atom of a condition, from left to right."""
    match tree:
        case Not(part=part):
            yield from atoms(part)
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from atoms(part)
        case _:
            yield tree
