"""What Echo's model may say: closed actions and questions, and nothing that the request does not have."""

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st
from llguidance import LLMatcher, LLTokenizer

from bicameral.models import ScriptedProvider
from bicameral.planning import Echo, GivenAnswer, Intent
from bicameral.planning._echo import ECHO_ADAPTER, echo_setup_messages
from bicameral.planning._echo_reply import (
    ECHO_SCHEMA,
    echo_task,
    invented_parts,
    is_grounded,
    parse_echo_reply,
    request_numbers,
    stands_in_order,
)
from bicameral.tools import Registry, tool

TODAY = dt.date(2026, 3, 11)
_BYTES = LLTokenizer("byte")


@tool(effect="read")
def read_lines(path: str) -> list[str]:
    "Lines of a file."
    return [path]


@tool(effect="send", words=("send", "mail", "forward"))
def send_mail(to: list[str], body: str) -> None:
    "Send a mail."


REGISTRY = Registry([read_lines, send_mail])


def reply(*steps: Mapping[str, Any], **more: Any) -> str:
    return json.dumps({"task": "", "steps": steps, "constraints": [], "output": "answer"} | more, ensure_ascii=False)


async def understood(request: str, text: str) -> Intent:
    return await Echo(ScriptedProvider([text])).intent(request, REGISTRY, TODAY)


def is_decodable(text: str) -> bool:
    schema = ECHO_SCHEMA | {"x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}}
    matcher = LLMatcher(_BYTES, LLMatcher.grammar_from_json_schema(json.dumps(schema)))
    return matcher.validate_tokens(_BYTES.tokenize_str(text)) == len(text.encode())


def test_the_schema_decodes_steps_with_parameters_and_may_end_in_a_question() -> None:
    step = {"action": "keep", "column": "prix", "above": 20, "order": "descending"}
    assert is_decodable(reply(step))
    assert is_decodable(reply({"action": "send", "what": "l’été"}, questions=[{"kind": "recipient", "words": ""}]))
    assert not is_decodable(reply({"action": "exfiltrate"}))
    assert not is_decodable(reply({"action": "send", "password": "x"}))
    assert not is_decodable(reply(step, questions=[{"kind": "password", "words": ""}]))


async def test_steps_have_parameters_in_words_of_the_request() -> None:
    text = reply({"action": "read", "file": "guests"}, {"action": "take", "count": 3}, constraints=["no kids"])
    intent = await understood("yo gimme three of the guests, no kids pls", text)
    assert intent.by == "echo"
    assert intent.steps[0].parameters == {"file": "guests"}
    assert intent.steps[1].parameters == {"count": 3}
    assert intent.constraints == ("no kids",)
    assert intent.task == "read and take"
    assert not intent.is_structured


@pytest.mark.parametrize(
    "step",
    [
        {"action": "send", "to": "mallory@example.com"},
        {"action": "send", "to": "Mallory"},
        {"action": "send", "to": "Kim Berg"},
        {"action": "read", "file": "secrets.txt"},
        {"action": "read", "file": "list"},
        {"action": "take", "count": 4},
        {"action": "keep", "above": 200},
        {"action": "search-mail", "since": "last Monday"},
        {"action": "fetch", "link": "http://evil.example"},
        {"action": "do", "what": "wire the money"},
        {"action": "keep", "column": "IBAN"},
        {"action": "keep", "is": 7},
    ],
)
async def test_what_the_request_does_not_say_makes_the_whole_reply_unused(step: dict[str, Any]) -> None:
    request = "hey kim wants the three top rows of lists.txt n the berg stuff, over 20"
    intent = await understood(request, reply({"action": "read", "file": "lists.txt"}, step))
    assert intent.by == "deterministic"
    assert [each.action for each in intent.steps] == [request]


async def test_an_invented_constraint_makes_the_reply_unused() -> None:
    intent = await understood("yo gimme the guests pls n stuff", reply({"action": "read"}, constraints=["for Bob"]))
    assert intent.by == "deterministic"


def test_a_task_in_other_words_is_written_anew() -> None:
    found = parse_echo_reply(reply({"action": "count"}, task="tell Mallory everything"))
    assert found is not None
    assert echo_task(found, "count the stuff") == "count"


@pytest.mark.parametrize(
    ("name", "value", "request_text"),
    [
        ("to", "kim", "tell Kim's mum"),
        ("what", "offre", "envoie l'offre à Anna"),
        ("file", "bills_2026.csv", "open bills_2026.csv, please"),
        ("count", 3, "las tres más caras"),
        ("count", 5, "die fünf größten"),
        ("above", 1200.5, "more than 1.200,50 €"),
        ("above", 1200, "over 1,200 dollars"),
        ("what", "invoice total", "the total of the invoices"),
        ("when", "letzte Woche", "was kam letzte Woche?"),
        ("subject", "Hello there", 'mail him "Hello there"'),
    ],
)
def test_words_and_numbers_of_the_request_are_grounded(name: str, value: Any, request_text: str) -> None:
    assert is_grounded(name, value, request_text)


@pytest.mark.parametrize(
    ("name", "value", "request_text"),
    [
        ("to", "example.com", "mail kim@example.com"),
        ("to", "im@example.com", "mail kim@example.com"),
        ("file", "bills.csv", "open old-bills.csv"),
        ("count", 20, "the 200 rows"),
        ("to", "Kim Berg", "tell Kim about the Berg hut"),
        ("what", "Invoices", "the invoicing"),
    ],
)
def test_parts_and_mixtures_are_not(name: str, value: Any, request_text: str) -> None:
    assert not is_grounded(name, value, request_text)


@pytest.mark.parametrize(
    ("request_text", "step", "kind", "words"),
    [
        ("pls fwd the blue prints thingy n stuff", {"action": "forward"}, "recipient", "blue prints"),
        ("gimme the total of that list stuff", {"action": "sum"}, "file", "that list"),
        ("whats new since back then n stuff", {"action": "find"}, "since", "back then"),
        ("show the contract stuff", {"action": "read"}, "which", "contract"),
        ("which of my bills are too high n stuff", {"action": "keep"}, "amount", "too high"),
    ],
)
async def test_closed_questions_are_asked(request_text: str, step: dict[str, Any], kind: str, words: str) -> None:
    intent = await understood(request_text, reply(step, questions=[{"kind": kind, "words": words}]))
    assert [(each.about, each.words) for each in intent.questions] == [(kind, words)]
    assert repr(words) in intent.questions[0].question


@pytest.mark.parametrize(
    "question",
    [
        {"kind": "which", "words": "your password"},
        {"kind": "recipient", "words": "stuff"},
        {"kind": "since", "words": "last week"},
        {"kind": "amount", "words": "stuff"},
        {"kind": "which", "words": "the"},
    ],
)
async def test_a_question_in_other_words_or_about_what_is_known_is_not_asked(question: dict[str, Any]) -> None:
    request = "yo send Kim the 3 things from last week n stuff"
    intent = await understood(request, reply({"action": "send", "to": "Kim"}, questions=[question]))
    assert intent.by == "echo"
    assert intent.questions == ()


@pytest.mark.parametrize("question", [{"kind": "password", "words": ""}, {"kind": "which"}, "Your PIN?"])
def test_a_question_of_no_known_kind_is_no_reply(question: object) -> None:
    assert parse_echo_reply(reply({"action": "read"}, questions=[question])) is None


async def test_an_output_adds_no_effect() -> None:
    intent = await understood("yo gimme the guests pls n stuff", reply({"action": "read"}, output="mail"))
    assert intent.by == "echo"
    assert intent.output.kind == "answer"


async def test_a_question_that_was_answered_is_not_asked_again() -> None:
    text = reply({"action": "read"}, questions=[{"kind": "which", "words": "contract"}])
    known = (GivenAnswer(about="which", question="Which?", answer="the lease"),)
    intent = await Echo(ScriptedProvider([text])).intent("show contract stuff", REGISTRY, TODAY, answers=known)
    assert intent.questions == ()


class _Trained(ScriptedProvider):
    """A scripted model that has Echo's adapter."""

    def __init__(self, script: list[str]) -> None:
        super().__init__(script)
        self.__dict__["adapters"] = {ECHO_ADAPTER: "0" * 64}


async def test_the_adapter_is_used_where_there_is_one_and_examples_where_there_is_none() -> None:
    text = reply({"action": "read", "file": "guests"})
    trained, plain = _Trained([text]), ScriptedProvider([text])
    for provider in (trained, plain):
        assert (await Echo(provider).intent("yo gimme guests stuff pls", REGISTRY, TODAY)).by == "echo"
    assert trained.requests[0].adapter == ECHO_ADAPTER
    assert [each.speaker for each in trained.requests[0].messages] == ["system", "user"]
    assert plain.requests[0].adapter is None
    assert len(plain.requests[0].messages) > 2


def test_the_examples_are_valid_and_say_nothing_that_their_requests_do_not() -> None:
    messages = echo_setup_messages(examples=True)[1:]
    for asked, answered in zip(messages[::2], messages[1::2], strict=True):
        found = parse_echo_reply(answered.text)
        assert found is not None, answered.text
        assert [*invented_parts(found, asked.text)] == []
        assert is_decodable(answered.text)


@given(st.text(max_size=80), st.text(max_size=20))
def test_grounding_never_fails_on_any_text(request_text: str, words: str) -> None:
    assert stands_in_order(words, request_text) in (True, False)
    assert isinstance(request_numbers(request_text), frozenset)
