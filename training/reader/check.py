"""Nothing of the evaluation in a form: its instruction and every sentence of its text are compared with the evaluation.

The requests of the evaluation sets, and the sentences of the folders that `benchmarks/everyday` asks about, are only
compared with. `python -m training.reader.check` lists how many forms of a sample are refused, and shows none of them.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path

from benchmarks.everyday import LANGUAGES, WORLDS, content_of, lay_out
from benchmarks.planning import world_files
from bicameral.text import text_stems
from training.echo.check import NEAR, all_words, evaluation_requests

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|[\n;]+")
_FEWEST_WORDS = 4
"""Shorter lines of a folder (a heading, a greeting) are in every folder."""


def against_evaluation(instruction: str, words: str) -> Iterator[str]:
    """Why a form must not be used for training, a line each.

    Args:
        instruction: What the form asks for.
        words: The words of its text.
    """
    if _requests().has_near(instruction):
        yield "the instruction is too near to a request of the evaluation"
    sentences = split_sentences(words)
    yield from filter(None, map(_sentence_fault, sentences))
    if any(Path(each).name.lower() in _files() for each in sentences):
        yield "a file is called as one of the evaluation's world"


@lru_cache(50_000)
def _sentence_fault(sentence: str) -> str:
    """Why a sentence must not be used. Many are in hundreds of texts."""
    if _requests().has_near(sentence):
        return "a sentence is too near to a request of the evaluation"
    if len(all_words(sentence)) >= _FEWEST_WORDS and _sentences().has_near(sentence):
        return "a sentence is too near to one of the evaluation's world"
    return ""


def split_sentences(text: str) -> list[str]:
    """The sentences and lines of a text."""
    return [each.strip() for each in _SENTENCE_END.split(text) if each.strip()]


class _Nearness:
    """Sets of words, searched by the words that they have in common with a text."""

    def __init__(self, known: Iterable[frozenset[str]]) -> None:
        self._known = list(dict.fromkeys(each for each in known if each))
        self._places: dict[str, list[int]] = defaultdict(list)
        for number, words in enumerate(self._known):
            for word in words:
                self._places[word].append(number)

    def has_near(self, text: str) -> bool:
        return any(self._has_near(said) for said in (frozenset(text_stems(text)), all_words(text)) if said)

    def _has_near(self, said: frozenset[str]) -> bool:
        shared = Counter(number for word in said for number in self._places.get(word, ()))
        return any(count / (len(said) + len(self._known[number]) - count) >= NEAR for number, count in shared.items())


@cache
def _files() -> frozenset[str]:
    return frozenset(world_files())


@cache
def _requests() -> _Nearness:
    return _Nearness(evaluation_requests())


@cache
def _sentences() -> _Nearness:
    texts: list[str] = []
    for language in LANGUAGES:
        for world in WORLDS:
            content = content_of(language, world)
            texts += [raw.decode("utf-8", "replace") for raw in lay_out(content).files.values()]
            texts += [f"{each.subject}\n{each.body}" for each in content.letters]
            texts += [f"{each.title}\n{each.location}\n{each.description}" for each in content.entries]
    sentences = {each for text in texts for each in split_sentences(text) if len(all_words(each)) >= _FEWEST_WORDS}
    return _Nearness(words for each in sorted(sentences) for words in (frozenset(text_stems(each)), all_words(each)))


def main() -> None:
    from .build import make_reading
    from .forms import UnfitError

    refused: Counter[str] = Counter()
    for number in range(1000):
        try:
            make_reading(random.Random(f"check/{number}"))
        except UnfitError as error:
            refused[str(error)] += 1
    print(f"1000 forms, {sum(refused.values())} refused: {dict(refused)}")


if __name__ == "__main__":
    main()
