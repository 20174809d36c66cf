"""Cedar is told only what policies read, and calls that are alike in that are posed once: nothing hangs on it."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings, strategies as st
from policy_calls import BALANCE, BODY, CONTACT, PAGE, READ, USER, arg, call, mail
from test_policy_preview import calls, policies

from bicameral.labels import Label
from bicameral.policy import CallFacts, Policy
from bicameral.policy._cedar_request import ALL_FACTS, PARENTS_GROUP, entity_facts, make_call_profile, outline_call
from property_examples import examples

LABELS = (USER, CONTACT, BALANCE, BODY, READ, PAGE)


def told_everything(text: str) -> Policy:
    """The same policies, with every fact told."""
    policy = Policy.parse(text)
    policy._facts_read = ALL_FACTS  # pyright: ignore[reportPrivateUsage]
    return policy


@settings(max_examples=examples(100, quick=30))
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


def test_what_a_call_is_in_is_told_to_every_policy_that_asks() -> None:
    names = product(("send_mail", "post"), ("mail", "chat"), ("send", "write", "irreversible"), LABELS)
    every = [
        call(arg("to", "directs", to), tool=tool, toolbox=toolbox, effect=effect)  # pyright: ignore[reportArgumentType]
        for tool, toolbox, effect, to in names
    ]
    for head, clause in product(HEADS, CLAUSES):
        text = f'@id("own") forbid (principal, action == Action::"call", {head}) {clause};'
        policy, informed = Policy.parse(text), told_everything(text)
        for facts in every:
            assert policy.decide(facts) == informed.decide(facts), (text, facts)


def test_the_defaults_read_the_effect_of_a_tool_but_not_its_name() -> None:
    policy = Policy.load()
    assert set(policy._facts_read[PARENTS_GROUP]) & {"Tool", "Toolbox", "Effect"} == {"Effect"}  # pyright: ignore[reportPrivateUsage]


def test_calls_are_alike_only_where_all_that_is_read_is() -> None:
    for first, second in product(LABELS, LABELS):
        one, other = (
            entity_facts(make_call_profile(*outline_call(mail(to=to)), registry=None), ALL_FACTS)
            for to in (first, second)
        )
        assert (one == other) == (first == second or _same_to_cedar(first, second)), (first, second)


def _same_to_cedar(first: Label, second: Label) -> bool:
    def facts(label: Label) -> tuple[object, ...]:
        fields = {(source.tool, source.part) for source in label.sources}
        return label.trusted, all(source.trust == "user" for source in label.sources), label.readers, fields

    return facts(first) == facts(second)
