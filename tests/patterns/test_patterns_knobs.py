"""Knobs of patterns that work on a text, as they are typed: of the kind of their default, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from bicameral.errors import CatalogError
from bicameral.patterns import parse_pattern_knobs, text_pattern, text_pattern_knobs, text_patterns


@pytest.mark.parametrize(
    ("id", "typed"),
    [
        ("R4", "max_steps=many"),
        ("R4", "max_steps=NaN"),
        ("R4", "max_steps=Infinity"),
        ("R4", "max_steps=2.5"),
        ("R4", "max_steps=true"),
        ("R4", "max_steps=[4]"),
        ("R4", "max_steps=null"),
        ("R4", "max_steps=0"),
        ("R4", f"max_steps={'9' * 400}"),
        ("R4", f"max_steps={'[' * 100_000}"),
        ("R4", "at_bound=never"),
        ("R4", "at_bound=3"),
        ("R5", "cite=yes"),
        ("V4", f"max_turns={'9' * 400}"),
        ("O1", "context_share=half"),
        ("O1", "context_share=NaN"),
    ],
)
def test_a_knob_of_another_kind_is_refused_and_bounds_hold(id: str, typed: str) -> None:
    with pytest.raises(CatalogError) as caught:
        text_pattern(id, parse_pattern_knobs(id, [typed]))
    assert caught.value.code == "pattern.bad-knob"
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("id", "typed", "wanted"),
    [
        ("R4", "max_steps=4", 4),
        ("R4", "at_bound=partial", "partial"),
        ("R5", "cite=true", True),
        ("O1", "context_share=1", 1),
        ("O1", "context_share=0.25", 0.25),
    ],
)
def test_a_knob_of_its_own_kind_is_set(id: str, typed: str, wanted: Any) -> None:
    name = typed.partition("=")[0]
    assert getattr(text_pattern(id, parse_pattern_knobs(id, [typed])), name) == wanted


def test_an_unknown_knob_is_named_with_the_nearest() -> None:
    with pytest.raises(CatalogError) as caught:
        parse_pattern_knobs("R4", ["max_stebs=4"])
    assert (caught.value.code, caught.value.nearest) == ("catalog.unknown-knob", "max_steps")


def test_every_knob_that_a_form_offers_can_be_set_to_its_default() -> None:
    for id in text_patterns():
        for name, knob in text_pattern_knobs(id).items():
            assert getattr(text_pattern(id, {name: knob.default}), name) == knob.default
