"""Whether the right chunk is found: questions on a small handbook, by meaning, by words, and by both."""

from __future__ import annotations

from pathlib import Path

import pytest
from retrieval_corpus import CHOOSING, HELD_OUT, PAGES, Question
from retrieval_world import MINE

from bicameral.retrieval import LEXICAL_WEIGHT, DocumentIndex, LocalEmbedder, TextDocument

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def index() -> DocumentIndex:
    made = DocumentIndex(LocalEmbedder())
    made.add(TextDocument(name, text, MINE) for name, text in PAGES.items())
    return made


def rank(index: DocumentIndex, question: Question, weight: float) -> int | None:
    """At which place the answer is, from 1; None if it is not among the first ten."""
    chunks = index.search(question.text, 10, lexical_weight=weight).chunks
    hits = (
        at for at, chunk in enumerate(chunks, 1) if chunk.document == question.page and question.words in chunk.text
    )
    return next(hits, None)


def mean_reciprocal_rank(index: DocumentIndex, questions: list[Question], weight: float) -> float:
    return sum(1 / at if (at := rank(index, question, weight)) else 0 for question in questions) / len(questions)


def found_among(index: DocumentIndex, questions: list[Question], weight: float, first: int) -> float:
    return sum((rank(index, question, weight) or 99) <= first for question in questions) / len(questions)


def test_the_questions_have_answers() -> None:
    for question in (*CHOOSING, *HELD_OUT):
        assert question.words in " ".join(PAGES[question.page].split()), question


def test_the_first_snippet_of_the_page_finds_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "retrieval.md").read_text(encoding="utf-8")
    exec(page.split("```text\n")[1].split("```")[0], {"__name__": "docs"})
    assert [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")] == [
        "We fly only where a train takes longer than eight hours.",
        "ERR-7741: the spindle is too hot.",
    ]


def test_both_together_are_better_than_either_on_questions_that_nothing_was_chosen_by(index: DocumentIndex) -> None:
    hybrid, meaning, words = (mean_reciprocal_rank(index, HELD_OUT, weight) for weight in (LEXICAL_WEIGHT, 0, 1))
    assert hybrid >= max(meaning, words)
    assert hybrid > 0.8
    assert found_among(index, HELD_OUT, LEXICAL_WEIGHT, 5) >= max(
        found_among(index, HELD_OUT, weight, 5) for weight in (0, 1)
    )


def test_the_weight_is_the_best_of_those_that_were_tried(index: DocumentIndex) -> None:
    tried = {weight: mean_reciprocal_rank(index, CHOOSING, weight) for weight in (0, 0.25, LEXICAL_WEIGHT, 0.75, 1)}
    assert tried[LEXICAL_WEIGHT] == max(tried.values())


def test_a_code_is_found_even_where_meaning_alone_is_lost(index: DocumentIndex) -> None:
    codes = [question for question in HELD_OUT if not question.text.islower() and any(map(str.isdigit, question.text))]
    assert len(codes) >= 10
    assert found_among(index, codes, LEXICAL_WEIGHT, 3) == 1 > found_among(index, codes, 0, 3)


def test_a_question_that_the_handbook_does_not_answer_scores_lower_than_those_it_does(index: DocumentIndex) -> None:
    answered = [index.search(question.text, 1).hits[0].score for question in HELD_OUT]
    strange = ["Who won the chess championship?", "What is the capital of Peru?", "How do I bake a sponge cake?"]
    unanswered = [index.search(text, 1).hits[0].score for text in strange]
    assert max(unanswered) < sum(answered) / len(answered)
