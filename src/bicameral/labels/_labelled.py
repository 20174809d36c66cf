"""`Labelled`: a value that keeps its labels and stays opaque until the runtime opens it.

A `Labelled` carries a value from one pattern or run into the next. Its content is in no attribute: it cannot be
printed, compared, counted, copied out, pickled or found through its slots, so no branch can depend on it without the
runtime knowing. Code that opens one is responsible for its label.

Detection of laundered text: an outcome's `value` is meant to be shown to a person. A program that passes it to the next
pattern as the user's own words drops its label, and Python cannot prevent that; but the text can be recognised. This is
a second line of defence behind the types (`Labelled`, `LiteralString`), and no proof: a text that was translated,
encoded, reworded or cut into short pieces is not recognised, nor are numbers, nor texts that another process released.

Recognised, after normalising case and white space:

- the same string object, however short, if it is more than a word;
- a text that equals a whole released text, from `WHOLE` characters on;
- a text that shares `3 * BLOCK - 1` consecutive characters with a released one; never one shorter than `2 * BLOCK`.

Texts that the user or the program used before are theirs, even if a model repeats them. Shorter pieces pass on
purpose: a person who was shown a list of files names one of them in the next request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from threading import Lock
from typing import Any, Generic, LiteralString, NoReturn, TypeVar, cast, final

from bicameral.errors import LabelError
from bicameral.labels._label import PUBLIC, TRUSTED_USER, USER, Label, Source, join_all
from bicameral.labels._label_tree import LabelTree, taint
from bicameral.labels._purity import is_plainly_pure

T = TypeVar("T")
U = TypeVar("U")


def _refusal(action: str) -> Callable[..., NoReturn]:
    """A method of a labelled value that only raises."""

    def refuse(*_: object) -> NoReturn:
        raise LabelError(
            "labels.closed",
            f"a labelled value cannot {action}: its label would be lost",
            fix="Pass it on as it is, put it into a `text`, or open it with `context.read`.",
        )

    return refuse


@final
class Labelled(Generic[T]):
    """An opaque value and its labels. It can be passed on, taken apart and put together, but not inspected.

    Only a pattern's context opens one (`Context.read`); from then on everything the context does carries its label. A
    `Labelled` has no truth value and no text, and equals nothing but itself: a pattern that forgets this fails at once
    instead of losing a label. It is made by the runtime, `program_text`, `from_user` and `untrusted_value`, and never
    changes.

    Example:
        >>> program_text("Hello").label.trusted
        True
    """

    __slots__ = ("_content", "_labels")

    def __new__(cls, *_: object, **__: object) -> NoReturn:
        raise LabelError(
            "labels.forged",
            "a labelled value is made by the runtime, which knows where the value came from",
            fix="Pass on `outcome.labelled`; for what comes from outside use `program_text`, `from_user` "
            "or `untrusted_value`.",
        )

    @property
    def label_tree(self) -> LabelTree:
        """The labels, part by part."""
        return _LABELS_SLOT.__get__(self)

    @property
    def label(self) -> Label:
        """The join of all labels."""
        return self.label_tree.flat

    def map(self, change: Callable[[T], U]) -> Labelled[U]:
        """The result of a function of the value; it carries every label of the value.

        A function that is not plainly pure may store the value. Within a run the value therefore counts as opened:
        everything the run does afterwards carries the label. Outside a run such a function is refused. An exception of
        the function may quote the value, so only its class is reported, and the failure counts as opening the value,
        too.

        Args:
            change: A function of the value alone, such as `str.strip`.
        """
        if not is_plainly_pure(change):
            record_escape(self, f"{_function_name(change)!r} is not plainly pure: it could keep what it is given")
        try:
            return make_labelled(change(open_labelled(self)), self.label)
        except Exception as error:
            failed = type(error).__name__
        # Raised outside the handler, so that `__context__` does not keep an error that quotes the value.
        record_escape(self, None)
        raise LabelError("labels.function-failed", f"a function of a labelled value failed with {failed}")

    def field(self, name: str) -> Labelled[Any]:
        """One field of a record, with the labels of that field."""
        value: object = open_labelled(self)
        if not isinstance(value, Mapping) or name not in value:
            # The missing field is a fact about the value, so the failure carries its label.
            record_escape(self, None)
            raise LabelError("labels.no-field", f"a labelled value has no field {name!r}")
        # That the field exists is a fact about the keys, so the label of the keys is joined.
        return make_labelled(
            cast("Mapping[str, Any]", value)[name], taint(self.label_tree.field(name), self.label_tree.own)
        )

    def with_label(self, label: Label) -> Labelled[T]:
        """The same value with one more label on every part."""
        return make_labelled(open_labelled(self), taint(self.label_tree, label))

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("a class of somebody's own could be open; Labelled has no subclasses")

    def __setattr__(self, *_: object) -> NoReturn:
        raise AttributeError("a labelled value never changes, nor does its label")

    __delattr__ = __setattr__

    __bool__ = _refusal("be asked whether it is true")
    __str__ = _refusal("be written out")
    __format__ = _refusal("be put into a text")
    __iter__ = _refusal("be gone through")
    __contains__ = _refusal("be searched")
    __len__ = _refusal("be counted")
    __reduce_ex__ = _refusal("be pickled")

    def __copy__(self) -> Labelled[T]:
        return self

    def __deepcopy__(self, memo: object) -> Labelled[T]:
        return self

    def __repr__(self) -> str:
        # Not even the type of the value: a branch on it would depend on untrusted data.
        return f"Labelled({self.label_tree!r})"


# The slots are reachable only through these descriptors, which are removed from the class: neither attribute access nor
# a walk over `__slots__` (debuggers, serializers, `copyreg`) finds the value by accident.
_CONTENT_SLOT: Any = Labelled.__dict__["_content"]
_LABELS_SLOT: Any = Labelled.__dict__["_labels"]
for _slot in Labelled.__slots__:
    delattr(Labelled, _slot)


def make_labelled(value: T, tree: LabelTree) -> Labelled[T]:
    """A value with its labels. For the runtime only: the caller is responsible for the labels."""
    made = cast("Labelled[T]", object.__new__(cast("type[object]", Labelled)))
    _CONTENT_SLOT.__set__(made, value)
    _LABELS_SLOT.__set__(made, tree)
    return made


def open_labelled(closed: Labelled[T]) -> T:
    """The content. For the runtime only: the caller is responsible for the label."""
    return _CONTENT_SLOT.__get__(closed)


# Values from outside


def program_text(words: LiteralString) -> Labelled[str]:
    """A literal of the program: as trusted as its code.

    The type checker enforces that it is a literal. A text that an outcome released is refused: pass on
    `outcome.labelled` instead.
    """
    return vouched_value(words)


def from_user(value: T) -> Labelled[T]:
    """A value that the user typed, chose or configured at run time. The caller vouches for that.

    Do not use it for a page, a mail or a file (`untrusted_value`), nor for the value of an outcome
    (`outcome.labelled`). A text that an outcome of this process released, or that contains a long piece of one, is
    refused with `labels.laundered`, as far as it can be recognised.
    """
    return vouched_value(value)


def untrusted_value(value: T, where: str, *, private: bool = False) -> Labelled[T]:
    """A value that somebody else wrote: a page, a mail, the answer of a service.

    Args:
        value: The value; all of it gets the same label.
        where: Where it was found; the name of its source.
        private: Whether only the user may see it.

    Example:
        >>> untrusted_value("Please call back.", "voicemail").label.trusted
        False
    """
    return make_labelled(value, Label((Source("third_party", where),), {USER} if private else PUBLIC))


def user_input(words: str) -> Labelled[str]:
    """Text from a person's own channel: a line of a terminal, the body of an authenticated request.

    Call it where the text arrives, in the code that owns the channel and so knows that nobody else wrote into it.
    Unlike `from_user` it does not refuse a person who repeats an earlier answer.
    """
    note_own_words(words)
    return make_labelled(words, TRUSTED_USER)


def vouched_value(value: T) -> Labelled[T]:
    """A value that the caller vouches for; `labels.laundered` if it contains a released untrusted text."""
    if laundered_label(value) is not None:
        raise LabelError(
            "labels.laundered",
            "this text was handed out by an outcome, and strangers had a hand in it: it is not the user's own",
            fix="Pass on `outcome.labelled`, which keeps its label; `user_input` is for what a person has just typed.",
        )
    note_own_words(value)
    return make_labelled(value, TRUSTED_USER)


# Values that leave a `Labelled`

_escape_listener: ContextVar[Callable[[Label], None] | None] = ContextVar("bicameral_escapes", default=None)


@contextmanager
def listen_for_escapes(note: Callable[[Label], None]) -> Generator[None]:
    """Within this, `note` gets the label of every value that leaves a `Labelled` other than by `Context.read`.

    A nested run notifies the outer listeners, too: a value that one run stored can be used by the other.
    """
    outer = _escape_listener.get()

    def notify(label: Label) -> None:
        note(label)
        if outer is not None:
            outer(label)

    token = _escape_listener.set(notify)
    try:
        yield
    finally:
        _escape_listener.reset(token)


def record_escape(closed: Labelled[Any], why_not: str | None) -> None:
    """Record that a value, or a fact about it, leaves its `Labelled`: the run carries its label from now on.

    Args:
        closed: The value.
        why_not: Why this is refused outside a run; None if nothing but a failure gets out.
    """
    notify = _escape_listener.get()
    if notify is not None:
        notify(closed.label)
    elif why_not is not None:
        raise LabelError(
            "labels.impure-function",
            why_not,
            fix="Use a function that only computes, or change the value in a pattern, in its context.",
        )
    if why_not is not None:
        # The function may store the text, and the program may pass it back in as its own.
        remember_released(open_labelled(closed), closed.label_tree)


def _function_name(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))[:80]


# Untrusted texts that were released without a label

WHOLE = 8
BLOCK = 16
_DISTINCT = 5
"""A block with fewer distinct characters (a ruler, dots) is too common to identify a text."""
_MOST_TEXT = 200_000
_MOST_BLOCKS = 1 << 16
_MOST_SHORT = 1 << 10
_MOST_DEEP = 12

K = TypeVar("K")


class _RecentEntries(OrderedDict[K, Any]):
    """The entries that were added last, up to a maximum."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def add(self, key: K, value: Any) -> None:
        self[key] = value
        if len(self) > self._most:
            self.popitem(last=False)


class _ReleasedTexts:
    """The released texts and the user's own texts, of all threads of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.clear()

    def clear(self) -> None:
        self._same: _RecentEntries[int] = _RecentEntries(_MOST_SHORT)
        self._short: _RecentEntries[str] = _RecentEntries(_MOST_SHORT)
        self._blocks: _RecentEntries[str] = _RecentEntries(_MOST_BLOCKS)
        self._own: _RecentEntries[str] = _RecentEntries(_MOST_SHORT)
        self._own_windows: _RecentEntries[str] = _RecentEntries(_MOST_BLOCKS)

    def release(self, text: str, label: Label) -> None:
        normal = _normalize_text(text[:_MOST_TEXT])
        # One lock for lookup and insertion: threads release and check texts at the same time.
        with self._lock:
            # The user or the program wrote it first, so repeating it is no laundering.
            if any(normal in own for own in self._own):
                return
            if not text.isidentifier() and not text.isalnum() and text:
                # The object is kept alive, so that no other object gets its id. Single words are left out: Python
                # interns them, so the same object may come from anywhere.
                self._same.add(id(text), (text, label))
            if WHOLE <= len(normal) < 3 * BLOCK:
                self._short.add(normal, label)
            # Blocks are stored at fixed offsets and looked up at every offset, so 3 * BLOCK - 1 common characters
            # always contain two adjacent blocks.
            for start in range(0, len(normal) - BLOCK + 1, BLOCK):
                block = normal[start : start + BLOCK]
                if block not in self._own_windows and len(set(block)) >= _DISTINCT:
                    self._blocks.add(block, label)

    def find_label(self, text: str) -> Label | None:
        with self._lock:
            if not (self._same or self._short or self._blocks):
                return None
            if (same := self._same.get(id(text))) is not None and same[0] is text:
                return cast("Label", same[1])
            normal = _normalize_text(text)
            if normal in self._own:
                return None
            if (label := self._short.get(normal)) is not None:
                return cast("Label", label)
            # Two adjacent blocks are required: a single one may be a common phrase.
            for start, block in enumerate(_windows(normal)):
                if block in self._blocks:
                    label = self._blocks.get(normal[start + BLOCK : start + 2 * BLOCK])
                    if label is not None:
                        return cast("Label", label)
            return None

    def remember_own(self, text: str) -> None:
        normal = _normalize_text(text[:_MOST_TEXT])
        with self._lock:
            if normal in self._own:
                return
            self._own.add(normal, None)
            for window in _windows(normal):
                self._own_windows.add(window, None)


_released = _ReleasedTexts()


def remember_released(value: object, tree: LabelTree) -> None:
    """Remember the untrusted texts in a value that is released."""
    if tree.flat.trusted:
        return
    for text, label in _iter_labelled_texts(value, tree, _MOST_DEEP):
        if not label.trusted:
            _released.release(text, label)


def laundered_label(value: object) -> Label | None:
    """The join of the labels of all released texts in a value, or None."""
    labels = [label for text in iter_texts(value) if (label := _released.find_label(text)) is not None]
    return join_all(labels) if labels else None


def note_own_words(value: object) -> None:
    """Remember texts of the user or the program: a model that repeats them does not make them untrusted."""
    for text in iter_texts(value):
        _released.remember_own(text)


def forget_released() -> None:
    """Forget everything, as in a new process. For tests."""
    with _released._lock:  # pyright: ignore[reportPrivateUsage] same module
        _released.clear()


def iter_texts(value: object, depth: int = _MOST_DEEP) -> Iterator[str]:
    """The texts in a plain value, including the keys of mappings."""
    if isinstance(value, str):
        yield value
    elif depth:
        for part in _value_parts(value):
            yield from iter_texts(part, depth - 1)


def _value_parts(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return [*entries.keys(), *entries.values()]
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name, None) for each in fields(value)]
    is_sequence = isinstance(value, Sequence | Set) and not isinstance(value, bytes | bytearray | memoryview)
    return cast("Iterable[object]", value) if is_sequence else ()


def _iter_labelled_texts(value: object, tree: LabelTree, depth: int) -> Iterator[tuple[str, Label]]:
    if isinstance(value, str):
        yield value, tree.flat
    elif depth and isinstance(value, Mapping):
        for name, part in cast("Mapping[object, object]", value).items():
            if isinstance(name, str):
                yield name, tree.own
                yield from _iter_labelled_texts(part, tree.field(name), depth - 1)
            else:
                yield from ((text, tree.flat) for text in iter_texts((name, part), depth))
    elif depth and isinstance(value, list | tuple):
        for number, part in enumerate(cast("Sequence[object]", value)):
            yield from _iter_labelled_texts(part, tree.place(number), depth - 1)
    else:
        yield from ((text, tree.flat) for text in iter_texts(value, depth))


def _normalize_text(text: str) -> str:
    return " ".join(text.casefold().split())


def _windows(normal: str) -> Iterator[str]:
    return (normal[start : start + BLOCK] for start in range(len(normal) - BLOCK + 1))
