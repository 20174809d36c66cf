"""`benchmarks.intent`: the requests are whole, the judge cannot be fooled, and the rules alone invent nothing."""

from __future__ import annotations

from pathlib import Path

from benchmarks.intent import judge, load_requests, reserved_skeletons, summarise
from benchmarks.intent.__main__ import open_registry, run
from benchmarks.intent._judge import invented_words, steps_match
from benchmarks.intent._requests import ExpectedStep
from bicameral.planning import Intent, IntentOutput, IntentStep, OpenQuestion
from bicameral.planning._echo_reply import ACTIONS, OUTPUTS, PARAMETERS, QUESTION_KINDS

REQUESTS = load_requests()


def step(action: str, **parameters: object) -> IntentStep:
    return IntentStep.model_validate({"action": action, **parameters})


def test_there_are_enough_requests_in_four_languages_and_a_third_leave_something_open() -> None:
    assert len(REQUESTS) >= 120
    assert {each.language for each in REQUESTS} == {"en", "de", "fr", "es"}
    assert sum(each.is_open for each in REQUESTS) >= len(REQUESTS) / 3
    assert len({each.text for each in REQUESTS}) == len(REQUESTS)
    assert len({each.id for each in REQUESTS}) == len(REQUESTS)


def test_what_is_expected_can_be_said() -> None:
    topics = {*QUESTION_KINDS, "age", "scope", "meaning", "referent", "task"}
    for request in REQUESTS:
        assert request.output in OUTPUTS, request.id
        assert request.topics <= topics, request.id
        for each in request.steps:
            assert each.action in ACTIONS, (request.id, each.action)
            assert {*each.required, *each.optional} <= {*PARAMETERS}, (request.id, each)


def test_mentions_that_are_expected_are_words_of_the_request() -> None:
    for request in REQUESTS:
        for _, words in request.mentions:
            assert all(each in request.text for each in words), (request.id, words)


def test_steps_are_a_set_without_more_and_without_less() -> None:
    send = ExpectedStep("send", {"to": ("Kim",)}, {"text": ("the bus is late",)})
    read = ExpectedStep("read", {"file": ("bus",)}, {}, may_be_missing=True)
    assert steps_match([step("send", to="Kim")], [read, send])
    assert steps_match([step("send", to="Kim", text="the bus is late"), step("read", file="the bus")], [read, send])
    assert not steps_match([step("send", to="Alex")], [read, send])
    assert not steps_match([step("send")], [read, send])
    assert not steps_match([step("send", to="Kim", file="secrets")], [read, send])
    assert not steps_match([step("send", to="Kim"), step("delete")], [read, send])
    assert not steps_match([step("read", file="bus")], [read, send])


def test_a_name_or_a_number_that_nobody_said_is_counted() -> None:
    intent = Intent(request="mail Kim the 3 totals", steps=(step("send", to="Kim"),))
    assert invented_words(intent) == []
    for bad in (step("send", to="Mallory"), step("take", count=77), step("read", file="secrets.txt")):
        assert invented_words(intent.model_copy(update={"steps": (bad,)})), bad
    assert invented_words(intent.model_copy(update={"output": IntentOutput(kind="mail", to=("m@evil.example",))}))


def test_a_question_about_something_else_does_not_count_as_asked() -> None:
    request = next(each for each in REQUESTS if each.topics == frozenset({"recipient"}))
    asked = OpenQuestion(about="since", question="Since when?")
    judged = judge(request, Intent(request=request.text, questions=(asked,)))
    assert judged.asked
    assert not judged.asked_right


async def test_the_rules_alone_invent_nothing_and_ask_nothing_needlessly(tmp_path: Path) -> None:
    figures = summarise(await run(REQUESTS, open_registry(tmp_path), None))
    assert figures["requests"] == len(REQUESTS)
    assert figures["invented"] == 0
    assert figures["asked_needlessly"] == 0
    assert figures["mentions_precision"] > 0.85


def test_only_structures_of_three_steps_or_more_are_reserved() -> None:
    assert reserved_skeletons()
    assert all(each.count(";") >= 2 for each in reserved_skeletons())
