"""Everyday orders for notes, messages, lists and calendars are known, and the same words elsewhere order nothing."""

from __future__ import annotations

import pytest
from everyday_orders import NO_ORDERS, pairs
from standard_tools import REGISTRY

from bicameral.planning import asked_effects


@pytest.mark.parametrize(("effect", "order"), [(effect, order) for effect, order, _ in pairs()])
def test_an_everyday_order_is_known(effect: str, order: str) -> None:
    assert effect in asked_effects(order, REGISTRY)


@pytest.mark.parametrize("twin", [twin for _, _, twin in pairs()])
def test_the_same_words_in_a_question_or_a_report_order_nothing(twin: str) -> None:
    assert asked_effects(twin, REGISTRY) == ()


@pytest.mark.parametrize("request_text", NO_ORDERS.splitlines())
def test_conditions_drafts_prohibitions_and_nouns_order_nothing(request_text: str) -> None:
    assert asked_effects(request_text, REGISTRY) == ()
