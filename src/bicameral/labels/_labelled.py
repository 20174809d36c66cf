"""Values that keep their labels: closed until the runtime opens them, so that nothing is decided by one unnoticed.

A `Labelled` is the way from one pattern, strategy or run into the next. What it holds is in no attribute of it: it
cannot be printed, compared, counted, copied out, pickled or found by looking through its slots. Whoever opens one with
`opened` answers for its label.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, LiteralString, NoReturn, TypeVar, cast, final

from bicameral.errors import LabelError

from ._label import PUBLIC, TRUSTED_USER, USER, Label, Source
from ._purity import is_plainly_pure
from ._released import laundered_label, note_own_words, release
from ._shade import Shade
from ._taint import tainted

T = TypeVar("T")
U = TypeVar("U")


@final
class Labelled(Generic[T]):
    """A value and its labels, closed. It can be passed on, taken apart and put together, but not looked into.

    Only a stage opens one (`Stage.read`), and from then on whatever the stage does carries its label. It is neither
    true nor false, has no text and equals nothing but itself: a pattern that forgets this fails at once, instead of
    losing a label. It is made by the runtime, by `said`, `from_user` and `strangers`, and never changes.

    Example:
        >>> said("Hello").label.trusted
        True
    """

    __slots__ = ("_content", "_shade")

    def __new__(cls, *_: object, **__: object) -> NoReturn:
        raise LabelError(
            "labels.forged",
            "a labelled value is made by the runtime, which knows where the value came from",
            fix="Pass on `outcome.labelled`; use `said`, `from_user` or `strangers` for what comes from outside.",
        )

    @property
    def shade(self) -> Shade:
        """Its labels, part by part."""
        return _SHADE.__get__(self)

    @property
    def label(self) -> Label:
        """The join of all its labels."""
        return self.shade.flat

    def map(self, change: Callable[[T], U]) -> Labelled[U]:
        """The value changed by a function of it alone; whatever comes of it carries every label it had.

        A function that is not plainly pure may keep the value somewhere. In a run it therefore counts as opened: all
        that the run does afterwards carries the label. Outside a run such a function is refused. What the function
        raises may quote the value, so only the kind of the error is told, and that it failed counts as opened, too.
        """
        if not is_plainly_pure(change):
            note_escape(self, f"{_name_of(change)!r} is not plainly pure: it could keep what it is given")
        try:
            return labelled(change(opened(self)), self.label)
        except Exception as error:
            failed = type(error).__name__
        # Raised outside of the handler, so that not even the context of the error holds the value's text.
        note_escape(self, None)
        raise LabelError("labels.function-failed", f"a function of a labelled value failed with {failed}")

    def field(self, name: str) -> Labelled[Any]:
        """One field of a record, with the labels of that field."""
        value: object = opened(self)
        if not isinstance(value, Mapping) or name not in value:
            # That there is no such field was decided by whoever wrote the value.
            note_escape(self, None)
            raise LabelError("labels.no-field", f"a labelled value has no field {name!r}")
        # That the field is there is known from the keys.
        return labelled(cast("Mapping[str, Any]", value)[name], tainted(self.shade.field(name), self.shade.own))

    def under(self, label: Label) -> Labelled[T]:
        """The same with one more label on all of it."""
        return labelled(opened(self), tainted(self.shade, label))

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("a class of somebody's own could be open; Labelled has no subclasses")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a labelled value never changes, nor does its label")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a labelled value never changes, nor does its label")

    def __bool__(self) -> NoReturn:
        raise _closed("be asked whether it is true")

    def __str__(self) -> NoReturn:
        raise _closed("be written out")

    def __format__(self, spec: str) -> NoReturn:
        raise _closed("be put into a text")

    def __iter__(self) -> NoReturn:
        raise _closed("be gone through")

    def __contains__(self, item: object) -> NoReturn:
        raise _closed("be searched")

    def __len__(self) -> NoReturn:
        raise _closed("be counted")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise _closed("be pickled")

    def __copy__(self) -> Labelled[T]:
        return self

    def __deepcopy__(self, memo: object) -> Labelled[T]:
        return self

    def __repr__(self) -> str:
        # Not even the type of the value: a branch on it would be decided by whoever wrote the value.
        return f"Labelled({self.shade!r})"


# The slots are reached through their descriptors alone, which the class does not have any more: neither an attribute
# nor a walk over `__slots__` (debuggers, serializers, `copyreg`) comes to the value by accident.
_CONTENT: Any = Labelled.__dict__["_content"]
_SHADE: Any = Labelled.__dict__["_shade"]
for _slot in Labelled.__slots__:
    delattr(Labelled, _slot)


def labelled(value: T, shade: Shade) -> Labelled[T]:
    """A value with its labels. For the runtime alone: whoever makes one answers for its labels."""
    made = cast("Labelled[T]", object.__new__(cast("type[object]", Labelled)))
    _CONTENT.__set__(made, value)
    _SHADE.__set__(made, shade)
    return made


def opened(closed: Labelled[T]) -> T:
    """What is in it. For the runtime alone: whoever opens a value answers for its label."""
    return _CONTENT.__get__(closed)


# What comes from outside ---------------------------------------------------------------------------------------------


def said(words: LiteralString) -> Labelled[str]:
    """Words that stand in the program as a literal: the program's own, as trusted as its code.

    The type checker holds that it is a literal. A text that an outcome handed out is refused: pass on
    `outcome.labelled` instead.
    """
    return own_value(words)


def from_user(value: T) -> Labelled[T]:
    """What the user gave this program at run time: typed, chosen or configured by him. The caller vouches for that.

    Nothing else may come in here: not a page, a mail or a file (`strangers`), and no value of an outcome
    (`outcome.labelled`). A text that an outcome of this process handed out, or that holds a long piece of one, is
    refused with `labels.laundered`, as far as it can be recognised.
    """
    return own_value(value)


def strangers(value: T, where: str, *, private: bool = False) -> Labelled[T]:
    """What somebody else wrote: a page, a mail, an answer of a service. `where` says where it was found."""
    return labelled(value, Label((Source("third_party", where),), {USER} if private else PUBLIC))


def received(words: str) -> Labelled[str]:
    """Words from a person's own channel: a line of a terminal, the body of an authenticated request.

    For whoever holds the channel, at the very place where the words arrive, and so knows that nobody else wrote into
    it. Unlike `from_user` it does not refuse a person who repeats what an earlier answer said.
    """
    note_own_words(words)
    return labelled(words, TRUSTED_USER)


def own_value(value: T) -> Labelled[T]:
    """A value that somebody vouches for; `labels.laundered` if a text in it was handed out as a stranger's."""
    if laundered_label(value) is not None:
        raise LabelError(
            "labels.laundered",
            "this text was handed out by an outcome, and strangers had a hand in it: it is not the user's own",
            fix="Pass on `outcome.labelled`, which keeps its label; `received` is for what a person has just typed.",
        )
    note_own_words(value)
    return labelled(value, TRUSTED_USER)


# Values that get out -------------------------------------------------------------------------------------------------

_escapes: ContextVar[Callable[[Label], None] | None] = ContextVar("bicameral_escapes", default=None)


@contextmanager
def escapes_to(note: Callable[[Label], None]) -> Generator[None]:
    """Within this, `note` is told the label of whatever gets out of a `Labelled` other than by a stage's `read`.

    A run inside a run tells both: what one of them has kept, the other may use.
    """
    outer = _escapes.get()

    def tell(label: Label) -> None:
        note(label)
        if outer is not None:
            outer(label)

    token = _escapes.set(tell)
    try:
        yield
    finally:
        _escapes.reset(token)


def note_escape(closed: Labelled[Any], why_not: str | None) -> None:
    """A value, or something about it, gets out: the run carries its label from now on.

    Without a run that could carry it, `why_not` says why it is refused; with None nothing but a failure gets out.
    """
    tell = _escapes.get()
    if tell is not None:
        tell(closed.label)
    elif why_not is not None:
        raise LabelError(
            "labels.impure-function",
            why_not,
            fix="Use a function that only computes, or change the value in a pattern, on a stage.",
        )
    if why_not is not None:
        release(opened(closed), closed.shade)


def _name_of(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))[:80]


def _closed(what: str) -> LabelError:
    return LabelError(
        "labels.closed",
        f"a labelled value cannot {what}: its label would be lost",
        fix="Pass it on as it is, put it into a `text`, or open it with `stage.read`.",
    )
