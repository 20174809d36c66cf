"""Cedar is told only what policies read, and calls that are alike in that are posed once: nothing hangs on it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_calls import BALANCE, BODY, CONTACT, PAGE, READ, USER, arg, call, mail
from test_policy_preview import calls, policies

from bicameral.labels import Label
from bicameral.policy import CallFacts, Policy
from bicameral.policy._cedar_request import ALL_FACTS, PARENTS_GROUP, entity_facts, make_call_profile, outline_call

labels = st.sampled_from([USER, CONTACT, BALANCE, BODY, READ, PAGE])


def told_everything(text: str) -> Policy:
    """The same policies, with every fact told."""
    policy = Policy.parse(text)
    policy._facts_read = ALL_FACTS  # pyright: ignore[reportPrivateUsage]
    return policy


@given(text=policies, pairs=st.lists(calls(), min_size=2, max_size=4))
def test_a_policy_decides_the_same_whether_or_not_it_is_told_everything(
    text: str, pairs: list[tuple[CallFacts, CallFacts]]
) -> None:
    policy, informed = Policy.parse(text), told_everything(text)
    for facts in (each for pair in pairs for each in pair):
        assert policy.decide(facts) == informed.decide(facts)
        assert policy.preview(facts) == informed.preview(facts)


HEADS = (
    'resource in Tool::"send_mail"',
    'resource is Call in Toolbox::"mail"',
    'resource in Effect::"write"',
    "resource",
)
CLAUSES = (
    "",
    'when { resource in Tool::"post" }',
    'when { resource in [Effect::"send", Effect::"irreversible"] }',
    'unless { resource is Call in Tool::"send_mail" }',
)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("clause", CLAUSES)
@given(
    tool=st.sampled_from(["send_mail", "post"]),
    toolbox=st.sampled_from(["mail", "chat"]),
    effect=st.sampled_from(["send", "write", "irreversible"]),
    to=labels,
)
def test_what_a_call_is_in_is_told_to_every_policy_that_asks(
    head: str, clause: str, tool: str, toolbox: str, effect: str, to: Label
) -> None:
    text = f'@id("own") forbid (principal, action == Action::"call", {head}) {clause};'
    facts = call(arg("to", "directs", to), tool=tool, toolbox=toolbox, effect=effect)  # pyright: ignore[reportArgumentType]
    assert Policy.parse(text).decide(facts) == told_everything(text).decide(facts)


def test_the_defaults_read_the_effect_of_a_tool_but_not_its_name() -> None:
    policy = Policy.load()
    assert set(policy._facts_read[PARENTS_GROUP]) & {"Tool", "Toolbox", "Effect"} == {"Effect"}  # pyright: ignore[reportPrivateUsage]


@given(first=labels, second=labels)
def test_calls_are_alike_only_where_all_that_is_read_is(first: Label, second: Label) -> None:
    one, other = (
        entity_facts(make_call_profile(*outline_call(mail(to=to)), registry=None), ALL_FACTS) for to in (first, second)
    )
    assert (one == other) == (first == second or _same_to_cedar(first, second))


def _same_to_cedar(first: Label, second: Label) -> bool:
    def facts(label: Label) -> tuple[object, ...]:
        fields = {(source.tool, source.part) for source in label.sources}
        return label.trusted, all(source.trust == "user" for source in label.sources), label.readers, fields

    return facts(first) == facts(second)
