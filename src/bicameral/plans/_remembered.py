"""What is computed once for each step or expression: by identity, since comparing them deeply would cost more."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Found = TypeVar("Found")


def remembered(compute: Callable[[Any], Found]) -> Callable[[Any], Found]:
    """The same function, which remembers what it found for as long as the object that it was asked about lives."""
    known: dict[int, tuple[weakref.ref[Any], Found]] = {}
    # The bound method outlives the module's names, which are gone when the interpreter ends.
    forget = known.pop

    @wraps(compute)
    def run(node: Any) -> Found:
        key = id(node)
        entry = known.get(key)
        if entry is not None and entry[0]() is node:
            return entry[1]
        found = compute(node)
        known[key] = (weakref.ref(node, lambda _: forget(key, None)), found)
        return found

    return run
