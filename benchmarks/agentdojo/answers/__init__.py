"""What a reader who makes no mistakes reads out of the texts that the oracle plans have read.

An answer is a function of the text that was shown: it must find there what it answers, or raise `NotShown`. So the
oracle never knows more than it was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

Reader = Callable[[str], Any]
"""From the text that was shown to the JSON value of the blank (dates as ISO text, a record as a dict)."""


class NotShown(LookupError):
    """The text does not hold what was asked for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How to read one blank: `about` are words of the instruction it belongs to (compared without case)."""

    about: str
    read: Reader


def copied(*values: str) -> Reader:
    """The first of these texts that stands in the text, word for word."""

    def read(text: str) -> str:
        for value in values:
            if value in text:
                return value
        raise NotShown(f"none of {values} is in the text")

    return read


def known(value: Any, *evidence: str) -> Reader:
    """A value that follows from the text because all of the evidence stands in it."""
    if not evidence:
        raise ValueError("a known value needs evidence")

    def read(text: str) -> Any:
        for each in evidence:
            if each not in text:
                raise NotShown(f"{each!r} is not in the text")
        return value

    return read


def pattern(regex: str, made: Callable[[str], Any] = str, *, flags: int = 0) -> Reader:
    """What the first group of a pattern (or the whole of it) matches, made into a value."""
    compiled = re.compile(regex, flags)

    def read(text: str) -> Any:
        if (match := compiled.search(text)) is None:
            raise NotShown(f"nothing matches {regex!r}")
        return made(match.group(1) if compiled.groups else match.group())

    return read


def patterns(regex: str, made: Callable[[str], Any] = str, *, flags: int = 0) -> Reader:
    """Everything that a pattern matches, in order; nothing is a fine answer too."""
    compiled = re.compile(regex, flags)
    return lambda text: [made(cast("str", found)) for found in compiled.findall(text)]


def either(*readers: Reader) -> Reader:
    """The answer of the first reader that finds one: for plans that ask the same of many texts."""

    def read(text: str) -> Any:
        reasons: list[str] = []
        for each in readers:
            try:
                return each(text)
            except NotShown as error:
                reasons.append(str(error))
        raise NotShown("; ".join(reasons))

    return read


def otherwise(value: Any) -> Reader:
    """What to answer where the text does not say: the last of `either`, such as None, False or an empty list."""
    return lambda text: value


def record(**readers: Reader) -> Reader:
    """A record, each field by its own reader."""
    return lambda text: {name: read(text) for name, read in readers.items()}


def answers(suite: str) -> Mapping[str, Sequence[Answer]]:
    """The answers of a suite by user task (`user_task_3`)."""
    return cast("Mapping[str, Sequence[Answer]]", import_module(f"{__name__}.{suite}").ANSWERS)
