"""A user's own policies: they may always narrow, and widen only by the name of the default that they lift."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from policy_calls import BODY, CONTACT, READ, USER, arg, call, decided, mail, said, why

from bicameral.errors import PolicyError
from bicameral.labels import Label, Source
from bicameral.policy import Allowed, Policy


@pytest.mark.parametrize(
    "head",
    [
        'resource in Tool::"send_mail"',
        'resource in Toolbox::"mail"',
        'resource in Effect::"send"',
        "resource",
    ],
)
def test_a_forbid_stops_calls_by_tool_toolbox_and_effect(head: str) -> None:
    text = f'@id("no") forbid (principal, action, {head});'
    assert decided(mail(), text) == ("denied", ("no",))
    other = call(tool="search_mail", toolbox="archive", effect="read", outbound=False)
    assert decided(other, text) == (("denied", ("no",)) if head == "resource" else ("allowed", ()))


def test_a_forbid_stops_calls_by_whom_they_name() -> None:
    text = '@id("known") forbid (principal, action, resource) unless { ["example.com"].containsAll(context.domains) };'
    assert decided(mail(), text) == ("allowed", ())
    assert decided(mail(names=["bob@example.com", "eve@evil.com"]), text) == ("denied", ("known",))
    named = '@id("not-eve") forbid (principal, action, resource) when { context.receivers.contains("eve@evil.com") };'
    assert decided(mail(names=["Eve@Evil.com "]), named) == ("denied", ("not-eve",))


def test_a_forbid_stops_calls_by_where_values_came_from() -> None:
    text = '@id("kept") forbid (principal, action, resource) when { resource.all.sources.contains("search_mail") };'
    assert decided(call(arg("x", "selects", BODY), effect="read", outbound=False), text) == ("denied", ("kept",))
    field = (
        '@id("kept") forbid (principal, action, resource) when { resource.all.fields.contains("search_mail[].to") };'
    )
    assert decided(call(arg("x", "selects", BODY), effect="read", outbound=False), field) == ("allowed", ())


def test_a_forbid_may_speak_of_one_argument() -> None:
    text = """
        @id("to") forbid (principal, action, resource)
        when { resource.hasTag("to") && !resource.getTag("to").from_user };
    """
    assert decided(mail(to=CONTACT), text) == ("denied", ("to",))
    assert decided(mail(), text) == ("allowed", ())
    assert decided(call(arg("path", "directs", CONTACT), effect="write", outbound=False), text) == ("allowed", ())


def test_a_forbid_with_a_question_asks() -> None:
    text = '@id("pay") @ask("Pay?") @reason("money leaves") forbid (principal, action, resource);'
    found = Policy.parse(text).decide(mail())
    assert (said(found), why(found)) == ("ask", "send_mail: money leaves. Pay?")


def test_one_policy_without_a_question_is_enough_to_refuse() -> None:
    text = '@id("no") forbid (principal, action, resource);'
    found = Policy.parse(text, file="team.cedar").decide(mail(to=READ))
    assert decided(mail(to=READ), text) == ("denied", ("directed-by-strangers", "no"))
    assert "the policy 'no' (team.cedar, line 1) forbids it" in why(found)
    assert "search_mail's [].body" in why(found)


REPLY = """
    @id("replies")
    @overrides("directed-by-strangers")
    permit (principal, action, resource in Tool::"send_mail")
    when { ["request", "search_mail[].sender"].containsAll(resource.directs.fields) };
"""
SENDER = Label({Source("third_party", "search_mail", "[].sender", "2")})


def test_an_override_lifts_the_default_that_it_names_and_no_other() -> None:
    assert decided(mail(to=SENDER)) == ("ask", ("directed-by-strangers",))
    assert decided(mail(to=SENDER), REPLY) == ("allowed", ())
    assert decided(mail(to=SENDER, body=BODY), REPLY) == (
        "ask",
        ("leaves-its-readers", "strangers-text-in-your-name"),
    )


def test_an_override_lifts_nothing_where_it_does_not_hold() -> None:
    assert decided(mail(to=READ), REPLY) == ("ask", ("directed-by-strangers",))
    other = call(arg("to", "directs", SENDER), tool="send_fax", toolbox="fax")
    assert decided(other, REPLY) == ("ask", ("directed-by-strangers",))


def test_an_override_may_lift_several_defaults() -> None:
    text = """
        @id("lists") @overrides("leaves-its-readers, strangers-text-in-your-name")
        permit (principal, action, resource in Toolbox::"mail") when { resource.addresses.from_user };
    """
    assert decided(mail(body=BODY), text) == ("allowed", ())
    assert decided(mail(to=CONTACT, body=BODY), text)[0] == "ask"


def test_an_override_does_not_lift_a_policy_of_ones_own() -> None:
    no = '@id("no") forbid (principal, action, resource in Tool::"send_mail");'
    assert decided(mail(to=SENDER), REPLY + no) == ("denied", ("no",))


PERMITS = [
    "permit (principal, action, resource);",
    'permit (principal == Person::"user", action == Action::"call", resource) when { true };',
    'permit (principal, action, resource in Tool::"send_mail");',
    "permit (principal, action, resource) unless { false };",
]


@pytest.mark.parametrize("text", PERMITS)
def test_a_permit_for_everything_is_refused(text: str) -> None:
    with pytest.raises(PolicyError) as error:
        Policy.parse(text)
    assert error.value.code == "policy.changes-nothing"


@pytest.mark.parametrize("name", ["directed-by-strangers", "leaves-its-readers"])
@pytest.mark.parametrize(
    "head",
    ["resource", 'resource in Effect::"send"', "resource is Call", 'resource is Call in Effect::"read"'],
)
def test_a_default_cannot_be_switched_off_for_every_tool(name: str, head: str) -> None:
    with pytest.raises(PolicyError) as error:
        Policy.parse(f'@overrides("{name}") permit (principal, action, {head});')
    assert error.value.code == "policy.too-wide"


def test_what_allows_known_tools_cannot_be_lifted() -> None:
    with pytest.raises(PolicyError) as error:
        Policy.parse('@overrides("known-tools") permit (principal, action, resource in Tool::"send_mail");')
    assert error.value.code == "policy.unknown-default"


labels = st.builds(
    Label,
    st.frozensets(
        st.builds(
            Source,
            st.sampled_from(["user", "system", "third_party"]),
            st.sampled_from(["request", "search_mail", "bank"]),
            st.sampled_from(["", "[].body"]),
            st.just("1"),
        ),
        max_size=3,
    ),
    st.one_of(st.just(USER.readers), st.frozensets(st.sampled_from(["ann@a.org", "bob@b.org"]))),
)
NARROWING = [
    Policy.parse(text)
    for text in (
        "forbid (principal, action, resource) when { context.receivers.isEmpty() };",
        '@ask("?") forbid (principal, action, resource) when { resource.all.sources.contains("bank") };',
        'forbid (principal, action, resource in Effect::"send") unless { resource.carries.public };',
    )
]
DEFAULTS = Policy.load()


@given(to=labels, body=labels, control=labels, names=st.frozensets(st.sampled_from(["ann@a.org", "bob@b.org"])))
def test_a_forbid_never_widens(to: Label, body: Label, control: Label, names: frozenset[str]) -> None:
    facts = mail(to, body, names=names, control=control)
    strength = {"allowed": 0, "ask": 1, "denied": 2}
    without = DEFAULTS.decide(facts)
    for policy in NARROWING:
        assert strength[said(policy.decide(facts))] >= strength[said(without)]


@given(to=labels, body=labels, control=labels, names=st.frozensets(st.sampled_from(["ann@a.org", "bob@b.org"])))
def test_the_defaults_are_the_three_rules(to: Label, body: Label, control: Label, names: frozenset[str]) -> None:
    """The same rules, once more in Python."""
    leaving = {each.readers for each in (body, control) if each.readers is not USER.readers}
    readable = bool(names) and all(isinstance(each, frozenset) and names <= each for each in leaving)
    wanted = (
        to.trusted
        and control.trusted
        and body.trusted
        and (not leaving or readable or all(source.trust == "user" for source in to.sources))
    )
    assert isinstance(DEFAULTS.decide(mail(to, body, names=names, control=control)), Allowed) is wanted
