"""The walk over a value and the schema that it is checked against: its budget, and what it finds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from bicameral.foreign._schemas import CompiledPattern, SchemaDocument, is_finite

MAX_STEPS = 2_000_000
"""Visits of schemas, items and names in one check: about two seconds."""
MAX_CHECK_DEPTH = 200
"""Schemas within schemas that are being checked at one time, references included."""
_TEXT_STEP = 256
"""Characters that are compared, or states of a pattern that are tried, in the time of one step."""

Path = tuple["Path | None", str]


@dataclass(frozen=True, slots=True)
class Fault:
    path: Path | None
    message: str

    def __str__(self) -> str:
        parts: list[str] = []
        at = self.path
        while at is not None:
            at, part = at
            parts.append(part)
        return f"{', '.join(reversed(parts)) or 'the value'} {self.message}"


@dataclass(slots=True)
class Evaluated:
    """Fields and items that some keyword has looked at, for `unevaluatedProperties` and `unevaluatedItems`."""

    names: set[str] = field(default_factory=set[str])
    items: set[int] = field(default_factory=set[int])
    every_name: bool = False
    every_item: bool = False

    def add(self, other: Evaluated) -> None:
        self.names |= other.names
        self.items |= other.items
        self.every_name |= other.every_name
        self.every_item |= other.every_item


class CheckGivenUp(Exception):
    """The value could not be checked; the message says why."""


Keyword = Callable[["SchemaWalk", Any, Any, "Scope"], "Fault | None"]
Compiled = tuple[tuple[Keyword, Any], ...]


@dataclass(slots=True)
class Scope:
    """What the keywords of one schema share while a value is checked."""

    schema: dict[str, Any]
    path: Path | None
    depth: int
    evaluated: Evaluated | None

    def fault(self, message: str) -> Fault:
        return Fault(self.path, message)


class SchemaWalk(ABC):
    """One check of a value: the steps that are left, and the way through schema and value."""

    __slots__ = ("compiled", "document", "steps")

    def __init__(self, document: SchemaDocument, compiled: dict[int, Compiled], steps: int) -> None:
        self.document = document
        self.compiled = compiled
        self.steps = steps

    @abstractmethod
    def compile(self, schema: dict[str, Any]) -> Compiled:
        """The keywords of a schema that say something, with what they need prepared."""

    def fault(
        self, schema: Any, value: Any, path: Path | None, depth: int, evaluated: Evaluated | None
    ) -> Fault | None:
        """The first fault of a value, or None; what was looked at is added to `evaluated`."""
        self.take(1)
        if isinstance(schema, bool):
            return None if schema else Fault(path, "may not be there")
        if depth > MAX_CHECK_DEPTH:
            raise CheckGivenUp(
                "the schema refers to itself without end, or the value is nested too deeply to be checked"
            )
        if not is_finite(value):
            return Fault(path, "is no number of JSON")
        keywords = self.compiled.get(id(schema))
        if keywords is None:
            keywords = self.compiled[id(schema)] = self.compile(schema)
        collects = evaluated is not None or "unevaluatedProperties" in schema or "unevaluatedItems" in schema
        # What a neighbour looked at does not count here, so that every schema has a set of its own.
        scope = Scope(schema, path, depth + 1, Evaluated() if collects else None)
        for check, given in keywords:
            self.take(1)
            if (fault := check(self, given, value, scope)) is not None:
                return fault
        if evaluated is not None and scope.evaluated is not None:
            self.take(len(scope.evaluated.names) + len(scope.evaluated.items))
            evaluated.add(scope.evaluated)
        return None

    def is_valid(self, schema: Any, value: Any, scope: Scope) -> bool:
        """Whether a value is valid under an inner schema, to which it belongs as a whole."""
        return self.fault(schema, value, scope.path, scope.depth, scope.evaluated) is None

    def take(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise CheckGivenUp("the value takes too much work to be checked")

    def matches(self, pattern: CompiledPattern, text: str) -> bool:
        """Whether a pattern matches anywhere in a text."""
        self.take(1 + len(text) * pattern.size // _TEXT_STEP)
        return pattern.search(text)

    def canonical(self, value: Any) -> str:
        """A text that two values share if they are equal in JSON: 1 and 1.0 are, 1 and true are not."""
        parts: list[str] = []
        self._write_canonical(value, parts)
        return "".join(parts)

    def _write_canonical(self, value: Any, parts: list[str]) -> None:
        # As a text and not as a tuple: hashes of numbers are the same in every process, so that someone can choose
        # many that collide.
        self.take(1)
        match value:
            case None | True | False:
                parts.append(f"{value};")
            case str():
                self.take(len(value) // _TEXT_STEP)
                parts.append(f"{len(value)}:{value}")
            case int():
                parts.append(f"{value:x};")
            case float():
                parts.append(f"{int(value):x};" if is_finite(value) and value.is_integer() else f"{value!r};")
            case list() | tuple():
                parts.append("[")
                for each in cast("list[Any]", value):
                    self._write_canonical(each, parts)
                parts.append("]")
            case dict():
                entries = cast("dict[str, Any]", value)
                parts.append("{")
                for name in sorted(entries):
                    self._write_canonical(name, parts)
                    self._write_canonical(entries[name], parts)
                parts.append("}")
            case _:
                raise CheckGivenUp("the value is no JSON")
