"""Matching: which candidate the words of a mention mean, by a ladder of rules. One clear winner, or a question.

Candidates are put into bands, the surest first: the words are the whole name (letter by letter, normalised, as forms of
the same words), a part of the name, synonyms, the name together with folders, sender or day, headings or columns inside
a file, cells or the folder of a table. The first band that has a candidate decides: one binds, several are a question.
People are matched in fewer bands: a stranger can choose to be called just as the user says it. A candidate that covers
only some of the words is never bound. Suspicious names (`_screening`) are never bound by a rule; where nothing else
fits, they are part of the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bicameral.binding._candidates import Candidate, Kind
from bicameral.binding._fits import Band, Fit, Query, fit_candidate, parse_mention
from bicameral.binding._screening import candidate_suspicions, digits_read_as_letters, reads_like
from bicameral.binding._words import same_stem, words_of

How = Literal[
    "exact",
    "normalised",
    "stem",
    "part",
    "synonym",
    "context",
    "contents",
    "cells",
    "columns",
    "newest",
    "kind",
    "measure",
    "value",
    "naming",
    "new",
    "model",
    "person",
]
"""How a candidate was chosen: by a rule of the ladder, or by a chooser; `new` where the words name what is created."""

MOST_SHOWN = 9
"""Candidates in a question."""

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


def match_words(words: str, candidates: Sequence[Candidate], kind: Kind) -> Match:
    """The candidate that words mean, several that they may mean, or none.

    Args:
        words: The words of the request.
        candidates: What the world offers.
        kind: The kind of reference.

    Example:
        >>> files = [Candidate("file", name, (name,)) for name in ("bills_2025.csv", "bills_2026.csv")]
        >>> match_words("the bills of 2026", files, "file").candidate.value
        'bills_2026.csv'
        >>> len(match_words("bills", files, "file").candidates)
        2
    """
    query = parse_mention(words)
    fits = [fit_candidate(query, each) for each in candidates]
    suspicious = _suspicious_matches(query, fits)
    marked = {id(each) for each in suspicious}
    # Suspicious ones are left out before anything is decided: they neither win nor make a plain winner ambiguous.
    plain = [fit for fit in fits if id(fit.candidate) not in marked]
    decided = _decide(query, plain)
    if not isinstance(decided, Unbound):
        return decided
    if suspicious:
        return Ambiguous((*suspicious, *decided.near)[:MOST_SHOWN], suspicious=True)
    return decided


def fitting_candidates(words: str, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """All candidates that have the words in their names and contexts, and are not suspicious, the surest first."""
    query = parse_mention(words)
    fits = [fit_candidate(query, each) for each in candidates]
    marked = {id(each) for each in _suspicious_matches(query, fits)}
    found = [(fit.band, fit.candidate) for fit in fits if fit.band is not None and id(fit.candidate) not in marked]
    return tuple(candidate for band, candidate in sorted(found, key=lambda each: each[0]) if band <= Band.CONTEXT)


def _suspicious_matches(query: Query, fits: Sequence[Fit]) -> list[Candidate]:
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


def _decide(query: Query, fits: Sequence[Fit]) -> Match:
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


def _exact_rivals(query: Query, matching: Sequence[Fit], best: list[Fit]) -> list[Fit]:
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


def _namesakes(query: Query, matching: Sequence[Fit], best: list[Fit]) -> list[Fit]:
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


def _newest(matching: Sequence[Fit]) -> Match | None:
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


def _time_key(fit: Fit) -> float:
    return fit.candidate.modified.timestamp() if fit.candidate.modified is not None else 0.0


def _near(query: Query, fits: Sequence[Fit]) -> Unbound:
    some = [fit for fit in fits if fit.covered or fit.rarely]
    ordered = sorted(some, key=lambda fit: (-fit.covered - fit.rarely, -fit.covered))[:MOST_SHOWN]
    whole = sum(fit.covered + fit.rarely == len(query.required) for fit in ordered)
    return Unbound(tuple(fit.candidate for fit in ordered), whole)
