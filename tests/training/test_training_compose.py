"""Composed training data: the same blocks from the same seed, right plans, and sentences without loose ends."""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bicameral.planning import NeutralNames
from bicameral.planning._decode import refusal_reason
from bicameral.plans import check, parse, print_plan
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes
from training.delta.blocks import read_blocks
from training.delta.compose import LANGUAGES, Composition, compose, compose_blocks
from training.delta.compose.composition import compose_operation
from training.delta.compose.domains import load_language
from training.delta.compose.errands import Occasion, occasion_words
from training.delta.compose.operations import OPERATIONS
from training.delta.sample import STANDARD
from training.delta.slots import KINDS, SLOT

MADE = compose(360, 11)
DAYS = re.compile(r"<d[,.a-z]*:([^<>]+)>")
REFERENCE = re.compile(r"\b(?:file|column|value)\(([\"'])(.+?)\1\)")
REFUSING = {"refused", "refused_errand", "contradictory"}
VALUES = {"n": "7", "big": "90", "mail": "kim@example.org", "csv": "a.csv", "txt": "a.txt"}


def filled(plan: str) -> str:
    """A plan as it is checked: every slot has a value."""
    plan = DAYS.sub(lambda day: "2026, 3, 4" if day[0].startswith("<d,") else "2026-03-04", plan)
    return SLOT.sub(lambda slot: VALUES.get(slot[1], slot[1]), plan)


def wants_find(composed: Composition) -> bool:
    return "= find(" in composed.plan


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        tools = load_toolboxes({box: {} for box in STANDARD}, Surroundings(Folders(folder, (folder,), (folder,))))
        yield NeutralNames().planner_registry(tools)


def test_the_same_seed_gives_the_same_blocks_and_another_one_others() -> None:
    assert compose_blocks(40, 3) == compose_blocks(40, 3)
    assert compose_blocks(40, 3) != compose_blocks(40, 4)


def test_languages_take_turns() -> None:
    assert [composed.language for composed in MADE[:8]] == [*LANGUAGES, *LANGUAGES]
    assert {composed.language for composed in compose(6, 1, ["fr"])} == {"fr"}


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ValueError, match="there are en, de, fr, es"):
        compose_blocks(1, 1, ["xx"])


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_operation_can_be_composed(code: str) -> None:
    language = load_language(code)
    for operation in OPERATIONS:
        assert compose_operation(language, operation, random.Random(operation)) is not None, operation


def test_phrasings_have_no_placeholders_and_no_loose_punctuation() -> None:
    for composed in MADE:
        for phrasing in (*composed.phrasings, *composed.sloppy):
            assert re.search(r"[{}\x08]|  | ,|,,|,[.?!]|\.\.", phrasing) is None, phrasing


def test_every_block_has_several_phrasings_that_differ() -> None:
    for composed in MADE:
        said = (*composed.phrasings, *composed.sloppy)
        assert len(composed.phrasings) >= 3, composed
        assert len(set(said)) == len(said), composed


def test_careful_phrasings_begin_with_a_capital_and_end_with_a_mark() -> None:
    for composed in MADE:
        for phrasing in composed.phrasings:
            assert re.match(r"[\"¿]?(?:[A-ZÀ-Þ]|<)", phrasing), phrasing
            assert phrasing[-1] in ".?!", phrasing


def test_slots_are_known_and_those_of_the_plan_are_in_every_phrasing() -> None:
    for composed in MADE:
        wanted = {slot[0] for slot in SLOT.finditer(composed.plan)}
        assert {slot[1] for slot in SLOT.finditer(composed.plan)} <= {*KINDS}, composed.plan
        for phrasing in (*composed.phrasings, *composed.sloppy):
            assert wanted <= {slot[0] for slot in SLOT.finditer(phrasing)}, phrasing


def test_days_of_the_plan_are_named_in_every_phrasing() -> None:
    for composed in MADE:
        for phrase in DAYS.findall(composed.plan):
            assert all(phrase in said for said in (*composed.phrasings, *composed.sloppy)), composed


def test_every_plan_passes_the_check_and_is_printed_as_it_stands(registry: Registry) -> None:
    for composed in MADE:
        plan = ('found = find("what the request says")\n' if composed.searched else "") + filled(composed.plan)
        if refusal_reason(plan) or (wants_find(composed) and "find" not in registry):
            continue
        parsed = parse(plan, registry)
        report = check(parsed.plan, registry, unbound=True)
        assert report.ok, f"{plan}\n{report.errors}"
        assert not [finding for finding in report.findings if finding.code == "plan.unused"], plan
        printed = print_plan(parsed.plan, registry)
        # A call within a call has a line of its own when it is printed; `start=today()` is how people write it.
        assert printed == plan if "=today()" not in plan else parse(printed, registry).plan.steps == parsed.plan.steps


def test_a_refusal_is_the_whole_plan_and_says_why() -> None:
    refused = [composed for composed in MADE if composed.operation in REFUSING]
    assert {composed.operation for composed in refused} == REFUSING
    for composed in refused:
        assert composed.plan.count("\n") == 1, composed.plan
        assert refusal_reason(composed.plan), composed.plan
    assert all("cannot(" not in composed.plan for composed in MADE if composed.operation not in REFUSING)


def test_a_fair_share_are_refusals_and_questions() -> None:
    operations = [composed.operation for composed in compose(1000, 2)]
    assert 0.1 < sum(name in REFUSING for name in operations) / 1000 < 0.2
    assert 0.04 < sum(name.startswith("asked_") for name in operations) / 1000 < 0.1


@pytest.mark.parametrize("code", LANGUAGES)
def test_referenced_words_are_words_of_the_language_that_is_composed_in(code: str) -> None:
    language = load_language(code)
    known = {word for domain in language.domains for word in domain.words()}
    for pair in language.pairs:
        known |= {pair.on, pair.name, pair.measure, pair.category, pair.value}
        known |= {phrase.split(" ", 1)[1] for phrase in (pair.left, pair.right)}
    known |= {note.list for note in language.errands.notes}
    for composed in compose(200, 6, [code]):
        for _, words in REFERENCE.findall(composed.plan):
            assert words in known, words


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_has_the_same_groups_of_sentences_and_enough_of_them(code: str) -> None:
    language, english = load_language(code), load_language("en")
    assert language.frames.keys() == english.frames.keys()
    assert language.texts.keys() == english.texts.keys()
    for name, frames in language.frames.items():
        assert len(frames.say) + len(frames.sloppy) >= 4, name
        assert frames.sloppy, name


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_has_the_same_kinds_of_errands(code: str) -> None:
    errands, english = load_language(code).errands, load_language("en").errands
    assert [each.key for each in errands.errands] == [each.key for each in english.errands]
    assert Counter(each.type for each in errands.questions) == Counter(each.type for each in english.questions)
    assert {"str", "date", "float", "int", "bool", "list[str]"} == {each.type for each in errands.questions}
    assert all(len(each.asked) >= 3 for each in (*errands.questions, *errands.mail_questions))
    assert all(len(each.say) >= 4 and len(each.sloppy) >= 3 for each in errands.errands)


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_word_that_a_plan_searches_for_stands_in_every_way_to_ask(code: str) -> None:
    errands = load_language(code).errands
    for asked in errands.mail_questions:
        for way in asked.asked:
            assert asked.text.casefold() in way.casefold(), way
            assert asked.sender.casefold() in way.casefold(), way
    for occasion in errands.occasions:
        assert occasion.key.casefold() in occasion.noun.casefold(), occasion
    for letter in errands.letters:
        assert letter.words in letter.accusative
        assert letter.words in letter.to
    for note in errands.notes:
        assert note.list in note.onto


@pytest.mark.parametrize(
    ("code", "gender", "noun", "key", "said"),
    [
        ("en", "", "haircut", "o_next", "my next haircut"),
        ("de", "m", "Lesekreis", "o_next_acc", "meinen nächsten Lesekreis"),
        ("de", "f", "Chorprobe", "o_last_dat", "meiner letzten Chorprobe"),
        ("de", "n", "Schachturnier", "o_next", "mein nächstes Schachturnier"),
        ("fr", "f", "audition", "o_my", "mon audition"),
        ("fr", "m", "cours de yoga", "o_of", "du cours de yoga"),
        ("es", "f", "clase de yoga", "o_last", "mi última clase de yoga"),
        ("es", "m", "ensayo", "o_to", "al ensayo"),
    ],
)
def test_events_are_spoken_of_in_the_right_form(code: str, gender: str, noun: str, key: str, said: str) -> None:
    assert occasion_words(Occasion(noun, gender, noun), code)[key] == said


@pytest.mark.parametrize(
    ("code", "said"), [("en", "at 3:30pm"), ("de", "um 15:30 Uhr"), ("fr", "à 15h30"), ("es", "a las 15:30")]
)
def test_a_time_is_said_as_in_the_language(code: str, said: str) -> None:
    assert said in load_language(code).errands.clock_phrases(15, 30)


def test_a_draft_is_no_mail_and_a_message_is_one() -> None:
    for code in LANGUAGES:
        for number in range(6):
            picks = random.Random(f"{code}/{number}")
            drafted, told = (compose_operation(load_language(code), name, picks) for name in ("drafted", "told"))
            assert drafted is not None
            assert told is not None
            assert "send_mail" not in drafted.plan
            assert "send_mail" in told.plan


def test_printed_blocks_are_read_back_as_corpus(tmp_path: Path) -> None:
    path = tmp_path / "composed.txt"
    path.write_text("\n".join(composed.as_text() for composed in MADE[:40]), encoding="utf-8")
    read = list(read_blocks(path))
    assert {block.searched for block in read} == {True, False}
    assert [(block.phrasings, block.plan, block.searched) for block in read] == [
        ((*composed.phrasings, *composed.sloppy), composed.plan, composed.searched) for composed in MADE[:40]
    ]
