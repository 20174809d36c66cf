"""Detection of laundered text: untrusted texts that were released without a label are recognised when they come back.

An outcome's `value` is meant to be shown to a person. A program that passes it to the next pattern as the user's own
words drops its label, and Python cannot prevent that; but the text can be recognised. This is a second line of defence
behind the types (`Labelled`, `LiteralString`), and no proof: a text that was translated, encoded, reworded or cut into
short pieces is not recognised, nor are numbers, nor texts that another process released.

Recognised, after normalising case and white space:

- the same string object, however short, if it is more than a word;
- a text that equals a whole released text, from `WHOLE` characters on;
- a text that shares `3 * BLOCK - 1` consecutive characters with a released one; never one shorter than `2 * BLOCK`.

Texts that the user or the program used before are theirs, even if a model repeats them. Shorter pieces pass on
purpose: a person who was shown a list of files names one of them in the next request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from threading import Lock
from typing import Any, TypeVar, cast

from bicameral.labels._label import Label, join_all
from bicameral.labels._label_tree import LabelTree

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
