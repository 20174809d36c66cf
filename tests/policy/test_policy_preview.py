"""What is promised before a run is kept in it, whatever the policies are."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings, strategies as st
from policy_calls import BALANCE, CONTACT, PAGE, READ, USER, arg, call, mail, rules, said, why

from bicameral.labels import PUBLIC, Label, Readers, Source
from bicameral.policy import Allowed, Ask, CallFacts, Denied, Depends, Policy
from bicameral.policy._policy import is_static_decidable
from property_examples import examples

NAMES = ("ann@a.org", "bob@b.org", "user")
GROUPS = ("control", "directs", "addresses", "carries", "leaves", "all")


def test_whom_a_call_names_is_not_guessed() -> None:
    policy = Policy.parse(
        '@id("a") forbid (principal, action, resource) when { context.domains.contains("evil.com") };'
    )
    before = policy.preview(mail(names=None))
    assert isinstance(before, Depends)
    assert (rules(before), "known only when the call is made" in why(before)) == (("a",), True)
    assert isinstance(policy.preview(mail(names=["bob@example.com"])), Allowed)
    assert isinstance(policy.preview(mail(names=["eve@evil.com"])), Denied)


def test_a_decision_on_a_call_that_does_not_say_whom_it_names_is_a_preview() -> None:
    policy = Policy.parse('forbid (principal, action, resource) when { context.domains.contains("evil.com") };')
    assert isinstance(policy.decide(mail(names=None)), Depends)


def test_a_policy_with_a_question_that_may_apply_is_asked_about() -> None:
    text = '@id("a") @ask("Yes?") forbid (principal, action, resource) unless { context.domains.contains("a.org") };'
    before = Policy.parse(text).preview(mail(names=None))
    assert isinstance(before, Ask)
    assert not isinstance(before, Depends)
    assert rules(before) == ("a",)


def test_a_policy_that_reads_only_declarations_is_certain() -> None:
    text = 'forbid (principal, action, resource in Effect::"send") when { resource.outbound && resource.strict };'
    assert isinstance(Policy.parse(text).preview(mail(names=None)), Denied)


def test_what_falls_is_certain_before_the_run() -> None:
    kept = 'forbid (principal, action, resource) when { resource.all.sources.contains("search_mail") };'
    assert isinstance(Policy.parse(kept).preview(mail(body=READ)), Denied)
    assert isinstance(Policy.parse(kept).preview(mail(body=PAGE)), Ask)


def test_what_may_rise_is_not() -> None:
    """More sources before the run than in it: the policy would speak of sources that are not there."""
    only = 'forbid (principal, action, resource) unless { resource.all.sources.contains("find_contact") };'
    assert isinstance(Policy.parse(only).preview(mail(to=CONTACT)), Depends)
    assert isinstance(Policy.parse(only).decide(mail(to=USER)), Denied)


def test_an_override_that_may_not_hold_in_the_run_promises_nothing() -> None:
    text = """
        @overrides("directed-by-strangers") permit (principal, action, resource in Tool::"send_mail")
        when { !context.receivers.contains("eve@evil.com") };
    """
    policy = Policy.parse(text)
    assert said(policy.preview(mail(to=READ, names=None))) == "ask"
    assert isinstance(policy.preview(mail(to=READ, names=["bob@example.com"])), Allowed)
    assert said(policy.decide(mail(to=READ, names=["eve@evil.com"]))) == "ask"


def test_a_secret_for_receivers_who_are_not_known_yet_is_asked_about() -> None:
    assert rules(Policy.load().preview(mail(to=CONTACT, body=BALANCE, names=None))) == ("leaves-its-readers",)
    assert isinstance(Policy.load().preview(mail(to=USER, body=BALANCE, names=None)), Allowed)


# Random policies over random calls


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> str:
    """A condition: anything that the schema lets one say of a call."""
    facts = st.one_of(
        st.sampled_from(GROUPS).map(lambda group: f"resource.{group}"),
        st.just('(if resource.hasTag("to") then resource.getTag("to") else resource.all)'),
    )
    names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map(str).map(lambda text: text.replace("'", '"'))
    sources = st.sampled_from(['["request"]', '["search_mail", "bank"]', '["bank"]'])
    fact = draw(facts)
    a_set = st.one_of(
        st.just("context.receivers"),
        st.just("context.domains"),
        st.just(f"{fact}.readers"),
        st.just(f"{fact}.sources"),
        names,
        sources,
    )
    leaf = st.one_of(
        st.sampled_from([f"{fact}.{name}" for name in ("trusted", "from_user", "public", "strangers_text")]),
        st.sampled_from(["resource.outbound", "resource.strict", "true", 'resource in Effect::"send"']),
        st.builds("{}.contains({})".format, a_set, st.sampled_from(['"bank"', '"ann@a.org"', '"a.org"'])),
        st.builds("{}.containsAll({})".format, a_set, a_set),
        st.builds("{}.containsAny({})".format, a_set, a_set),
        st.builds("{}.isEmpty()".format, a_set),
        st.builds("{}.trusted == {}".format, st.just(fact), st.sampled_from(["true", "false"])),
        st.builds("{}.public != {}".format, st.just(fact), st.sampled_from(["true", "false"])),
        st.builds("{}.trusted == {}.public".format, st.just(fact), st.just(fact)),
        st.builds("{} == {}".format, a_set, a_set),
    )
    if depth == 0:
        return draw(leaf)
    inner = conditions(depth=depth - 1)
    return draw(
        st.one_of(
            leaf,
            inner.map("!({})".format),
            st.builds("({}) && ({})".format, inner, inner),
            st.builds("({}) || ({})".format, inner, inner),
            st.builds("(if {} then {} else {})".format, inner, inner, inner),
        )
    )


clauses = st.lists(st.builds("{} {{ {} }}".format, st.sampled_from(["when", "unless"]), conditions()), max_size=2)
forbids = st.builds(
    "{} forbid (principal, action, resource) {};".format, st.sampled_from(["", '@ask("?")']), clauses.map(" ".join)
)
overrides = st.builds(
    '@overrides("{}") permit (principal, action, resource in Tool::"send_mail") {};'.format,
    st.sampled_from(["directed-by-strangers", "decided-by-strangers", "leaves-its-readers"]),
    clauses.map(" ".join),
)
policies = st.lists(st.one_of(forbids, overrides), min_size=1, max_size=3).map("\n".join)

sources = st.builds(
    Source,
    st.sampled_from(["user", "system", "third_party"]),
    st.sampled_from(["request", "search_mail", "bank"]),
    st.just(""),
    st.sampled_from(["1", "2"]),
)
some_readers = st.one_of(st.just(PUBLIC), st.frozensets(st.sampled_from(NAMES)))


@st.composite
def worse_and_real(draw: st.DrawFn) -> tuple[Label, Label]:
    """What is known of a value before a run, and what it may turn out to be: fewer sources, more readers."""
    real = draw(st.frozensets(sources, max_size=2))
    readers: Readers = draw(some_readers)
    fewer = draw(st.frozensets(st.sampled_from(NAMES)))
    before = fewer if readers is PUBLIC else readers & fewer
    known: Readers = readers if draw(st.booleans()) else before
    return Label(real | draw(st.frozensets(sources, max_size=2)), known), Label(real, readers)


@st.composite
def calls(draw: st.DrawFn) -> tuple[CallFacts, CallFacts]:
    """A call as it is known before a run, and as it may be made."""
    (to, real_to), (body, real_body), (control, real_control) = (draw(worse_and_real()) for _ in range(3))
    names = draw(st.frozensets(st.sampled_from(NAMES)))
    known = names if draw(st.booleans()) else None
    bounded = draw(st.booleans())
    before = call(
        arg("to", "directs", to, names=known),
        arg("body", draw(st.sampled_from(["carries", "selects", "attaches"])), body, bounded=bounded),
        control=control,
        mode=draw(st.sampled_from(["strict", "normal"])),
        effect=draw(st.sampled_from(["send", "read", "write"])),
        outbound=draw(st.booleans()),
        declared=draw(st.booleans()),
    )
    first, second = before.arguments
    real = (replace(first, label=real_to, principals=names), replace(second, label=real_body, principals=frozenset()))
    if known is not None:
        before = replace(before, arguments=(first, replace(second, principals=frozenset())))
    return before, replace(before, arguments=real, pc=real_control)


# What is known of a value before a run, and what it may turn out to be: fewer sources, more readers.
SOURCES = (Source("user", "request"), Source("system", "bank"), Source("third_party", "search_mail"))
SUBSETS = [frozenset(each for bit, each in enumerate(SOURCES) if number >> bit & 1) for number in range(8)]
READERS: list[tuple[Readers, Readers]] = [
    (PUBLIC, PUBLIC),
    (frozenset({"user"}), PUBLIC),
    (frozenset({"ann@a.org"}), PUBLIC),
    (frozenset({"user"}), frozenset({"ann@a.org", "bob@b.org"})),
]
PAIRS = [
    (Label(before, worse), Label(real, better))
    for before in SUBSETS
    for real in SUBSETS
    if real <= before
    for worse, better in READERS
]
NAMED = [frozenset[str](), frozenset({"ann@a.org"}), frozenset({"ann@a.org", "bob@b.org"})]

FACTS = [
    *(f"{of}.{fact}" for of in ("resource.all", "resource.leaves") for fact in ("trusted", "from_user", "public")),
    "resource.carries.strangers_text",
    'resource.all.sources.contains("bank")',
    'resource.all.fields.contains("search_mail")',
    'resource.all.readers.contains("ann@a.org")',
    '["request", "bank"].containsAll(resource.all.sources)',
    'resource.all.sources.containsAll(["bank", "request"])',
    'resource.all.sources.containsAny(["bank", "search_mail"])',
    "resource.all.sources.containsAll(resource.directs.sources)",
    "resource.all.sources.isEmpty()",
    "resource.all.readers.isEmpty()",
    "resource.all.readers.containsAll(context.receivers)",
    'context.receivers.contains("bob@b.org")',
    "context.domains.isEmpty()",
    'resource.hasTag("to") && resource.getTag("to").trusted',
    'resource.hasTag("body") && resource.getTag("body").sources.contains("bank")',
    "resource.all.trusted == true",
    "resource.all.trusted == false",
    "resource.all.public != true",
    "resource.all.trusted == resource.all.public",
    'resource.all.sources == ["bank"]',
    "if resource.strict then resource.all.trusted else resource.all.public",
    'if resource.all.trusted then resource.all.public else resource.all.sources.contains("bank")',
    "if resource.all.trusted then resource.all.public else true",
    'resource.all.trusted && context.receivers.contains("ann@a.org")',
    'resource.all.trusted || resource.all.sources.contains("bank")',
    "resource.acts || resource.strict",
]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("condition", [*FACTS, *(f"!({each})" for each in FACTS)])
def test_a_condition_turns_only_as_it_is_said_to(condition: str, named: bool) -> None:
    policy = Policy.parse(f"forbid (principal, action, resource) when {{ {condition} }};")
    clause = policy.rules[-1].node.clauses[0]
    falls, rises = (
        is_static_decidable(clause, "forbid", named=named),
        is_static_decidable(clause, "permit", named=named),
    )
    if not falls and not rises:
        return

    @cache
    def holds(label: Label, names: frozenset[str]) -> bool:
        # Nothing but the condition decides on what only reads.
        facts = (arg("to", "directs", label, names=names), arg("body", "carries", label))
        return isinstance(policy.decide(call(*facts, control=label, effect="read", outbound=False)), Denied)

    for before, real in PAIRS:
        for names in NAMED:
            found = holds(before, names if named else NAMED[0]), holds(real, names)
            assert not (falls and found == (False, True)), (before, real)
            assert not (rises and found == (True, False)), (before, real)


def test_most_conditions_can_be_judged_before_a_run() -> None:
    clauses = [
        Policy.parse(f"forbid (principal, action, resource) when {{ {each} }};").rules[-1].node.clauses[0]
        for each in FACTS
    ]
    judged = sum(
        is_static_decidable(each, "forbid", named=True) or is_static_decidable(each, "permit", named=True)
        for each in clauses
    )
    assert judged >= len(FACTS) * 2 // 3


@settings(max_examples=examples(40, quick=25))
@given(text=policies, pairs=st.lists(calls(), min_size=3, max_size=3))
def test_what_is_allowed_before_a_run_is_allowed_in_it(text: str, pairs: list[tuple[CallFacts, CallFacts]]) -> None:
    policy = Policy.parse(text)
    for before, real in pairs:
        if isinstance(policy.preview(before), Allowed):
            assert isinstance(policy.decide(real), Allowed), why(policy.decide(real))


@settings(max_examples=examples(60, quick=30))
@given(pairs=st.lists(calls(), min_size=3, max_size=3))
def test_the_defaults_keep_what_they_promise(pairs: list[tuple[CallFacts, CallFacts]]) -> None:
    policy = Policy.load()
    for before, real in pairs:
        if isinstance(policy.preview(before), Allowed):
            assert isinstance(policy.decide(real), Allowed)
