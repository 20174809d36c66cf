"""A pattern is found by its words, in any form, and nearly right is right enough."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from bicameral.catalog import catalog
from bicameral.text import root as stem


def found(words: str, limit: int = 3) -> list[str]:
    return [hit.pattern.id for hit in catalog().search(words, limit=limit)]


@pytest.mark.parametrize(
    ("words", "id"),
    [
        ("routing", "O3"),
        ("router", "O3"),
        ("ROUTED!", "O3"),
        ("react", "R4"),
        ("reakt", "R4"),
        ("blackbord", "O11"),
        ("orchestrater", "O6"),
        ("paralel workers", "O4"),
        ("prompt injection", "V6"),
        ("tree of thoughts", "R9"),
        ("chain of thought", "R1"),
        ("cot", "R1"),
        ("retrieval augmented generation", "K1"),
        ("hitl", "V1"),
        ("few-shot", "S2"),
        ("command line", "I4"),
        ("O6", "O6"),
        ("v9", "V9"),
        ("debate", "O12"),
    ],
)
def test_the_pattern_that_is_meant_is_found(words: str, id: str) -> None:
    assert id in found(words, limit=2)


def test_every_pattern_is_found_by_its_name_and_by_its_id() -> None:
    for pattern in catalog().patterns.values():
        assert found(pattern.id, limit=1) == [pattern.id]
        assert pattern.id in found(pattern.name), pattern.name


def test_a_hit_says_which_words_fit() -> None:
    hit = catalog().search("routing unicorns", limit=1)[0]
    assert (hit.pattern.id, hit.words) == ("O3", ("routing",))


def test_the_best_comes_first_and_no_more_than_were_asked_for() -> None:
    hits = catalog().search("agents that judge each other", limit=5)
    assert len(hits) == 5
    assert [len(hit.words) * hit.score for hit in hits] == sorted(
        (len(hit.words) * hit.score for hit in hits), reverse=True
    )


@pytest.mark.parametrize("words", ["", "   ", "the of and", "qqqqqqqq", "?!", "\x00", "𝔘𝔫𝔦"])
def test_words_that_say_nothing_find_nothing(words: str) -> None:
    assert found(words) == []


@given(st.text(max_size=2_000))
def test_any_words_give_patterns_or_none(words: str) -> None:
    hits = catalog().search(words, limit=5)
    assert len(hits) <= 5
    assert len({hit.pattern.id for hit in hits}) == len(hits)


@given(st.sampled_from(["route", "routes", "routing", "routed", "router", "routers"]))
def test_forms_of_a_word_have_one_stem(word: str) -> None:
    assert stem(word) == "rout"


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=20))
def test_a_stem_is_the_beginning_of_its_word_and_never_empty(word: str) -> None:
    assert stem(word)
    assert word.startswith(stem(word))
