"""A value is found where it was found before, and no text makes the search long."""

from __future__ import annotations

import datetime as dt
import re
import time

import pytest
from hypothesis import given, strategies as st

from bicameral.boundary import Extractor, Rejected
from bicameral.boundary._evidence import MAX_LOOKUPS, MAX_NORMALISED, Evidence
from bicameral.boundary._verbatim_check import COPIED_TYPES, find_uncopied
from bicameral.models import ScriptedProvider
from bicameral.types import DATE, ListType, StrType

ADDRESS = r"(?<![\w.%+-]){}(?![\w@-]|\.\w)"
URL = r"(?:(?<=://)|(?<![\w.@/%=?&#:-])){}/?(?![\w/?#&=%@~+*-])(?![.:!?'()]{{1,3}}[\w/?#&=%@~+*-])"
ONE_WORD = r"(?<!\w){}(?!\w)"
BETWEEN = r"[\s().\-/\u2010-\u2015]{0,3}"
"""What a value was looked for with, one pattern for each value, before the text was gone through once."""

PIECES = st.sampled_from(
    [
        "0",
        "1",
        "12",
        "a",
        "B",
        "ß",
        "é",
        "_",
        " ",
        "  ",
        "\n",
        ".",
        "-",
        "/",
        "(0)",
        "–",
        ":",
        "://",
        "@",
        "?",
        "#",
        "x.com",
        "²",
    ]
)
TEXTS = st.lists(PIECES, max_size=30).map("".join)
VALUES = st.lists(st.sampled_from([*"01aBßé.-@/", "12", "x.com"]), min_size=1, max_size=6)


@given(TEXTS, VALUES.map("".join))
def test_what_stands_in_a_text_is_what_stood_in_it_before(text: str, value: str) -> None:
    evidence = Evidence(text)
    folded = evidence.text.casefold()
    escaped = re.escape(value.casefold())
    assert evidence.has_token(value) == bool(re.search(ONE_WORD.format(re.escape(value)), evidence.text))
    assert evidence.has_email(value) == bool(re.search(ADDRESS.format(escaped), folded))
    bare = re.escape(value.casefold().rstrip("/"))
    assert evidence.has_url(value) == bool(re.search(URL.format(bare), folded))
    characters = [re.escape(each) for each in value.casefold() if each.isalnum()]
    whole = f"{folded}\n{folded.replace('(0)', '')}" if "(0)" in folded else folded
    grouped = bool(characters) and bool(re.search(ONE_WORD.format(BETWEEN.join(characters)), whole))
    assert evidence.has_grouped(value) == grouped


HOSTILE = {
    "digits": "0 ",
    "near numbers": "0(0) ",
    "separators": "0 - ",
    "months": "1 may ",
    "dates": "1/2026 ",
    "clocks": "1:11 ",
    "amounts": "1'22 €",
    "words": "in a a ",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_the_work_for_many_values_does_not_grow_with_their_number_times_the_text(piece: str) -> None:
    def seconds(size: int) -> float:
        evidence = Evidence(piece * (size // len(piece)))
        began = time.thread_time()
        phones = [f"+000000000{n:06}" for n in range(200)]
        find_uncopied(phones, ListType(StrType("phone")), evidence, COPIED_TYPES)
        find_uncopied([dt.date(1900 + n, 2, 1) for n in range(200)], ListType(DATE), evidence, COPIED_TYPES)
        find_uncopied([f"a{n}@b.example" for n in range(200)], ListType(StrType("email")), evidence, COPIED_TYPES)
        return time.thread_time() - began

    # It was seconds at this size. Generous, since a machine may be busy.
    assert seconds(24_000) < 1.5


def test_looks_are_counted_and_a_search_over_its_bound_is_no_find() -> None:
    evidence = Evidence("a@b.co" + "m" * 10 + " ")
    assert not evidence.is_exhausted
    crowded = Evidence("xa@b.com " * 20_000)
    asked = 0
    while not crowded.is_exhausted:
        assert not crowded.has_email("a@b.com")
        asked += 1
    assert 1 < asked <= MAX_LOOKUPS // 20_000 + 1
    assert not crowded.has_email("a@b.com")


def test_a_text_that_grows_too_much_holds_nothing() -> None:
    evidence = Evidence("\ufdfa" * (MAX_NORMALISED // 10) + " 7 May 2026 EUR 5")
    assert evidence.is_exhausted
    assert not evidence.has_number(5)
    assert not evidence.dates.has_date(dt.date(2026, 5, 7))


async def test_a_value_that_could_not_be_looked_for_is_rejected_with_that_reason() -> None:
    model = ScriptedProvider([("", '{"value": "2026-05-07"}')] * 2, grammars=False)
    outcome = await Extractor(model).extract("\ufdfa" * 20_000 + " 2026-05-07", "the date", DATE)
    assert isinstance(outcome, Rejected)
    assert outcome.kind == "too-large"
    assert "takes more than it may" in outcome.reason
