"""Whether a value stands in the text that it was read from, in any usual spelling.

A model that copies cannot make things up: an address, an account or an amount that it gives must be there. The text is
a stranger's, so this finds mistakes and narrows what a model under a stranger's control can say; it makes nothing
trusted.
"""

from __future__ import annotations

import html
import re
import unicodedata
from decimal import Decimal
from functools import cached_property

from bicameral.display import INVISIBLE, JOINERS

from ._evidence_dates import Moments
from ._evidence_numbers import currencies_in, numbers_in

_ESCAPED = re.compile(r"\\[nrt]")
_BLANKS = re.compile(r"\s+")
_UNSEEN = re.compile(f"[{INVISIBLE}{JOINERS}\u200e\u200f]")
_ADDRESS = r"(?<![\w.%+-]){}(?![\w@-]|\.\w)"
_URL = r"(?:(?<=://)|(?<![\w.@/%=?&#:-])){}/?(?![\w/?#&=%@~+*-])(?![.:!?'()]{{1,3}}[\w/?#&=%@~+*-])"
_ONE_WORD = r"(?<!\w){}(?!\w)"
_BETWEEN = r"[\s().\-/\u2010-\u2015]{0,3}"


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
        self.text = _UNSEEN.sub("", unicodedata.normalize("NFKC", "\n".join(spellings)))

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
        return re.search(_ONE_WORD.format(re.escape(value)), self.text) is not None

    def email(self, value: str) -> bool:
        """The same address, not as a part of a longer one."""
        return re.search(_ADDRESS.format(re.escape(value.casefold())), self._folded) is not None

    def url(self, value: str) -> bool:
        """The same address, with or without `https://` and a slash at its end."""
        bare = re.sub(r"^https?://", "", value.casefold()).rstrip("/")
        return re.search(_URL.format(re.escape(bare)), self._folded) is not None

    def grouped(self, value: str) -> bool:
        """Letters and digits in this order, however they are grouped."""
        characters = [re.escape(character) for character in value.casefold() if character.isalnum()]
        pattern = _ONE_WORD.format(_BETWEEN.join(characters))
        return bool(characters) and re.search(pattern, self._without_trunk_zero) is not None

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
