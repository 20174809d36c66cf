"""Plain values out of a description, each of its kind, or an error that says where and what was meant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from bicameral.errors import CatalogError, Place, nearest

from ._stack import Keys

T = TypeVar("T")

MAX_TEXT = 2_000


@dataclass(frozen=True, slots=True)
class At:
    """A value of a description and the way to it."""

    value: Any
    path: Keys
    locate: Callable[[Keys], Place]

    def wrong(self, code: str, message: str, **more: Any) -> CatalogError:
        """What is wrong here."""
        return CatalogError(code, message, place=self.locate(self.path), **more)

    def bad(self, expected: str, **more: Any) -> CatalogError:
        """That the value is not of the kind that belongs here."""
        return self.wrong("stack.bad-value", f"{shown(self.value)} cannot stand here", expected=expected, **more)

    def inner(self, key: str | int, value: Any) -> At:
        return At(value, (*self.path, key), self.locate)

    def mapping(self, expected: str) -> Iterator[tuple[str, At]]:
        """Every key of a mapping with what stands there."""
        if not isinstance(self.value, Mapping):
            raise self.bad(expected)
        for key, value in cast("Mapping[Any, Any]", self.value).items():
            if not isinstance(key, str):
                raise self.inner(str(key), value).bad("a name")
            yield key, self.inner(key, value)

    def items(self, expected: str) -> Iterator[At]:
        """Every item of a list."""
        if isinstance(self.value, str) or not isinstance(self.value, list | tuple):
            raise self.bad(expected)
        for number, value in enumerate(cast("list[Any]", self.value)):
            yield self.inner(number, value)

    def keys(self, known: Iterable[str], what: str) -> dict[str, At]:
        """The keys of a mapping, of which each must be a known one."""
        found: dict[str, At] = {}
        names = tuple(known)
        for key, at in self.mapping(f"{what} with {', '.join(names)}"):
            if key not in names:
                raise at.wrong(
                    "stack.unknown-key",
                    f"there is no key {key[:60]!r} in {what}",
                    expected=f"one of {', '.join(names)}",
                    nearest=nearest(key, names),
                )
            found[key] = at
        return found

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value.strip() or len(self.value) > MAX_TEXT:
            raise self.bad("a text")
        return self.value

    def truth(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.bad("true or false")
        return self.value

    def count(self) -> int:
        """A whole number from 0 on."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 0:
            raise self.bad("a whole number from 0 on")
        return self.value

    def amount(self) -> float:
        """A number above 0 that is not endless: an endless cap is none."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise self.bad("a number above 0")
        return value

    def one_of(self, words: Iterable[T]) -> T:
        known = tuple(words)
        if self.value not in known or isinstance(self.value, bool):
            close = nearest(str(self.value), map(str, known))
            raise self.bad(f"one of {', '.join(map(str, known))}", nearest=close)
        return cast("T", self.value)

    def texts(self) -> tuple[str, ...]:
        return tuple(each.text() for each in self.items("a list of names"))

    def several_of(self, words: Iterable[T]) -> tuple[T, ...]:
        known = tuple(words)
        return tuple(each.one_of(known) for each in self.items(f"a list of {', '.join(map(str, known))}"))


def shown(value: Any) -> str:
    """A value in an error: short, whatever it is."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    text = repr(value) if isinstance(value, str | int | float) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:59]}…"
