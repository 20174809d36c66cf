"""Untrusted text asks before it is written where programs execute it; everything else goes there unasked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bicameral.labels import NOTHING, TRUSTED_USER, Label, Source
from bicameral.policy import Allowed, ArgumentFacts, Ask, CallFacts, Policy

STRANGERS = Label({Source("third_party", "read_text", "", "0")})
POLICY = Policy.load()


def write(text: Label, *, executed: bool | None, copied: Label = NOTHING, bounded: bool = False) -> CallFacts:
    arguments = (
        ArgumentFacts("path", "directs", TRUSTED_USER, principals=frozenset()),
        ArgumentFacts("text", "carries", text, bounded),
    )
    facts = CallFacts("write_text", "files", "write", False, True, arguments, TRUSTED_USER, "strict", "1")
    return replace(facts, lures=frozenset(), executed=executed, copied=copied)


@pytest.mark.parametrize("decide", [POLICY.decide, POLICY.preview], ids=["decide", "preview"])
@pytest.mark.parametrize(
    ("facts", "asks"),
    [
        (write(STRANGERS, executed=True), True),
        (write(STRANGERS, executed=False), False),
        (write(STRANGERS, executed=None), True),
        (write(TRUSTED_USER, executed=True), False),
        (write(TRUSTED_USER, executed=None), False),
        (write(STRANGERS, executed=True, bounded=True), False),
        (write(TRUSTED_USER, executed=True, copied=STRANGERS), True),
        (write(TRUSTED_USER, executed=None, copied=STRANGERS), True),
        (write(TRUSTED_USER, executed=False, copied=STRANGERS), False),
    ],
)
def test_only_untrusted_text_in_such_a_file_is_asked_about(decide: object, facts: CallFacts, asks: bool) -> None:
    assert callable(decide)
    decision = decide(facts)
    assert isinstance(decision, Ask if asks else Allowed)
    if isinstance(decision, Ask):
        assert decision.rules == ("strangers-text-executed",)


def test_the_question_says_what_is_known_and_what_is_not() -> None:
    known, unknown = POLICY.decide(write(STRANGERS, executed=True)), POLICY.decide(write(STRANGERS, executed=None))
    assert isinstance(known, Ask)
    assert "into a file that programs execute. Shall it be written" in known.question
    assert isinstance(unknown, Ask)
    assert "which matters if other programs execute or obey it" in unknown.question


def test_a_policy_of_ones_own_may_forbid_it_or_lift_the_question() -> None:
    never = Policy.parse("forbid (principal, action, resource) when { context.executed };")
    assert not isinstance(never.decide(write(TRUSTED_USER, executed=True)), Allowed)
    assert isinstance(never.decide(write(TRUSTED_USER, executed=False)), Allowed)
    lifted = Policy.parse(
        '@overrides("strangers-text-executed") permit (principal, action, resource in Tool::"write_text");'
    )
    assert isinstance(lifted.decide(write(STRANGERS, executed=True)), Allowed)


@pytest.mark.parametrize("decide", ["decide", "preview"])
def test_an_unknown_file_is_judged_as_strictly_as_an_executed_one_by_a_policy_of_ones_own(decide: str) -> None:
    never = Policy.parse("forbid (principal, action, resource) when { context.executed };")
    assert not isinstance(getattr(never, decide)(write(TRUSTED_USER, executed=None)), Allowed)
    assert isinstance(getattr(never, decide)(write(TRUSTED_USER, executed=False)), Allowed)
