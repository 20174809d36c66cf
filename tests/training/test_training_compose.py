"""Composed training data: the same blocks from the same seed, right plans, and sentences without loose ends."""

from __future__ import annotations

import random
import re
import tempfile
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
from training.delta.compose.operations import OPERATIONS
from training.delta.sample import STANDARD
from training.delta.slots import KINDS, SLOT

MADE = compose(360, 11)
DAYS = re.compile(r"<d[,.a-z]*:([^<>]+)>")
REFERENCE = re.compile(r"\b(?:file|column|value)\(([\"'])(.+?)\1\)")
VALUES = {"n": "7", "big": "90", "mail": "kim@example.org", "csv": "a.csv", "txt": "a.txt"}


def filled(plan: str) -> str:
    """A plan as it is checked: every slot has a value."""
    return SLOT.sub(lambda slot: VALUES.get(slot[1], slot[1]), DAYS.sub("2026-03-04", plan))


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
        plan = filled(composed.plan)
        if refusal_reason(plan) or (wants_find(composed) and "find" not in registry):
            continue
        parsed = parse(plan, registry)
        report = check(parsed.plan, registry, unbound=True)
        assert report.ok, f"{plan}\n{report.errors}"
        assert not [finding for finding in report.findings if finding.code == "plan.unused"], plan
        assert print_plan(parsed.plan, registry) == plan


def test_a_refusal_is_the_whole_plan_and_says_why() -> None:
    refused = [composed for composed in MADE if composed.operation == "refused"]
    assert refused
    for composed in refused:
        assert composed.plan.count("\n") == 1, composed.plan
        assert refusal_reason(composed.plan), composed.plan
    assert all("cannot(" not in composed.plan for composed in MADE if composed.operation != "refused")


def test_a_fair_share_are_refusals_and_questions() -> None:
    operations = [composed.operation for composed in compose(1000, 2)]
    assert 0.1 < operations.count("refused") / 1000 < 0.2
    assert 0.04 < sum(name.startswith("asked_") for name in operations) / 1000 < 0.1


@pytest.mark.parametrize("code", LANGUAGES)
def test_referenced_words_are_words_of_the_language_that_is_composed_in(code: str) -> None:
    language = load_language(code)
    known = {word for domain in language.domains for word in domain.words()}
    for pair in language.pairs:
        known |= {pair.on, pair.name, pair.measure, pair.category, pair.value}
        known |= {phrase.split(" ", 1)[1] for phrase in (pair.left, pair.right)}
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


def test_printed_blocks_are_read_back_as_corpus(tmp_path: Path) -> None:
    path = tmp_path / "composed.txt"
    path.write_text("\n".join(composed.as_text() for composed in MADE[:40]), encoding="utf-8")
    read = list(read_blocks(path))
    assert [(block.phrasings, block.plan) for block in read] == [
        ((*composed.phrasings, *composed.sloppy), composed.plan) for composed in MADE[:40]
    ]
