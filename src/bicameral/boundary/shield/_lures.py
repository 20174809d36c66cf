"""What in a value a reader could follow: everything that is not plainly words and short numbers.

What is found is compared: with what the user wrote himself, and with what a person has said yes to. So it is written in
one way whatever its spelling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from ._marks import MARKED
from ._screen import screen


def lures_in(value: object) -> frozenset[str]:
    """Everything in the texts of a value that could be followed, written the way it is compared.

    Example:
        >>> sorted(lures_in("Pay at WWW.Example.com/now, or write to eve@example.org."))
        ['eve@example.org', 'www.example.com/now']
    """
    return frozenset(lure for text in _texts(value) for lure in _of(text))


def plain_words(text: str) -> bool:
    """Whether there is nothing in a text but words and short numbers.

    Example:
        >>> plain_words("Dr. Smith pays 12.50 EUR on 3 May at 10:30.")
        True
        >>> plain_words("See evil(dot)com")
        False
    """
    return next(_other_parts(text), None) is None


def _of(text: str) -> Iterator[str]:
    if screen(text).alert:
        yield MARKED
    yield from _other_parts(text)


def _other_parts(text: str) -> Iterator[str]:
    from ._plain_words import other_parts  # its patterns take time to compile

    return other_parts(text)


def _texts(value: object) -> Iterator[str]:
    waiting: list[object] = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, list | tuple):
            waiting.extend(cast("Iterable[object]", found))
        elif isinstance(found, dict):
            entries = cast("dict[object, object]", found)
            waiting.extend((*entries.keys(), *entries.values()))
        elif isinstance(found, int | float):
            yield str(found)
