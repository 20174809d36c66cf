"""The table of synonyms: its rules, and whether it connects the columns of four languages."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bicameral.binding import Bound, Candidate, match_words
from bicameral.binding._words import fold, join_phrases, same_concept, split_compound, vocabulary

ROOT = Path(__file__).parents[2]
TRANSLATIONS: dict[str, dict[str, str | list[str]]] = tomllib.loads(
    Path(__file__).with_name("column_translations.toml").read_text("utf-8")
)
CONCEPTS: dict[str, dict[str, str]] = tomllib.loads((ROOT / "src/bicameral/binding/synonyms.toml").read_text("utf-8"))[
    "concepts"
]


def _columns(language: str) -> Iterator[str]:
    """The columns of the domains of the planner's corpus."""
    path = ROOT / f"training/delta/compose/data/{language}.toml"
    domains: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))["domain"]
    for domain in domains.values():
        yield domain["name"][0]
        yield from (each[0] for kind in ("measures", "flags", "cats") for each in domain.get(kind, ()))
        if "day" in domain:
            yield domain["day"][0]


def _pairs(language: str) -> Iterator[tuple[str, str]]:
    for english, foreign in TRANSLATIONS[language].items():
        if english != "without":
            yield from ((english, each) for each in ([foreign] if isinstance(foreign, str) else foreign))


def _binds(words: str, column: str) -> bool:
    return isinstance(match_words(words, [Candidate("column", column, (column,))], "column"), Bound)


@pytest.mark.parametrize("language", ["de", "fr", "es"])
def test_every_column_of_the_corpus_is_translated_or_known_to_have_no_counterpart(language: str) -> None:
    known = {foreign for _, foreign in _pairs(language)} | set(TRANSLATIONS[language]["without"])
    assert set(_columns(language)) <= known
    assert {english for english, _ in _pairs(language)} <= set(_columns("en"))


@pytest.mark.parametrize("language", ["de", "fr", "es"])
def test_a_column_is_found_by_its_name_in_another_language(language: str) -> None:
    pairs = list(_pairs(language))
    assert [pair for pair in pairs if not _binds(pair[1], pair[0])] == []
    assert [pair for pair in pairs if not _binds(pair[0], pair[1])] == []


def test_the_words_of_the_table_are_folded_and_none_of_them_is_an_empty_word() -> None:
    table = vocabulary()
    words = {word for by in CONCEPTS.values() for text in by.values() for word in text.split()}
    parts = {part for word in words for part in word.split("-")}
    assert {part for part in parts if fold(part) != part} == set()
    # A mention loses empty words, so nothing could be found by them. "mes" is Spanish for month, and French for my.
    assert parts & table.empty == {"mes"}
    assert len(CONCEPTS) >= 600


@pytest.mark.parametrize(
    ("left", "right"),
    [("mieter", "rent"), ("spenden", "donor"), ("plant", "floor"), ("branch", "industry"), ("nombre", "count")],
)
def test_words_with_one_stem_and_two_meanings_are_not_the_same(left: str, right: str) -> None:
    assert not same_concept(left, right)


def test_phrases_are_one_word_and_compounds_two() -> None:
    assert join_phrases(("date", "de", "facture")) != ("date", "de", "facture")
    assert join_phrases(("date", "of", "birth", "2026"))[1:] == ("2026",)
    assert join_phrases(("rent", "due")) == ("rent", "due")
    assert split_compound("kundennummer") == ("kunde", "nummer")
    assert split_compound("reporter") is None


def test_a_part_of_a_compound_is_not_the_compound() -> None:
    assert not _binds("customer", "Kundennummer")
    assert _binds("customer number", "Kundennummer")
