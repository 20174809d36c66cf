"""Words of a request: split, folded to a stem, and looked up. No model is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*|\d+")
# `saved` comes from `save`: a short verb that ends in one consonant would have doubled it (`logged`).
_SILENT_E = re.compile(r"[^aeiou][aeiou][^aeiouwxy]")

STOP = frozenset(
    [
        "a",
        "an",
        "the",
        "and",
        "or",
        "of",
        "to",
        "in",
        "on",
        "at",
        "for",
        "from",
        "by",
        "with",
        "into",
        "out",
        "as",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "my",
        "me",
        "i",
        "we",
        "you",
        "your",
        "our",
        "their",
        "them",
        "they",
        "he",
        "she",
        "his",
        "her",
        "please",
        "can",
        "could",
        "would",
        "should",
        "will",
        "just",
        "all",
        "any",
        "some",
        "each",
        "every",
        "than",
        "then",
        "so",
        "if",
        "else",
        "when",
        "which",
        "who",
        "what",
        "where",
        "how",
        "do",
        "does",
        "did",
        "have",
        "has",
        "had",
        "not",
        "no",
        "there",
        "here",
        "up",
        "about",
    ]
)


def words(text: str) -> list[str]:
    """The words of a text in lower case, in order."""
    return [word.lower() for word in _WORD.findall(text)]


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A rough stem, enough to match `invoices` with `invoice` and `sending` with `send`."""
    for ending in ("ically", "ings", "ing", "ied", "ies", "ed", "es", "s", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            base = word[: -len(ending)]
            if ending in ("ings", "ing", "ed") and _SILENT_E.fullmatch(base):
                return f"{base}e"
            return base + "y" if ending in ("ied", "ies") else _undouble(base)
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _undouble(base: str) -> str:
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "ls":
        return base[:-1]
    return base[:-1] if base.endswith("e") and len(base) > 4 else base


def says(text: str, entries: Iterable[str]) -> bool:
    """Whether a text says one of these words, in any form, or one of these phrases, word for word."""
    said = words(text)
    folded = {stem(word) for word in said}
    spoken = f" {' '.join(said)} "
    return any(f" {entry} " in spoken if " " in entry else stem(entry) in folded for entry in entries)


def is_stop_word(word: str) -> bool:
    """Whether a word in lower case carries no meaning of its own."""
    return word in STOP


def stems(text: str) -> list[str]:
    """The stems of a text's words that carry meaning."""
    return [stem(word) for word in words(text) if word not in STOP]
