"""A question of Echo's model reaches a person only if the request does not answer it, and no tool can find it out."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from typing import Any

import pytest

from bicameral.models import ScriptedProvider
from bicameral.planning import Echo, Intent, asked_effects
from bicameral.planning._questions import asks_about_named
from bicameral.tools import Registry
from question_tools import FINDING, PLAIN, add_event, find, read_text, send_mail

TODAY = dt.date(2026, 3, 11)


async def _intent(
    request: str, registry: Registry, action: str, kind: str, words: str, output: str = "answer"
) -> Intent:
    reply: dict[str, Any] = {"task": "", "steps": [{"action": action}], "constraints": [], "output": output}
    reply["questions"] = [{"kind": kind, "words": words}]
    return await Echo(ScriptedProvider([json.dumps(reply)])).intent(request, registry, TODAY)


@pytest.mark.parametrize(
    ("request_text", "action", "kind", "words"),
    [
        ("yo whats the wifi code n stuff", "read", "file", "wifi code"),
        ("show the contract stuff", "read", "which", "contract"),
        ("wo steht der wlan code und so", "find", "file", "wlan code"),
        ("le code wifi et tout stp", "find", "which", "code wifi"),
        ("el código del wifi y eso", "find", "file", "wifi"),
        ("yo send the stuff to my sister n all", "send", "recipient", "stuff"),
        ("yo forward the stuff to the team pls", "forward", "recipient", "stuff"),
        ("schick das zeug an meine schwester", "send", "recipient", "zeug"),
        ("yo answer that mail thingy", "reply", "recipient", "mail thingy"),
        ("yo draft a mail thingy about the party", "draft", "recipient", "mail thingy"),
        ("yo when is the dentist thingy n stuff", "search-calendar", "day", "dentist"),
        ("yo what stuff is new", "find", "since", "new"),
        ("yo the two biggest bills n stuff", "take", "amount", "biggest bills"),
        ("¿Cuántos invitados vienen a la fiesta?", "count", "amount", "invitados"),
        ("yo how many guests come n stuff", "count", "amount", "guests"),
        ("wie viele gäste kommen so zur feier und so", "count", "amount", "gäste"),
        ("combien d'invités viennent et tout", "count", "amount", "invités"),
        ("yo sort the guests n stuff", "sort", "amount", "guests"),
        ("yo mail whoever owes us stuff", "send", "recipient", "owes"),
        ("yo forward the stuff to all the tenants in the sheet", "forward", "recipient", "stuff"),
        ("yo did anyone send the stuff?", "send", "recipient", "stuff"),
        ("yo delete the thingy from last week n stuff", "delete", "which", "thingy"),
        ("yo delete all the draft stuff", "delete", "which", "draft"),
        ("yo add the thing from the mail to my calendar n stuff", "add-event", "day", "thing"),
        ("yo add some gym stuff in the first free slot", "add-event", "day", "gym"),
    ],
)
async def test_what_the_request_says_or_a_search_finds_is_not_asked(
    request_text: str, action: str, kind: str, words: str
) -> None:
    intent = await _intent(request_text, FINDING, action, kind, words)
    assert intent.by == "echo"
    assert intent.questions == ()


async def test_a_question_that_repeats_the_request_is_not_asked() -> None:
    request_text = "show the contract thingy n stuff"
    assert (await _intent(request_text, PLAIN, "read", "which", request_text)).questions == ()
    assert (await _intent(request_text, PLAIN, "read", "which", "contract thingy")).questions


@pytest.mark.parametrize(
    ("request_text", "registry", "action", "kind", "words", "output"),
    [
        ("yo whats the wifi code n stuff", PLAIN, "read", "file", "wifi code", "answer"),
        ("show the contract stuff", PLAIN, "read", "which", "contract", "answer"),
        ("pls fwd the blue prints thingy n stuff", FINDING, "forward", "recipient", "blue prints", "mail"),
        ("yo delete the draft thingy", FINDING, "delete", "which", "draft thingy", "answer"),
        ("yo add the dentist thingy stuff", FINDING, "add-event", "day", "dentist", "calendar"),
        ("whats new since back then n stuff", FINDING, "find", "since", "back then", "answer"),
        ("which of my bills are too high n stuff", FINDING, "keep", "amount", "too high", "answer"),
        ("yo write the total stuff into some file pls", FINDING, "write", "file", "some file", "file"),
        ("I'd like to forward the offer thingy n stuff", FINDING, "forward", "recipient", "offer", "mail"),
    ],
)
async def test_what_only_the_person_knows_is_asked(
    request_text: str, registry: Registry, action: str, kind: str, words: str, output: str
) -> None:
    intent = await _intent(request_text, registry, action, kind, words, output)
    assert [each.about for each in intent.questions] == [kind]


async def test_a_file_is_not_asked_for_where_the_settings_have_one() -> None:
    request_text = "yo write the stuff down somewhere"
    stored = replace(add_event, configured={"path": ("notes.txt",)})
    assert (await _intent(request_text, FINDING, "write", "file", "stuff", "file")).questions
    registry = Registry([read_text, send_mail, stored, replace(find, toolbox="find")])
    assert (await _intent(request_text, registry, "write", "file", "stuff", "file")).questions == ()


EXPLICIT = [
    "Zeig mir bitte todo.txt.",
    "Was steht in todo.txt?",
    "Wie viele Zeilen hat notizen.txt?",
    "Montre-moi notes.txt",
    "Combien de lignes a notes.txt ?",
    "Muéstrame notas.txt",
    "¿Qué dice notas.txt?",
    "What does https://example.com/prices say about the trial?",
    "Show todo.txt please",
]


@pytest.mark.parametrize("request_text", EXPLICIT)
async def test_a_question_about_a_named_file_or_page_needs_no_model(request_text: str) -> None:
    intent = await Echo(ScriptedProvider([])).intent(request_text, FINDING, TODAY)
    assert intent.by == "fast-path"


@pytest.mark.parametrize(
    "request_text",
    [
        "Räum todo.txt auf",
        "Mach was mit notes.txt",
        "Arrange notes.txt un peu",
        "Zeig mir die Rechnung",
        "Kannst du todo.txt aufräumen?",
        "Zeig mir todo.txt. Und dann mach das Übliche.",
        "Zeig mir todo.txt und schick es Kim",
    ],
)
def test_other_requests_about_a_file_are_not_taken_for_a_question(request_text: str) -> None:
    assert not asks_about_named(request_text) or asked_effects(request_text, FINDING)
