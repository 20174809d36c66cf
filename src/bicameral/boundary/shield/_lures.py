"""What a reader of a text could follow: links, addresses, accounts, numbers to call.

A text that a stranger wrote may go out in somebody's name; what makes that dangerous is where it leads. So this screen
would rather see a lure too many: a word with a dot in it counts as a host unless it plainly is the name of a file, and
seven digits in a row count as a number unless they are a date. Every pattern takes time linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import cast

from ._characters import CONTROL, TURNING, UNSEEN
from ._screen import screen

MARKED = "what the shield marks"
"""Stands for a text in which the shield sees more than words."""

_FILES = frozenset(
    "avi bak bmp cfg conf csv db doc docx eml epub flac gif gz heic html htm ics ini jpeg jpg js json jsonl key log "
    "mbox mp3 mp4 odp ods odt pages pdf png ppt pptx rtf svg tar tex toml tsv txt vcf wav webp xls "
    "xlsx xml yaml yml".split()
)
"""Endings of files that are no top-level domains."""

_DATES = re.compile(
    r"\b(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})(?:t\d{2})?\b|\b\d{1,2}:\d{2}\b"
)
_DOTS = re.compile(r"[\u3002\uff0e\uff61]|\[\.\]|\(\.\)|\{\.\}")
_EDGES = ".,;:!?()[]{}<>'\"`*_|\N{HORIZONTAL ELLIPSIS}"
_LONGEST = 200
"""A longer word is no word that anybody reads."""

_SCHEME = re.compile(
    r"^[a-z][a-z0-9+.-]{1,20}:/|^(?:mailto|tel|sms|data|javascript|bitcoin|ethereum|callto|facetime|geo|magnet|skype|tg):"
)
_HOST = re.compile(r"(?:^|[^\w.-])(?:www\d?\.|(?:[\w-]+\.)+[^\W\d_]{2,}(?:$|[^\w.]))")
_NUMBERED = re.compile(r"(?:^|\D)\d{1,3}(?:\.\d{1,3}){3}(?:\D|$)")
_ACCOUNT = re.compile(r"^[a-z]{2}\d{2}[a-z0-9]{8,}$|^(?=[a-z0-9]*\d)[a-z0-9]{24,}$")
_ACROSS = (
    re.compile(r"\+?\(?\d(?:[ \t./()-]{0,2}\d){6,}"),
    re.compile(r"\b[a-z]{2}\d{2}(?: [a-z0-9]{4}){2,7}"),
    re.compile(r"\b[\w-]{1,63}\s{1,3}[(\[{]?(?:dot|punkt|point)[)\]}]?\s{1,3}[a-z]{2,10}\b"),
)
"""What may stand in several words: numbers in groups, and a host that is spelled out."""


def lures_in(value: object) -> frozenset[str]:
    """Everything in the texts of a value that could be followed, written the way it is compared.

    Example:
        >>> sorted(lures_in("Pay at WWW.Example.com/now, or write to eve@example.org."))
        ['eve@example.org', 'www.example.com/now']
    """
    return frozenset(lure for text in _texts(value) for lure in _of(text))


def _of(text: str) -> Iterator[str]:
    if screen(text).alert:
        yield MARKED
    plain = unicodedata.normalize("NFKC", text).casefold()
    for unseen in (UNSEEN, TURNING, CONTROL):
        plain = unseen.sub("", plain)
    plain = _DOTS.sub(".", _DATES.sub(" ", plain))
    for pattern in _ACROSS:
        yield from (found[0].strip(_EDGES) for found in pattern.finditer(plain))
    for word in plain.split():
        bare = word.strip(_EDGES)
        if bare and (len(word) > _LONGEST or _leads(word, bare)):
            yield bare[:_LONGEST]


def _leads(word: str, bare: str) -> bool:
    if "@" in bare or "](" in word or ("<" in word and word.find("<") < len(word) - 1 and word[0] == "<"):
        return True
    if _SCHEME.search(bare) or _NUMBERED.search(bare) or _ACCOUNT.search(bare):
        return True
    return _HOST.search(bare) is not None and not _is_file(bare)


def _is_file(lure: str) -> bool:
    """Whether a word with a dot is plainly the name of a file: no host has such an ending."""
    name, _, ending = lure.rpartition(".")
    return ending in _FILES and not any(sign in lure for sign in "@:/") and not name.startswith("www.")


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
