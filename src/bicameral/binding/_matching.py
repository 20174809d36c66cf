"""Matching: which candidate the words of a mention mean, by a ladder of rules. One clear winner, or a question.

Candidates are put into bands, the surest first: the words are the whole name (letter by letter, normalised, as forms of
the same words), a part of the name, synonyms, the name together with folders, sender or day, headings or columns inside
a file, cells or the folder of a table, and last the meaning of the words by an encoder. The first band that has a
candidate decides: one binds, several are a question. People are matched in fewer bands: a stranger can choose to be
called just as the user says it. A candidate that covers only some of the words is never bound. Suspicious names
(`_screening`) are never bound by a rule; where nothing else fits, they are part of the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal

from bicameral.binding._candidates import Candidate, Kind
from bicameral.binding._screening import candidate_suspicions, digits_read_as_letters, reads_like
from bicameral.binding._words import (
    dated_words,
    is_compound_of,
    same_concept,
    same_stem,
    stems_of,
    vocabulary,
    words_of,
)

How = Literal[
    "exact",
    "normalised",
    "stem",
    "part",
    "synonym",
    "context",
    "contents",
    "cells",
    "newest",
    "kind",
    "meaning",
    "model",
    "person",
]
"""How a candidate was chosen: by a rule of the ladder, or by a chooser."""

Encoder = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Turns texts into vectors of length 1, for the last step of the ladder."""

MEANING_SCORE = 0.62
MEANING_MARGIN = 0.12
"""How near a name must be to the words, and how much nearer than the second, to be bound by its meaning alone."""
MOST_ENCODED = 400
"""With more candidates, meaning decides nothing: an encoder takes about a millisecond for each."""
MOST_SHOWN = 9
"""Candidates in a question."""


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


_HOW: dict[Band, How] = {
    Band.EXACT: "exact",
    Band.NORMALISED: "normalised",
    Band.STEM: "stem",
    Band.PART: "part",
    Band.SYNONYM: "synonym",
    Band.CONTEXT: "context",
    Band.CONTENTS: "contents",
    Band.CELLS: "cells",
}
_SCORES = {
    Band.EXACT: 1.0,
    Band.NORMALISED: 0.98,
    Band.STEM: 0.95,
    Band.PART: 0.85,
    Band.SYNONYM: 0.75,
    Band.CONTEXT: 0.7,
    Band.CONTENTS: 0.6,
    Band.CELLS: 0.5,
}


@dataclass(frozen=True, slots=True)
class Bound:
    """One clear winner."""

    candidate: Candidate
    how: How
    score: float


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several candidates fit equally well, or the only ones that fit are suspicious."""

    candidates: tuple[Candidate, ...]
    suspicious: bool = False


@dataclass(frozen=True, slots=True)
class Unbound:
    """Nothing fits. `near` has candidates that share something with the words, the first `whole` of them all words."""

    near: tuple[Candidate, ...] = ()
    whole: int = 0


Match = Bound | Ambiguous | Unbound


class _Level(IntEnum):
    EQUAL = 0
    STEM = 1
    SYNONYM = 2
    COMPOUND = 3


@dataclass(frozen=True, slots=True)
class _Query:
    """The words of a mention: those that must be found, those that may be, and whether the newest is asked for."""

    text: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    newest: bool

    @property
    def is_explicit(self) -> bool:
        """Whether the words are a file name or a path, and not words about one."""
        return "/" in self.text or PurePosixPath(self.text).suffix != ""


@lru_cache(maxsize=1024)
def _parse_mention(text: str, kind: Kind) -> _Query:
    table = vocabulary()
    words = [word for word in words_of(text) if word not in table.empty]
    newest = [word for word in words if word in table.newest]
    rest = [word for word in words if word not in table.newest]
    generic = [word for word in rest if word in table.generic]
    required = [word for word in rest if word not in table.generic]
    if not required:
        # "my notes": where nothing else is said, the generic words are what is meant; and "the last" may be a name.
        required, generic = (generic, []) if generic else (newest, [])
    return _Query(text.strip(), tuple(dict.fromkeys(required)), tuple(generic), bool(newest))


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
    if same_stem(term, word):
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
class _Fit:
    """How a candidate fits a mention."""

    candidate: Candidate
    band: Band | None
    covered: int
    optional: int = 0
    numbers: tuple[int, ...] = ()
    by_synonym: bool = False
    rarely: int = 0
    """How many of the words that are missing stand in a few cells."""


def _fit_candidate(query: _Query, candidate: Candidate) -> _Fit:
    features = _features(candidate.kind, candidate.names, candidate.context, candidate.contents)
    best: _Fit | None = None
    for words in features.names or ((),):
        fit = _fit_name(query, candidate, words, features)
        if best is None or _fit_order(fit) < _fit_order(best):
            best = fit
    fit = best or _Fit(candidate, None, 0)
    if query.text and query.text in (str(candidate.value), *candidate.names):
        fit = replace(fit, band=Band.EXACT, covered=max(fit.covered, len(query.required)))
    return fit


def _fit_order(fit: _Fit) -> tuple[int, int, int]:
    return (99 if fit.band is None else fit.band, -fit.covered, -fit.optional)


def _fit_name(query: _Query, candidate: Candidate, words: tuple[str, ...], features: _Features) -> _Fit:
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
    band = None
    if not missing and query.required:
        extras = [word for word in words if word not in used and word not in table.generic | table.empty]
        # What the folder alone says counts as little as cells do, and only once these were read.
        described = bool(candidate.contents or candidate.cells) and not outside
        band = _choose_band(kind, levels, extras, len(used), in_context, in_contents, in_cells, described)
    by_synonym = bool(levels) and max(levels) is _Level.SYNONYM
    return _Fit(candidate, band, covered, optional, numbers, by_synonym, rarely)


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


def match_words(words: str, candidates: Sequence[Candidate], kind: Kind, *, encoder: Encoder | None = None) -> Match:
    """The candidate that words mean, several that they may mean, or none.

    Args:
        words: The words of the request.
        candidates: What the world offers.
        kind: The kind of reference.
        encoder: For the last step, the meaning of the words; without it that step is left out.

    Example:
        >>> files = [Candidate("file", name, (name,)) for name in ("bills_2025.csv", "bills_2026.csv")]
        >>> match_words("the bills of 2026", files, "file").candidate.value
        'bills_2026.csv'
        >>> len(match_words("bills", files, "file").candidates)
        2
    """
    query = _parse_mention(words, kind)
    fits = [_fit_candidate(query, each) for each in candidates]
    suspicious = _suspicious_matches(query, fits)
    marked = {id(each) for each in suspicious}
    # Suspicious ones are left out before anything is decided: they neither win nor make a plain winner ambiguous.
    plain = [fit for fit in fits if id(fit.candidate) not in marked]
    decided = _decide(query, plain)
    if not isinstance(decided, Unbound):
        return decided
    if suspicious:
        return Ambiguous((*suspicious, *decided.near)[:MOST_SHOWN], suspicious=True)
    if encoder is not None and kind not in ("person", "value") and query.required:
        by_meaning = _match_meaning(query, plain, encoder)
        if by_meaning is not None:
            return by_meaning
    return decided


def _suspicious_matches(query: _Query, fits: Sequence[_Fit]) -> list[Candidate]:
    """The suspicious candidates that have all words, and those that only read as if they had."""
    found: list[Candidate] = []
    for fit in fits:
        has_all = fit.band is not None or (query.required and fit.covered == len(query.required))
        # Without the words and without their look it cannot be bound, so it need not be screened here.
        if has_all:
            suspicious = candidate_suspicions(fit.candidate) or _has_digits_for_letters(query.required, fit.candidate)
        else:
            suspicious = _only_looks_like(query.required, fit.candidate)
        if suspicious:
            found.append(fit.candidate)
    return found


def _has_digits_for_letters(terms: Sequence[str], candidate: Candidate) -> bool:
    """Whether a word that was asked for is in a name only with digits in it: `boat5` for "boats".

    By its stem such a name has the word, with a number behind it. Whoever reads it takes it for the word itself.
    """
    return any(
        term in digits_read_as_letters(name) and term not in words_of(name)
        for term in terms
        for name in candidate.names
    )


def _only_looks_like(terms: Sequence[str], candidate: Candidate) -> bool:
    """Whether a name without the words reads at a glance as if it had them: `bi11s` for "bills"."""
    letters = [term for term in terms if not term.isdecimal()]
    wanted = [reads_like(term) for term in letters]
    if not wanted:
        return False
    for name in candidate.names:
        own = words_of(name)
        if all(any(term == word or same_stem(term, word) for word in own) for term in letters):
            # It has the words; only a number is missing.
            continue
        words = words_of(reads_like(name))
        # The readings of stems, too, since "bills" is asked for and `bi11_2026` is there.
        if all(any(term == word or same_stem(term, word) for word in words) for term in wanted):
            return True
    return False


def _decide(query: _Query, fits: Sequence[_Fit]) -> Match:
    matching = [fit for fit in fits if fit.band is not None]
    if not matching:
        return _near(query, fits)
    if query.newest and (newest := _newest(matching)) is not None:
        return newest
    band = min(fit.band for fit in matching if fit.band is not None)
    best = [fit for fit in matching if fit.band == band]
    if best[0].candidate.kind == "person":
        best = _namesakes(query, matching, best)
    elif band is Band.EXACT:
        best = _exact_rivals(query, matching, best)
    if len(best) > 1 and (most := max(fit.optional for fit in best)):
        # "packing list": of `packing_list` and `packing_photos` the one with the generic word, too.
        best = [fit for fit in best if fit.optional == most]
    if len(best) == 1:
        how: How = "synonym" if band is Band.PART and best[0].by_synonym else _HOW[band]
        return Bound(best[0].candidate, how, _SCORES[band])
    return Ambiguous(tuple(fit.candidate for fit in best[:MOST_SHOWN]))


def _exact_rivals(query: _Query, matching: Sequence[_Fit], best: list[_Fit]) -> list[_Fit]:
    """The exact matches with what differs from them only in case, separators or ending.

    A file name with its ending, or a path, is what the user wrote. A bare word is a description: a file that is called
    `bills` beside `bills.csv` may have been put there to be taken for it.
    """
    by_path = [fit for fit in best if str(fit.candidate.value) == query.text]
    if query.is_explicit and len(by_path) == 1:
        return by_path
    if query.is_explicit:
        return best
    return [*best, *(fit for fit in matching if fit.band is Band.NORMALISED)]


def _namesakes(query: _Query, matching: Sequence[_Fit], best: list[_Fit]) -> list[_Fit]:
    """Everybody whose name has all words, unless these are an address.

    Whoever writes a mail or a table chooses the names in it. One who is called "Anna" there must not win over the
    user's own Anna Weber because the words are the whole of that name.
    """
    addressed = [fit for fit in matching if str(fit.candidate.value).casefold() == query.text.casefold()]
    if addressed and "@" in query.text:
        return addressed
    named = [fit for fit in matching if fit.band is not None and fit.band <= Band.PART]
    # The calendar may know somebody by name alone, which is the same person or one who cannot be written to.
    reachable = [fit for fit in named if "@" in str(fit.candidate.value)]
    return reachable or named or best


def _newest(matching: Sequence[_Fit]) -> Match | None:
    """The newest of the candidates that fit, if their times say which that is, and dates in their names agree."""
    pool = [fit for fit in matching if fit.band is not None and fit.band <= Band.CONTEXT]
    dated = [fit for fit in pool if fit.candidate.modified is not None]
    if len(pool) < 2 or len(dated) < len(pool):
        return None
    ordered = sorted(dated, key=lambda fit: _time_key(fit), reverse=True)
    first, second = ordered[0], ordered[1]
    several = Ambiguous(tuple(fit.candidate for fit in ordered[:MOST_SHOWN]))
    if _time_key(first) == _time_key(second):
        return several
    # A file may have been copied later than a newer one: numbers in the names must not say otherwise.
    if first.numbers and any(fit.numbers > first.numbers for fit in ordered[1:]):
        return several
    if not first.numbers and any(fit.numbers for fit in ordered[1:]):
        return several
    return Bound(first.candidate, "newest", _SCORES[Band.PART])


def _time_key(fit: _Fit) -> float:
    return fit.candidate.modified.timestamp() if fit.candidate.modified is not None else 0.0


def _near(query: _Query, fits: Sequence[_Fit]) -> Unbound:
    some = [fit for fit in fits if fit.covered or fit.rarely]
    ordered = sorted(some, key=lambda fit: (-fit.covered - fit.rarely, -fit.covered))[:MOST_SHOWN]
    whole = sum(fit.covered + fit.rarely == len(query.required) for fit in ordered)
    return Unbound(tuple(fit.candidate for fit in ordered), whole)


def _match_meaning(query: _Query, fits: Sequence[_Fit], encoder: Encoder) -> Match | None:
    """The candidate whose name means what the words mean, if it is near and no other is almost as near."""
    numbers = {term for term in query.required if term.isdecimal()}
    usable = [
        fit for fit in fits if numbers <= set(words_of(fit.candidate.name)) and not candidate_suspicions(fit.candidate)
    ]
    if not usable or len(fits) > MOST_ENCODED:
        return None
    texts = [" ".join(query.required), *(_meaning_text(fit.candidate) for fit in usable)]
    asked, *vectors = encoder(texts)
    scores = [sum(float(a) * float(b) for a, b in zip(asked, each, strict=True)) for each in vectors]
    ranked = sorted(zip(scores, range(len(usable)), strict=True), reverse=True)
    score, place = ranked[0]
    if score < MEANING_SCORE:
        return None
    close = [usable[at].candidate for other, at in ranked if score - other < MEANING_MARGIN]
    if len(close) > 1:
        return Ambiguous(tuple(close[:MOST_SHOWN]))
    return Bound(usable[place].candidate, "meaning", round(score, 3))


def _meaning_text(candidate: Candidate) -> str:
    name = PurePosixPath(candidate.name).stem if candidate.kind in ("file", "table") else candidate.name
    return " ".join(words_of(name))
