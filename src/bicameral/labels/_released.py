"""Detection of laundered text: untrusted texts that were handed out unlabelled, so that they are recognised on return.

An outcome's `value` is there to be shown to a person. A program that passes it to the next pattern as the user's own
words sheds its label, and Python cannot prevent that; but the text can be recognised. This is a second line of
defence behind the types (`Labelled`, `LiteralString`), and no proof: a text that was translated, encoded, reworded or
cut into short pieces is not recognised, nor are numbers, nor what another process handed out.

What is recognised, after case and white space are normalised:

- the very same string object, however short, if it is more than a word;
- a text that is the whole of one handed out, from `WHOLE` characters on;
- a text that shares a run of `3 * BLOCK - 1` characters with one; of fewer than `2 * BLOCK` never.

What the user or the program said before is theirs, also where a model repeats it. Shorter pieces are let through on
purpose: a person who was shown a list of files names one of them in the next request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from threading import Lock
from typing import Any, TypeVar, cast

from bicameral.labels._label import Label, join
from bicameral.labels._label_tree import LabelTree

WHOLE = 8
BLOCK = 16
_DISTINCT = 5
"""A block of fewer kinds of characters (a ruler, dots) tells nothing about where it came from."""
_MOST_TEXT = 200_000
_MOST_BLOCKS = 1 << 16
_MOST_SHORT = 1 << 10
_MOST_DEEP = 12

K = TypeVar("K")


class _RecentEntries(OrderedDict[K, Any]):
    """The entries that were added last, a bounded number of them."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def add(self, key: K, value: Any) -> None:
        self[key] = value
        if len(self) > self._most:
            self.popitem(last=False)


class _ReleasedTexts:
    """What was handed out and what was said, by all threads of this process."""

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
        alike = _normalize_text(text[:_MOST_TEXT])
        with self._lock:
            if any(alike in own for own in self._own):
                return
            if not text.isidentifier() and not text.isalnum() and text:
                # The object is kept, so that no other one gets its id. Single words are one object wherever they stand
                # in a program, and tell nothing.
                self._same.add(id(text), (text, label))
            if WHOLE <= len(alike) < 3 * BLOCK:
                self._short.add(alike, label)
            for start in range(0, len(alike) - BLOCK + 1, BLOCK):
                block = alike[start : start + BLOCK]
                if block not in self._own_windows and len(set(block)) >= _DISTINCT:
                    self._blocks.add(block, label)

    def find_label(self, text: str) -> Label | None:
        with self._lock:
            if not (self._same or self._short or self._blocks):
                return None
            if (same := self._same.get(id(text))) is not None and same[0] is text:
                return cast("Label", same[1])
            alike = _normalize_text(text)
            if alike in self._own:
                return None
            if (label := self._short.get(alike)) is not None:
                return cast("Label", label)
            # Two blocks side by side: one alone is a turn of phrase that anybody uses.
            for start, block in enumerate(_windows(alike)):
                if block in self._blocks:
                    label = self._blocks.get(alike[start + BLOCK : start + 2 * BLOCK])
                    if label is not None:
                        return cast("Label", label)
            return None

    def remember_own(self, text: str) -> None:
        alike = _normalize_text(text[:_MOST_TEXT])
        with self._lock:
            if alike in self._own:
                return
            self._own.add(alike, None)
            for window in _windows(alike):
                self._own_windows.add(window, None)


_released = _ReleasedTexts()


def remember_released(value: object, shade: LabelTree) -> None:
    """Remember the texts in a value that is handed out, as far as strangers had a hand in them."""
    if shade.flat.trusted:
        return
    for text, label in _iter_labelled_texts(value, shade, _MOST_DEEP):
        if not label.trusted:
            _released.release(text, label)


def laundered_label(value: object) -> Label | None:
    """The label of a released text that is in a value, or None."""
    label: Label | None = None
    for text in iter_texts(value):
        found = _released.find_label(text)
        if found is not None:
            label = found if label is None else join(label, found)
    return label


def note_own_words(value: object) -> None:
    """Remember what the user or the program said, so that a model that repeats it does not make it a stranger's."""
    for text in iter_texts(value):
        _released.remember_own(text)


def forget_released() -> None:
    """Forget everything, as in a fresh process. For tests."""
    with _released._lock:  # pyright: ignore[reportPrivateUsage] the other half of this file
        _released.clear()


def iter_texts(value: object, deep: int = _MOST_DEEP) -> Iterator[str]:
    """The texts in a plain value, keys of mappings among them."""
    if isinstance(value, str):
        yield value
    elif deep:
        for part in _value_parts(value):
            yield from iter_texts(part, deep - 1)


def _value_parts(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return [*entries.keys(), *entries.values()]
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name, None) for each in fields(value)]
    listed = isinstance(value, Sequence | Set) and not isinstance(value, bytes | bytearray | memoryview)
    return cast("Iterable[object]", value) if listed else ()


def _iter_labelled_texts(value: object, shade: LabelTree, deep: int) -> Iterator[tuple[str, Label]]:
    if isinstance(value, str):
        yield value, shade.flat
    elif deep and isinstance(value, Mapping):
        for name, part in cast("Mapping[object, object]", value).items():
            if isinstance(name, str):
                yield name, shade.own
                yield from _iter_labelled_texts(part, shade.field(name), deep - 1)
            else:
                yield from ((text, shade.flat) for text in iter_texts((name, part), deep))
    elif deep and isinstance(value, list | tuple):
        for number, part in enumerate(cast("Sequence[object]", value)):
            yield from _iter_labelled_texts(part, shade.place(number), deep - 1)
    else:
        yield from ((text, shade.flat) for text in iter_texts(value, deep))


def _normalize_text(text: str) -> str:
    return " ".join(text.casefold().split())


def _windows(alike: str) -> Iterator[str]:
    return (alike[start : start + BLOCK] for start in range(len(alike) - BLOCK + 1))
