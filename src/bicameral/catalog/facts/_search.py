"""Finding a pattern by words: by what it is called, what it is and when it helps, in any form of a word.

Words are cut to their stems, rare words weigh more than common ones, a word in the name weighs more than one in a
footnote, and a word that nobody uses counts as the ones that are spelt nearly like it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from ._facts import Pattern

MAX_QUERY = 400
_WORD = re.compile(r"[a-z0-9]+")
_COMMON = frozenset(
    "a an and are as at be been but by can do does for from has have how i if in into is it its many much my no not of "
    "on one or our so some than that the them then there they this to too use used want was what when where which who "
    "will with you your".split()
)
_ENDINGS = (
    "ations", "ation", "ators", "ator", "ating", "ated", "ates", "ions", "ings", "ies", "ing", "ers", "ion", "ed",
    "er", "es", "ly", "al", "s", "e", "y",
)  # fmt: skip
_SHORTEST_STEM = 3
# What fits ten times worse than the best is not worth a line.
_TOO_LITTLE = 0.1
_IN_FULL = {
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
"""What the field's short names stand for: either finds the other."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A pattern that was found, how well it fits, and which of the words that were asked for fit it."""

    pattern: Pattern
    score: float
    words: tuple[str, ...]


def stem(word: str) -> str:
    """A word without the endings that only change its form: routing, routers and routed are all `rout`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > _SHORTEST_STEM and word[-1] == word[-2] else word


class Index:
    """The words of all patterns, and where they stand."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._weights: dict[str, dict[str, float]] = {}
        self._patterns = {pattern.id: pattern for pattern in patterns}
        for pattern in self._patterns.values():
            for word, weight in _weighed(pattern).items():
                self._weights.setdefault(word, {})[pattern.id] = weight

    def search(self, words: str, *, limit: int = 10) -> list[Hit]:
        """The patterns that fit best; none if no word fits any."""
        asked = _asked(words[:MAX_QUERY])
        scores: dict[str, float] = {}
        found: dict[str, dict[str, None]] = {}
        for cut, said in asked.items():
            for word, likeness in self._like(cut):
                rarity = math.log(1 + len(self._patterns) / len(self._weights[word]))
                for id, weight in self._weights[word].items():
                    scores[id] = scores.get(id, 0.0) + likeness * rarity * weight
                    found.setdefault(id, {})[said] = None
        for id in scores:
            if " ".join(asked) in " ".join(_words(self._patterns[id].name)):
                scores[id] *= 2
        # Who has more of the words comes first: two words that fit say more than one that fits well.
        fits = {id: len(found[id]) * score for id, score in scores.items()}
        places = {id: place for place, id in enumerate(self._patterns)}
        order = sorted(fits, key=lambda id: (-fits[id], places[id]))
        good = [id for id in order if fits[id] >= _TOO_LITTLE * fits[order[0]]]
        return [Hit(self._patterns[id], round(scores[id], 3), tuple(found[id])) for id in good[:limit]]

    def _like(self, asked: str) -> Iterator[tuple[str, float]]:
        """The words of the catalogue that this word means, and how surely."""
        if asked in self._weights:
            yield asked, 1.0
            return
        if asked in _IN_FULL:
            return
        begun = [word for word in self._weights if len(asked) >= _SHORTEST_STEM and word.startswith(asked)]
        for word in begun:
            yield word, 0.6
        if not begun and len(asked) > _SHORTEST_STEM:
            for word in get_close_matches(asked, self._weights, n=3, cutoff=0.75):
                yield word, 0.5


def _weighed(pattern: Pattern) -> dict[str, float]:
    """Each word of a pattern with the weight of the best place where it stands."""
    found: dict[str, float] = {}
    for text, weight in _texts(pattern):
        for word in _words(text):
            found[word] = max(found.get(word, 0.0), weight)
    return found


def _texts(pattern: Pattern) -> Iterator[tuple[str, float]]:
    yield pattern.id, 20.0
    yield pattern.name, 8.0
    for word in _WORD.findall(pattern.name.lower()):
        yield _IN_FULL.get(word, ""), 8.0
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


def _asked(words: str) -> dict[str, str]:
    """The stem of each word that was asked for, with the word; short names in full beside themselves."""
    found: dict[str, str] = {}
    for said in _WORD.findall(words.lower()):
        for word in _words(f"{said} {_IN_FULL.get(said, '')}"):
            found.setdefault(word, said)
    return found


def _words(text: str) -> list[str]:
    return [stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON]
