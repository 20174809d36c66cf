"""Values that keep their labels: closed until a stage opens them, so that nothing is decided by one unnoticed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any, Generic, LiteralString, NoReturn, TypeVar, cast, final

from bicameral.errors import LabelError
from bicameral.labels import PUBLIC, TRUSTED_USER, USER, Label, Shade, Source, join, join_shades, tainted

T = TypeVar("T")
U = TypeVar("U")


@final
class Labelled(Generic[T]):
    """A value and its labels, closed. It can be passed on, taken apart and put together, but not looked into.

    Only a stage opens one (`Stage.read`), and from then on whatever the stage does carries its label. It is neither
    true nor false, has no text and equals nothing but itself: a pattern that forgets this fails at once, instead of
    losing a label.

    Example:
        >>> said("Hello").label.trusted
        True
    """

    __slots__ = ("_value", "shade")

    shade: Shade

    def __init__(self, value: T, shade: Shade) -> None:
        self._value = value
        self.shade = shade

    @property
    def label(self) -> Label:
        """The join of all its labels."""
        return self.shade.flat

    def map(self, change: Callable[[T], U]) -> Labelled[U]:
        """The value changed by a function of it alone; whatever comes of it carries every label it had."""
        return Labelled(change(self._value), self.label)

    def field(self, name: str) -> Labelled[Any]:
        """One field of a record, with the labels of that field."""
        value = cast("Mapping[str, Any]", self._value)
        # That the field is there is known from the keys.
        return Labelled(value[name], tainted(self.shade.field(name), self.shade.own))

    def under(self, label: Label) -> Labelled[T]:
        """The same with one more label on all of it."""
        return Labelled(self._value, tainted(self.shade, label))

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("a class of somebody's own could be open; Labelled has no subclasses")

    def __bool__(self) -> NoReturn:
        raise _closed("be asked whether it is true")

    def __str__(self) -> NoReturn:
        raise _closed("be written out")

    def __format__(self, spec: str) -> NoReturn:
        raise _closed("be put into a text")

    def __iter__(self) -> NoReturn:
        raise _closed("be gone through")

    def __len__(self) -> NoReturn:
        raise _closed("be counted")

    def __repr__(self) -> str:
        return f"Labelled({type(self._value).__name__}, {self.shade!r})"


def opened(labelled: Labelled[T]) -> T:
    """What is in it. For the kernel alone: whoever opens a value answers for its label."""
    return labelled._value  # pyright: ignore[reportPrivateUsage] the other half of this file


def said(value: T) -> Labelled[T]:
    """What the user says, or the program that runs the pattern: their own words, seen by nobody else."""
    return Labelled(value, TRUSTED_USER)


def strangers(value: T, where: str, *, private: bool = False) -> Labelled[T]:
    """What somebody else wrote: a page, a mail, an answer of a service. `where` says where it was found."""
    return Labelled(value, Label((Source("third_party", where),), {USER} if private else PUBLIC))


def together(values: Iterable[Labelled[T]]) -> Labelled[list[T]]:
    """Several values as one list, each with all labels of all of them."""
    found = list(values)
    shade: Shade = TRUSTED_USER
    for each in found:
        shade = join_shades(shade, each.label)
    return Labelled([opened(each) for each in found], shade.flat)


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
    return Labelled(words.format(**{name: shown(opened(part)) for name, part in parts.items()}), label)


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
    return TRUSTED_USER if isinstance(part, str) else part.label


def _closed(what: str) -> LabelError:
    return LabelError(
        "labels.closed",
        f"a labelled value cannot {what}: its label would be lost",
        fix="Pass it on as it is, put it into a `text`, or open it with `stage.read`.",
    )
