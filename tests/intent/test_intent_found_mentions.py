"""Mentions: kinds, exact words and offsets, in four languages, at linear cost."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.planning import find_mentions

TODAY = dt.date(2026, 3, 11)


def mentioned(request: str) -> list[tuple[str, str]]:
    return [(each.kind, each.words) for each in find_mentions(request, TODAY)]


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        ("Tell Kim that Friday works", [("person", "Kim"), ("day", "Friday")]),
        ("tell kim that friday works", [("person", "kim"), ("day", "friday")]),
        ("Send Kim and Alex the agenda", [("person", "Kim"), ("person", "Alex")]),
        ("Mail it to Ludwig van der Berg", [("person", "Ludwig van der Berg")]),
        ("Ask Dr. Weber about the bill", [("person", "Dr. Weber")]),
        ("What does Ann write in March's newsletter from Tom?", [("period", "March"), ("person", "Tom")]),
        ("Show the mails from March 15", [("mail", "mails"), ("day", "March 15")]),
        ("Schick das Angebot an Anna Schmidt", [("person", "Anna Schmidt")]),
        ("Suche die Mails von Jonas", [("mail", "Mails"), ("person", "Jonas")]),
        ("Zeig mir den Ordner Steuern", [("folder", "Steuern")]),
        ("Envoie à Léa et Marc le rapport", [("person", "Léa"), ("person", "Marc")]),
        ("Cherche les messages de Mme Dupont", [("mail", "messages"), ("person", "Mme Dupont")]),
        ("Envía la oferta a Lucía García", [("person", "Lucía García")]),
        ("Mail the total to my boss", [("person", "boss")]),
        ('Read "my tax file.pdf"', [("file", "my tax file.pdf")]),
        ("Öffne die Datei „Meine Liste“", [("file", "Meine Liste")]),
        ("Copy ./a/b.txt into backup/", [("file", "./a/b.txt"), ("folder", "backup/")]),
        ("Move report.pdf into the folder Taxes 2026", [("file", "report.pdf"), ("folder", "Taxes 2026")]),
        ("Look in the invoices folder", [("folder", "invoices")]),
        ("Total by category in bills.csv", [("column", "category"), ("file", "bills.csv")]),
        ("Rows of a.csv where paid is no", [("file", "a.csv"), ("column", "paid"), ("value", "no")]),
        ("Sum the amount column of the Expenses table", [("column", "amount"), ("table", "Expenses")]),
        ("Move the dentist appointment", [("event", "dentist appointment")]),
        ("When is the retro?", [("event", "retro")]),
        ("Write «il fait beau» to kim@example.com.", [("quoted", "il fait beau"), ("address", "kim@example.com")]),
        ("See (https://example.com/a_(b)?c=1).", [("link", "https://example.com/a_(b)?c=1")]),
        ("Answer 'see you at 5' to Kim", [("quoted", "see you at 5"), ("person", "Kim")]),
    ],
)
def test_what_is_mentioned_has_its_kind_and_its_words(request_text: str, expected: list[tuple[str, str]]) -> None:
    assert mentioned(request_text) == expected


@pytest.mark.parametrize(
    "amount",
    ["20 €", "20€", "€20", "€ 1.234,56", "1.234,56 EUR", "$1,200.50", "USD 5", "CHF 50.-", "1 234,50 euros", "5 pounds",
     "1'250 Franken", "£3.50"],
)  # fmt: skip
def test_amounts_are_found_in_every_notation(amount: str) -> None:
    assert mentioned(f"Pay {amount} now") == [("amount", amount)]


@pytest.mark.parametrize(
    "nobody",
    [
        "When does the ferry leave?",
        "Anna is late",
        "Excel says no",
        "Total of Monday",
        "Show the train from Kassel to Paris",
        "Buy a Tesla",
        "Eine Liste von Rechnungen",
        "Export to PDF",
        "by Friday",
    ],
)
def test_sentence_starts_days_places_and_products_are_no_people(nobody: str) -> None:
    assert "person" not in [kind for kind, _ in mentioned(nobody)]


def test_only_addresses_links_and_quoted_text_are_verbatim() -> None:
    request = 'Send "hello there" and https://example.com/x to kim@example.com, tell Lee, from notes.txt, tomorrow'
    found = {each.kind: each.verbatim for each in find_mentions(request, TODAY)}
    assert found == {"quoted": True, "link": True, "address": True, "person": False, "file": False, "day": False}


REQUESTS = st.text(max_size=300) | st.lists(
    st.sampled_from(
        ["tell", "Kim", "to", "and", ",", '"', "'", "a.txt", "€", "5", "folder", "by", ".", "\n", "@", "/"]
    ),
    max_size=40,
).map(" ".join)


@given(REQUESTS)
def test_words_are_those_at_the_offsets_and_nothing_overlaps(request_text: str) -> None:
    found = find_mentions(request_text, TODAY)
    for each in found:
        assert request_text[each.start : each.end] == each.words
        assert each.words
    assert all(first.end <= second.start for first, second in pairwise(found))


def executed_lines(function: Callable[[], Any]) -> int:
    """How many lines of Python a call executes: the same on every machine. Patterns have possessive repetitions."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "piece",
    [
        "tell Kim and ",
        "'",
        '" ',
        "a/",
        "1 111 ",
        "tomorrow ",
        "https://a) ",
        "x@",
        "folder A ",
        "a.b",
        "„",
        "by x ",
        "\n",
    ],
)
def test_the_work_grows_with_the_length_of_the_text(piece: str) -> None:
    short, long = piece * (2_000 // len(piece)), piece * (8_000 // len(piece))
    find_mentions(short, TODAY)
    once = executed_lines(lambda: find_mentions(short, TODAY))
    assert executed_lines(lambda: find_mentions(long, TODAY)) <= 4.6 * once
