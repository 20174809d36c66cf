"""What must be copied from the text is looked for there, in any usual spelling; what may be reckoned is not."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from bicameral.boundary import COPIED_TYPES, ExtractionOutcome, Extractor, Filled, Rejected
from bicameral.boundary._evidence import Evidence
from bicameral.models import ModelRequest, ScriptedProvider
from bicameral.types import (
    BOOL,
    DATE,
    DATETIME,
    DURATION,
    FLOAT,
    INT,
    MONEY,
    NUMBER,
    STR,
    TIME,
    Field,
    ListType,
    LiteralType,
    RecordType,
    StrType,
    Type,
    optional_type,
)
from property_examples import examples

MAIL = """From: Ada Lovelace <ada.l@example.com>
Sent: Monday, 2 March 2026 14:05

Please pay 1.299,50 € to DE89 3704 0044 0532 0130 00 by 15 April. Code: R-2041, ticket #A17.
See https://pay.example.com/r?id=7&amp;k=2, or call +49 (0)30 123-456.
"""

COPIES: list[tuple[Type, Any]] = [
    (StrType("email"), "ada.l@example.com"),
    (StrType("email"), "Ada.L@Example.com"),
    (StrType("url"), "https://pay.example.com/r?id=7&k=2"),
    (StrType("iban"), "DE89370400440532013000"),
    (StrType("iban"), "DE89 3704 0044 0532 0130 00"),
    (StrType("phone"), "+49 30 123456"),
    (StrType("phone"), "+49 (0)30 123-456"),
    (StrType("code"), "R-2041"),
    (StrType("id"), "A17"),
    (StrType("currency"), "EUR"),
    (NUMBER, 1299.5),
    (MONEY, {"amount": 1299.5, "currency": "EUR"}),
    (DATE, "2026-03-02"),
    (DATE, "2026-04-15"),
    (TIME, "14:05"),
    (DATETIME, "2026-03-02T14:05"),
]
INVENTED: list[tuple[Type, Any]] = [
    (StrType("email"), "eve@example.com"),
    (StrType("email"), "l@example.com"),
    (StrType("email"), "ada.l@example.co"),
    (StrType("url"), "https://pay.example.com"),
    (StrType("url"), "https://example.com/r?id=7&k=2"),
    (StrType("url"), "https://evil.example/r"),
    (StrType("iban"), "GB29NWBK60161331926819"),
    (StrType("phone"), "+49 30 123457"),
    (StrType("phone"), "30 12345"),
    (StrType("code"), "R-204"),
    (StrType("id"), "A1"),
    (StrType("currency"), "USD"),
    (NUMBER, 1299),
    (NUMBER, 129950),
    (MONEY, {"amount": 1299.5, "currency": "GBP"}),
    (MONEY, {"amount": 129.95, "currency": "EUR"}),
    (DATE, "2025-03-02"),
    (DATE, "2026-04-16"),
    (TIME, "15:06"),
    (DATETIME, "2026-03-02T16:05"),
]
DERIVED: list[tuple[Type, Any]] = [
    (BOOL, True),
    (INT, 42),
    (FLOAT, 0.5),
    (DURATION, 3600),
    (LiteralType(("bill", "other")), "bill"),
    (STR, "A mail about a bill."),
]


async def _extract(value: Any, wanted: Type, source: object = MAIL, **options: Any) -> ExtractionOutcome:
    reply = json.dumps(value if isinstance(wanted, RecordType) else {"value": value})
    return await Extractor(ScriptedProvider(lambda request: reply), **options).extract(source, "what", wanted)


@pytest.mark.parametrize(("wanted", "value"), COPIES, ids=str)
async def test_what_stands_in_the_text_is_taken(wanted: Type, value: Any) -> None:
    assert isinstance(await _extract(value, wanted), Filled)
    assert isinstance(await _extract([value], ListType(wanted)), Filled)


@pytest.mark.parametrize(("wanted", "value"), INVENTED, ids=str)
async def test_what_does_not_stand_in_the_text_is_rejected(wanted: Type, value: Any) -> None:
    outcome = await _extract(value, wanted)
    assert isinstance(outcome, Rejected)
    assert outcome.kind == "not-in-text"
    inside = await _extract({"a": [value]}, RecordType((Field("a", ListType(wanted)),)))
    assert isinstance(inside, Rejected)
    assert inside.field == "a[0]"


@pytest.mark.parametrize(("wanted", "value"), INVENTED, ids=str)
async def test_the_opt_out_is_explicit(wanted: Type, value: Any) -> None:
    assert isinstance(await _extract(value, wanted, copied=frozenset()), Filled)


@pytest.mark.parametrize(("wanted", "value"), DERIVED, ids=str)
async def test_what_a_reader_may_reckon_or_say_in_his_own_words_is_taken(wanted: Type, value: Any) -> None:
    assert isinstance(await _extract(value, wanted), Filled)


async def test_the_rule_is_by_type_and_can_be_made_stricter_or_looser() -> None:
    assert isinstance(await _extract(42, INT, copied=COPIED_TYPES | {"int"}), Rejected)
    assert isinstance(await _extract(42.5, FLOAT, copied=COPIED_TYPES | {"float"}), Rejected)
    assert isinstance(await _extract("please  PAY 1.299,50", STR, copied=COPIED_TYPES | {"str"}), Filled)
    assert isinstance(await _extract("please pay nothing", STR, copied=COPIED_TYPES | {"str"}), Rejected)
    assert isinstance(await _extract("2031-01-01", DATE, copied=COPIED_TYPES - {"date"}), Filled)


async def test_an_optional_blank_may_be_left_empty() -> None:
    assert await _extract(None, optional_type(StrType("email")), "no address") == Filled(None)


async def test_a_second_try_names_the_field_and_can_mend_it() -> None:
    replies = iter(['{"to": "eve@evil.example", "total": 5}', '{"to": "ada@example.com", "total": 5}'])
    model = ScriptedProvider(lambda request: next(replies))
    wanted = RecordType((Field("to", StrType("email")), Field("total", NUMBER)))
    outcome = await Extractor(model).extract("5 to ada@example.com", "whom", wanted)
    assert outcome == Filled({"to": "ada@example.com", "total": 5})
    assert "'to'" in model.requests[1].messages[-1].text
    assert model.requests[0].json_schema == model.requests[1].json_schema


async def test_values_of_structured_sources_are_found_behind_their_quotes() -> None:
    source = {"body": "Dear Ada,\nbob@example.com\tpays 7\n\nsoon", "n": 12, "on": dt.date(2026, 3, 1)}
    assert isinstance(await _extract("bob@example.com", StrType("email"), source), Filled)
    assert isinstance(await _extract("12", StrType("id"), source), Filled)
    assert isinstance(await _extract("2026-03-01", DATE, source), Filled)
    assert isinstance(await _extract("bob@example.com", StrType("email"), json.dumps(source, default=str)), Filled)


DATES = """15 April 2026; 15. April 2026; April 15, 2026; April 15th; 15.04.2026; 15.4.; 15/04/26; 4/15/2026; 2026-04-15
20260415; 2026/4/15; 2026年4月15日; 4月15日; le 15 avril 2026; 15 de abril; 15. huhtikuuta 2026; 12-15 April; Wednesday
the fifteenth of April; tomorrow; morgen; within 14 days; in zwei Wochen; end of next month; 15\u00a0April\u00a02026"""


@pytest.mark.parametrize("text", [each.strip() for line in DATES.splitlines() for each in line.split(";")])
def test_a_date_is_found_in_any_usual_spelling(text: str) -> None:
    assert Evidence(f"It is due {text}, please.").dates.has_date(dt.date(2026, 4, 15))


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "15 April 2025",
        "16 April 2026",
        "15 May 2026",
        "2026-04-16",
        "Thursday",
        "15 of 2026 items, version 4.2",
    ],
)
def test_another_date_is_not_this_one(text: str) -> None:
    assert not Evidence(text).dates.has_date(dt.date(2026, 4, 15))


@given(
    st.dates(dt.date(1950, 1, 1), dt.date(2090, 1, 1)),
    st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%d %B %Y", "%b %d, %Y"]),
)
def test_every_date_is_found_as_it_is_written_and_the_next_day_is_not(day: dt.date, form: str) -> None:
    moments = Evidence(f"due: {day.strftime(form)}!").dates
    assert moments.has_date(day)
    assert not moments.has_date(day + dt.timedelta(days=1)) or form == "%d.%m.%Y"


@pytest.mark.parametrize(
    ("text", "hour", "minute"),
    [("9:30", 9, 30), ("9.30 Uhr", 9, 30), ("5pm", 17, 0), ("5:30 p.m.", 17, 30), ("17h30", 17, 30), ("noon", 12, 0),
     ("from 9 to 17", 17, 0), ("12 am", 0, 0)],
)  # fmt: skip
def test_a_time_is_found_by_either_clock(text: str, hour: int, minute: int) -> None:
    assert Evidence(f"at {text}").dates.has_time(dt.time(hour, minute))
    assert not Evidence("at 9:30").dates.has_time(dt.time(10, 45))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,299.50", 1299.5), ("1.299,50", 1299.5), ("1 299,50", 1299.5), ("1'299.50", 1299.5), ("12,34,567", 1234567),
     ("1\u202f000", 1000), ("10.000", 10000), ("10.000", 10), ("3,5 %", 0.035), ("1.2 million", 1_200_000),
     ("12k", 12_000), ("-7.25", -7.25), ("(7.25)", -7.25), ("٤٢", 42), ("five", 5), ("1,2,3,450", 450)],
)  # fmt: skip
def test_a_number_is_found_in_any_usual_spelling(text: str, value: float) -> None:
    assert Evidence(f"about {text} or so").has_number(value)


@given(st.integers(0, 10**9), st.integers(0, 99))
def test_every_amount_is_found_as_it_is_printed(whole: int, cents: int) -> None:
    value = float(f"{whole}.{cents:02d}")
    for text in (f"{value:,.2f}", f"{value:.2f}", f"{value:,.2f}".translate(str.maketrans(",.", ".,"))):
        evidence = Evidence(f"Total {text} EUR")
        assert evidence.has_money(value, "EUR")
        assert not evidence.has_number(value + 0.01) or f"{value + 0.01:.2f}" == f"{value:.2f}"


@settings(max_examples=examples(100))
@given(st.text(max_size=80), st.sampled_from([each[0] for each in COPIES]), st.data())
async def test_whatever_the_text_a_value_is_filled_or_rejected(text: str, wanted: Type, data: st.DataObject) -> None:
    value = data.draw(st.sampled_from([value for type_, value in COPIES + INVENTED if type_ == wanted]))
    assert isinstance(await _extract(value, wanted, f"x{text}"), Filled | Rejected)


SLOW: list[tuple[str, Callable[[Evidence], bool]]] = [
    ("(0)", lambda text: text.has_phone("0000000000001")),
    ("1 ", lambda text: text.has_phone("1111111112")),
    ("a@a.", lambda text: text.has_email("a@a.ab")),
    ("a.", lambda text: text.has_url("a.a.a.ac")),
    ("1,", lambda text: text.has_number(3)),
    ("111 ", lambda text: text.has_number(3)),
    ("1.1.", lambda text: text.dates.has_date(dt.date(2026, 4, 15))),
    ("may 1 ", lambda text: text.dates.has_date(dt.date(2026, 6, 16))),
    ("in 1 ", lambda text: text.dates.has_date(dt.date(2026, 6, 16))),
    ("1:11 ", lambda text: text.dates.has_time(dt.time(7, 7))),
    ("a a ", lambda text: text.has_words("a a b")),
    ("&#40;", lambda text: text.has_token("x")),
]


@pytest.mark.parametrize(("piece", "ask"), SLOW, ids=[each[0] for each in SLOW])
def test_no_text_makes_the_search_slow(piece: str, ask: Callable[[Evidence], bool]) -> None:
    started = time.thread_time()
    ask(Evidence(piece * (100_000 // len(piece))))
    assert time.thread_time() - started < 2


async def test_a_model_that_lies_about_everything_is_caught_in_everything_it_must_copy() -> None:
    wanted = RecordType(tuple(Field(f"f{at}", type_) for at, (type_, _) in enumerate(INVENTED)))

    def lie(request: ModelRequest) -> str:
        return json.dumps({f"f{at}": value for at, (_, value) in enumerate(INVENTED)})

    outcome = await Extractor(ScriptedProvider(lie)).extract(MAIL, "what", wanted)
    assert isinstance(outcome, Rejected)
    assert outcome.field == "f0"
