"""Stacks that were published as examples, and parts that are used again and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bicameral.documents import Document, parse_yaml
from bicameral.errors import Place

from ._reading import read_description
from ._stack import Keys, Stack

_FILE = "data/compositions.yaml"


@dataclass(frozen=True, slots=True)
class Composition:
    """A stack with what it is for, how its parts work together, and what each of them does."""

    id: str
    name: str
    goal: str
    how: str
    does: Mapping[str, str]
    stack: Stack
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Patterns (`K10|K12`: either) that it lacks, with those of its own that cannot do without."""
    law1: tuple[str, ...] = ()
    """What it lacks of the least that every agent has."""


@cache
def compositions() -> Mapping[str, Composition]:
    """Every composition by its id: EX1 to EX9 are examples, ST1 to ST8 parts.

    Example:
        >>> compositions()["EX2"].missing
        {'V12': ('O4',)}
    """
    text = (files("bicameral.catalog") / _FILE).read_text(encoding="utf-8")
    document = parse_yaml(text, Path(_FILE))
    return MappingProxyType({id: _composition(id, each, document) for id, each in document.settings.items()})


def _composition(id: str, given: Mapping[str, Any], document: Document) -> Composition:
    def locate(path: Keys) -> Place:
        return document.locate((id, "stack", *path))

    expected: Mapping[str, Any] = given.get("expected", {})
    return Composition(
        id,
        given["name"],
        given["goal"],
        given["how"],
        given["does"],
        read_description(given["stack"], locate, _FILE),
        {wanted: tuple(users) for wanted, users in expected.get("missing", {}).items()},
        tuple(expected.get("law1", ())),
    )
