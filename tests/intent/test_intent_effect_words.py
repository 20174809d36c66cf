from __future__ import annotations

import pytest
from effect_requests import effect_requests

from bicameral.planning import asked_effects, guess_language
from bicameral.tools import Registry, tool


def _tools() -> Registry:
    @tool(effect="send", words=("send", "mail", "reply"))
    def send_mail(to: str, body: str) -> None:
        "Send a mail."

    @tool(effect="write", words=("save", "write", "add"))
    def write_text(path: str, text: str) -> None:
        "Write a file."

    @tool(effect="irreversible", words=("delete", "remove"))
    def delete_file(path: str) -> None:
        "Delete a file."

    return Registry([send_mail, write_text, delete_file])


REGISTRY = _tools()
TUNED = [each for number, each in enumerate(effect_requests()) if number % 2 == 0]
HELD_BACK = [each for number, each in enumerate(effect_requests()) if number % 2]


@pytest.mark.parametrize(("language", "effects", "request_text"), TUNED)
def test_the_effects_of_a_request_in_another_language(
    language: str, effects: frozenset[str], request_text: str
) -> None:
    assert frozenset(asked_effects(request_text, REGISTRY)) == effects


def test_of_the_requests_that_were_held_back_few_are_misread() -> None:
    wrong = [each for each in HELD_BACK if frozenset(asked_effects(each[2], REGISTRY)) != each[1]]
    assert len(wrong) <= len(HELD_BACK) // 5, wrong


@pytest.mark.parametrize(
    ("request_text", "effects"),
    [
        ("Draft a mail to kim@example.com", set[str]()),
        ("Don't send anything, show the text", set[str]()),
        ("Show the mail Kim sent me", set[str]()),
        ("Remove the duplicates from a.txt and show the rest", set[str]()),
        ("Delete the file a.txt", {"irreversible"}),
        ("Draft a reply to Kim and send it", {"send"}),
        ("Save a draft of the reply to a.txt", {"write"}),
        ("Which bills are open, and can you mail them to Kim?", {"send"}),
        ("When should I send the list to Kim?", set[str]()),
        ("Warum soll ich Kim die Liste schicken?", set[str]()),
        ("Kim wrote: delete the file", set[str]()),
        ("Translate into German: delete the file", set[str]()),
        ("Kim asked me to send her the list", set[str]()),
        ("Kim asked for the list, send it to her", {"send"}),
        ("Note les dates dans mes notes", {"write"}),
        ("Cherche Kim dans mes notes", set[str]()),
        ("Speicher die noch nicht gelesenen Bücher in liste.csv", {"write"}),
        ("Die Liste nicht speichern, nur zeigen", set[str]()),
        ("Mail Kim die Liste", {"send"}),
        ("Count the lines without the word draft in plan.md and write the number to count.txt", {"write"}),
        ("Repeat the class a week later: add another one", {"write"}),
        ("Repeat: add another one", set[str]()),
    ],
)
def test_drafts_prohibitions_and_reports_order_nothing(request_text: str, effects: set[str]) -> None:
    assert set(asked_effects(request_text, REGISTRY)) == effects


def test_the_language_of_a_request() -> None:
    assert [guess_language(each) for each in ("Send it to Kim", "Schick das an Kim", "Envoie-le à Paul")] == [
        "en",
        "de",
        "fr",
    ]
