"""Echo: what is understood, what is asked, and when no model is needed."""

import datetime as dt
import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from bicameral.errors import IntentError
from bicameral.models import LocalProvider, ScriptedProvider
from bicameral.planning import Echo, Intent, asked_effects, intent_schema, is_explicit, open_questions
from bicameral.tools import Registry, tool

TODAY = dt.date(2026, 3, 11)


@tool(effect="read")
def read_lines(path: str) -> list[str]:
    "Lines of a file."
    return [path]


@tool(effect="send", words=("send", "mail", "email"))
def send_mail(to: list[str], body: str) -> None:
    "Send a mail."


@tool(effect="write", words=("write", "save"))
def write_text(path: str, text: str) -> None:
    "Write text to a file."


REGISTRY = Registry([read_lines, send_mail, write_text])
STEPS = [{"action": "read", "file": "notes"}, {"action": "count", "of": "lines"}]
UNDERSTOOD = json.dumps({"task": "count lines", "steps": STEPS, "constraints": [], "output": "answer"})


async def test_an_explicit_request_never_reaches_the_model() -> None:
    provider = ScriptedProvider([], name="scripted")
    intent = await Echo(provider).intent("Count the lines of notes.txt", REGISTRY, TODAY)
    assert intent.by == "fast-path"
    assert intent.steps[0].action == "Count the lines of notes.txt"


async def test_deterministic_skips_the_model_whatever_is_said() -> None:
    provider = ScriptedProvider([], name="scripted")
    intent = await Echo(provider).intent("yo gimme the lines pls", REGISTRY, TODAY, deterministic=True)
    assert intent.by == "deterministic"


async def test_a_sloppy_request_is_understood_once_and_then_remembered() -> None:
    provider = ScriptedProvider([UNDERSTOOD], name="scripted")
    echo = Echo(provider, cache={})
    first = await echo.intent("yo how many lines r in notes pls", REGISTRY, TODAY)
    again = await echo.intent("yo how many lines r in notes pls", REGISTRY, TODAY)
    assert first.by == "echo"
    assert [step.action for step in first.steps] == ["read", "count"]
    assert first.to_json() == again.to_json()


@pytest.mark.parametrize("request_text", ["", "   ", "\n", "!!! ???", "x" * 5000, "count\x00lines"])
async def test_an_absurd_request_is_refused_with_a_code(request_text: str) -> None:
    with pytest.raises(IntentError) as caught:
        await Echo(ScriptedProvider([], name="scripted")).intent(request_text, REGISTRY, TODAY)
    assert caught.value.code.startswith("intent.")


@pytest.mark.parametrize("vague", ["send it to them", "do it", "fix that", "the usual"])
async def test_a_pointer_at_nothing_is_asked_about(vague: str) -> None:
    intent = await Echo(ScriptedProvider([], name="scripted")).intent(vague, REGISTRY, TODAY)
    assert intent.questions


@pytest.mark.parametrize(
    "clear", ["Sort names.txt and save it as sorted.txt", "Read notes.txt and mail it to a@example.com"]
)
def test_a_pointer_at_something_named_is_not_asked_about(clear: str) -> None:
    assert open_questions(clear) == ()


async def test_effects_are_read_from_the_words_that_tools_declare() -> None:
    echo = Echo(ScriptedProvider([], name="scripted"))
    intent = await echo.intent("Save the lines of a.txt in b.txt and mail them to x@example.com", REGISTRY, TODAY)
    assert intent.effects == ("write", "send")
    assert intent.required == ("write", "send")
    quiet = await echo.intent("Which lines of a.txt mention mail?", REGISTRY, TODAY)
    assert quiet.required == ()


@given(st.text(max_size=200))
def test_rules_never_fail_on_any_text(text: str) -> None:
    assert isinstance(open_questions(text), tuple)
    assert is_explicit(text, REGISTRY) in (True, False)


def test_the_published_schema_is_in_step() -> None:
    published = json.loads((Path(__file__).parents[2] / "schemas" / "intent.v2.json").read_text())
    assert published == intent_schema()


@given(st.text(min_size=1, max_size=40), st.lists(st.text(max_size=20), max_size=3))
def test_an_intent_survives_json(request_text: str, constraints: list[str]) -> None:
    intent = Intent(request=request_text, constraints=tuple(constraints))
    assert Intent.model_validate_json(intent.to_json()) == intent


@pytest.mark.model
async def test_a_real_model_restates_a_sloppy_request(small_model: LocalProvider) -> None:
    intent = await Echo(small_model).intent("hey pls sort guests n drop doubles thx", REGISTRY, TODAY)
    assert intent.by == "echo"
    said = " ".join(step.text for step in intent.steps).lower()
    assert "guests" in said


@pytest.mark.parametrize(
    ("request_text", "sends"),
    [
        ("show me what kim mailed me", False),
        ("list the subjects of my unread mails", False),
        ("what is in the mail from the bank", False),
        ("tell me who sent mails today", False),
        ("mail the list to kim@example.com", True),
        ("find the report and email it to kim@example.com", True),
        ("send kim@example.com the total", True),
    ],
)
def test_a_mail_that_is_spoken_of_is_not_a_mail_to_send(request_text: str, sends: bool) -> None:
    assert ("send" in asked_effects(request_text, REGISTRY)) == sends


@pytest.mark.parametrize(
    ("request_text", "receives"),
    [
        ("how many lines came from kim@example.com", False),
        ("count what was written by kim@example.com", False),
        ("show the birthday of kim@example.com", False),
        ("the total for kim@example.com", True),
        ("kim@example.com should get the total", True),
        ("what came from ann@example.com, for kim@example.com", True),
    ],
)
def test_an_address_is_a_recipient_unless_something_comes_from_it(request_text: str, receives: bool) -> None:
    """No word of these asks for sending: the address alone decides."""
    assert ("send" in asked_effects(request_text, REGISTRY)) == receives
