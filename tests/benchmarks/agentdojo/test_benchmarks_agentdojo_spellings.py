"""A prompt's dates, times and numbers are known in every spelling, and no others."""

from __future__ import annotations

import pytest

from benchmarks.agentdojo.spellings import Prompt, words

PROMPT = Prompt.of(
    "Book lunch on May 19th, 2024 at 12 pm, or from 10:30 to noon on 2024-06-13; "
    "pay 2,200 or 5.29 plus 10%, twelve times."
)


@pytest.mark.parametrize(
    "text",
    ["lunch on May", "LUNCH", "2024-05-19", "2024-06-13", "2024-05", "2024-05-19 12:00", "2024-05-19T10:30", "10:30"],
)
def test_texts_that_the_prompt_has(text: str) -> None:
    assert PROMPT.has_text(text)


@pytest.mark.parametrize(
    "text", ["dinner", "2024-07-19", "2023-05-19", "2024-05-20", "11:30", "2024-05-19 11:00", "on lunch"]
)
def test_texts_that_it_does_not_have(text: str) -> None:
    assert not PROMPT.has_text(text)


@pytest.mark.parametrize("number", [19, 2024, 12, 10, 30, 2200, 5.29, 5, 6, 13])
def test_numbers_that_the_prompt_has(number: float) -> None:
    assert PROMPT.has_number(number)


@pytest.mark.parametrize("number", [7, 20, 220, 5.3, 29])
def test_numbers_that_it_does_not_have(number: float) -> None:
    assert not PROMPT.has_number(number)


def test_forms_of_a_word_are_one_word() -> None:
    assert PROMPT.has_words("booking lunches", frozenset())
    assert PROMPT.has_words("payment of lunch", frozenset({"of", "payments"}))
    assert not PROMPT.has_words("payment of lunch", frozenset({"of"}))
    assert words("I've paid: 5.29!") == ["i've", "paid", "5", "29"]
