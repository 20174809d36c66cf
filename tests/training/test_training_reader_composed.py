"""Worded replies of the reader's training data: what the text says, in the instruction's language, and nothing else."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from contextlib import suppress
from functools import cache
from typing import Any

import pytest

from bicameral import types as t
from bicameral.boundary._form import source_words
from training.reader.build import make_reading
from training.reader.facts import LANGUAGES, Language, load_facts, load_words
from training.reader.forms import Reading, UnfitError, check_reading, invented_numbers
from training.reader.judgements import make_count, make_matter_judgement
from training.reader.matters import (
    Places,
    draw_places,
    held_matters,
    load_composing_words,
    load_matters,
    make_subject,
)
from training.reader.statements import join_sentences, make_fact_subject, plain_classes
from training.reader.summaries import join_steps, make_summary
from training.reader.values import make_value, restate_value

PLACE = re.compile(r"\{\w\}")


@cache
def summaries(count: int = 400) -> tuple[Reading, ...]:
    made: list[Reading] = []
    for number in range(count):
        picks = random.Random(f"summary/{number}")
        language = picks.choice(LANGUAGES)
        text_language = picks.choice(LANGUAGES) if number % 10 == 0 else language
        with suppress(UnfitError):
            reading = make_summary(picks, language, text_language)
            check_reading(reading)
            made.append(reading)
    assert len(made) > 0.97 * count
    return tuple(made)


def texts_of(reading: Reading) -> list[str]:
    value: Any = json.loads(reading.reply).get("value", [])
    return [value] if isinstance(value, str) else [each for each in value if isinstance(each, str)]


def test_a_matter_says_the_same_in_four_languages() -> None:
    assert len(load_matters()) >= 30
    for matter in load_matters():
        tellings = list(matter.tellings.values())
        assert len({(len(each.points), len(each.steps), bool(each.wish)) for each in tellings}) == 1, matter.name
        for number in range(len(tellings[0].points)):
            for part in ("sentences", "points"):
                places = {frozenset(PLACE.findall(getattr(each, part)[number])) for each in tellings}
                assert len(places) == 1, (matter.name, part, number)


def test_a_summary_has_no_place_that_the_message_lacks() -> None:
    for matter in load_matters():
        for telling in matter.tellings.values():
            known = {*PLACE.findall(" ".join(telling.sentences)), "{S}"}
            worded = (telling.topic, telling.title, telling.one, *telling.points, *telling.steps)
            assert all(set(PLACE.findall(each)) <= known for each in worded), matter.name
            # Nobody is the writer of what stands on a page.
            assert "notice" not in matter.flags or not any("{S}" in each for each in worded), matter.name


def test_a_summary_is_never_missing_unless_the_text_lacks_its_subject() -> None:
    found = [each for each in summaries() if each.situation != "absent"]
    assert not [each for each in found if each.is_missing]
    absent = [each for each in summaries() if each.situation == "absent"]
    assert absent
    assert all(each.is_missing for each in absent)
    assert 0.04 <= len(absent) / len(summaries()) <= 0.16


def test_a_worded_reply_names_nobody_and_no_number_that_is_not_there() -> None:
    names = {make_subject(load_matters()[0], draw_places(random.Random(n))).sender.split()[0] for n in range(400)}
    for reading in summaries():
        known = f"{source_words(reading.source)} {reading.instruction}"
        for text in texts_of(reading):
            assert not [each for each in re.findall(r"\w+", text) if each in names and each not in known], text
            assert not invented_numbers(text, known), text
            assert not PLACE.search(text), text


def test_orders_to_the_reader_are_in_the_text_and_not_in_the_reply() -> None:
    fakes = {each for language in LANGUAGES for each in load_composing_words(language)["fake"]}
    ordered = [each for each in summaries() if each.situation == "ordered"]
    assert len(ordered) > 20
    for reading in ordered:
        assert any(each in source_words(reading.source) for each in fakes)
        assert not any(each in text for each in fakes - {"OK"} for text in texts_of(reading))
        assert "OK" not in texts_of(reading)


def test_greetings_fillers_and_quoted_mails_are_left_out() -> None:
    quoted = [each for each in summaries() if each.situation == "quoted"]
    assert quoted
    for reading in summaries():
        fillers = [each for language in LANGUAGES for each in load_words(language)["filler"]]
        assert not [text for text in texts_of(reading) if any(filler.rstrip(".") in text for filler in fillers)]
    for reading in quoted:
        below = [line[2:] for line in source_words(reading.source).splitlines() if line.startswith("> ")]
        assert below
        assert not [line for line in below if any(line in text for text in texts_of(reading))]


def test_the_number_of_sentences_is_the_one_that_is_asked_for() -> None:
    for reading in summaries():
        if reading.is_missing or reading.pattern not in ("summary.one", "summary.title"):
            continue
        text = re.sub(r"\d\. ", "", texts_of(reading)[0])
        assert len(re.findall(r"[.!?] (?=[A-ZÄÖÜÉ])", text)) == 0, text


def test_a_reply_has_the_language_of_its_instruction() -> None:
    subject = make_subject(load_matters()[0], draw_places(random.Random(1)))
    for language in LANGUAGES:
        told = {subject.tellings[language].one, subject.tellings[language].two}
        others = {subject.tellings[each].one for each in LANGUAGES if each != language}
        assert not told & others
    mixed = [each for number, each in enumerate(summaries()) if number % 10 == 0 and not each.is_missing]
    assert mixed


def test_a_number_that_nobody_wrote_is_refused() -> None:
    def reading(reply: str, *, composed: bool = True) -> Reading:
        text = "The rent of the boathouse on 14.04.26 was 1.250 €."
        return Reading("x", "found", "en", text, "a short summary", t.STR, reply, is_composed=composed)

    check_reading(reading('{"value": "On 14 April 2026 the boathouse was €1250."}'))
    with pytest.raises(UnfitError, match="a number"):
        check_reading(reading('{"value": "On 14 April 2026 the boathouse was €1300."}'))
    with pytest.raises(UnfitError, match="not in the text"):
        check_reading(reading('{"value": "On 14 April 2026 the boathouse was €1250."}', composed=False))


def test_composed_forms_are_a_quarter_and_of_all_kinds() -> None:
    made: list[Reading] = []
    for number in range(250):
        with suppress(UnfitError):
            made.append(make_reading(random.Random(f"share/{number}")))
    composed = [each for each in made if each.is_composed]
    assert 0.2 <= len(composed) / len(made) <= 0.36
    kinds = Counter(each.pattern.split(".")[0] for each in composed)
    assert {"summary", "judged", "draft", "translation"} <= set(kinds)
    assert {type(each.wanted) for each in composed} >= {t.StrType, t.ListType, t.BoolType, t.LiteralType, t.IntType}


def test_matters_that_are_held_back_are_in_no_training_form() -> None:
    assert len(held_matters()) == 2
    held = [each for each in load_matters() if each.name in held_matters()]
    parts = [
        max(PLACE.split(sentence), key=len)
        for matter in held
        for telling in matter.tellings.values()
        for sentence in telling.sentences
    ]
    assert not [part for part in parts if any(part in source_words(each.source) for each in summaries())]
    with_held = make_summary(random.Random(3), "en", "en", held=True)
    assert any(part in source_words(with_held.source) for part in parts)


def test_a_value_is_the_same_in_another_language() -> None:
    for _, facts in plain_classes():
        for fact, _ in facts:
            value = make_value(fact, "en", random.Random(fact.id))
            assert restate_value(fact, value, "en", "en") == value.written
            assert restate_value(fact, value, "en", "de")
    dated = next(each for each in load_facts() if each.id == "contract.ends")
    value = make_value(dated, "en", random.Random(2))
    assert value.day is not None
    assert restate_value(dated, value, "en", "de").startswith(f"{value.day.day}. ")
    assert str(value.day.year) in restate_value(dated, value, "en", "fr")


@pytest.mark.parametrize(
    ("language", "joined"),
    [
        ("en", "The code is 1, and the key is here."),
        ("de", "The code is 1, und The key is here."),
    ],
)
def test_sentences_are_joined_with_small_letters_but_for_german_nouns(language: Language, joined: str) -> None:
    assert join_sentences(["The code is 1.", "The key is here."], language) == joined
    assert join_steps(["Den Zettel lesen", "Das Geld senden"], "de") == "Den Zettel lesen und das Geld senden."


def test_french_names_with_a_vowel_are_elided() -> None:
    drawn = draw_places(random.Random(1))
    places = Places("Edda Fontaine", "Pascal", drawn.days, drawn.at, 40, 3)
    assert places.fill("le message de {S} pour {P}, {A}", "fr") == "le message d'Edda pour Pascal, 40 €"


def test_facts_of_a_subject_are_told_in_the_plainest_words() -> None:
    for number in range(40):
        telling = make_fact_subject(random.Random(number), "en").tellings["en"]
        assert 2 <= len(telling.points) <= 3
        # A colon stands in times and links, and after no label.
        assert all(each.endswith(".") and ": " not in each for each in telling.points)


def test_judgements_are_true_as_often_as_not_and_counts_count() -> None:
    truths = Counter[Any]()
    for number in range(300):
        reading = make_matter_judgement(random.Random(number), "en", "en")
        check_reading(reading)
        value = json.loads(reading.reply)["value"]
        if isinstance(reading.wanted, t.BoolType):
            truths[value] += 1
        elif isinstance(reading.wanted, t.LiteralType):
            assert value in reading.wanted.values
    assert 0.35 <= truths[True] / truths.total() <= 0.65
    for number in range(40):
        counted = make_count(random.Random(number), "de", "de")
        assert 2 <= json.loads(counted.reply)["value"] <= 9
