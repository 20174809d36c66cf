"""Words, stems and ranking, held to what they were when prompts and replies were recorded with them.

A changed stem changes which tools and examples stand in a prompt, and with it every recorded reply and cached plan.
"""

from __future__ import annotations

import hashlib
import json

from bicameral.planning._matching import load_examples
from bicameral.text import Ranking, index_words, split_words, stem, text_stems

EXAMPLES = (*load_examples().always, *load_examples().bank)
REQUESTS = [example.request for example in EXAMPLES]
TEXTS = [*REQUESTS, *(example.plan for example in EXAMPLES)]


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def test_words_and_stems_are_those_of_the_recordings() -> None:
    assert digest([split_words(text) for text in TEXTS]) == "6b700fa34445d041"
    assert digest([text_stems(text) for text in TEXTS]) == "20a6816ff9e15344"
    assert digest(sorted({stem(word) for text in TEXTS for word in split_words(text)})) == "7d9f1b60a47a5fc7"
    assert digest([index_words(text) for text in TEXTS]) == "9231dd5a0f1a1233"


def test_scores_are_those_of_the_recordings_to_the_last_bit() -> None:
    ranking = Ranking(REQUESTS)
    assert digest([[float(score).hex() for score in ranking.scores(query)] for query in TEXTS]) == "7857e5ddb4b8524b"
    assert digest([ranking.best(query, 5) for query in TEXTS]) == "d23553226de4af40"
