"""Every screen over one text; each is tried only where a quick look says that it could find something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ._characters import CONTROL, character_marks, control_marks, plain_skeleton, spaced_marks, tagged_text
from ._encodings import LONG_WORD, encoded
from ._hidden import hidden_marks
from ._marks import Mark
from ._phrases import phrase_marks

_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r") + b"\x7f"
_IN_BASE64 = b"+/-_0123456789"
# Each byte as one of its kind, so that a run of a kind can be looked for like a word.
_KINDS = bytes(
    ord("a") if chr(code).isalpha() and code < 128 else 48 if code in _IN_BASE64 else 32 if code == 32 else 46
    for code in range(256)
)
_IN_BASE64_AT_ALL = bytes(ord("a") if code in b"a0" else code for code in range(256))
_LETTER_BY_LETTER, _LONG_WORD = b" ".join([b"a"] * 8), b"a" * LONG_WORD
_DISGUISED = frozenset({"invisible", "mixed-script", "styled", "direction"})


def all_marks(text: str) -> Iterator[Mark]:
    """The marks of every screen over one text."""
    plain = text.isascii()
    alphabet = "" if plain else "".join(each for each in set(text) if not each.isascii())
    marks = [] if plain else list(character_marks(text, alphabet))
    yield from marks
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw.translate(None, _CONTROLS)) < len(raw) or CONTROL.search(alphabet):
        yield from control_marks(text)
    # Of all letters, small or large, this alone becomes two; the places must stay the same.
    lowered = text.replace("İ", "i").lower()
    phrases = list(phrase_marks(lowered, ascii_only=plain))
    yield from phrases
    yield from hidden_marks(lowered)
    kinds = raw.translate(_KINDS)
    if _LETTER_BY_LETTER in kinds:
        yield from spaced_marks(text)
    for mark, said in encoded(text, long_words=_LONG_WORD in kinds.translate(_IN_BASE64_AT_ALL)):
        yield replace(mark, weight=0.9) if _speaks(said) else mark
    if any(mark.kind in _DISGUISED for mark in marks):
        yield from _disguised(text, phrases)
        if _speaks(tagged_text(text)):
            yield Mark("instruction", 0, len(text), 0.9, "an order in tag characters")


def _speaks(said: str) -> bool:
    return any(True for _ in phrase_marks(said.lower(), ascii_only=said.isascii()))


def _disguised(text: str, seen: list[Mark]) -> Iterator[Mark]:
    """Phrases that are there only for someone who sees past invisible and look-alike characters."""
    skeleton, places = plain_skeleton(text)
    known = {(mark.note, mark.start) for mark in seen}
    for mark in phrase_marks(skeleton.lower(), ascii_only=skeleton.isascii()):
        start, end = places[mark.start], places[mark.end - 1] + 1
        if (mark.note, start) not in known:
            yield Mark("instruction", start, end, 0.9, "an order in disguised letters")
