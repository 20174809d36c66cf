"""What the tests of records share: a type, a clock, and a place in each kind of store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bicameral.errors import RecordError
from bicameral.labels import Labelled, from_user, untrusted_value
from bicameral.records import Records


@dataclass(frozen=True)
class Fact:
    """A value of a record."""

    city: str
    people: int
    tags: tuple[str, ...] = ()


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def facts(place: str | Path, *, owner: str = "ada", **options: Any) -> Records[Fact]:
    return Records(place, Fact, owner=owner, collection="facts", **options)


def own(city: str, people: int = 1, tags: tuple[str, ...] = ()) -> Labelled[Fact]:
    return from_user(Fact(city, people, tags))


def found(city: str, people: int = 1, *, private: bool = False) -> Labelled[Fact]:
    """A fact of a page."""
    return untrusted_value(Fact(city, people), "page", private=private)


def code_of(act: Any, *args: Any, **named: Any) -> str:
    try:
        act(*args, **named)
    except RecordError as error:
        return error.code
    return "no error"
