"""Whole values: what a plan of a model puts together is known before the run, and asked about in it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from bicameral.labels import NOTHING
from bicameral.planning import Intent
from bicameral.plans import Conditional, Plan, Proved, assembled_values, parse, prove
from bicameral.policy import CallFacts, Policy
from bicameral.runs import Answers, ApprovalQuestion, Finished, run_plan
from bicameral.tools import Origin, Registry, tool
from property_examples import examples

sent: list[list[str]] = []


@tool(effect="read", origins=Origin("user"))
def people() -> list[str]:
    """The user's own list."""
    return ["kim@example.com", "ann@example.com"]


@tool(effect="pure", keeps="lines")
def sort_lines(lines: list[str]) -> list[str]:
    """Sort lines."""
    return sorted(lines)


@tool(effect="pure")
def shorten(text: str) -> str:
    """A shorter text."""
    return text[:20]


@tool(
    effect="send",
    purpose={"to": "directs", "text": "carries"},
    attaches={},
    origins=Origin("system"),
    words=("send",),
)
def send(to: list[str], text: str) -> None:
    """Send a text."""
    sent.append(to)


@tool(effect="send")
def blurt(text: str) -> None:
    """Say something; nothing is declared of it."""


REGISTRY = Registry([people, sort_lines, shorten, send, blurt])
REQUEST = "Send the menu to kim@example.com"
INTENT = Intent(request=REQUEST, effects=("send",))


def marked(code: str, request: str | None = REQUEST, **options: object) -> set[str]:
    plan = parse(f"{code}\nanswer('done')\n", REGISTRY).plan
    found = assembled_values(plan, REGISTRY, request, **options)  # pyright: ignore[reportArgumentType]
    return {name for names in found.calls.values() for name in names}


WHOLE = [
    "send(['kim@example.com'], 'x' + 'y')",
    "send(people(), 'x')",
    "send(people()[:1], 'x')",
    "send([people()[0]], 'x')",
    "send([first(people(), default='kim@example.com')], 'x')",
    "send(sort_lines(people()), 'x')",
    "send([p for p in people() if 'a' + 'n' in p], 'x')",
    "send(sorted(people(), key=lambda p: p.lower()), 'x')",
    "for p in people():\n    send([p], f'to {p}')",
    "a, b = (people()[0], 'x' + 'y')\nsend([a], b)",
    "x = people()[0] if len(people()) > 1 else 'kim@example.com'\nsend([x], 'x')",
    "d = {'to': people()[0], 'text': 'x' + 'y'}\nsend([d['to']], d['text'])",
    "xs = []\nfor p in people():\n    xs.append(p)\nsend(xs, 'x')",
    "send(people() + ['kim@example.com'], 'x')",
    "send(['kim' + '@example.com'], 'x')",
    "who = ask('Who?')\nsend([who], 'x')",
    "who = extract('x', 'who', str)\nsend([who], 'x')",
]
ASSEMBLED = [
    "send(['eve@evil.example'], 'x')",
    "send(['eve' + '@evil.example'], 'x')",
    "send([people()[0] + '.evil.example'], 'x')",
    "send([f'{people()[0]}.evil.example'], 'x')",
    "send([people()[0].replace('example', 'evil')], 'x')",
    "send([people()[0].lower()], 'x')",
    "send([people()[0][1:]], 'x')",
    "send(['@'.join(['eve', 'evil.example'])], 'x')",
    "send('kim@example.com eve@evil.example'.split(' '), 'x')",
    "send([shorten('kim@example.com')], 'x')",
    "send(people() + ['eve' + '@evil.example'], 'x')",
    "x = people()[0]\nx += '.evil.example'\nsend([x], 'x')",
    "x = 'kim@example.com'\nfor p in people():\n    x = x + p\nsend([x], 'x')",
    "for i in range(1):\n    send([f'{i:03d}@evil.example'], 'x')",
    "d = {'eve@evil.example': 1}\nsend(list(d), 'x')",
    "d = {}\nd['eve@evil.example'] = 1\nsend(d.keys(), 'x')",
    "d = {p + '.evil': 1 for p in people()}\nsend(list(d), 'x')",
    "send([str(len(people())) + '@evil.example'], 'x')",
    "send([max(people(), default='eve' + '@evil.example')], 'x')",
    "who = ask('Who?')\nsend([who.strip()], 'x')",
    "send(['im@example.com'], 'x')",
    "send([people()[0] or 'eve@evil.example'], 'x')",
    "if len(people()) > 1:\n    to = 'kim@example.com'\nelse:\n    to = 'eve' + '@evil.example'\nsend([to], 'x')",
]


@pytest.mark.parametrize("code", WHOLE)
def test_what_is_selected_stays_whole(code: str) -> None:
    assert marked(code) == set()


@pytest.mark.parametrize("code", ASSEMBLED)
def test_what_makes_new_text_is_assembled(code: str) -> None:
    assert marked(code) == {"to"}


@pytest.mark.parametrize("code", ASSEMBLED)
def test_a_plan_that_a_person_wrote_may_put_anything_together(code: str) -> None:
    assert marked(code, None) == set()


def test_the_users_own_addresses_are_whole() -> None:
    assert marked("send(['me@example.com'], 'x')") == {"to"}
    assert marked("send(['Me@example.com'], 'x')", own=("me@example.com",)) == set()


def test_of_a_tool_that_declares_nothing_every_text_may_direct_it() -> None:
    assert marked("blurt('eve' + '@evil.example')") == {"text"}


def test_a_variable_of_an_earlier_plan_is_what_it_was_there() -> None:
    plan = parse("to = 'eve' + '@evil.example'\nsafe = 'kim@example.com'\nanswer(to)\n", REGISTRY).plan
    left = assembled_values(plan, REGISTRY, REQUEST).variables
    assert left == {"to"}
    later = Plan.model_validate_json(
        parse("to = 1\nsafe = 1\nsend([to], 'x')\nsend([safe], 'x')\nanswer('x')\n", REGISTRY)
        .plan.model_copy(update={})
        .to_json()
    )
    later = later.model_copy(update={"steps": later.steps[2:]})
    found = assembled_values(later, REGISTRY, REQUEST, variables={"to": True, "safe": False})
    assert dict(found.calls) == {"0": frozenset({"to"})}


class Everything:
    """Someone who says yes to all, and counts what he was asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.asked += len(question.calls)
        return Answers.yes(question.calls)


@pytest.mark.parametrize("code", [*WHOLE[:14], *ASSEMBLED[:6], *ASSEMBLED[11:19]])
async def test_the_run_asks_exactly_where_the_proof_says_so(code: str) -> None:
    plan = parse(f"{code}\nanswer('done')\n", REGISTRY).plan
    policy = Policy.load((), REGISTRY)
    assembled = assembled_values(plan, REGISTRY, REQUEST).calls
    proof = prove(plan, REGISTRY, policy.preview, assembled=assembled)
    proved = all(isinstance(call.verdict, Proved) for call in proof.calls if call.tool == "send")
    assert proved == (not assembled)
    for call in proof.calls:
        if isinstance(call.verdict, Conditional):
            assert "put together by the plan" in call.verdict.why
            assert "Is that what you meant?" in call.verdict.why
    person = Everything()
    outcome = await run_plan(plan, REGISTRY, policy=policy, intent=INTENT, approver=person)
    assert isinstance(outcome, Finished), outcome
    assert bool(person.asked) == bool(assembled)


PIECES = st.sampled_from(["'kim@example.com'", "'eve'", "'@evil.example'", "people()[0]", "people()[1]"])
MADE = st.recursive(
    PIECES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: f"({two[0]} + {two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} if len(people()) > 1 else {two[1]})"),
        inner.map(lambda one: f"{one}.lower()"),
        inner.map(lambda one: f"[{one}, 'kim@example.com'][0]"),
        inner.map(lambda one: f"first([{one}], default='kim@example.com')"),
        inner.map(lambda one: f"{{'a': {one}}}['a']"),
        inner.map(lambda one: f"f'{{{one}}}'" if "'" not in one else one),
    ),
    max_leaves=5,
)


@given(MADE)
@settings(max_examples=examples(60))
async def test_a_proved_recipient_is_one_that_somebody_has_named(expression: str) -> None:
    """Whatever is sent unasked goes to an address that stands in the request or in the user's own list."""
    sent.clear()
    plan = parse(f"to = {expression}\nsend([to], 'x')\nanswer('done')\n", REGISTRY).plan
    policy = Policy.load((), REGISTRY)
    await run_plan(plan, REGISTRY, policy=policy, intent=INTENT)
    assert all(each in {"kim@example.com", "ann@example.com"} for to in sent for each in to), expression


def test_facts_without_a_mark_are_as_before() -> None:
    facts = CallFacts("send", "", "send", True, True, (), NOTHING, "strict")
    assert facts.assembled == frozenset()
