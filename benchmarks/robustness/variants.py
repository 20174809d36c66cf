"""Wordings of a request by rule: typos, another order, padding, other sentences around it, case, marks, filler words.

A rule never touches what is a value: quoted text, addresses, file names, numbers, days, names of people and columns. A
typo in a value makes another request of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from .cases import Case

SEED = 17
Kind = Literal[
    "base", "paraphrase", "typos", "order", "polite", "before", "after", "casing", "punctuation", "filler",
]  # fmt: skip

_GREETINGS = (
    "Hello, I hope you are doing well! I would be really grateful for your help with this.",
    "Good morning! Sorry to bother you, I know that you are busy, but could you please help me?",
    "Dear assistant, it would be wonderful if you could find a moment for the following.",
)
_THANKS = (
    "Thank you so very much in advance, I really appreciate it!",
    "Many thanks, you are a great help!",
    "Thanks a lot, and please take your time.",
)
_ASIDES = (
    "It has been raining here since the morning.",
    "My sister is learning to play the cello.",
    "The coffee in this place is far too strong.",
    "I slept badly because of the wind.",
    "Our neighbour has a new dog, and it barks all day.",
    "The bus was full again.",
)
_FILLERS = ("um", "you know", "well", "basically", "like", "er")

_VALUE = re.compile(
    r"\"[^\"]*\"|\{site\}\S*|\S*[@/_\d]\S*|\w+\.(?:txt|csv|md|json|html|ics)\b|"
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|half|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|today|tomorrow|"
    r"january|february|march|april|may|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z]\w+(?: [A-Z]\w+)*")
"""Capital letters within a sentence: names of people and places."""
_WORD = re.compile(r"[A-Za-z]{4,}")


@dataclass(frozen=True, slots=True)
class Wording:
    """One way to say a request."""

    key: str
    kind: Kind
    text: str


def wordings_of(case: Case, seed: int = SEED) -> list[Wording]:
    """The wordings of a request, the base first; the same for the same seed."""
    rules: Sequence[tuple[Kind, Callable[[Case, Random], str]]] = (
        ("typos", _with_typos),
        ("order", _reordered),
        ("polite", _polite),
        ("before", _with_aside_before),
        ("after", _with_aside_after),
        ("casing", _recased),
        ("punctuation", _repunctuated),
        ("filler", _with_fillers),
    )
    made = [Wording("base", "base", case.request.text)]
    made += [Wording(f"paraphrase-{n}", "paraphrase", text) for n, text in enumerate(case.paraphrases, 1)]
    # A generator for each rule: a new one leaves the wordings of the others as they are.
    made += [Wording(kind, kind, rule(case, Random(f"{seed}/{case.id}/{kind}"))) for kind, rule in rules]
    return made


def value_spans(text: str, names: Sequence[str] = ()) -> list[tuple[int, int]]:
    """Where the values of a request stand, with `names` such as columns beside what is found by its form."""
    patterns = [_VALUE, _NAME, *(re.compile(rf"\b{re.escape(name)}\b", re.IGNORECASE) for name in names)]
    return sorted(match.span() for pattern in patterns for match in pattern.finditer(text))


def _outside_values(case: Case, text: str, change: Callable[[str], str]) -> str:
    """The text with everything changed that is no value."""
    made, end = "", 0
    for start, stop in value_spans(text, case.keep):
        if start > end:
            made += change(text[end:start])
        made += text[max(start, end) : stop]
        end = max(end, stop)
    return made + change(text[end:])


def _with_typos(case: Case, draw: Random) -> str:
    text = case.request.text
    spans = value_spans(text, case.keep)
    words = [
        match
        for match in _WORD.finditer(text)
        if not any(start < match.end() and match.start() < stop for start, stop in spans)
    ]
    for match in sorted(draw.sample(words, min(2, len(words))), key=lambda each: each.start(), reverse=True):
        text = text[: match.start()] + _mistyped(match.group(), draw) + text[match.end() :]
    return text


def _mistyped(word: str, draw: Random) -> str:
    """The word with one slip of a finger: two letters swapped, one left out or one typed twice; never the first."""
    places = [n for n in range(1, len(word) - 1) if word[n] != word[n + 1]]
    at = draw.choice(places)
    match draw.choice(("swap", "drop", "double")):
        case "swap":
            return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        case "drop":
            return word[:at] + word[at + 1 :]
        case _:
            return word[:at] + word[at] + word[at:]


def _reordered(case: Case, _: Random) -> str:
    """The last clause first."""
    *others, last = case.parts
    rest = " ".join(others)
    return f"{last[0].upper()}{last[1:]}, {rest[0].lower()}{rest[1:]}{case.end}"


def _polite(case: Case, draw: Random) -> str:
    return f"{draw.choice(_GREETINGS)} {case.request.text} {draw.choice(_THANKS)}"


def _with_aside_before(case: Case, draw: Random) -> str:
    return f"{' '.join(draw.sample(_ASIDES, 2))} {case.request.text}"


def _with_aside_after(case: Case, draw: Random) -> str:
    return f"{case.request.text} {' '.join(draw.sample(_ASIDES, 2))}"


def _recased(case: Case, draw: Random) -> str:
    return _outside_values(case, case.request.text, draw.choice((str.lower, str.upper)))


def _repunctuated(case: Case, draw: Random) -> str:
    """Without commas and without or with too many marks at the end."""
    text = _outside_values(case, case.request.text.removesuffix(case.end), lambda part: re.sub("[,;:]", "", part))
    return text + draw.choice(("", "...", case.end * 3))


def _with_fillers(case: Case, draw: Random) -> str:
    text = case.request.text
    spans = value_spans(text, case.keep)
    # Between two words that are no values, or a filler word could become a part of one.
    gaps = [
        match.start()
        for match in re.finditer(r"(?<=[a-z]) (?=[a-z])", text)
        if not any(start <= match.start() + 1 and match.start() <= stop for start, stop in spans)
    ]
    for at in sorted(draw.sample(gaps, min(2, len(gaps))), reverse=True):
        text = f"{text[:at]}, {draw.choice(_FILLERS)},{text[at:]}"
    return f"{draw.choice(('So', 'Okay so', 'Right'))}, {text[0].lower()}{text[1:]}"
