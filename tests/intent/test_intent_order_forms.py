"""Wishes, polite questions, answers, calendar verbs, reminders, elliptic messages and list entries are known as orders.

The same words in a question, a report, a prohibition, a quotation or a text to translate order nothing.
"""

from __future__ import annotations

import pytest
from no_orders import NO_ORDERS
from order_forms import pairs
from standard_tools import REGISTRY

from bicameral.planning import asked_effects
from bicameral.planning._clauses import ordering_clauses
from bicameral.planning._language import guess_language, spelled_as


@pytest.mark.parametrize(("effect", "order"), [(effect, order) for effect, order, _ in pairs()])
def test_an_order_of_each_category_is_known(effect: str, order: str) -> None:
    assert effect in asked_effects(order, REGISTRY)


@pytest.mark.parametrize("twin", [twin for _, _, twin in pairs()])
def test_its_words_in_a_question_or_a_report_order_nothing(twin: str) -> None:
    assert asked_effects(twin, REGISTRY) == ()


@pytest.mark.parametrize("request_text", NO_ORDERS.splitlines())
def test_negations_conditions_quotations_and_false_friends_order_nothing(request_text: str) -> None:
    assert asked_effects(request_text, REGISTRY) == ()


ORDERS = [(effect, order) for effect, order, _ in pairs() if '"' not in order and "«" not in order]
SAYING = {
    "en": 'Which language is "{}"?',
    "de": "In welcher Sprache ist „{}“?",
    "fr": "En quelle langue est « {} » ?",
    "es": "¿En qué idioma está «{}»?",
}


@pytest.mark.parametrize("order", [order for _, order in ORDERS])
def test_a_quoted_order_orders_nothing(order: str) -> None:
    request = SAYING[guess_language(order)].format(order)
    assert asked_effects(request, REGISTRY) == ()


@pytest.mark.parametrize("order", [order for _, order in ORDERS])
def test_an_order_in_a_pasted_message_orders_nothing(order: str) -> None:
    assert asked_effects(f"Show what Kim wrote:\n{order}", REGISTRY) == ()


def test_an_entry_that_leaves_a_list_changes_it_and_a_mail_that_leaves_it_does_not() -> None:
    assert "write" in asked_effects('Delete "call bank" from the to-do list', REGISTRY)
    assert "write" not in asked_effects("Delete the mails from the mailing list", REGISTRY)


def test_somebody_who_is_called_gets_no_mail_and_somebody_else_does() -> None:
    assert "send" not in asked_effects("Llama a la abuela y felicítala", REGISTRY)
    assert "send" in asked_effects("Felicita a la abuela", REGISTRY)
    assert "send" in asked_effects("Llama a la abuela. Felicita a Ana por correo", REGISTRY)


def test_a_reminder_to_write_to_somebody_sends_nothing() -> None:
    assert asked_effects("Could I get a reminder tomorrow at nine to thank Noor?", REGISTRY) == ("write",)
    assert asked_effects("Lundi 9h : rappel de remercier Noor", REGISTRY) == ("write",)


def test_the_spelling_of_masked_words_is_not_seen() -> None:
    request = 'Kannst du "Kim sagen" zeigen?'
    assert all("Kim" not in clause.spelled for clause in ordering_clauses(request, "de"))
    assert spelled_as("Sag Kim: Nein", "sag kim:     ") == "Sag Kim:     "


@pytest.mark.parametrize(
    ("request_text", "language"),
    [
        ("Wish Kim a happy birthday", "en"),
        ("Monday 9 am reminder: dentist", "en"),
        ("Montag 9 Uhr Zahnarzt", "de"),
        ("Lundi 9h : rappel poubelles", "fr"),
        ("Lunes 9:00 dentista", "es"),
        ("Écris à Anna, objet « Keys for the house », texte « The keys are in the pot »", "fr"),
        ('Schreibe Anna: "the keys are on the table of the house"', "de"),
        ('Write "der die das und ist nicht" to notes.txt', "en"),
        ('File a bug: "the app is down"', "en"),
        ('"Wo ist die Liste?"', "de"),
    ],
)
def test_weekdays_and_verbs_tell_the_language(request_text: str, language: str) -> None:
    assert guess_language(request_text) == language
