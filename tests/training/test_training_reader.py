"""The reader's training data: forms of the product with replies that it accepts, the same with any number of jobs."""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from collections import Counter
from contextlib import suppress
from functools import cache
from typing import Any, cast

import pytest

from benchmarks.everyday import REQUESTS as EVERYDAY
from bicameral import types as t
from bicameral.boundary._evidence import Evidence
from bicameral.boundary._form import FORM_SETUP, name_for_model, reply_schema, source_words
from bicameral.boundary._reply import MissingField, parse_reply
from bicameral.boundary._verbatim_check import COPIED_TYPES, SEARCHABLE_TYPES, find_uncopied
from bicameral.toolboxes.find import SHOWN_TO_READERS
from training.reader import build
from training.reader.build import make_pairs, make_reading, packs
from training.reader.check import against_evaluation
from training.reader.facts import LANGUAGES, held_patterns, load_classes, load_facts, load_other_names
from training.reader.forms import Reading, UnfitError, check_reading, missing_reply


@cache
def sample(count: int = 400, *, held: bool = False) -> tuple[Reading, ...]:
    made: list[Reading] = []
    for number in range(count):
        with suppress(UnfitError):
            made.append(make_reading(random.Random(f"test/{number}"), held=held))
    assert len(made) > 0.97 * count
    return tuple(made)


def test_every_fact_can_be_asked_for_and_stated_in_four_languages() -> None:
    assert len(load_facts()) >= 80
    for fact in load_facts():
        assert set(fact.wordings) == set(LANGUAGES)
        for wording in fact.wordings.values():
            assert len(wording.instructions) >= 1, fact.id
            assert len(wording.says) >= 2, fact.id
            assert re.fullmatch("[a-z_]+", wording.key), fact.id
            places = [each for each in (*wording.says, *wording.denials) if fact.kind != "bool" and "{v}" not in each]
            assert not places, fact.id
        # A choice is answered in the language of the form, so that the values must be in the same order.
        assert len({len(wording.values) for wording in fact.wordings.values()}) == 1, fact.id


def test_other_names_belong_to_things_and_are_the_name_of_no_other() -> None:
    known = {thing["en"].bare for each in load_classes() for thing in each.things}
    assert set(load_other_names()) <= known
    assert not {each["en"].bare for each in load_other_names().values()} & known


def test_the_product_accepts_every_reply_and_finds_every_part_of_it_in_the_text() -> None:
    for reading in sample():
        assert parse_reply_or_missing(reading) is reading.is_missing, reading.reply


def parse_reply_or_missing(reading: Reading) -> bool:
    """Whether the reply says that it is missing; the values of all others are in the text."""
    try:
        value = parse_reply(reading.reply, reading.wanted)
    except MissingField as missing:
        return missing.why == "absent"
    names = COPIED_TYPES if reading.is_composed else SEARCHABLE_TYPES
    assert find_uncopied(value, reading.wanted, Evidence(source_words(reading.source)), names) == []
    return value is None


def test_replies_have_the_keys_of_the_schema_in_its_order() -> None:
    for reading in sample():
        keys = list(json.loads(reading.reply))
        schema = reply_schema(reading.wanted)
        allowed = [list(schema["properties"]), ["not_found", "because"]]
        assert keys in allowed, reading.reply


def test_a_reply_that_is_not_in_the_text_is_refused() -> None:
    invented = Reading("x", "found", "en", "The code is 4711.", "the code", t.StrType("code"), '{"value": "4712"}')
    with pytest.raises(UnfitError, match="not in the text"):
        check_reading(invented)
    with pytest.raises(UnfitError, match="refused"):
        check_reading(Reading("x", "found", "en", "The code is 4711.", "the code", t.INT, '{"value": "4711"}'))


def test_what_is_missing_is_null_only_where_the_form_allows_it() -> None:
    assert missing_reply(t.OptionalType(t.DATE)) == '{"value": null}'
    assert missing_reply(t.DATE) == '{"not_found": "value", "because": "absent"}'
    assert missing_reply(t.MONEY) == '{"not_found": "amount", "because": "absent"}'


def test_the_shares_of_situations_languages_and_types() -> None:
    forms = sample()
    situations = Counter(each.situation for each in forms)
    facts = [each for each in forms if not each.is_composed]
    assert 0.2 <= sum(each.is_missing for each in facts) / len(facts) <= 0.34
    assert 0.07 <= (situations["ordered"] + situations["claimed"]) / len(forms) <= 0.17
    assert (situations["changed"] + situations["quoted"]) / len(forms) > 0.03
    assert all(0.18 <= count / len(forms) <= 0.32 for count in Counter(each.language for each in forms).values())
    names = {name_for_model(each.wanted) for each in forms if not isinstance(each.wanted, t.RecordType)}
    wanted = {
        "str",
        "date",
        "datetime",
        "int",
        "float",
        "bool",
        "list[str]",
        "list[date]",
        "date | None",
        "phone",
    }
    assert wanted <= names
    # One form in two hundred wants a time, so that a sample may lack it.
    assert any("time" in fact.types for fact in load_facts() if fact.id not in held_patterns())
    assert sum(isinstance(each.wanted, t.RecordType) for each in forms) > 20
    assert any(isinstance(each.wanted, t.LiteralType) for each in forms)
    assert sum(isinstance(each.source, list) for each in facts) / len(facts) > 0.5


def test_passages_have_the_fields_that_find_returns() -> None:
    lists = [cast("list[Any]", each.source) for each in sample() if isinstance(each.source, list)]
    # A list of texts is a source, too, and so is one of whole mails.
    parts = [cast("dict[str, Any]", part) for each in lists for part in each if not isinstance(part, str)]
    found = [part for part in parts if "body" not in part]
    fields = {*SHOWN_TO_READERS, "from"}
    assert all(set(part) <= fields for part in found)
    assert all({"text", "kind"} <= set(part) for part in found)
    assert {part["kind"] for part in found} == {"note", "page", "table", "contact", "mail", "event"}
    assert all(1 <= len(each) <= 8 for each in lists)


def test_days_that_are_reckoned_from_today_stand_in_forms_that_tell_the_day() -> None:
    tomorrow = re.compile(r"\b(?:tomorrow|morgen um|demain à|mañana a)\b")
    made: list[Reading] = []
    for number in range(400):
        with suppress(UnfitError):
            made.append(make_reading(random.Random(f"today/{number}")))
    series = [each for each in made if each.situation == "series"]
    assert series
    for each in series:
        events = [part["day"] for part in cast("list[Any]", each.source) if part["kind"] == "event"]
        assert dt.date.fromisoformat(json.loads(each.reply)["value"][:10]) in events
        assert each.today is not None
    reckoned = [each for each in made if tomorrow.search(source_words(each.source))]
    assert reckoned
    assert all("Today is " in each.form for each in reckoned)


def test_what_is_held_back_is_in_no_training_form() -> None:
    assert len(held_patterns()) == 4
    asked = {name for each in sample() for name in each.pattern.split("+")}
    assert not asked & held_patterns()
    asked_of_held = {each.pattern for each in sample(60, held=True) if not each.is_composed}
    assert asked_of_held <= held_patterns()
    held, others = (
        [say for fact in load_facts() if (fact.id in held_patterns()) is part
         for each in fact.wordings.values() for say in each.says]
        for part in (True, False)
    )  # fmt: skip
    # The longest words of each statement between its places, unless statements of other facts have them, too.
    parts = {max(re.split(r"\{\w+\}", say), key=len) for say in held}
    telling = [part for part in parts if len(part) > 12 and not any(part in say for say in others)]
    assert len(telling) > 5
    assert not [part for part in telling if any(part in str(each.source) for each in sample())]


def test_wording_of_the_evaluation_is_refused() -> None:
    for request in EVERYDAY[::20]:
        assert list(against_evaluation(request.text, "A harmless sentence about nothing at all."))
        assert list(against_evaluation("the colour of the fence", f"Nothing here.\n{request.text}"))
    assert list(against_evaluation("the colour of the fence", "The fence is to be painted green.")) == []


def test_the_pairs_are_the_same_with_any_number_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_BATCH", 40)
    one, refused = make_pairs(60, 7, jobs=1)
    two, also_refused = make_pairs(60, 7, jobs=2)
    assert (one, refused) == (two, also_refused)
    assert len({each.form for each in one}) == 60


def test_packs_have_the_prompt_of_the_product_and_a_bounded_size() -> None:
    pairs, _ = make_pairs(60, 7)
    made = list(packs(pairs))
    assert all(list(pack) == ["system", "opening", "pairs"] for pack in made)
    assert {pack["opening"] for pack in made} == {""}
    assert {pack["system"] for pack in made} == {FORM_SETUP[0].text}
    assert [tuple(pair) for pack in made for pair in pack["pairs"]] == [(each.form, each.reply) for each in pairs]
    assert all(sum(len(form) for form, _ in pack["pairs"]) <= build.PACK_CHARACTERS for pack in made)
