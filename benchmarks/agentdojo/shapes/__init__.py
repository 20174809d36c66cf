"""Results that a suite's tool prints as text or gives as an untyped dict, read back into the records they were made of.

A shape only undoes the tool's own formatting, with the tool's own markers: it never reads a stranger's prose. What a
shape cannot read it refuses. Without a shape a tool's result has the type that the tool itself declares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Shape:
    """The annotation of a tool's result in plans (a TypedDict, a list of them …), and how to read the raw one."""

    result: Any
    read: Callable[[Any], Any] = lambda raw: raw


def shapes(suite: str) -> Mapping[str, Shape]:
    """The shapes of a suite's tools by name; a suite may have none."""
    name = f"{__name__}.{suite}"
    return cast("Mapping[str, Shape]", import_module(name).SHAPES) if find_spec(name) else {}


def as_taken(suite: str, environment: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call as the suite's own tools take them."""
    name = f"{__name__}.{suite}"
    given = getattr(import_module(name), "given", None) if find_spec(name) else None
    return given(environment, arguments) if given else dict(arguments)
