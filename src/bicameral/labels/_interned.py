"""Each shade is there once, and none is too deep or too large: how shades are kept, and how they are measured."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Protocol
from weakref import WeakValueDictionary

from ._label import making, set_once

MAX_LEVELS = 10
"""Deeper parts are not told apart: the labels of everything below are joined."""
MAX_PARTS = 2_000
"""A shade with more parts is cut off at fewer levels."""
MEMORY = 1 << 13
"""How many answers about shades are remembered, for each kind of question."""

_shades: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()


class Sized(Protocol):
    """Whatever has levels and parts: every shade."""

    @property
    def levels(self) -> int: ...

    @property
    def parts(self) -> int: ...


kept = _shades.get
"""The shade that was made of the same parts, if there still is one."""


def interned(kind: type[Any], key: Hashable, facts: Iterable[tuple[str, object]]) -> Any:
    """The one shade that is made of these facts, from now on."""
    with making:
        found = _shades.get(key)
        if found is None:
            found = object.__new__(kind)
            for name, value in facts:
                set_once(found, name, value)
            _shades[key] = found
    return found


def size_of(inside: Iterable[Sized]) -> tuple[int, int]:
    """How many levels and parts a shade has that holds these."""
    levels, parts = 0, 1
    for each in inside:
        levels = max(levels, each.levels)
        parts += each.parts
    return levels + 1, parts


def levels_left(levels: int) -> int:
    """How many levels the parts of a shade that is too large may keep."""
    return min(levels, MAX_LEVELS + 1) - 2 if levels > 1 else 0
