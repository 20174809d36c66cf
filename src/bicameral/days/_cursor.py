"""Access to the tokens of one text, with the languages that it may be written in.

Every reader takes a place and looks at a bounded number of tokens from there, so that the whole text is read in time
linear in its length. `steps` counts the tokens that were looked at; a test holds it against the length.
"""

from __future__ import annotations

import datetime as dt

from bicameral.days._tense import Tenses
from bicameral.days._tokens import Token, tokenize
from bicameral.days._vocabulary import (
    ARTICLE_NUMBERS,
    FUNCTION_WORDS,
    LANGUAGES,
    NUMBER_WORDS,
    UNITS,
    Language,
    Unit,
)

_END = Token("mark", "", "", -1, -1)
_MAX_DIGITS = 4
_FIRST_TENS = 20


class Cursor:
    """The tokens of a text, the day it was written and the order of day and month in its numbers."""

    def __init__(self, text: str, today: dt.date, *, day_first: bool) -> None:
        self.text = text
        self.today = today
        self.day_first = day_first
        self.tokens = tokenize(text)
        self.tenses = Tenses(self.tokens)
        self.steps = 0
        counts = dict.fromkeys(LANGUAGES, 0)
        for token in self.tokens:
            for language, words in FUNCTION_WORDS.items():
                counts[language] += token.word in words
        best = max(counts.values())
        self._languages = frozenset(language for language, count in counts.items() if count == best)
        self.told = best > 0
        """Whether the text has words that tell its language."""

    def __len__(self) -> int:
        return len(self.tokens)

    def token(self, at: int) -> Token:
        self.steps += 1
        return self.tokens[at] if 0 <= at < len(self.tokens) else _END

    def word(self, at: int) -> str:
        """The folded word, the digits or the mark at a place; empty outside the text and for what is not read."""
        return self.token(at).word

    def is_glued(self, at: int) -> bool:
        """Whether nothing separates a token from the one before it."""
        return 0 < at < len(self.tokens) and self.token(at).start == self.token(at - 1).end

    def is_capital(self, at: int) -> bool:
        return self.token(at).text[:1].isupper()

    def starts_sentence(self, at: int) -> bool:
        return at == 0 or self.tenses.sentence[at] != self.tenses.sentence[at - 1] or self.word(at - 1) in ".?!:¿¡"

    def speaks(self, language: Language) -> bool:
        """Whether the text may be written in this language: no other one has more of its words."""
        return language in self._languages

    def skip(self, at: int, *words: str) -> int:
        """The place after one of these words, or the same place."""
        return at + 1 if self.word(at) in words else at

    def follows(self, at: int, *words: str) -> bool:
        """Whether these words stand one after another from a place on."""
        return all(self.word(at + offset) == word for offset, word in enumerate(words))

    def digits(self, at: int, longest: int = 2) -> int | None:
        """The number written in digits at a place, if it is short and not the end of a name such as `A4`."""
        token = self.token(at)
        if token.kind != "number" or len(token.text) > min(longest, _MAX_DIGITS):
            return None
        return int(token.text)

    def number(self, at: int) -> tuple[int, int] | None:
        """A count in digits or words, and the place after it."""
        found = self.digits(at, 3)
        if found is not None:
            return found, at + 1
        word = self.word(at)
        if word in ARTICLE_NUMBERS:
            if self.word(at + 1) == "couple":
                return 2, self.skip(at + 2, "of")
            return 1, at + 1
        value = NUMBER_WORDS.get(word)
        if value is None:
            return None
        if word == "couple":
            return value, self.skip(at + 1, "of")
        if value >= _FIRST_TENS and value % 10 == 0:
            # twenty-one, vingt-cinq, vingt et un, treinta y uno
            after = self.skip(at + 1, "-", "et", "y")
            after = self.skip(after, "et")
            after = self.skip(after, "-")
            ones = NUMBER_WORDS.get(self.word(after), 10) if after > at + 1 else 10
            if ones < 10:
                return value + ones, after + 1
        return value, at + 1

    def unit(self, at: int) -> tuple[Unit, int] | None:
        """A unit of time such as `weeks`, and the place after it; a weekend may be several words."""
        if self.follows(at, "week", "-", "end"):
            return "weekend", at + 3
        if self.follows(at, "fin", "de", "semana"):
            return "weekend", at + 3
        unit = UNITS.get(self.word(at))
        # `an` is an English article and a German preposition.
        if unit is None or (self.word(at) == "an" and not self.speaks("fr")):
            return None
        return unit, at + 1
