"""Where a question is looked up: the words of its request decide, in every block by hand and every composed one."""

from __future__ import annotations

import pytest

from training.delta.blocks import CORPUS, language_of, read_blocks
from training.delta.compose import compose_blocks
from training.delta.guards import guarded_plan, unguarded_results
from training.delta.places import misplaced_lookups, named_places
from training.delta.references import in_own_words

FIND = 'found = find("caravan")\nplace = extract(found.passages, "where the caravan is", str)\nanswer(place)\n'
MAIL = 'mails = search_mail(text="caravan")\nif mails:\n    answer(mails[0].body)\nelse:\n    answer("no")\n'
EVENTS = 'events = search_events("caravan")\nanswer(len(events))\n'


@pytest.mark.parametrize(
    ("request_text", "language", "places"),
    [
        ("Who sold us the caravan?", "en", set[str]()),
        ("What did Anna write about the caravan?", "en", {"mail"}),
        ("When is my next physio session?", "en", {"calendar"}),
        ("Which of my notes mention the caravan?", "en", {"files"}),
        ("Wer hat uns den Wohnwagen verkauft?", "de", set[str]()),
        ("Was hat Anna zum Wohnwagen geschrieben?", "de", {"mail"}),
        ("wann hab ich den nächsten Zahnarzttermin", "de", {"calendar"}),
        ("Qui nous a vendu la caravane ?", "fr", set[str]()),
        ("Anna a repondu pour la caravane ?", "fr", {"mail"}),
        ("Quand est mon prochain rendez-vous ?", "fr", {"calendar"}),
        ("¿Quién nos vendió la caravana?", "es", set[str]()),
        ("¿Qué dice el correo de Anna?", "es", {"mail"}),
        ("¿Cuándo es mi próxima cita?", "es", {"calendar"}),
    ],
)
def test_a_place_is_named_by_words_of_its_language(request_text: str, language: str, places: set[str]) -> None:
    assert named_places(request_text, language) == places


@pytest.mark.parametrize(
    ("plan", "request_text", "is_right"),
    [
        (FIND, "Where is the caravan?", True),
        (MAIL, "Where is the caravan?", False),
        (EVENTS, "How often was the caravan cleaned?", False),
        (MAIL, "What did the dealer write about the caravan?", True),
        (FIND, "What does the mail about the caravan say?", False),
        (FIND, "Where is the caravan? It is in a note or a mail", True),
        ('events = list_events(date("<day>"))\nanswer(len(events))\n', "anything <day>?", True),
        ("events = list_events(today())\nanswer(len(events))\n", "how many caravans", False),
        ('delete_event(event("caravan wash"))\nanswer("Deleted it")\n', "Cancel the caravan wash", True),
    ],
)
def test_a_lookup_must_be_named(plan: str, request_text: str, is_right: bool) -> None:
    assert (not list(misplaced_lookups(plan, request_text, "en"))) == is_right


def test_every_block_looks_where_its_phrasings_say() -> None:
    blocks = [block for path in CORPUS.glob("*.txt") for block in read_blocks(path) if block.toolbox is None]
    wrong = [
        f"{block.place}: {phrasing}: {problem}"
        for block in [*blocks, *compose_blocks(120, 3)]
        for phrasing in block.phrasings
        for problem in misplaced_lookups(block.plan, phrasing, language_of(block))
    ]
    assert wrong == []


def test_every_block_asks_whether_there_is_a_first_result() -> None:
    blocks = [block for path in CORPUS.glob("*.txt") for block in read_blocks(path) if block.toolbox is None]
    assert [block.place for block in [*blocks, *compose_blocks(120, 3)] if unguarded_results(block.plan)] == []


def test_a_first_result_is_taken_in_a_branch_of_its_own() -> None:
    plan = 'mails = search_mail(sender="Ana")\nmail = mails[0]\nanswer(mail.subject)\n'
    assert guarded_plan(plan, "en") == (
        'mails = search_mail(sender="Ana")\nif mails:\n    mail = mails[0]\n    answer(mail.subject)\n'
        'else:\n    answer("There is no such mail")\n'
    )
    assert guarded_plan(MAIL, "en") == MAIL


def test_two_searches_are_asked_for_together() -> None:
    plan = 'a = search_events("x")\nb = search_events("y")\nanswer(a[0].start < b[0].start)\n'
    assert "if a and b:\n    answer(a[0].start < b[0].start)\n" in guarded_plan(plan, "de")


def test_a_loop_is_left_alone() -> None:
    plan = "for x in xs:\n    mails = search_mail(x)\n    answer(mails[0].body)\n"
    assert unguarded_results(plan) == []


def test_a_search_has_the_words_of_its_phrasing() -> None:
    plan = 'found = find("chimney sweep last visit")\n'
    assert in_own_words(plan, "when was the chimny sweep here last", "en") == 'found = find("chimney sweep last")\n'
    assert in_own_words(plan, "soot?", "en") == plan
