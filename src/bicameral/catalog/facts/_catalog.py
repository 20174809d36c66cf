"""The catalogue: patterns, mechanisms and rules by id, and a search over them.

Each file is read once, when it is first needed. The search compares stems, weighs rare words more than common ones and
a word in the name more than one in a footnote, and matches an unknown word to those with nearly the same spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import cast

from bicameral.catalog.facts._expressions import SIZES
from bicameral.catalog.facts._reader import DATA_FOLDER, DataPlace, bad_data_error, load_records
from bicameral.catalog.facts._records import (
    CATEGORIES,
    IDS,
    MOVED_IDS,
    AntiPattern,
    CacheRule,
    Category,
    Conflict,
    Knob,
    Law,
    Mechanism,
    PatternFacts,
    Requirement,
)
from bicameral.errors import CatalogError, Place, nearest_name
from bicameral.text import SHORTEST_ROOT, STOP_WORDS, rarity, root

MAX_QUERY = 400
_WORD = re.compile(r"[a-z0-9]+")
_STOP_WORDS = STOP_WORDS | frozenset("but many much one too use used want".split())
# Hits with less than a tenth of the best score are dropped.
_MIN_RELATIVE_SCORE = 0.1
_ABBREVIATIONS = {
    "a2a": "agent to agent",
    "cli": "command line",
    "cot": "chain of thought",
    "got": "graph of thoughts",
    "hitl": "human in the loop",
    "hotl": "human on the loop",
    "lats": "language agent tree search",
    "llm": "language model",
    "mcp": "model context protocol",
    "pot": "program of thoughts",
    "rag": "retrieval augmented generation",
    "tot": "tree of thoughts",
}
"""The abbreviations of the field: either form finds the other."""


@dataclass(frozen=True, slots=True)
class PatternHit:
    """A search result: the pattern, its score, and the words of the query that match it."""

    pattern: PatternFacts
    score: float
    words: tuple[str, ...]


class PatternIndex:
    """The stems of all patterns with their weights."""

    def __init__(self, patterns: Iterable[PatternFacts]) -> None:
        self._weights: dict[str, dict[str, float]] = {}
        self._patterns = {pattern.id: pattern for pattern in patterns}
        for pattern in self._patterns.values():
            for word, weight in _word_weights(pattern).items():
                self._weights.setdefault(word, {})[pattern.id] = weight

    def search(self, words: str, *, limit: int = 10) -> list[PatternHit]:
        """The patterns that match best; none if no word matches."""
        query = _query_words(words[:MAX_QUERY])
        scores: dict[str, float] = {}
        matches: dict[str, dict[str, None]] = {}
        for query_stem, query_word in query.items():
            for word, likeness in self._similar_stems(query_stem):
                share = likeness * rarity(len(self._patterns), len(self._weights[word]))
                for id, weight in self._weights[word].items():
                    scores[id] = scores.get(id, 0.0) + share * weight
                    matches.setdefault(id, {})[query_word] = None
        for id in scores:
            if " ".join(query) in " ".join(_stemmed_words(self._patterns[id].name)):
                scores[id] *= 2
        # Two matching words say more than one that matches well.
        ranks = {id: len(matches[id]) * score for id, score in scores.items()}
        places = {id: place for place, id in enumerate(self._patterns)}
        order = sorted(ranks, key=lambda id: (-ranks[id], places[id]))
        good = [id for id in order if ranks[id] >= _MIN_RELATIVE_SCORE * ranks[order[0]]]
        return [PatternHit(self._patterns[id], round(scores[id], 3), tuple(matches[id])) for id in good[:limit]]

    def _similar_stems(self, query: str) -> Iterator[tuple[str, float]]:
        """The stems of the catalogue that a stem of the query can mean, each with its likeness."""
        if query in self._weights:
            yield query, 1.0
            return
        if query in _ABBREVIATIONS:
            return
        longer = [word for word in self._weights if len(query) >= SHORTEST_ROOT and word.startswith(query)]
        for word in longer:
            yield word, 0.6
        if not longer and len(query) > SHORTEST_ROOT:
            for word in get_close_matches(query, self._weights, n=3, cutoff=0.75):
                yield word, 0.5


def _word_weights(pattern: PatternFacts) -> dict[str, float]:
    """The stems of a pattern, each with the highest weight of the texts that contain it."""
    weights: dict[str, float] = {}
    for text, weight in _weighted_texts(pattern):
        for word in _stemmed_words(text):
            weights[word] = max(weights.get(word, 0.0), weight)
    return weights


def _weighted_texts(pattern: PatternFacts) -> Iterator[tuple[str, float]]:
    yield pattern.id, 20.0
    yield pattern.name, 8.0
    for word in _WORD.findall(pattern.name.lower()):
        yield _ABBREVIATIONS.get(word, ""), 8.0
    yield pattern.what, 4.0
    for text in pattern.when:
        yield text, 3.0
    for variant in pattern.variants:
        yield f"{variant.name} {variant.what}", 2.5
    yield pattern.how, 2.0
    yield pattern.category, 2.0
    for participant in pattern.participants:
        yield f"{participant.name} {participant.does}", 1.5
    for failure in pattern.failures:
        yield failure.what, 1.0
    for invariant in pattern.invariants:
        yield invariant.rule, 1.0
    for name, knob in pattern.knobs.items():
        yield f"{name.replace('_', ' ')} {knob.what}", 1.0


def _query_words(words: str) -> dict[str, str]:
    """The stems of a query, each with its word; abbreviations are also spelt out."""
    stems: dict[str, str] = {}
    for word in _WORD.findall(words.lower()):
        for each in _stemmed_words(f"{word} {_ABBREVIATIONS.get(word, '')}"):
            stems.setdefault(each, word)
    return stems


def _stemmed_words(text: str) -> list[str]:
    return [root(word) for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS]


@cache
def catalog() -> Catalog:
    """The catalogue that comes with the package.

    Example:
        >>> catalog().pattern("O4").name
        'Parallelization'
    """
    return Catalog(DATA_FOLDER)


class Catalog:
    """Patterns, mechanisms and rules by their ids, and a search."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Category, Mapping[str, PatternFacts]] = {}

    @cached_property
    def patterns(self) -> Mapping[str, PatternFacts]:
        """Every pattern by its id, category by category."""
        return MappingProxyType({id: pattern for name in CATEGORIES for id, pattern in self.category(name).items()})

    def category(self, name: str) -> Mapping[str, PatternFacts]:
        """The patterns of a category; `catalog.unknown-category` if there is none of this name."""
        if name not in CATEGORIES:
            raise CatalogError(
                "catalog.unknown-category",
                f"there is no category {name!r}",
                nearest=nearest_name(name, CATEGORIES),
                fix=f"There are {', '.join(CATEGORIES)}.",
            )
        known = cast("Category", name)
        if known not in self._read:
            self._read[known] = self._patterns_of(known)
        return self._read[known]

    def pattern(self, id: str) -> PatternFacts:
        """The pattern with this id; `catalog.unknown-pattern` with the nearest id if there is none."""
        wanted = id.strip().upper()
        if wanted not in IDS:
            raise self._unknown_pattern(id)
        return self.category(IDS[wanted])[wanted]

    def search(self, words: str, *, limit: int = 10) -> list[PatternHit]:
        """The patterns that match a query, best first; other forms and small misspellings of a word match, too."""
        return self._index.search(words, limit=limit)

    @cached_property
    def mechanisms(self) -> Mapping[str, Mechanism]:
        """The twelve mechanisms by their ids."""
        return load_records("mechanisms.yaml", Mechanism, self._folder)

    @cached_property
    def requirements(self) -> Mapping[str, Requirement]:
        """The requirements: which patterns need which others."""
        return load_records("requirements.yaml", Requirement, self._folder)

    @cached_property
    def conflicts(self) -> Mapping[str, Conflict]:
        """The conflicts: which patterns affect each other."""
        return load_records("conflicts.yaml", Conflict, self._folder)

    @cached_property
    def laws(self) -> Mapping[str, Law]:
        """The laws, which hold for every stack."""
        return load_records("laws.yaml", Law, self._folder)

    @cached_property
    def anti_patterns(self) -> Mapping[str, AntiPattern]:
        """The anti-patterns."""
        return load_records("anti_patterns.yaml", AntiPattern, self._folder)

    @cached_property
    def cache_rules(self) -> Mapping[str, CacheRule]:
        """The rules that keep prompts cacheable."""
        return load_records("cache_rules.yaml", CacheRule, self._folder)

    def requirements_of(self, pattern: str) -> list[Requirement]:
        """The requirements of a pattern."""
        return [each for each in self.requirements.values() if each.binds(pattern)]

    def needed_by(self, pattern: str) -> list[Requirement]:
        """The requirements that a pattern meets, alone or as one of several."""
        return [each for each in self.requirements.values() if pattern in (*each.all_of, *each.any_of)]

    def conflicts_of(self, pattern: str) -> list[Conflict]:
        """The conflicts that a pattern is part of."""
        return [each for each in self.conflicts.values() if pattern in each.patterns]

    @cached_property
    def _index(self) -> PatternIndex:
        return PatternIndex(self.patterns.values())

    def _patterns_of(self, category: Category) -> Mapping[str, PatternFacts]:
        file = f"patterns/{category}.yaml"
        found = load_records(file, PatternFacts, self._folder, _check_pattern, category=category)
        wanted = CATEGORIES[category]
        if tuple(found) != wanted:
            missing = ", ".join(id for id in wanted if id not in found)
            strange = ", ".join(id for id in found if id not in wanted)
            what = f"{missing} is missing" if missing else f"{strange} does not belong here" if strange else "the order"
            place = Place(f"data/{file}", 1)
            raise bad_data_error(f"these are not the patterns of {category}: {what}", place=place)
        return found

    def _unknown_pattern(self, id: str) -> CatalogError:
        wanted = id.strip().upper()
        # A zero is easily typed for the letter O.
        lettered = f"O{wanted[1:]}" if wanted.startswith("0") else wanted
        close = MOVED_IDS.get(wanted) or nearest_name(lettered, IDS) or self._pattern_by_name(id)
        return CatalogError(
            "catalog.unknown-pattern",
            f"there is no pattern {id[:60]!r}",
            nearest=close,
            fix="`bicameral patterns list` shows them all.",
        )

    def _pattern_by_name(self, words: str) -> str | None:
        """The pattern whose name was given instead of its id."""
        try:
            names = {pattern.name.lower(): pattern.id for pattern in self.patterns.values()}
        except CatalogError:
            return None
        close = nearest_name(words.strip().lower()[:60], names)
        return names[close] if close else None


def _check_pattern(pattern: PatternFacts, spot: DataPlace) -> None:
    """Check the references between the parts of a pattern."""
    for name, knob in pattern.knobs.items():
        _check_knob(name, knob, spot.child("knobs", name))
    for name in pattern.bounded_by:
        if name not in pattern.knobs:
            raise spot.child("bounded_by").error(
                f"there is no knob {name!r}", nearest=nearest_name(name, pattern.knobs)
            )
    known = SIZES.keys() | pattern.defaults.keys()
    for name in sorted(pattern.cost.names - known):
        raise spot.child("cost").error(
            f"there is no size and no numeric knob {name!r}", nearest=nearest_name(name, known)
        )


def _check_knob(name: str, knob: Knob, spot: DataPlace) -> None:
    if name in SIZES:
        raise spot.error(f"{name!r} is the name of a size")
    if knob.numeric and knob.least is not None and knob.default < knob.least:
        raise spot.error(f"the default {knob.default!r} is below its least")
    if knob.numeric and knob.most is not None and knob.default > knob.most:
        raise spot.error(f"the default {knob.default!r} is above its most")
    if knob.choices and knob.default not in (None, *knob.choices):
        raise spot.error(f"the default {knob.default!r} is none of its choices")
