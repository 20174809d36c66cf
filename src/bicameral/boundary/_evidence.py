"""Whether a value stands in the text that it was read from, in any usual spelling.

A model that copies cannot make things up: an address, an account or an amount that it gives must be there. The text is
a stranger's, so this finds mistakes and narrows what a model under a stranger's control can say; it makes nothing
trusted.

The stranger also decides how long a search takes. So the text is gone through once for each kind of value, whatever
the values are, and what is looked at after that is counted. A text that grows too much when its letters are normalised,
or a search that takes too many looks, is `exhausted`: a value that was not found then is rejected for that reason.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from bicameral.display import INVISIBLE, JOINERS

from ._evidence_dates import Moments
from ._evidence_numbers import currencies_in, numbers_in

_ESCAPED = re.compile(r"\\[nrt]")
_BLANKS = re.compile(r"\s+")
_UNSEEN = re.compile(f"[{INVISIBLE}{JOINERS}\u200e\u200f]")
_ADDRESS = re.compile(r"(?<![\w.%+-])"), re.compile(r"(?![\w@-]|\.\w)")
_URL = (
    re.compile(r"(?<=://)|(?<![\w.@/%=?&#:-])"),
    re.compile(r"/?(?![\w/?#&=%@~+*-])(?![.:!?'()]{1,3}[\w/?#&=%@~+*-])"),
)
_ONE_WORD = re.compile(r"(?<!\w)"), re.compile(r"(?!\w)")
"""What must come before and after a value."""
_BETWEEN = re.compile(r"[\s().\-/\u2010-\u2015]{0,3}")
_CHARACTERS = re.compile(r"[^\W_]+")

MAX_TEXT = 200_000
"""Normalised: one character of a stranger's can become eighteen."""
MAX_LOOKS = 500_000


class Evidence:
    """A text, as a witness of the values that were read from it.

    Example:
        >>> Evidence("Please pay 1.299,50 € by 15 April.").number(1299.5)
        True
    """

    def __init__(self, text: str) -> None:
        spellings = [text]
        if "\\" in text:
            spellings.append(_ESCAPED.sub(" ", text).replace("\\/", "/"))
        if "&" in text and ";" in text:
            spellings.append(html.unescape(text))
        text = unicodedata.normalize("NFKC", "\n".join(spellings))
        self._looks = MAX_LOOKS if len(text) <= MAX_TEXT else 0
        self.text = _UNSEEN.sub("", text) if self._looks else ""

    @property
    def exhausted(self) -> bool:
        """Whether looking for a value took, or would take, more than it may; it is then not known to be there."""
        return self._looks <= 0

    @cached_property
    def _folded(self) -> str:
        return self.text.casefold()

    @cached_property
    def _without_trunk_zero(self) -> str:
        return f"{self._folded}\n{self._folded.replace('(0)', '')}" if "(0)" in self._folded else self._folded

    @cached_property
    def _words(self) -> str:
        return _BLANKS.sub(" ", self._folded)

    @cached_property
    def _numbers(self) -> frozenset[Decimal]:
        return numbers_in(self._folded)

    @cached_property
    def moments(self) -> Moments:
        """The dates and times that it names."""
        return Moments(self._folded)

    def words(self, value: str) -> bool:
        """Whether it says this, word for word."""
        return _BLANKS.sub(" ", unicodedata.normalize("NFKC", value).casefold()).strip() in self._words

    def token(self, value: str) -> bool:
        """Whether this stands in it as a word of its own, letter for letter."""
        return self._stands(value, self.text, *_ONE_WORD)

    def email(self, value: str) -> bool:
        """The same address, not as a part of a longer one."""
        return self._stands(value.casefold(), self._folded, *_ADDRESS)

    def url(self, value: str) -> bool:
        """The same address, with or without `https://` and a slash at its end."""
        bare = re.sub(r"^https?://", "", value.casefold()).rstrip("/")
        return self._stands(bare, self._folded, *_URL)

    def _stands(self, value: str, text: str, before: re.Pattern[str], after: re.Pattern[str]) -> bool:
        """Whether a value is in a text at a place where what is around it fits."""
        at = text.find(value)
        while at >= 0 and not self.exhausted:
            self._looks -= 1
            if before.match(text, at) and after.match(text, at + len(value)):
                return True
            at = text.find(value, at + 1)
        return False

    def grouped(self, value: str) -> bool:
        """Letters and digits in this order, however they are grouped."""
        wanted = "".join(filter(str.isalnum, value.casefold()))
        if not wanted or wanted not in self._groups.text:
            return False
        groups = self._groups
        for start in groups.starts:
            self._looks -= 1
            if self.exhausted:
                return False
            if groups.text.startswith(wanted, start) and start + len(wanted) in groups.ends:
                return True
        return False

    @cached_property
    def _groups(self) -> _Groups:
        return _Groups.of(self._without_trunk_zero)

    def phone(self, value: str) -> bool:
        """The same digits; `+` and `00` before a country are the same, and so is the zero in `+49 (0) 30`."""
        bare = re.sub(r"^(?:\+|00)", "", value)
        return self.grouped(bare) or self.grouped(f"00{bare}")

    def number(self, value: float) -> bool:
        """The same number, whatever its sign and its separators."""
        return abs(Decimal(repr(value))) in self._numbers

    def money(self, amount: float, currency: str) -> bool:
        """The number, and the currency by its code, sign or name."""
        return self.number(amount) and currency in self.currencies

    @cached_property
    def currencies(self) -> frozenset[str]:
        """The currencies that it names."""
        return currencies_in(self.text)


@dataclass(frozen=True, slots=True)
class _Groups:
    """The letters and digits of a text without what may stand between groups of them; a break is an empty line.

    `starts` are where a word begins, `ends` where one ends: what is written in groups begins and ends with a word.
    """

    text: str
    starts: tuple[int, ...]
    ends: frozenset[int]

    @classmethod
    def of(cls, text: str) -> _Groups:
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        length, before = 0, 0
        for word in _CHARACTERS.finditer(text):
            begin, end = word.span()
            if not _BETWEEN.fullmatch(text, before, begin):
                parts.append("\n")
                length += 1
            if begin == 0 or not _is_word(text[begin - 1]):
                starts.append(length)
            parts.append(word[0])
            length += end - begin
            if end == len(text) or not _is_word(text[end]):
                ends.append(length)
            before = end
        return cls("".join(parts), tuple(starts), frozenset(ends))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
