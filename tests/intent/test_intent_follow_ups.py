"""Follow-ups: an earlier request with another phrase, an earlier result, or a request of its own."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from hypothesis import given, strategies as st

from bicameral.planning import FollowUp, NewRequest, ResultReference, Rewritten, Unclear, resolve_follow_up

TODAY = dt.date(2026, 11, 18)


def resolved(said: str, *earlier: str) -> FollowUp:
    return resolve_follow_up(said, earlier, TODAY)


@pytest.mark.parametrize(
    ("earlier", "said", "means"),
    [
        # Days and months
        ("How much did I spend in March?", "and in April?", "How much did I spend in April?"),
        ("How much did I spend in March?", "What about April?", "How much did I spend in April?"),
        ("How much did I spend in March?", "in April?", "How much did I spend in April?"),
        ("How much did I spend in March?", "and last week?", "How much did I spend last week?"),
        ("How much did I spend last week?", "and in April?", "How much did I spend in April?"),
        ("How much did I spend last week?", "what about April?", "How much did I spend in April?"),
        ("What is in my calendar on Monday?", "and on Friday?", "What is in my calendar on Friday?"),
        ("Wie viel habe ich im März ausgegeben?", "und im April?", "Wie viel habe ich im April ausgegeben?"),
        ("Wie viel habe ich im März ausgegeben?", "und letzte Woche?", "Wie viel habe ich letzte Woche ausgegeben?"),
        ("Combien ai-je dépensé en mars ?", "et en avril ?", "Combien ai-je dépensé en avril ?"),
        ("¿Cuánto gasté en marzo?", "¿y en abril?", "¿Cuánto gasté en abril?"),
        # Files
        ("Sum the fees in club.csv", "the same for choir.csv", "Sum the fees in choir.csv"),
        ("Summiere die Beiträge in verein.csv", "Dasselbe für chor.csv", "Summiere die Beiträge in chor.csv"),
        ("Additionne les frais de club.csv", "la même chose pour chorale.csv", "Additionne les frais de chorale.csv"),
        ("Suma las cuotas de club.csv", "lo mismo para coro.csv", "Suma las cuotas de coro.csv"),
        # People and places
        ("Which ships sailed to Oslo in May?", "what about Riga?", "Which ships sailed to Riga in May?"),
        ("Show the mails from Anna of last week", "and from Bob?", "Show the mails from Bob of last week"),
        ("Zeig die Mails von Anna", "und von Bob?", "Zeig die Mails von Bob"),
        ("Combien de bateaux vers Oslo ?", "et pour Riga ?", "Combien de bateaux vers Riga ?"),
        ("¿Cuántos barcos fueron a Oslo?", "¿y qué tal Riga?", "¿Cuántos barcos fueron a Riga?"),
        # Things, amounts and numbers
        ("How much did I spend on rope?", "and on paint?", "How much did I spend on paint?"),
        ("How much did I spend on rope?", "what about paint?", "How much did I spend on paint?"),
        ("List the bills over 50 €", "and over 100 €?", "List the bills over 100 €"),
        ("List the 5 largest bills", "what about 3?", "List the 3 largest bills"),
        ("How much did I spend in March?", "only in April", "How much did I spend in April?"),
        # What is new is added.
        ("How much did I spend?", "and in April?", "How much did I spend in April?"),
        ("How many mails are there", "and from Bob?", "How many mails are there from Bob"),
    ],
)
def test_a_phrase_of_the_same_kind_is_exchanged_and_a_new_one_is_added(earlier: str, said: str, means: str) -> None:
    assert resolved(said, earlier) == Rewritten(means, 0)


@pytest.mark.parametrize(
    ("said", "word", "many"),
    [
        ("now mail it to Kim", "it", False),
        ("save that to total.txt", "that", False),
        ("Send Kim the result", "the result", False),
        ("sort them by date", "them", True),
        ("which of them are open?", "them", True),
        ("only those over 100 €", "those", True),
        ("Schick es an Kim", "es", False),
        ("Speicher das in summe.txt", "das", False),
        ("Sortiere sie nach Datum", "Sie", True),
        ("Wie viele davon sind offen?", "davon", True),
        ("envoie-le à Kim", "le", False),
        ("trie-les par date", "les", True),
        ("envíalo a Kim", "lo", False),
        ("mándaselo a Kim", "lo", False),
        ("ordénalas por fecha", "las", True),
    ],
)
def test_a_pronoun_without_anything_before_it_speaks_of_a_result(said: str, word: str, many: bool) -> None:
    found = resolved(said, "List the bills in bills.csv")
    assert isinstance(found, ResultReference)
    assert (found.word.lower(), found.many) == (word.lower(), many)


@pytest.mark.parametrize(
    "said",
    [
        "Read notes.txt and mail it to Kim",
        'Write "call me" to note.txt and send it to Kim',
        "Show me the mails that mention rope",
        "What did I spend this week?",
        "And how many lines does mail.txt have?",
        "and send the list of bills to Kim",
        "Count the lines of mail.txt",
        "Is it raining in Oslo?",
        "Was steht heute in meinem Kalender?",
        "Zeig mir die Mails von Anna",
        "Montre-moi les mails d'Anna",
        "Muestra los correos de Ana",
        "thanks",
        "and so?",
        "just count the rows",
        "only open bills",
        "make it shorter, please, and add a greeting",
        "and then?",
        "why?",
    ],
)
def test_a_request_that_says_what_it_speaks_of_stands_for_itself(said: str) -> None:
    assert resolved(said, "How much did I spend in March?") == NewRequest(said)


def test_the_first_request_refers_to_nothing() -> None:
    assert resolved("now mail it to Kim") == NewRequest("now mail it to Kim")


def test_several_readings_are_choices() -> None:
    found = resolved("and in May?", "Compare March and April")
    assert isinstance(found, Unclear)
    assert [each.text for each in found.choices] == ["Compare May and April", "Compare March and May"]


def test_an_older_request_may_be_meant_if_the_newest_has_nothing_of_the_kind() -> None:
    found = resolved("and in May?", "How much did I spend in March?", "Show the mails from Anna")
    assert isinstance(found, Unclear)
    assert [each.text for each in found.choices] == ["Show the mails from Anna in May", "How much did I spend in May?"]


WORDS = st.lists(
    st.sampled_from("how much did i spend in on for march april kim oslo club.csv 50 € rope".split()), max_size=9
)


@given(WORDS.map(" ".join), st.sampled_from(["and in May?", "what about Riga?", "the same for choir.csv", "and 7?"]))
def test_every_word_of_an_understood_request_is_one_that_the_person_said(earlier: str, said: str) -> None:
    found = resolve_follow_up(said, [earlier], TODAY)
    known = {*re.findall(r"[\w.]+", f"{earlier} {said}".lower()), "in"}
    choices = found.choices if isinstance(found, Unclear) else (found,)
    for each in choices:
        assert set(re.findall(r"[\w.]+", each.text.lower().rstrip("?"))) <= known | {
            said.split()[-1].rstrip("?").lower()
        }


@given(st.text(max_size=200), st.lists(st.text(max_size=100), max_size=4))
def test_any_text_is_resolved_to_something(said: str, earlier: list[str]) -> None:
    assert resolve_follow_up(said, earlier, TODAY) is not None
