"""How well a candidate fits the words of a mention: the band of the surest rule by which it has all of them.

The words of a mention are compared with the name of a candidate, with its context, and with what is inside it. A
candidate that has only some of the words is in no band.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from pathlib import PurePosixPath

from bicameral.binding._candidates import Candidate, Kind
from bicameral.binding._words import (
    are_translations,
    dated_words,
    is_compound_of,
    join_phrases,
    same_concept,
    same_stem,
    split_compound,
    stems_of,
    vocabulary,
    words_of,
)


class Band(IntEnum):
    """How sure a match is; a lower band decides before a higher one."""

    EXACT = 0
    NORMALISED = 1
    STEM = 2
    PART = 3
    SYNONYM = 4
    CONTEXT = 5
    CONTENTS = 6
    CELLS = 7


class _Level(IntEnum):
    EQUAL = 0
    STEM = 1
    SYNONYM = 2
    COMPOUND = 3


@dataclass(frozen=True, slots=True)
class Query:
    """The words of a mention: those that must be found, those that may be, and whether the newest is asked for."""

    text: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    newest: bool
    readings: tuple[Query, ...] = ()
    """The same mention with phrases as one word, and with compounds as two."""

    @property
    def is_explicit(self) -> bool:
        """Whether the words are a file name or a path, and not words about one."""
        return "/" in self.text or PurePosixPath(self.text).suffix != ""


@lru_cache(maxsize=1024)
def parse_mention(text: str) -> Query:
    words = words_of(text)
    query = _make_query(text, words)
    return replace(query, readings=tuple(_make_query(text, each) for each in _readings(words)))


def _readings(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The words with phrases of the table as one word, and with compounds as two; nothing where that is the same."""
    split = tuple(part for word in words for part in split_compound(word) or (word,))
    return tuple(each for each in dict.fromkeys((join_phrases(words), split)) if each != words)


def _make_query(text: str, all_words: Sequence[str]) -> Query:
    table = vocabulary()
    words = [word for word in all_words if word not in table.empty]
    newest = [word for word in words if word in table.newest]
    rest = [word for word in words if word not in table.newest]
    generic = [word for word in rest if word in table.generic]
    required = [word for word in rest if word not in table.generic]
    if not required:
        # "my notes": where nothing else is said, the generic words are what is meant; and "the last" may be a name.
        required, generic = (generic, []) if generic else (newest, [])
    return Query(text.strip(), tuple(dict.fromkeys(required)), tuple(generic), bool(newest))


@dataclass(frozen=True, slots=True)
class _Features:
    """The words of a candidate."""

    names: tuple[tuple[str, ...], ...]
    ending: str
    """The ending of a file name, which may be asked for and need not be."""
    context: tuple[str, ...]
    contents: tuple[str, ...]
    folders: tuple[str, ...]
    """The words of the two folders next to a file. Those above them are of the machine and not of the file."""
    readings: tuple[tuple[str, ...], ...]
    """The words of the names with phrases as one word, and with compounds as two."""


@lru_cache(maxsize=65_536)
def _features(kind: Kind, names: tuple[str, ...], context: tuple[str, ...], contents: tuple[str, ...]) -> _Features:
    ending = ""
    named: list[tuple[str, ...]] = []
    for name in names:
        if kind in ("file", "table"):
            path = PurePosixPath(name)
            name, ending = path.stem, path.suffix.lstrip(".").casefold()
        words = words_of(name)
        named.append(words)
        if months := dated_words(words):
            # The month in words instead of its number, as another name of the same thing.
            named.append((*(each for each in words if len(each) > 2 or not each.isdecimal()), *months))
    return _Features(
        tuple(named),
        ending,
        tuple(word for text in context for word in words_of(text)),
        tuple(word for text in contents for word in words_of(text)),
        tuple(word for text in context[-2:] for word in words_of(text)),
        () if kind == "person" else tuple(reading for words in named for reading in _readings(words)),
    )


def _level(term: str, word: str, kind: Kind) -> _Level | None:
    """How a word of the mention fits a word of a name."""
    if term == word:
        return _Level.EQUAL
    if term.isdecimal() or word.isdecimal():
        return None
    if kind == "person":
        # A name has no plural and no synonym: Bill is no invoice, and Johann is not Johannes. It has a genitive.
        return _Level.STEM if term == f"{word}s" else None
    if same_stem(term, word) and not are_translations(term, word):
        return _Level.STEM
    if same_concept(term, word):
        return _Level.SYNONYM
    return _Level.COMPOUND if is_compound_of(word, term) else None


def _best_level(term: str, words: Iterable[str], kind: Kind) -> tuple[_Level, str] | None:
    best: tuple[_Level, str] | None = None
    for word in words:
        level = _level(term, word, kind)
        if level is not None and (best is None or level < best[0]):
            best = (level, word)
    return best


@lru_cache(maxsize=512)
def _cell_stems(words: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    return frozenset(stem for word in words for stem in stems_of(word))


def _in_cells(term: str, words: tuple[str, ...]) -> bool:
    """Whether a word, or a form of it, is among the words of cells."""
    if term.isdecimal() or not words:
        return False
    return term in words or not stems_of(term).isdisjoint(_cell_stems(words))


@dataclass(frozen=True, slots=True)
class Fit:
    """How a candidate fits a mention."""

    candidate: Candidate
    band: Band | None
    covered: int
    optional: int = 0
    numbers: tuple[int, ...] = ()
    by_synonym: bool = False
    rarely: int = 0
    """How many of the words that are missing stand in a few cells."""
    whole: bool = False
    """Whether every word of the name was asked for."""


def fit_candidate(query: Query, candidate: Candidate) -> Fit:
    features = _features(candidate.kind, candidate.names, candidate.context, candidate.contents)
    best: Fit | None = None
    for words in features.names or ((),):
        fit = _fit_name(query, candidate, words, features)
        if best is None or _fit_order(fit) < _fit_order(best):
            best = fit
    fit = best or Fit(candidate, None, 0)
    if fit.band is None or fit.band > Band.STEM:
        fit = min((fit, *_fit_readings(query, candidate, features)), key=_fit_order)
    if query.text and query.text in (str(candidate.value), *candidate.names):
        fit = replace(fit, band=Band.EXACT, covered=max(fit.covered, len(query.required)))
    return fit


def _fit_readings(query: Query, candidate: Candidate, features: _Features) -> Iterator[Fit]:
    """How a name fits where phrases are one word and compounds two: "Rechnungsdatum" is the `invoice date`.

    Only the whole name counts: a part of a compound need not be what it means.
    """
    if candidate.kind == "person":
        return
    for asked in (query, *query.readings):
        for words in (*features.names, *features.readings) if asked is not query else features.readings:
            fit = _fit_name(asked, candidate, words, features)
            if fit.band is not None and fit.band <= Band.SYNONYM and fit.whole:
                yield replace(fit, covered=len(query.required))


def _fit_order(fit: Fit) -> tuple[int, int, int]:
    return (99 if fit.band is None else fit.band, -fit.covered, -fit.optional)


def _fit_name(query: Query, candidate: Candidate, words: tuple[str, ...], features: _Features) -> Fit:
    kind, table = candidate.kind, vocabulary()
    levels: list[_Level] = []
    used: set[str] = set()
    in_context = in_contents = in_cells = rarely = missing = 0
    outside = False
    for term in query.required:
        if (found := _best_level(term, words, kind)) is not None:
            levels.append(found[0])
            used.add(found[1])
        elif features.ending and term == features.ending:
            levels.append(_Level.EQUAL)
        elif (found := _best_level(term, features.context, kind)) is not None and found[0] <= _Level.SYNONYM:
            in_context += 1
            outside = outside or found[1] not in features.folders
        elif (found := _best_level(term, features.contents, kind)) is not None and found[0] <= _Level.STEM:
            in_contents += 1
        elif _in_cells(term, candidate.cells):
            in_cells += 1
        else:
            missing += 1
            rarely += _in_cells(term, candidate.rare_cells)
    optional = 0
    for term in query.optional:
        found = _best_level(term, words, kind)
        if found is not None:
            used.add(found[1])
        optional += found is not None or term == features.ending
    numbers = tuple(int(word) for word in words if word.isdecimal() and len(word) < 9)
    covered = len(query.required) - missing
    band, whole = None, False
    if missing and missing == rarely and used and kind == "table":
        # "trips to Berlin": where the table is named by the other words, a single cell is enough.
        band = Band.CELLS
    if not missing and query.required:
        extras = [word for word in words if word not in used and word not in table.generic | table.empty]
        whole = bool(used) and not extras
        # What the folder alone says counts as little as cells do, and only once these were read.
        described = bool(candidate.contents or candidate.cells) and not outside
        band = _choose_band(kind, levels, extras, len(used), in_context, in_contents, in_cells, described)
    by_synonym = bool(levels) and max(levels) is _Level.SYNONYM
    return Fit(candidate, band, covered, optional, numbers, by_synonym, rarely, whole)


_LONG_NAMED: frozenset[Kind] = frozenset({"person", "mail", "event"})
"""Kinds whose names are longer than what people call them: a surname, a subject."""


def _choose_band(
    kind: Kind,
    levels: Sequence[_Level],
    extras: Sequence[str],
    used: int,
    in_context: int,
    in_contents: int,
    in_cells: int,
    described: bool,
) -> Band | None:
    if in_cells:
        return Band.CELLS
    if in_contents:
        return Band.CONTENTS
    if in_context and not used and kind == "table":
        # The only table in the folder "allotment" may be meant by that word: a list, and not the letters beside it.
        return Band.CELLS if described else None
    if in_context:
        # A folder alone is not the file in it. The sender of a mail and the day of an event may be all that is said.
        return Band.CONTEXT if used or kind in ("mail", "event") else None
    if not used:
        # Only the ending is named ("the pdf").
        return Band.CONTEXT
    worst = max(levels)
    words = [word for word in extras if not word.isdecimal()]
    if not extras:
        return (Band.NORMALISED, Band.STEM, Band.PART, Band.SYNONYM)[worst]
    if kind not in _LONG_NAMED and len(words) > used:
        # "car" is a small part of `car_park_rota_march`: too little to bind, enough to be shown.
        return None
    return Band.PART if worst <= _Level.STEM else Band.SYNONYM


def terms_outside_names(words: str, candidate: Candidate) -> tuple[str, ...]:
    """The words of a mention that neither the name of a candidate nor its context nor its contents have.

    Numbers are left out: no table is known by a number in its cells.

    Example:
        >>> terms_outside_names("trips to Berlin", Candidate("table", "trips.csv", ("trips.csv",)))
        ('berlin',)
    """
    features = _features(candidate.kind, candidate.names, candidate.context, candidate.contents)
    named = tuple(word for name in features.names for word in name)

    def is_named(term: str) -> bool:
        if _best_level(term, named, candidate.kind) is not None or term == features.ending:
            return True
        context = _best_level(term, features.context, candidate.kind)
        contents = _best_level(term, features.contents, candidate.kind)
        return (context is not None and context[0] <= _Level.SYNONYM) or (
            contents is not None and contents[0] <= _Level.STEM
        )

    return tuple(term for term in parse_mention(words).required if not term.isdecimal() and not is_named(term))


def fit_text(terms: Sequence[str], text: str) -> TextFit | None:
    """How a text has all of these words: as it is or in other words, and whether it has nothing else."""
    words = words_of(text)
    found = [_best_level(term, words, "value") for term in terms]
    if not found or any(each is None or each[0] > _Level.SYNONYM for each in found):
        return None
    used = {each[1] for each in found if each is not None}
    extras = [word for word in words if word not in used and word not in vocabulary().generic | vocabulary().empty]
    return TextFit(any(each is not None and each[0] is _Level.SYNONYM for each in found), not extras)


def is_same_word(term: str, text: str) -> bool:
    """Whether a text has a word, a form of it, a synonym or a translation."""
    return fit_text([term], text) is not None


def said_terms(words: str, request: str) -> list[str]:
    """The words of a mention that a request says, in some form or as a synonym. Empty words do not count."""
    said = request.split()
    return [term for term in parse_mention(words).required if any(is_same_word(term, each) for each in said)]


@dataclass(frozen=True, slots=True)
class TextFit:
    """How a text has the words of a mention."""

    by_synonym: bool
    whole: bool
