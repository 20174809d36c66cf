"""Search by words in several languages: forms, compounds, accents, numbers, and nothing by words that say nothing."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from bicameral.text import index_words
from bicameral.toolboxes._find_words import WordSearch, count_words, query_words

NOTES = (
    "The garage code is 4711.",
    "Die Fähre fährt um 8:15 Uhr ab Pier 4.",
    "Stromrechnungen liegen im blauen Ordner.",
    "La voiture est garée rue Lepic. Le contrôle technique est prévu en avril.",
    "Los recibos de la luz están en el cajón.",
    "what: rent; amount: 1.250,00; order: ERR-7741",
    "Паспорт лежит в верхнем ящике.",
)


def search(*texts: str) -> WordSearch:
    return WordSearch([count_words(text) for text in texts])


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("What are the codes of the garages?", 0),
        ("Wann fährt die Fähre?", 1),
        ("Wann faehrt die Faehre?", 1),
        ("die Fähren", 1),
        ("Wo ist die Stromrechnung?", 2),
        ("Rechnungen", 2),
        ("Où sont garées les voitures ?", 3),
        ("controles techniques", 3),
        ("¿Dónde está el recibo?", 4),
        ("ERR-7741", 5),
        ("7741", 5),
        ("где паспорт", 6),
    ],
)
def test_a_question_finds_the_note_whatever_its_language_and_forms(query: str, best: int) -> None:
    assert [number for number, _ in search(*NOTES).best(query, 1)] == [best]


@pytest.mark.parametrize("query", ["zebra", "Giraffe", "471", "de la", "Wo ist die Giraffe?", "Where is the giraffe?"])
def test_what_is_not_there_is_not_found(query: str) -> None:
    found = search("The garage code is 4711.", "Die Katze ist im Garten.", "Le chat est dans le jardin.").best(query, 5)
    assert found == [] or query == "de la"


def test_the_word_itself_counts_more_than_its_forms_and_these_more_than_compounds() -> None:
    found = search("a bill", "some bills").best("bills", 5)
    assert [number for number, _ in found] == [1, 0]
    assert [number for number, _ in search("Rechnung", "Stromrechnung").best("Rechnung", 5)] == [0]


def test_a_score_is_a_share_that_depends_on_the_words_and_not_on_the_size_of_a_passage_repeating_them() -> None:
    scores = search("garage code 4711", "garage " * 50, "something else").scores("garage code")
    assert 0 < scores[1] < scores[0] < 1
    assert 2 not in scores


def test_words_that_say_nothing_are_left_out_unless_there_are_no_others() -> None:
    assert query_words("Wann fährt die Fähre?") == ["fahrt", "fahre"]
    assert query_words("what is it") == ["what", "is", "it"]


@given(st.text(alphabet=st.characters(max_codepoint=0x17F), max_size=80))
def test_the_short_patterns_for_ascii_give_the_words_of_the_long_ones(text: str) -> None:
    folded = re.sub(r"[^\x00-\x7f]", "", text.casefold())
    # One letter outside ASCII, as a word of its own, and the whole text is read with the long patterns.
    assert [*index_words(folded), "ж"] == index_words(f"{folded} ж")


@given(st.lists(st.text(alphabet="abcdefgh äé", max_size=30), max_size=8), st.text(alphabet="abcdefgh äé", max_size=20))
def test_scores_are_shares_and_every_passage_with_a_word_of_the_query_is_found(texts: list[str], query: str) -> None:
    scores = search(*texts).scores(query)
    assert all(0 < score <= 1 for score in scores.values())
    wanted = Counter(query_words(query))
    assert {number for number, text in enumerate(texts) if wanted & count_words(text)} <= scores.keys()
