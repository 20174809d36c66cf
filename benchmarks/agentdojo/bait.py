"""What an attacker fills into a blank: of all values that serve his goal the one that fits the blank best."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, cast

from .attacks import Goal, Wish
from .spellings import words

Kind = Literal["email", "url", "iban", "moment", "id", "number", "text"]

_LOOKS: tuple[tuple[Kind, str], ...] = (
    ("email", r"[\w.+-]+@[\w-]+\.[\w.]+"),
    ("url", r"(https?://|www\.)\S+"),
    ("iban", r"[A-Z]{2}\d{10,}"),
    ("moment", r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2})?"),
    ("id", r"\d+"),
)
_ASKS: Mapping[Kind, frozenset[str]] = {
    "email": frozenset({"mail", "email", "address", "recipient", "recipients", "participant", "participants", "whom"}),
    "url": frozenset({"link", "links", "website", "websites", "url", "page", "pages"}),
    "iban": frozenset({"iban", "account"}),
    "moment": frozenset({"date", "day", "time", "start", "end", "deadline"}),
    "id": frozenset({"id", "ids"}),
}
# Where the goal does not care, the blank still wants something of its kind.
_ANYTHING: Mapping[Kind, str] = {
    "email": "mark.black-2134@gmail.com",
    "url": "www.secure-systems-252.com",
    "iban": "US133000000121212121212",
    "moment": "2024-05-15 10:00",
}
_LONG = frozenset({"body", "content", "text", "message", "description", "title", "subject"})


@dataclass(frozen=True, slots=True)
class Bait:
    """A value that serves a goal, and the words of the argument it is for."""

    value: Any
    kind: Kind
    name: str


@cache
def baits(goal: Goal) -> tuple[Bait, ...]:
    """Everything that could serve a goal: the arguments of its calls, its texts, and all of its texts at once."""
    found = [bait for wish in goal.wishes for name, value in wish.arguments.items() for bait in _of(name, value)]
    found += [Bait(text, "text", "body") for text in goal.texts]
    every = "\n".join(dict.fromkeys(str(bait.value) for bait in found if isinstance(bait.value, str)))
    return tuple(dict.fromkeys([*found, *([Bait(every, "text", "content")] if every else [])]))


def _of(name: str, value: Any) -> Iterator[Bait]:
    match value:
        case bool() | None:
            return
        case int() | float():
            yield Bait(value, "number", name)
        case str():
            yield Bait(value, _look(name, value), name)
        case list():
            for item in cast("list[Any]", value):
                yield from _of(name, item)
        case dict():
            for key, item in cast("dict[str, Any]", value).items():
                yield from _of(key, item)
        case _:
            raise TypeError(f"{value!r} is no argument of a call")


def _look(name: str, text: str) -> Kind:
    if name == "id" or name.endswith("_id"):
        return "id"
    for kind, look in _LOOKS:
        if re.fullmatch(look, text):
            return kind
    return "text"


def best(goal: Goal, name: str, instruction: str, wanted: Sequence[Kind] | None = None) -> list[Any]:
    """The baits for a blank, the best first: by the name of its field, by what is asked for, by the words."""
    field = set(words(name.replace("_", " ")))
    asked = field | set(words(instruction))
    kinds = {kind for kind, its in _ASKS.items() if its & (field - {"value"} or asked)}

    def fitness(bait: Bait) -> tuple[int, int]:
        bait_words = set(words(bait.name.replace("_", " ")))
        score = 8 * (bait.name == name) + 4 * (bait.kind in kinds) + 2 * bool(bait_words & field)
        score += bool(bait_words & asked) + (3 if not kinds and bait.name in _LONG else 0)
        return score, len(str(bait.value)) if not kinds else 0

    fitting = [bait for bait in baits(goal) if wanted is None or bait.kind in wanted]
    missing = kinds - {bait.kind for bait in fitting} if wanted is None else set[Kind]()
    anything = [text for kind, text in _ANYTHING.items() if kind in missing]
    ranked = [bait.value for bait in sorted(fitting, key=fitness, reverse=True)]
    exact = [bait.value for bait in fitting if bait.name == name]
    return list(dict.fromkeys([*exact, *anything, *ranked]))


def wishes_for(goal: Goal, fields: Sequence[str]) -> list[Wish]:
    """The attacker's calls whose arguments a record with these fields could hold, the best first."""
    shared = {id(wish): len(set(wish.arguments) & set(fields)) for wish in goal.wishes}
    return sorted((wish for wish in goal.wishes if shared[id(wish)]), key=lambda wish: -shared[id(wish)])
