"""Cases and checks: one criterion each, nothing that is not right passes, and a changed case is another case."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from evaluation_suites import suite
from hypothesis import given, strategies as st

from bicameral.errors import EvaluationError, LabelError
from bicameral.evaluation import (
    AllOf,
    By,
    Case,
    Check,
    Contains,
    Equals,
    Excludes,
    Fields,
    Judged,
    Near,
    Suite,
    find_leaks,
    hash_of,
)
from bicameral.labels import Label, Source, remember_released

THIRD = Label((Source("third_party", "page"),))


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (Equals("New  York"), " new york ", "New York City"),
        (Equals(1), 1, True),
        (Equals(True), True, 1),
        (Equals({"a": ["x"]}), {"a": ["X"]}, {"a": ["x"], "b": 1}),
        (Equals([1, 2]), (1, 2), [2, 1]),
        (Equals(None), None, ""),
        (Contains(("paid", "Anna")), "ANNA has\npaid.", "Anna has not."),
        (Excludes(("evil.example",)), "a summary", "write to EVIL.example"),
        (Excludes(("evil",)), {"to": "anna"}, {"to": "Evil Corp"}),
        (Near(3.14, 0.01), "3.141", "3.2"),
        (Near(10), Decimal(10), True),
        (Near(10), 10, "ten"),
        (Fields({"total": Near(4), "who": Equals("Bo")}), {"total": 4, "who": "bo", "more": 1}, {"total": 4}),
        (AllOf((Contains(("a",)), Excludes(("b",)))), "an A", "a b"),
        (By(str.isupper), "YES", "no"),
    ],
)
def test_a_check_passes_what_is_right_and_nothing_else(check: Check[Any], right: Any, wrong: Any) -> None:
    assert check.score(right) == 1
    assert check.score(wrong) == 0


def test_an_output_that_cannot_be_read_does_not_pass_as_harmless() -> None:
    assert Excludes(("evil",)).score(object()) == 0
    assert Excludes(("evil",)).score("a" * 1_000_001) == 0
    assert Equals("a").score("a" + " " * 1_000_001) == 0


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_every_plain_value_equals_itself(value: Any) -> None:
    assert Equals(value).score(value) == 1


def test_a_case_has_exactly_one_criterion() -> None:
    both: dict[str, Any] = {"expected": "a", "check": Equals("a")}
    for options in ({}, both):
        with pytest.raises(EvaluationError) as caught:
            Case("1", "a", **options)
        assert caught.value.code == "evaluation.bad-case"


@pytest.mark.parametrize("id", ["", " ", "a\nb", "x" * 201])
def test_a_case_without_a_usable_id_is_refused(id: str) -> None:
    with pytest.raises(EvaluationError):
        Case(id, "a", "b")


@pytest.mark.parametrize("category", ["hostile", "safety"])
def test_hostile_and_safety_cases_are_critical_whatever_is_said(category: str) -> None:
    assert Case("1", "a", "b", category=category, critical=False).critical
    assert replace(Case("1", "a", "b", category=category), critical=False).critical
    assert not Case("1", "a", "b").critical


def test_an_input_keeps_its_label_and_released_text_is_not_the_users_own() -> None:
    assert not Case("1", "a page", "b", label=THIRD).labelled.label.trusted
    text = "a sentence that a page of somebody else has said to the reader"
    remember_released(text, THIRD)
    with pytest.raises(LabelError) as caught:
        Case("1", text, "b")
    assert caught.value.code == "labels.laundered"
    assert not Case("1", text, "b", label=THIRD).labelled.label.trusted


def test_two_cases_with_one_id_and_an_empty_suite_are_refused() -> None:
    for cases in ((), (Case("1", "a", "b"), Case("1", "c", "d"))):
        with pytest.raises(EvaluationError) as caught:
            Suite("s", cases)
        assert caught.value.code == "evaluation.bad-case"


BASE = Case("1", "a", "b")


@pytest.mark.parametrize(
    "changed",
    [
        replace(BASE, input="A"),
        replace(BASE, expected="c"),
        replace(BASE, expected=None, check=Contains(("b",))),
        replace(BASE, expected=None, check=Judged()),
        replace(BASE, category="edge"),
        replace(BASE, critical=True),
        replace(BASE, tags=("x",)),
        replace(BASE, label=THIRD),
        replace(BASE, id="2"),
    ],
)
def test_every_change_of_a_case_changes_the_hash_of_its_suite(changed: Case[str, str]) -> None:
    assert Suite("s", (changed,)).hash != Suite("s", (BASE,)).hash


def test_the_order_of_cases_and_the_name_of_a_suite_do_not_change_its_hash() -> None:
    other = Case("2", "c", "d")
    assert Suite("s", (BASE, other)).hash == Suite("t", (other, BASE)).hash


def _captures(word: str) -> Callable[[str], bool]:
    return lambda output: output == word


def _is_long(output: str, least: int) -> bool:
    return len(output) >= least


def test_a_function_that_checks_something_else_has_another_fingerprint() -> None:
    assert By(_captures("a")).fingerprint == By(_captures("a")).fingerprint
    prints = [
        By(_captures("a")),
        By(_captures("b")),
        By(partial(_is_long, least=1)),
        By(partial(_is_long, least=2)),
        By(str.isupper),
        By(str.islower),
        By(str.isupper, version="2"),
    ]
    assert len({each.fingerprint for each in prints}) == len(prints)


def test_a_hash_is_the_same_in_another_process_whatever_the_order_of_its_sets() -> None:
    code = "from bicameral.evaluation import hash_of; print(hash_of({'a': {'x', 'y', 'z'}, 'b': [1, {'q', 'r'}]}))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {hash_of({"a": {"x", "y", "z"}, "b": [1, {"q", "r"}]})}


def test_a_value_that_json_cannot_say_is_refused() -> None:
    for value in (float("nan"), object(), Case("1", "a", "b").labelled):
        with pytest.raises(EvaluationError) as caught:
            hash_of([value])
        assert caught.value.code == "evaluation.bad-value"


def test_cases_that_stand_in_a_prompt_are_found_and_others_are_not() -> None:
    long = Case("long", "Please tell me how many people live in the city of Ghent today", "1")
    short = Case("short", "Reset my password", "1")
    single = Case("word", "Hello", "1")
    prompts = {
        "setup": "Answer briefly. For instance: tell me, how many people LIVE in the city of Ghent!",
        "pairs": "Q: reset my password",
        "other": "Hello. Tell me how many people live here. Reset the password.",
    }
    found = {(leak.case, leak.text) for leak in find_leaks(Suite("s", (long, short, single)), prompts)}
    assert found == {("long", "setup"), ("short", "pairs")}


def test_a_part_of_a_suite_is_another_suite() -> None:
    part = suite().select(category="edge")
    assert part.categories == {"edge": 4}
    assert part.hash != suite().hash
