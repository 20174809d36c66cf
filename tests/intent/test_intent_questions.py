"""Questions: what is asked, what is not, and the dialogue that fills an intent."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, strategies as st

from bicameral.planning import (
    Intent,
    asked_effects,
    complete_intent,
    continue_intent,
    open_questions,
    parse_intent,
    understand,
)
from bicameral.tools import Registry, tool

TODAY = dt.date(2026, 3, 11)


@tool(effect="send", words=("send", "mail", "email", "forward"))
def send_mail(to: list[str], body: str) -> None:
    "Send a mail."


@tool(effect="irreversible", words=("delete", "erase", "trash", "remove", "get rid of"))
def delete_file(path: str) -> None:
    "Delete a file."


@tool(effect="write", words=("write", "save"))
def write_text(path: str, text: str) -> None:
    "Write text to a file."


REGISTRY = Registry([send_mail, delete_file, write_text])


@pytest.mark.parametrize(
    ("request_text", "about"),
    [
        ("Forward the offer", "recipient"),
        ("Please mail the total", "recipient"),
        ("Find the newest contract and send a summary", "recipient"),
        ("Leite das Angebot weiter", "recipient"),
        ("Schick bitte den Vertrag", "recipient"),
        ("Transfère l'offre", "recipient"),
        ("Reenvía la oferta", "recipient"),
        ("Mail out the meeting minutes", "recipient"),
        ("Mail the photos around", "recipient"),
        ("Mail the customer list", "recipient"),
        ("Send an email about the delay", "recipient"),
        ("Schick eine Mail wegen der Verspätung", "recipient"),
        ("Maile den Bericht", "recipient"),
        ("le compte rendu de la réunion, envoie le", "recipient"),
        ("manda correo x el retraso", "recipient"),
        ("Transfère-le à Emeka.", "referent"),
        ("Fais suivre ce mail à Emeka", "referent"),
        ("Elimina ese archivo", "referent"),
        ("Lösch diese Mail bitte", "referent"),
        ("Schreib ihr, dass ich später komme", "referent"),
        ("Put that novel on the reading list", "referent"),
        ("Where's that recipe", "referent"),
        ("Which mails came in since then?", "since"),
        ("Clean up my inbox", "meaning"),
        ("Tidy my downloads", "meaning"),
        ("Räum mein Postfach auf", "meaning"),
        ("Nettoie ma boîte mail", "meaning"),
        ("Limpia mi bandeja", "meaning"),
        ("Remove duplicates and find lines mentioning invoices", "file"),
        ("count lines", "file"),
        ("Entferne die doppelten Zeilen", "file"),
        ("Supprime les doublons", "file"),
        ("Elimina los duplicados", "file"),
        ("Delete the file", "which"),
        ("Delete old files", "age"),
        ("Lösche alte Dateien", "age"),
        ("Supprime les vieux fichiers", "age"),
        ("Borra los archivos viejos", "age"),
        ("Delete everything", "scope"),
        ("What changed since then in the report?", "since"),
        ("send it to the old printer", "referent"),
        ("send it to them", "task"),
        ("do it", "task"),
    ],
)
def test_what_is_missing_or_dangerous_is_asked_about(request_text: str, about: str) -> None:
    assert [each.about for each in open_questions(request_text)] == [about]


@pytest.mark.parametrize(
    "request_text",
    [
        "When does the ferry leave?",
        "What is the code of the garage?",
        "How much went into the bike this year?",
        "Tell Kim that Friday works",
        "Which mails are unread?",
        "Who sent the last mail?",
        "Forward the offer to kim@example.com",
        "Forward the offer to Kim",
        "Forward the offer to the team",
        "Send my boss the agenda",
        "Send me the total",
        "Send the team the agenda",
        "Draft a mail about the offer",
        "Clean up my inbox: delete newsletters older than a year",
        "Clean up the whitespace in notes.txt",
        "Remove duplicates from names.txt",
        "Count the lines in my notes",
        "Sort the guests and drop doubles",
        "Delete the file notes.txt",
        "Delete the file with the duplicates",
        "Delete files older than 2020",
        "Delete mails before last Monday",
        "Wann fährt die Fähre?",
        "Wie viel habe ich für Strom bezahlt?",
        "Quand part le ferry ?",
        "¿Cuándo sale el ferry?",
        "Envía la oferta a Lucía",
        "Schick Anna das Angebot",
        "Delete the old bike photos of 2019",
        "List the files",
        "Mail the number of rows in scooters.csv to the office",
        "Mail each winner in winners.csv the prize",
        "Send the borrowers in tools.csv who are late a mail with a reminder",
        "Take the .tmp files of logs and delete them all",
        "Every late order in loans.csv gets a note. Mail its customer and name the number",
        "Mail the school: Yusuf is ill today",
        "Email our guesthouse and ask whether check-in after 4pm is all right",
        "mail suppliers of low stock articles",
        "mail owners their share",
        "Mail whoever has not paid the rent",
        "Such heraus, wer die Ausweise macht, und mail dieser Person, dass ich einen brauche",
        "Hugo hätte gern die Bilder aus dem Ordner Schulfest, schick sie per Mail.",
        "Jonas veut voir le devis du plombier, transfère le mail",
        "Look up the total and send Nadia one mail with it",
        "schick Priya ne mail wegen Schlüssel",
        "Wann bin ich morgen frei? Schick das Petra.",
        "envia correo Lucia asunto «Llaves»",
        "envoie mon planning de demain a Mara",
        "Pour les locataires en retard de loyer, envoie un mail : « Bonjour »",
        "Get the address of the treasurer from board.json and forward the newest mail there",
        "Schick Namen und Allergie ans Catering",
        "mail handwerker fenster preis?",
        "mail du garagiste, plaquettes de frein, il dit quoi",
        "Eggs this week: how many in all?",
        "heating this year vs last year, diff",
        "Members that appear in the donations, with their sum",
        "Check that candles are on the party list",
        "Delete those files in the folder cache whose name ends with old",
        "Will it be warmer in Ankara or in Izmir today?",
        "who has my books",
        "what day is it",
        "I was away from last Friday on. Number of unread mails since then?",
        "Räum den Lebenslauf in den Ordner Bewerbung ein.",
        "Range dans le dossier succession tout ce que le notaire a joint",
        "Montre-moi cette semaine",
        "When is the dentist?",
        "Who is the plumber?",
        "Wo ist der Wohnwagen?",
    ],
)
def test_an_ordinary_request_is_not_asked_about(request_text: str) -> None:
    assert open_questions(request_text) == ()


@pytest.mark.parametrize(
    ("request_text", "deletes"),
    [
        ("Delete the file with the duplicates", True),
        ("Remove the duplicate files", True),
        ("Delete notes.txt", True),
        ("Get rid of the folder old", True),
        ("Remove duplicates from mail.txt", False),
        ("Remove the empty lines of a.txt", False),
        ("Remove lines mentioning files from a.txt", False),
        ("get rid of the double lines in guests.txt", False),
        ("Remove duplicate rows and delete the file a.csv", True),
    ],
)
def test_removing_parts_of_a_text_is_not_irreversible(request_text: str, deletes: bool) -> None:
    assert ("irreversible" in asked_effects(request_text, REGISTRY)) == deletes


def test_answers_fill_the_questions_until_the_intent_is_whole() -> None:
    intent = understand("Forward the offer and delete old files", REGISTRY, TODAY)
    assert [each.about for each in intent.questions] == ["recipient", "age"]
    intent = continue_intent(intent, {"recipient": "kim@example.com"}, REGISTRY, TODAY)
    assert [each.about for each in intent.questions] == ["age"]
    intent = continue_intent(intent, ["two years"], REGISTRY, TODAY)
    assert intent.questions == ()
    assert [each.answer for each in intent.answers] == ["kim@example.com", "two years"]
    assert intent.request.splitlines() == ["Forward the offer and delete old files", "(kim@example.com)", "(two years)"]
    assert ("address", "kim@example.com") in [(each.kind, each.words) for each in intent.mentions]
    assert "send" in intent.effects


@pytest.mark.parametrize("reply", ["", "  ", "?", "stop", "STOP"])
def test_a_person_who_stops_answers_nothing(reply: str) -> None:
    intent = understand("Forward the offer", REGISTRY, TODAY)
    assert continue_intent(intent, [reply], REGISTRY, TODAY) == intent


def test_an_answer_that_names_nobody_is_not_asked_for_again() -> None:
    intent = understand("Forward the offer", REGISTRY, TODAY)
    assert continue_intent(intent, ["the usual people"], REGISTRY, TODAY).questions == ()


def test_steps_without_a_text_are_asked_about_and_an_answer_is_enough() -> None:
    written = parse_intent('{"steps": [{"action": "remove-duplicates"}, {"action": "grep", "pattern": "invoice"}]}')
    intent = complete_intent(written, REGISTRY, TODAY)
    assert [each.about for each in intent.questions] == ["file"]
    whole = continue_intent(intent, {"file": "mail.txt"}, REGISTRY, TODAY)
    assert whole.questions == ()
    assert whole.steps == intent.steps
    assert ("file", "mail.txt") in [(each.kind, each.words) for each in whole.mentions]


def test_what_a_person_writes_into_steps_counts_as_named() -> None:
    """Whoever edits the recipient of an intent has named it: a plan that uses it invents nothing."""
    written = parse_intent('{"request": "Mail the total", "output": {"kind": "mail", "to": ["lee@example.com"]}}')
    intent = complete_intent(written, REGISTRY, TODAY)
    assert "lee@example.com" in intent.request
    assert "send" in intent.effects
    assert intent.questions == ()


@given(st.text(max_size=200))
def test_no_text_breaks_the_rules(text: str) -> None:
    for question in open_questions(text):
        assert question.question


@given(st.lists(st.text(max_size=20), max_size=3))
def test_any_answers_leave_an_intent(replies: list[str]) -> None:
    intent = understand("Forward the offer", REGISTRY, TODAY)
    clean = ["".join(char for char in reply if ord(char) >= 32) for reply in replies]
    assert isinstance(continue_intent(intent, clean, REGISTRY, TODAY), Intent)
