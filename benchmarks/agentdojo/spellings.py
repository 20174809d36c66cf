"""What a prompt says, whatever its spelling: its words, numbers, months, dates and times of day."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
_DAY = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?")
_CLOCK = re.compile(r"(?<!\d)(\d{1,2}):(\d{2})(?!\d)")
_HOUR = re.compile(r"\b(\d{1,2})(?::(\d{2}))?\s*([ap])\.?m\b", re.IGNORECASE)
_MONTHS = [dt.date(2000, month, 1).strftime("%B").lower() for month in range(1, 13)]
_COUNTING = "zero one two three four five six seven eight nine ten eleven twelve".split()
_ENDINGS = ("'s", "’s", "ies", "es", "s", "ing", "ed", "d", "ly", "e", "y")


def words(text: str) -> list[str]:
    """The words and numbers of a text, in small letters."""
    return [word.lower() for word in _WORD.findall(text)]


def _stem(word: str) -> str:
    """A word without its commonest endings: enough to see that two are forms of one."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt taken apart."""

    text: str
    stems: frozenset[str]
    numbers: frozenset[float]
    months: frozenset[int]
    times: frozenset[tuple[int, int]]

    @classmethod
    def of(cls, text: str) -> Prompt:
        found = words(text)
        numbers = {float(number.replace(",", "")) for number in _NUMBER.findall(text)}
        numbers |= {float(n) for n in re.findall(r"(\d+)(?:st|nd|rd|th)\b", text)}
        numbers |= {float(_COUNTING.index(word)) for word in found if word in _COUNTING}
        months = {at for at, month in enumerate(_MONTHS, 1) if month in found or (month[:3] in found and at != 5)}
        times = {(int(hour), int(minute)) for hour, minute in _CLOCK.findall(text)}
        for hour, minute, half in _HOUR.findall(text):
            times.add((int(hour) % 12 + (12 if half in "pP" else 0), int(minute or 0)))
        times |= {(12, 0)} if "noon" in found else set()
        times.add((0, 0))  # where a day begins
        for year, month, day in _DAY.findall(text):
            numbers |= {float(part) for part in (year, day) if part}
            months.add(int(month))
        return cls(_even(text), frozenset(map(_stem, found)), frozenset(numbers), frozenset(months), frozenset(times))

    def has_text(self, text: str) -> bool:
        """Whether the prompt has this text as it stands, or this date or time in some spelling."""
        return _even(text) in self.text or self._is_moment(text)

    def has_number(self, number: float) -> bool:
        """Whether the prompt has this number, also as a month or an hour."""
        hours = {float(hour) for hour, _ in self.times} | {float(minute) for _, minute in self.times}
        return float(number) in self.numbers | self.months | hours

    def has_words(self, text: str, others: AbstractSet[str]) -> bool:
        """Whether each word of a text is one of the prompt's or of the others."""
        known = self.stems | {_stem(word) for word in others}
        return all(_stem(word) in known for word in words(text))

    def _is_moment(self, text: str) -> bool:
        rest = _CLOCK.sub(self._time, _DAY.sub(self._day, text))
        return rest != text and not words(rest.replace("T", " "))

    def _day(self, match: re.Match[str]) -> str:
        year, month, day = match.groups()
        known = self.has_number(int(year)) and int(month) in self.months and (not day or self.has_number(int(day)))
        return "" if known else match.group()

    def _time(self, match: re.Match[str]) -> str:
        return "" if (int(match[1]), int(match[2])) in self.times else match.group()


def _even(text: str) -> str:
    return " ".join(text.lower().split())
