"""Arguments of tools: their types, their purposes, and what words of a request may stand for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from bicameral import types as t

Effect = Literal["pure", "read", "write", "send", "irreversible"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)
CHANGING: frozenset[Effect] = frozenset({"write", "send", "irreversible"})

Purpose = Literal["selects", "directs", "carries"]
"""What an argument is for: it selects what is read, directs an effect (recipient, path), or carries content."""
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)

ReferenceKind = Literal["file", "folder", "column", "value", "person", "event", "mail"]
"""What words of a request may refer to: a value is a cell of a column; a person is an address, an event or a mail an
id."""
REFERENCE_KINDS: tuple[ReferenceKind, ...] = get_args(ReferenceKind)


class _Sentinel:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


REQUIRED: Any = _Sentinel("REQUIRED")
"""The default of an argument that must be given."""
UNDECLARED: Any = _Sentinel("UNSAID")
"""The value of a fact that was not declared; the tool replaces it by the worst case."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool and its purpose.

    Args:
        default: Its value where it is left out; REQUIRED if it must be given.
        purpose: What it is for; the tool replaces UNDECLARED by the worst case.
        field_of: The argument whose rows it names a field of.
        refers: What words of a request may stand for it; by default what its type says.
    """

    name: str
    type: t.Type
    doc: str = ""
    default: Any = REQUIRED
    purpose: Purpose = UNDECLARED
    field_of: str | None = None
    refers: ReferenceKind | None = None

    def __post_init__(self) -> None:
        if self.refers is None:
            object.__setattr__(self, "refers", "column" if self.field_of else _default_reference(self.type))

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


def _default_reference(type_: t.Type) -> ReferenceKind | None:
    match type_:
        case t.OptionalType(item=item) | t.ListType(item=item):
            return _default_reference(item)
        case t.StrType(format="path"):
            return "file"
        case t.StrType(format="email"):
            return "person"
        case _:
            return None
