"""Labelled values put together into lists and texts, and the parts of a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from string import Formatter
from typing import Any, LiteralString, TypeVar

from bicameral.errors import LabelError
from bicameral.labels import (
    TRUSTED_USER,
    Label,
    Labelled,
    Shade,
    join,
    join_shades,
    labelled,
    laundered_label,
    note_own_words,
    opened,
)

T = TypeVar("T")
U = TypeVar("U")


def changed(closed: Labelled[T], change: Callable[[T], U]) -> Labelled[U]:
    """The same as `map` for a function of ours that keeps nothing, and whose errors say what may be said."""
    return labelled(change(opened(closed)), closed.label)


def together(values: Iterable[Labelled[T]]) -> Labelled[list[T]]:
    """Several values as one list, each with all labels of all of them."""
    found = list(values)
    shade: Shade = TRUSTED_USER
    for each in found:
        shade = join_shades(shade, each.label)
    return labelled([opened(each) for each in found], shade.flat)


def text(words: LiteralString, **parts: Labelled[Any]) -> Labelled[str]:
    """A text of fixed words with values in it: `text("Question: {question}", question=question)`.

    The words must stand in the program as they are, which the type checker holds; what varies goes in by name.
    """
    names = {name for _, name, _, _ in Formatter().parse(words) if name is not None}
    if names != set(parts):
        missing = ", ".join(sorted(names ^ set(parts)))
        raise LabelError("labels.malformed", f"the words and the parts of a text do not go together: {missing}")
    label = TRUSTED_USER
    for part in parts.values():
        label = join(label, part.label)
    return labelled(words.format(**{name: shown(opened(part)) for name, part in parts.items()}), label)


def shown(value: object) -> str:
    """A value as a model reads it."""
    from bicameral.strategies import result_text

    return result_text(value)


Part = Labelled[Any] | LiteralString
"""A part of a question: a value with its label, or words that stand in the program."""


def words_of(part: Part) -> str:
    """A part as a model reads it. For the kernel alone."""
    return part if isinstance(part, str) else shown(opened(part))


def label_of(part: Part) -> Label:
    """The label of a part; words that stand in the program are the program's own."""
    if isinstance(part, Labelled):
        return part.label
    label = naked_label(part)
    if label is TRUSTED_USER:
        # A model may repeat its prompt, which does not make the prompt a stranger's.
        note_own_words(part)
    return label


def naked_label(value: object) -> Label:
    """The label of a naked value in a pattern: the program's own, unless a text in it was handed out as a stranger's.

    The types forbid that way, so it is taken only by mistake; the value then has its label again, and policy decides.
    """
    found = laundered_label(value)
    return TRUSTED_USER if found is None else join(TRUSTED_USER, found)
