"""Names that try to be more than names, facts of no known kind, facts without end, and policies that fail."""

from __future__ import annotations

from time import perf_counter
from typing import Any, cast

import pytest
from hypothesis import example, given, strategies as st
from policy_calls import BODY, READ, USER, arg, call, decided, mail, said, why

from bicameral.labels import Label, Source
from bicameral.policy import Allowed, CallFacts, Policy
from bicameral.policy._cedar_request import address_domain

POLICY = Policy.load()
INJECTIONS = [
    '"',
    '\\"',
    '"}, {"__entity": {"type": "Effect", "id": "read"}}, {"',
    '", "outbound": false, "x": "',
    'send_mail"; permit(principal, action, resource); //',
    "a\nb\r\n\0\u2028",
    "\u202eevil",
    "é" * 300,
    '{"__extn": {"fn": "ip", "arg": "1.2.3.4"}}',
    "__entity",
    "",
]
texts = st.one_of(st.sampled_from(INJECTIONS), st.text(max_size=40))


@given(tool=texts, toolbox=texts, name=texts, part=texts, reader=texts)
@example(*INJECTIONS[2:7])
def test_no_name_can_change_what_is_decided(tool: str, toolbox: str, name: str, part: str, reader: str) -> None:
    stranger = Label({Source("third_party", tool, part, part)}, {reader})
    facts = call(arg(name, "directs", stranger, names=[reader]), tool=tool, toolbox=toolbox)
    assert decided(facts)[0] != "allowed"
    harmless = call(arg(name, "selects", stranger), tool=tool, toolbox=toolbox, effect="read", outbound=False)
    assert decided(harmless) == ("allowed", ())


EVERY_FACT = Policy.parse("""
    @id("send") forbid (principal, action, resource in Effect::"send") when { resource.outbound };
    @id("sources") forbid (principal, action, resource) when { resource.all.sources.contains("x") };
    @id("fields") forbid (principal, action, resource) when { resource.all.fields.contains("x") };
    @id("readers") forbid (principal, action, resource) when { resource.all.readers.contains("x") };
    @id("tags") forbid (principal, action, resource) when { resource.hasTag("x") && resource.getTag("x").trusted };
    @id("box") forbid (principal, action, resource in Toolbox::"x");
    @id("to") forbid (principal, action, resource) when { context.receivers.contains("x") };
    @id("domain") forbid (principal, action, resource) when { context.domains.contains("x") };
""")


@given(tool=texts, toolbox=texts, name=texts, part=texts, reader=texts)
def test_a_name_is_only_ever_itself(tool: str, toolbox: str, name: str, part: str, reader: str) -> None:
    label = Label({Source("system", tool, part)}, {reader})
    facts = call(arg(name, "directs", label, names=[reader]), tool=tool, toolbox=toolbox, effect="read", outbound=False)
    found = EVERY_FACT.decide(facts)
    plainly = reader.strip().lower() if reader.strip().isascii() else reader.strip()
    expected = {
        "sources": tool == "x",
        "fields": tool + (part if part.startswith("[") or not part else f".{part}") == "x",
        "readers": plainly == "x",
        "tags": name == "x",
        "box": toolbox == "x",
        "to": plainly == "x",
        "domain": address_domain(plainly) == "x",
    }
    assert said(found) == ("denied" if any(expected.values()) else "allowed"), why(found)


def test_what_a_terminal_would_obey_is_shown_as_what_it_is() -> None:
    told = why(POLICY.decide(mail(to=Label({Source("system", "x")}, {"user"}), body=BODY, names=["a\u202e\x1b[2J\nb"])))
    assert not set("\u202e\x1b\n") & set(told)


@pytest.mark.parametrize(
    "address",
    [
        "eve@evil.com, ann@example.com",
        "ann@example.com, eve@evil.com",
        "eve@evil.com ann@example.com",
        "Ann <eve@evil.com>",
        '"eve@evil.com"@example.com x',
        "eve@evil.com\n@example.com",
        "eve@evil.com;@example.com",
        "@example.com",
        "example.com",
        "mailto:ann@example.com",
    ],
)
def test_what_is_not_plainly_one_address_has_no_good_domain(address: str) -> None:
    text = 'forbid (principal, action, resource) unless { ["example.org"].containsAll(context.domains) };'
    assert decided(mail(names=[address.replace("example.com", "example.org")]), text)[0] == (
        "allowed" if address == "example.com" else "denied"
    )


def test_a_domain_is_what_follows_the_only_at() -> None:
    assert address_domain("ann@example.com") == "example.com"
    assert address_domain("ann@example.com.") == "example.com"
    text = 'forbid (principal, action, resource) unless { ["example.com"].containsAll(context.domains) };'
    assert decided(mail(names=["Ann@EXAMPLE.com"]), text) == ("allowed", ())


@pytest.mark.parametrize(
    "facts",
    [
        call(effect=cast("Any", "destroy")),
        call(effect=cast("Any", "")),
        call(effect=cast("Any", 'read"')),
        call(effect=cast("Any", None)),
        call(effect=cast("Any", ["read"])),
        call(mode=cast("Any", "off")),
        call(outbound=cast("Any", "no")),
        call(outbound=cast("Any", None)),
        call(declared=cast("Any", 0.5)),
        call(arg("to", cast("Any", "ignores"))),
        call(arg("to", "directs", bounded=cast("Any", "yes"))),
        call(arg("to", "directs", cast("Any", "trusted"))),
        call(arg("to", "directs", cast("Any", None))),
        call(arg("to", "directs"), arg("to", "selects")),
        call(arg(cast("Any", 7), "directs")),
        call(tool=cast("Any", None)),
        call(tool="\ud800"),
        call(control=cast("Any", None)),
        call(arg("to", "directs", names=cast("Any", [1, 2]))),
        call(arg("to", "directs", names=["\ud800"])),
        cast("Any", None),
        cast("Any", object()),
    ],
)
def test_facts_of_no_known_kind_are_refused(facts: CallFacts) -> None:
    assert said(POLICY.decide(facts)) == "denied"
    assert said(POLICY.preview(facts)) == "denied"
    assert said(EVERY_FACT.decide(facts)) == "denied"


def test_thousands_of_sources_and_readers_are_all_counted() -> None:
    many = [Source("system", f"tool{number}", f"[{number}]", str(number)) for number in range(3_000)]
    everyone = {f"r{number}@example.com" for number in range(3_000)}
    body = Label([*many, Source("third_party", "needle", "x")], everyone)
    found = POLICY.decide(mail(to=USER, body=body))
    assert (said(found), "needle's x" in why(found)) == ("ask", True)
    assert isinstance(POLICY.decide(mail(to=Label(many), body=Label(many, everyone), names=everyone)), Allowed)
    assert said(POLICY.decide(mail(Label(many), Label(many, everyone), names=[*everyone, "eve@evil.com"]))) == "ask"
    text = 'forbid (principal, action, resource) when { resource.all.sources.contains("needle") };'
    assert decided(call(arg("x", "selects", body), effect="read", outbound=False), text)[0] == "denied"


def test_an_explanation_stays_short() -> None:
    many = Label({Source("third_party", f"tool{number}", "", str(number)) for number in range(3_000)})
    told = why(POLICY.decide(mail(to=many, body=many, control=many)))
    assert "2997 more" in told
    assert len(told) < 1_000


FAILING = [
    "forbid (principal, action, resource) when { 9223372036854775807 + 1 > 0 };",
    'permit (principal, action, resource in Toolbox::"mail") when { -9223372036854775807 - 2 < 0 };',
]


@pytest.mark.parametrize("text", FAILING)
def test_a_policy_that_fails_is_a_no(text: str) -> None:
    if text.startswith("permit"):
        text = f'@overrides("directed-by-strangers") {text}'
    found = Policy.parse(f'@id("sum") {text}').decide(mail(to=READ))
    assert said(found) == "denied"
    assert "'sum'" in why(found)
    assert "overflow" in why(found)


def test_a_forbid_that_fails_stops_what_would_be_allowed_without_it() -> None:
    assert said(POLICY.decide(mail())) == "allowed"
    assert said(Policy.parse(FAILING[0]).decide(mail())) == "denied"


def test_the_decision_does_not_hang_on_what_was_decided_before() -> None:
    policy = Policy.load()
    facts = [mail(), mail(to=READ), mail(names=["eve@evil.com"]), mail(body=BODY), mail(control=READ)]
    first = [policy.decide(each) for each in facts]
    assert [policy.decide(each) for each in reversed(facts)][::-1] == first
    assert [Policy.load().decide(each) for each in facts] == first


def test_a_decision_takes_far_less_than_a_millisecond() -> None:
    policy, facts = Policy.load(), [mail(names=[f"p{number}@example.com"]) for number in range(500)]
    seconds: list[float] = []
    for each in facts:
        started = perf_counter()
        policy.decide(each)
        seconds.append(perf_counter() - started)
    # The quicker ones: other programs on this machine make the rest slow. `benchmarks.boundary` has the figure.
    assert sorted(seconds)[len(seconds) // 4] < 750e-6
