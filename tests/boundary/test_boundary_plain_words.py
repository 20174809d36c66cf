"""Plain words and short numbers pass; everything else in a text is something that a reader could follow."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from boundary_sentences import HELD_BACK, SECOND, SENTENCES, THIRD
from boundary_spellings import SPELLINGS
from hypothesis import assume, given, strategies as st

from bicameral.boundary.shield import actionable_parts, is_plain_text

ALL = [pytest.param(text, id=f"{kind}: {text!a}") for kind, texts in SPELLINGS.items() for text in texts]


@pytest.mark.parametrize("text", ALL)
def test_a_spelling_of_something_to_follow_is_not_plain(text: str) -> None:
    assert not is_plain_text(text)


@pytest.mark.parametrize("text", [param.values[0] for param in ALL[::7]])
def test_plain_words_around_it_do_not_hide_it(text: str) -> None:
    around = "We met on Monday at 10:30 and talked for 2 hours.\n"
    assert not is_plain_text(f"{around}{text}\n{around}")


@pytest.mark.parametrize("sentence", [*SENTENCES, *SECOND, *THIRD])
def test_an_ordinary_sentence_leads_nowhere(sentence: str) -> None:
    assert actionable_parts(sentence) == frozenset()


def test_there_are_enough_of_each() -> None:
    assert len(SPELLINGS) >= 12
    assert sum(map(len, SPELLINGS.values())) >= 60
    assert len(SENTENCES) >= 100
    assert len(HELD_BACK) >= len(SENTENCES) // 3


@given(st.lists(st.sampled_from(SENTENCES[:40]), min_size=2, max_size=4))
def test_ordinary_sentences_together_are_ordinary(sentences: list[str]) -> None:
    # Initials after an abbreviation (`5 p.m.`, `R&D`) are single letters in a row, as a link may be spelled.
    assume(not any(one.endswith(".m.") and other.startswith("R&D") for one, other in pairwise(sentences)))
    assert is_plain_text("\n\n".join(sentences))


def test_initials_after_an_abbreviation_are_letters_in_a_row() -> None:
    assert is_plain_text("It closes at 5 p.m. on most days.\n\nR&D spent less.")
    assert not is_plain_text("It closes at 5 p.m.\n\nR&D spent less.")


@given(
    st.text(min_size=7, max_size=12, alphabet="0123456789"), st.sampled_from(list(" -./()\n\t,;:_\u2013\u2011\u00a0|*"))
)
def test_seven_digits_are_not_plain_whatever_stands_between_them(digits: str, between: str) -> None:
    # Three or four at a time, as telephone numbers are written; two of four are a span of years, if they are years.
    text = between.join((digits[:3], digits[3:6], digits[6:]))
    assert not is_plain_text(f"Call {text} now") or _is_amount(text)


def _is_amount(text: str) -> bool:
    return "," in text or "." in text


@pytest.mark.parametrize(
    "piece", ["a-", "1.", "1,", "1 ", "10:30 ", "a'", "дa", "あ1", "one ", "A1 ", "a.b ", "\u0301", "...", "dot ", "1:"]
)
def test_a_text_is_looked_through_in_linear_time(piece: str) -> None:
    def seconds(size: int) -> float:
        """The best of three, of this thread alone: other threads and collections of garbage are not the text's."""
        text = piece * (size // len(piece))
        tries: list[float] = []
        for _ in range(3):
            started = time.thread_time()
            is_plain_text(text)
            tries.append(time.thread_time() - started)
        return min(tries)

    # Eight times the text: sixty-four times the time if it were quadratic.
    assert seconds(40_000) < 30 * max(seconds(5_000), 0.001)
