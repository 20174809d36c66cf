"""Text: words, ranking and names of dates, for every room that reads requests, documents or replies.

A text comes in; out come its words and stems, whether it contains a phrase or a whole value, and how well texts fit a
query. Nothing here depends on plans, tools or models. `lazy_pattern` is for the many patterns of requests, of
which a process needs those of one language, or none.

`split_words` and `stem` serve requests and names, in English; `index_words` serves the search in documents of any
language, and `stems_of` compares their words in four languages at once; `root` is stronger than `stem`, for a search
that must find `router` by `routing`.

A plan may send to `kim@example.com` if the request says so, and not because it says `wakim@example.community`: a match
must have the same boundaries in the request. Both the proof of a plan (whole values) and the planner's check against
invented objects use this. No model is asked.
"""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, cast

_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*|\d+")
# The stem of `saved` is `save`: a short verb without the final e would have doubled its consonant (`logged`).
_SILENT_E = re.compile(r"[^aeiou][aeiou][^aeiouwxy]")

STOP_WORDS = frozenset(
    "a an the and or of to in on at for from by with into out as is are was were be been it its this that "
    "these those my me i we you your our their them they he she his her please can could would should will "
    "just all any some each every than then so if else when which who what where how do does did have has "
    "had not no there here up about".split()
)


class _LazyPattern:
    """Compiles itself when a method of it is first used, and keeps the compiled methods as its own."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self._given_flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        # Only for what is not there yet. Threads that do this at once do the same twice.
        compiled = re.compile(self.pattern, self._given_flags)
        for method in ("match", "fullmatch", "search", "finditer", "findall", "split", "sub", "subn", "flags"):
            self.__dict__[method] = getattr(compiled, method)
        return getattr(compiled, name)


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression that is compiled when it is first used, and not when its module is imported.

    Example:
        >>> lazy_pattern(r"\\d+").findall("1 or 22")
        ['1', '22']
    """
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


def split_words(text: str) -> list[str]:
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
            return base + "y" if ending in ("ied", "ies") else _drop_doubled_letter(base)
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _drop_doubled_letter(base: str) -> str:
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "ls":
        return base[:-1]
    return base[:-1] if base.endswith("e") and len(base) > 4 else base


_ROOT_ENDINGS = "ations ation ators ator ating ated ates ions ings ies ing ers ion ed er es ly al s e y".split()
SHORTEST_ROOT = 3


def root(word: str) -> str:
    """The beginning of a word that its forms share: routing, routers and routed are all `rout`."""
    for ending in _ROOT_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_ROOT:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > SHORTEST_ROOT and word[-1] == word[-2] else word


def has_any_phrase(text: str, entries: Iterable[str]) -> bool:
    """Whether a text contains one of these words in any form, or one of these phrases word for word."""
    words = split_words(text)
    stems = {stem(word) for word in words}
    joined = f" {' '.join(words)} "
    return any(f" {entry} " in joined if " " in entry else stem(entry) in stems for entry in entries)


def text_stems(text: str) -> list[str]:
    """The stems of the words of a text, without stop words."""
    return [stem(word) for word in split_words(text) if word not in STOP_WORDS]


_BEFORE = r"(?<![\w@.+%~\\-])"
_AFTER = r"(?![\w@+%~\\=&#-])(?![.:?]\w)"
_NOT_IN_PATH = (r"(?<!/)", r"(?!/\w)")
"""Boundaries of a whole value besides those above: a slash would make it part of a path or URL."""


def mentions(request: str, text: str) -> bool:
    """Whether the request contains this text as a whole, ignoring case.

    Example:
        >>> mentions("Mail it to kim@example.com.", "kim@example.com")
        True
        >>> mentions("Mail it to wakim@example.com.", "kim@example.com")
        False
    """
    # A folder may be written with or without its last slash.
    wanted = text.strip().casefold().rstrip("/")
    if not wanted:
        return False
    before, after = _NOT_IN_PATH
    return re.search(f"{before}{_BEFORE}{re.escape(wanted)}{_AFTER}{after}", request.casefold()) is not None


def mentions_path(request: str, path: str) -> bool:
    """Whether the request contains this path as a whole, or each part of it.

    "menu.txt into backup" mentions `backup/menu.txt`. A path that leads elsewhere (`/etc`, `~`, `..`) must be contained
    as it is.
    """
    if mentions(request, path):
        return True
    parts = path.strip().removeprefix("./").split("/")
    # The parts alone would not tell a safe path from one that leaves the folder.
    if any(not part or part == ".." or part.startswith("~") or "\\" in part for part in parts):
        return False
    folded = request.casefold()
    return all(re.search(f"{_BEFORE}{re.escape(part.casefold())}{_AFTER}", folded) is not None for part in parts)


_MAX_WORD = 64
_UNSPACED_SCRIPTS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
)
_ACCENTS = re.compile("[\u0300-\u036f]+")
_RUNS = re.compile(f"[{_UNSPACED_SCRIPTS}]+|[^{_UNSPACED_SCRIPTS}]+")
_MARKS_END = 0x20000


_ASCII_PATTERNS = re.compile("[a-z0-9]++"), re.compile("[a-z0-9]++(?:[-_.'/:@+][a-z0-9]++)*+")
"""The patterns of `_word_patterns` for a text of small ASCII letters."""


def index_words(text: str) -> list[str]:
    """The words of a text of any script in order, for an index: without case, width and accents.

    A word is a run of letters, digits and their combining marks. Joined words (`ERR-7741`, `v1.2.3`, `don't`) count as
    one word and as their parts. Scripts without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are
    split into pairs of characters.

    Example:
        >>> index_words("Café ERR-7741")
        ['cafe', 'err', '7741', 'err-7741']
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    plain = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", folded)))
    return list(_iterate_words(plain))


def _iterate_words(text: str) -> Iterator[str]:
    # Without its accents a text in Latin letters is ASCII, and needs no class of a thousand combining marks.
    part, joined = _ASCII_PATTERNS if text.isascii() else _word_patterns()
    for match in joined.finditer(text):
        whole = match[0]
        parts = part.findall(whole)
        for piece in parts:
            yield from _word_pieces(piece)
        if len(parts) > 1 and len(whole) <= _MAX_WORD:
            yield whole.replace("’", "'")


def _word_pieces(part: str) -> Iterator[str]:
    for run in _RUNS.findall(part):
        if len(run) == 1 or not re.match(f"[{_UNSPACED_SCRIPTS}]", run):
            yield run[:_MAX_WORD]
        else:
            yield from (first + second for first, second in pairwise(run))


@cache
def _word_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A word, and joined words. `re` has classes for letters and digits, but not for combining marks."""
    part = f"(?:[^\\W_]|[{_combining_marks()}])++"
    return re.compile(part), re.compile(f"{part}(?:[-_.'’/:@+]{part})*+")


def _combining_marks() -> str:
    """The combining marks as ranges of a character class."""
    last = min(_MARKS_END, sys.maxunicode)
    marks = [point for point in range(0x0300, last) if unicodedata.category(chr(point)) in ("Mn", "Mc")]
    ranges: list[list[int]] = []
    for point in marks:
        if ranges and point == ranges[-1][1] + 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"{chr(first)}-{chr(end)}" for first, end in ranges)


# -- light stems in four languages
#
# Light stemmers: plural, gender and case only, after the minimal stemmers of J. Savoy (UniNE) and Harman's S-stemmer.
# Stronger ones join words that are different names ("billing" and "bill", "planner" and "plan").


def _english_stem(word: str) -> str:
    if word.endswith("ies") and len(word) > 4 and not word.endswith(("eies", "aies")):
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("us", "ss", "is")):
        return word[:-1]
    return word


def _german_stem(word: str) -> str:
    for ending in ("innen", "nen", "ern", "en", "er", "es", "em", "in", "n", "e", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def _french_stem(word: str) -> str:
    if word.endswith("eaux"):
        return word[:-1]
    if word.endswith("aux") and len(word) > 4:
        return f"{word[:-3]}al"
    if word.endswith(("x", "s")):
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _spanish_stem(word: str) -> str:
    if word.endswith("ces") and len(word) > 4:
        return f"{word[:-3]}z"
    if word.endswith("es") and len(word) > 4 and word[-3] not in "aeiou":
        word = word[:-2]
    elif word.endswith("s") and len(word) > 3:
        word = word[:-1]
    return word[:-1] if word.endswith(("a", "o", "e")) and len(word) > 4 else word


LIGHT_STEMMERS: Mapping[str, Callable[[str], str]] = {
    "en": _english_stem,
    "de": _german_stem,
    "fr": _french_stem,
    "es": _spanish_stem,
}
"""By language; each takes a word without case and accents."""


_SHORTEST_STEM = 3


@lru_cache(maxsize=65_536)
def stems_of(word: str) -> frozenset[tuple[str, str]]:
    """The stem of a folded word in each language; a number, or a word that is too short to have endings, has none."""
    if len(word) <= _SHORTEST_STEM or not word.isalpha():
        return frozenset()
    stems = ((language, stemmer(word)) for language, stemmer in LIGHT_STEMMERS.items())
    return frozenset((language, stem) for language, stem in stems if len(stem) >= _SHORTEST_STEM)


def same_stem(left: str, right: str) -> bool:
    """Whether two folded words are forms of one word in some language.

    Example:
        >>> same_stem("rechnungen", "rechnung"), same_stem("bill", "billing")
        (True, False)
    """
    return left == right or not stems_of(left).isdisjoint(stems_of(right))


SHORTEST_PART = 4
"""Letters of a word that is looked for inside others: shorter ones are inside everything."""
_UMLAUTS = (("ae", "a"), ("oe", "o"), ("ue", "u"))


def spellings_of(word: str) -> list[str]:
    """A folded word, and without the `e` that stands for an umlaut; accents are gone already."""
    plain = word
    for written, letter in _UMLAUTS:
        plain = plain.replace(written, letter)
    return [word] if plain == word else [word, plain]


def has_form_of(words: frozenset[str], word: str) -> bool:
    """Whether folded words have this one, in another form or spelling, inside a compound, or as a part of it.

    Example:
        >>> has_form_of(frozenset({"die", "stromrechnungen"}), "rechnung"), has_form_of(frozenset({"code"}), "garage")
        (True, False)
    """
    wanted = spellings_of(word)
    if any(each in words for each in wanted):
        return True
    stems = frozenset(stem for each in wanted for stem in stems_of(each))
    parts = [each for each in wanted if len(each) >= SHORTEST_PART and each.isalpha()]
    for other in words:
        if any(each in wanted or not stems.isdisjoint(stems_of(each)) for each in spellings_of(other)):
            return True
        if not other.isalpha() or len(other) < SHORTEST_PART:
            continue
        if any(part in other or part.startswith(other) or part.endswith(other) for part in parts):
            return True
    return False


FUNCTION_WORDS = STOP_WORDS | frozenset(
    "der die das den dem des ein eine einen einem einer eines und oder von vom zu zum zur im am an auf fur aus bei mit "
    "uber als ist sind war waren wird werden hat haben hatte kann konnen ich du er sie es wir ihr mein meine meinen "
    "meinem meiner meines unser unsere unseren dein deine sein seine ihre dies diese dieser dieses diesen mir mich uns "
    "was wer wo wann wie welche welcher welches wieviel warum nicht kein keine bitte alle so nach "
    "le la les un une des du de d l qu au aux et ou dans sur pour par avec est sont etait a ai as ont ce cet cette ces "
    "mon ma mes notre nos votre vos son sa ses leur leurs je tu il elle nous vous ils elles me te se que qui quoi ou "
    "quand comment combien quel quelle quels quelles ne pas plus y en "
    "el los las una unos unas del al y o con por para es son era mi mis tu tus su sus nuestro nuestra este esta estos "
    "estas ese esa yo nosotros lo le se que quien donde cuando como cuanto cuanta cuantos cual cuales no hay".split()
)
"""Words of a question that say nothing of what is asked for, without accents: English, German, French, Spanish."""


def is_english(text: str) -> bool | None:
    """Whether the small words of a text are English rather than German, French or Spanish; None if that is not clear.

    Example:
        >>> is_english("the code of the garage"), is_english("der Code der Garage"), is_english("Garage 4711")
        (True, False, None)
    """
    words = index_words(text)
    english = sum(word in STOP_WORDS for word in words)
    others = sum(word in FUNCTION_WORDS and word not in STOP_WORDS for word in words)
    return None if english == others else english > others


# -- ranking: BM25, in which rare words count more and long texts less

K1 = 1.2
"""How soon further occurrences of a word stop counting."""
B = 0.75
"""How much the length of a text counts."""


def rarity(total: int, having: int) -> float:
    """The weight of a word that `having` of `total` texts contain (inverse document frequency)."""
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


class Ranking:
    """Texts ranked against a query by the stems that they share with it.

    Example:
        >>> Ranking(["Read a mail.", "Delete a file."]).best("delete the mails", 1)
        [0]
    """

    def __init__(self, documents: Sequence[str]) -> None:
        self._counts = [Counter(text_stems(document)) for document in documents]
        self._lengths = [max(1, sum(counts.values())) for counts in self._counts]
        self._mean = sum(self._lengths) / max(1, len(self._lengths))
        seen = Counter(word for counts in self._counts for word in counts)
        self._weight = {word: rarity(len(documents), having) for word, having in seen.items()}

    def scores(self, query: str) -> list[float]:
        """The score of each text; 0 if it shares no word with the query."""
        # In the order of the query and not of a set: the sum of floats depends on it in its last bits.
        asked = dict.fromkeys(text_stems(query))
        return [self._score(asked, counts, length) for counts, length in zip(self._counts, self._lengths, strict=True)]

    def _score(self, asked: dict[str, None], counts: Counter[str], length: int) -> float:
        norm = K1 * (1 - B + B * length / self._mean)
        return sum((self._weight[w] * counts[w] * (K1 + 1) / (counts[w] + norm) for w in asked if w in counts), 0.0)

    def best(self, query: str, count: int) -> list[int]:
        """The places of the best texts; texts that share no word with the query are not among them."""
        scores = self.scores(query)
        ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        return [i for i in ranked[:count] if scores[i] > 0]


# -- names of months and weekdays
#
# `MONTH_NUMBERS` and `WEEKDAY_NUMBERS` have every language of the table, to recognise what a text names. Code that
# turns a text into a date uses the English names only: it refuses what it does not read, and does not guess.

# One line per month, English first; a language is added by adding its names and abbreviations.
_MONTHS = (
    "january januar janvier enero gennaio janeiro januari stycznia января jan ene gen",
    "february februar février fevrier febrero febbraio fevereiro februari lutego февраля feb fév fev",
    "march märz maerz mars marzo março marco maart marca марта mar mär",
    "april avril abril aprile kwietnia апреля apr avr abr",
    "may mai mayo maggio maio mei maja мая mag",
    "june juni juin junio giugno junho czerwca июня jun giu",
    "july juli juillet julio luglio julho lipca июля jul juil lug",
    "august août aout agosto augustus sierpnia августа aug ago",
    "september septembre septiembre settembre setembro września сентября sep sept set",
    "october oktober octobre octubre ottobre outubro października октября oct okt ott out",
    "november novembre noviembre novembro listopada ноября nov",
    "december dezember décembre decembre diciembre dicembre dezembro grudnia декабря dec dez déc dic",
)
_WEEKDAYS = (
    "monday montag lundi lunes lunedì segunda maandag понедельник mon",
    "tuesday dienstag mardi martes martedì terça dinsdag вторник tue tues",
    "wednesday mittwoch mercredi miércoles mercoledì quarta woensdag среда среду wed",
    "thursday donnerstag jeudi jueves giovedì quinta donderdag четверг thu thurs",
    "friday freitag vendredi viernes venerdì sexta vrijdag пятница пятницу fri",
    "saturday samstag sonnabend samedi sábado sabato zaterdag суббота субботу sat",
    "sunday sonntag dimanche domingo domenica zondag воскресенье sun",
)

MONTH_NUMBERS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
"""Months by name or abbreviation in small letters, in every language of the table; January is 1."""
WEEKDAY_NUMBERS = {name: number for number, names in enumerate(_WEEKDAYS) for name in names.split()}
"""Weekdays in the same way; Monday is 0."""

ENGLISH_MONTHS = tuple(names.split()[0] for names in _MONTHS)
ENGLISH_MONTH_NUMBERS = {
    **{name: number for number, name in enumerate(ENGLISH_MONTHS, 1)},
    **{name[:3]: number for number, name in enumerate(ENGLISH_MONTHS, 1)},
    "sept": 9,
}
"""English months and their abbreviations, in small letters."""
