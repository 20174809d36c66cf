"""Exact search: which words a text has, and what they count."""

from __future__ import annotations

import math
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bicameral.retrieval._search import BagOfWords, Lexicon, Postings, word_overlap
from bicameral.text import index_words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Café ERR-7741", ["cafe", "err", "7741", "err-7741"]),
        ("don’t DON'T", ["don", "t", "don't", "don", "t", "don't"]),
        ("v1.2.3, lexical_weight", ["v1", "2", "3", "v1.2.3", "lexical", "weight", "lexical_weight"]),
        ("Straße ﬁne Ｗide İ", ["strasse", "fine", "wide", "i"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("東京都 abc漢字x", ["東京", "京都", "abc", "漢字", "x"]),
        ("한국어 검색", ["한국어", "검색"]),
        ("สวัสดี", ["สว", "วั", "ัส", "สด", "ดี"]),
        ("a@b.example", ["a", "b", "example", "a@b.example"]),
        ("... — 🦙 !?", []),
        ("", []),
    ],
)
def test_a_text_has_these_words(text: str, found: list[str]) -> None:
    assert index_words(text) == found


@given(st.text(max_size=200))
def test_words_do_not_depend_on_case_or_form(text: str) -> None:
    import unicodedata

    assert index_words(text) == index_words(unicodedata.normalize("NFD", text))
    assert all(word and not any(character.isspace() for character in word) for word in index_words(text))


@pytest.mark.parametrize("text", ["a" * 300_000, "a-" * 150_000, "-" * 300_000, "東" * 100_000, "a." * 100_000 + "!"])
def test_no_text_takes_more_time_than_its_length(text: str) -> None:
    started = time.perf_counter()
    index_words(text)
    assert time.perf_counter() - started < 5


# -- BM25, against the formula word by word

corpora = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=12), min_size=1, max_size=8)


def by_the_book(corpus: list[list[str]], query: set[str]) -> list[float]:
    """The formula, spelt out: the scores as shares of the best possible one."""
    size, mean = len(corpus), sum(map(len, corpus)) / len(corpus) or 1.0
    rarity: dict[str, float] = {}
    for word in query:
        have = sum(word in text for text in corpus)
        rarity[word] = math.log(1 + (size - have + 0.5) / (have + 0.5))
    found: list[float] = []
    for text in corpus:
        counts, total = Counter(text), 0.0
        for word in query:
            n = counts[word]
            total += rarity[word] * n * 2.2 / (n + 1.2 * (1 - 0.75 + 0.75 * len(text) / mean)) if n else 0.0
        found.append(total / (2.2 * sum(rarity.values())) if query else 0.0)
    return found


@given(corpus=corpora, query=st.sets(st.sampled_from("abcdefgxyz")))
def test_scores_are_those_of_the_formula(corpus: list[list[str]], query: set[str]) -> None:
    lexicon = Lexicon()
    bags = [lexicon.bag(" ".join(text)) for text in corpus]
    scores = Postings(bags, len(lexicon)).scores(lexicon.query_terms(" ".join(query)))
    assert np.allclose(scores, by_the_book(corpus, query), atol=1e-5)


@given(corpus=corpora, query=st.sets(st.sampled_from("abcdefgxyz"), min_size=1))
def test_scores_are_shares(corpus: list[list[str]], query: set[str]) -> None:
    lexicon = Lexicon()
    bags = [lexicon.bag(" ".join(text)) for text in corpus]
    scores = Postings(bags, len(lexicon)).scores(lexicon.query_terms(" ".join(query)))
    for score, text in zip(scores, corpus, strict=True):
        assert 0 <= score < 1
        assert (score > 0) == bool(query & set(text))


def test_an_empty_index_has_no_scores() -> None:
    assert Postings([], 0).scores(Lexicon().query_terms("anything")).size == 0


@given(left=st.sets(st.integers(0, 9)), right=st.sets(st.integers(0, 9)))
def test_what_two_bags_share_is_what_their_sets_share(left: set[int], right: set[int]) -> None:
    first, second = (_bag(numbers) for numbers in (left, right))
    expected = len(left & right) / len(left | right) if left | right else 1.0
    assert word_overlap(first, second) == expected


def _bag(numbers: set[int]) -> BagOfWords:
    terms = np.array(sorted(numbers), dtype=np.int32)
    return BagOfWords(terms, np.ones_like(terms))
