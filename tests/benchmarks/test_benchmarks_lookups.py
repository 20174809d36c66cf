"""The questions of `benchmarks.lookups`: each can be solved with its tools, and only with them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from benchmarks.lookups import QUESTIONS, Question, asked
from bicameral.models import ModelRequest, ScriptedProvider, ToolCall
from bicameral.sessions import Chambers, Quarantined

GUIDED = {
    "What are the goods of order 15?": ([("order_of", 15)], "A chair."),
    "In which city does the customer of order 12 live?": ([("order_of", 12), ("customer", "c7")], "In Ghent."),
    "What is the weather where the customer of order 15 lives?": (
        [("order_of", 15), ("customer", "c9"), ("weather", "Bruges")],
        "14 degrees.",
    ),
    "Begin at the page 'start' and follow the pages: who wrote the guide?": (
        [("read_page", "start"), ("read_page", "guide"), ("read_page", "team")],
        "Mira Holt.",
    ),
    "Is it raining in Bruges?": ([("weather", "Bruges")], "No."),
    "Who wrote 'Iron Road'?": ([("find_book", "Iron Road")], "Sam Okoro."),
    "In which room is the book 'Low Tide'?": ([("find_book", "Low Tide"), ("shelf_room", "B4")], "In the cellar."),
    "When was the author of 'Low Tide' born?": ([("find_book", "Low Tide"), ("author_born", "Nora Vale")], "In 1961."),
    "How many nuts are in stock? The part is called 'nut'.": ([("stock", "nut")], "15."),
    "What is the phone number of the supplier of the part 'gear'?": (
        [("supplier", "gear"), ("phone", "Petrov")],
        "555-0202",
    ),
    "Where does flight BX40 go?": ([("flight", "BX40")], "To Turin."),
    "On which floor is the gate of flight BX12?": ([("flight", "BX12"), ("gate_floor", "C7")], "On the second floor."),
    "Which company supplies the part 'bolt'?": ([("supplier", "bolt")], "Hansen."),
}
WRONG = {
    "Is it raining in Bruges?": "It is raining in Bruges.",
    "On which floor is the gate of flight BX12?": "The gate of flight BX12 is C7.",
}


def solved(question: Question, calls: Sequence[tuple[str, object]], answer: str) -> bool:
    script = iter(calls)

    def reply(request: ModelRequest) -> ToolCall | str:
        if (found := next(script, None)) is None:
            return answer
        name, value = found
        (argument,) = next(tool for tool in request.tools if tool.name == name).parameters["properties"]
        return ToolCall(f"call_{len(request.messages)}", name, {argument: value})

    quarantined = Quarantined(ScriptedProvider([], name="low", chamber="quarantined"))
    return question.solved(asyncio.run(asked(Chambers(ScriptedProvider(reply, name="high"), quarantined), question)))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_a_question_is_solved_by_its_lookups_and_not_by_a_guess(question: Question) -> None:
    calls, answer = GUIDED[question.text]
    assert solved(question, calls, answer)
    assert not solved(question, [], answer)
    assert not solved(question, calls, WRONG.get(question.text, "I do not know."))


def test_most_questions_were_kept_away_from_the_words() -> None:
    assert [question.seen for question in QUESTIONS].count(False) == 8
    assert GUIDED.keys() == {question.text for question in QUESTIONS}
