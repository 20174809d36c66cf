"""The proof before a run: attacks that it must see, calls that it can prove, and plans that would wear it out."""

from __future__ import annotations

import time

import pytest
from flow_world import REGISTRY

from bicameral.errors import PlanError
from bicameral.labels import NOTHING, PUBLIC, UNKNOWN, Label, RecordLabels, Source
from bicameral.plans import Answer, Call, Compute, Const, Each, Expr, ListOf, Plan, Ref, Step, Update, When, parse
from bicameral.plans.labels._proof import CallProof, Conditional, Proof, Proved, Refused, prove
from bicameral.plans.labels._transfer import branch_names, call_facts, can_answer, is_bounded, static_path
from bicameral.policy import Allowed, Ask, CallFacts, Decision, Denied, Depends, Mode
from bicameral.tools import CHANGING, Registry, tool
from bicameral.types import ANY, BOOL, DATE, DURATION, FLOAT, INT, NULL, STR, ListType, LiteralType, optional_type


def careful(facts: CallFacts) -> Decision:
    """What directs a call that acts must be trusted, and so must what decides it."""
    if not facts.known:
        return Denied("no such tool")
    acts = facts.outbound or facts.effect in CHANGING
    if acts and not all(each.trusted for each in facts.arguments_for("directs")):
        return Ask(f"{facts.tool} as a stranger says?")
    if acts and not facts.pc.trusted:
        return Ask(f"{facts.tool} because a stranger says so?")
    return Allowed()


def plan_of(source: str) -> Plan:
    return parse(source, REGISTRY).plan


def proof_of(source: str, mode: Mode = "strict") -> Proof:
    return prove(plan_of(source), REGISTRY, careful, mode)


def last(proof: Proof) -> CallProof:
    return proof.calls[-1]


# Attacks: each tries to let a stranger choose who is paid, through another channel --------------------------------

DIRECTED = {
    "the words themselves": "pay(fetch('page'), 1)",
    "a number of his": "pay('bob', inbox('')[0].size)",
    "a part of a longer text": "pay(f'to {fetch(\"page\")}', 1)",
    "what the quarantined model read": "pay(extract(fetch('page'), 'who?', str), 1)",
    "a number that it read": "pay('bob', extract(fetch('page'), 'how much?', int))",
    "what it read of the user's own": "pay(extract('bob', 'who?', str), 1)",
    "a text made by a tool": "m = newest(inbox(''), 1)[0]\npay(m.sender, 1)",
    "the answer to his question": "pay('bob', balance(fetch('page')))",
    "a list that he is put into": "xs = ['bob']\nxs.append(fetch('page'))\npay(xs[0], 1)",
    "a list that his is added to": "xs = ['bob'] + [fetch('page')]\npay(xs[0], 1)",
    "a list that grows by his": "xs = ['bob']\nxs += fetch('page').split()\npay(xs[0], 1)",
    "his words after a chain of methods": "pay(fetch('page').strip().lower().replace('a', 'b'), 1)",
    "the difference of two of his numbers": "pay('bob', inbox('')[0].size - inbox('')[1].size)",
    "a list of his that is added to": "xs = [fetch('page')]\nxs.append('bob')\npay(xs[0], 1)",
    "the first of two ways": "if balance('a') > 0:\n    to = fetch('page')\nelse:\n    to = 'bob'\npay(to, 1)",
    "the second of two ways": "to = 'bob'\nif balance('a') > 0:\n    a = 1\nelse:\n    to = fetch('page')\npay(to, 1)",
    "a dict that he is put into": "d = {'to': 'bob'}\nd['to'] = fetch('page')\npay(d.to, 1)",
    "a key of his": "d = {'to': 'bob'}\nd[fetch('page')] = 'eve'\npay(d.to, 1)",
    "a sum that he adds to": "n = 1\nn += len(fetch('page'))\npay('bob', n)",
    "a loop that adds up": "n = 0\nfor m in inbox(''):\n    n += m.size\npay('bob', n)",
    "the last turn of a loop": "to = 'bob'\nfor m in inbox(''):\n    to = m.sender\npay(to, 1)",
    "a turn after the next": (
        "a = 'bob'\nb = 'bob'\nc = 'bob'\nfor m in inbox(''):\n    a = b\n    b = c\n    c = m.sender\npay(a, 1)"
    ),
    "a choice between good ones": "pay('ann' if fetch('page') else 'bob', 1)",
    "a table of good ones": "pay({'a': 'ann'}.get(fetch('page'), 'bob'), 1)",
}

DECIDED = {
    "whether it is done": "if fetch('page') == 'x':\n    pay('bob', 1)",
    "whether it is not done": "if fetch('page') == 'x':\n    a = 1\nelse:\n    pay('bob', 1)",
    "what a variable is": "to = 'bob'\nif 'x' in fetch('page'):\n    to = 'eve'\npay(to, 1)",
    "what a variable is not": "to = 'bob'\nif 'x' in fetch('page'):\n    a = 1\nelse:\n    to = 'eve'\npay(to, 1)",
    "what else a dict holds": "d = {'to': 'bob', 'n': 1}\nif fetch('page'):\n    d['n'] = 2\npay(d.to, 1)",
    "how often it is done": "for word in fetch('page').split():\n    pay('bob', 1)",
    "how much it adds up to": "n = 0\nfor word in fetch('page').split():\n    n += 1\npay('bob', n)",
    "the length of a list": "xs = []\nfor word in fetch('page').split():\n    xs.append(1)\npay('bob', len(xs))",
    "whether the run goes on": "if 'stop' in fetch('page'):\n    answer(0)\npay('bob', 1)",
    "whether a loop goes on": "for m in inbox(''):\n    if m.sender == 'x':\n        answer(0)\n    pay('bob', 1)",
    "after a loop that may end": "for m in inbox(''):\n    if m.sender == 'x':\n        answer(0)\npay('bob', 1)",
    "which item comes first": "pay(sorted(inbox(''), key=lambda m: m.sender)[0].id, 1)",
    "which item a computing key chooses": "pay(max(inbox(''), key=lambda m: m.size - 2).id, 1)",
    "which items there are": "pay([m.id for m in inbox('') if m.size > 1][0], 1)",
    "which items a tool keeps": "pay(newest(inbox(''), 3)[0].id, 1)",
    "under a condition inside another": (
        "if balance('a') > 0:\n    if fetch('page'):\n        to = 'eve'\n    else:\n        to = 'bob'\n    pay(to, 1)"
    ),
    "what a call under his condition gave": "n = 1\nif fetch('page'):\n    n = balance('a')\npay('bob', n)",
    "what was asked under his condition": "to = 'bob'\nif fetch('page'):\n    to = ask('who?')\npay(to, 1)",
}

HARMLESS = {
    "literals": "pay('bob', 1)",
    "what a service says": "pay('bob', balance('4711'))",
    "what the user says": "pay(ask('who?'), ask('how much?', int))",
    "what was computed of that": "pay('bob', round(balance('4711') * 2 / 3) + 1)",
    "a sum of the plan's own lists": "xs = ['bob'] + ['ann']\nxs += ['eve']\npay(xs[0], 1)",
    "methods of a text of the plan": "pay(' Bob '.strip().lower().replace('a', 'b'), 1)",
    "a part that the service sets": "pay(inbox('')[0].id, 1)",
    "a loop over what a service lists": "for m in inbox(''):\n    pay(m.id, 1)",
    "a condition on what a service says": "if balance('a') > 3:\n    pay('bob', 1)",
    "after a harmless condition on a stranger": "a = 1\nif fetch('page'):\n    a = 2\npay('bob', 1)",
    "beside what a stranger wrote": "d = {'to': 'bob', 'text': fetch('page')}\npay(d.to, 1)",
    "after an answer that a service decides": "if balance('a') < 0:\n    answer(0)\npay('bob', 1)",
    "a list only appended to": "xs = []\nfor m in inbox(''):\n    xs.append(m.sender)\npay('bob', len(xs))",
}


def _ended(source: str) -> str:
    return f"{source}\nanswer(1)"


@pytest.mark.parametrize("name", DIRECTED)
def test_a_stranger_who_directs_a_call_is_seen_in_both_modes(name: str) -> None:
    for mode in ("strict", "normal"):
        verdict = last(proof_of(_ended(DIRECTED[name]), mode)).verdict
        assert verdict == Conditional(("pay as a stranger says?",), "pay as a stranger says?"), mode


@pytest.mark.parametrize("name", DECIDED)
def test_a_stranger_who_decides_about_a_call_is_seen_in_strict_mode(name: str) -> None:
    assert isinstance(last(proof_of(_ended(DECIDED[name]))).verdict, Conditional)
    assert last(proof_of(_ended(DECIDED[name]), "normal")).verdict == Proved()


@pytest.mark.parametrize("name", HARMLESS)
def test_what_no_stranger_has_a_hand_in_is_proved(name: str) -> None:
    for mode in ("strict", "normal"):
        assert last(proof_of(_ended(HARMLESS[name]), mode)).verdict == Proved(), mode


# What a proof says --------------------------------------------------------------------------------------------------


def test_a_proof_has_a_verdict_for_every_call_in_order() -> None:
    proof = proof_of("m = inbox('')[0]\nif m.sender:\n    send('ada', m.sender)\npay('bob', 1)\nanswer(m.id)")
    assert [(call.step, call.tool) for call in proof.calls] == [("0", "inbox"), ("2/then/0", "send"), ("3", "pay")]
    assert proof.questions == ("send because a stranger says so?",)
    assert not proof.proved
    assert proof.refused == ()
    assert proof.verdict("3") == Proved()
    assert proof.verdict("2") is None
    assert proof.answer is not None
    assert proof.answer.flat.trusted
    assert not proof.variables["m"].flat.trusted


def test_the_facts_of_a_call_name_every_argument_with_its_own_label() -> None:
    facts = last(proof_of(_ended("if inbox(''):\n    send('Ada@Example.com', fetch('page'))"))).facts
    assert facts is not None
    to, body = facts.arguments
    assert (to.name, to.purpose, to.trusted, to.bounded) == ("to", "directs", True, False)
    assert (to.principals, to.label.readers) == ({"ada@example.com"}, PUBLIC)
    assert (body.name, body.purpose, body.trusted, body.principals) == ("body", "carries", False, None)
    assert {source.tool for source in body.label.sources} == {"fetch", "inbox", "request"}
    assert (facts.tool, facts.effect, facts.outbound, facts.declared) == ("send", "send", True, True)
    assert facts.pc.trusted
    assert {source.tool for source in facts.pc.sources} == {"inbox", "request"}
    assert facts.step == "1/then/1"


def test_an_argument_that_the_tool_does_not_have_directs_the_call() -> None:
    facts = call_facts(REGISTRY["pay"], {"memo": UNKNOWN}, {}, "0", NOTHING, "strict")
    assert [(each.name, each.purpose, each.trusted) for each in facts.arguments] == [("memo", "directs", False)]


def test_what_a_model_read_is_for_those_who_may_see_what_it_read() -> None:
    proof = proof_of("it = extract(inbox(''), 'who?', str)\nanswer(it)")
    assert proof.variables["it"].flat.readers == {"user"}
    assert "extract" in {source.tool for source in proof.variables["it"].flat.sources}
    assert proof_of("it = extract('x', 'who?', str)\nanswer(it)").variables["it"].flat.readers is PUBLIC


def test_what_a_model_was_asked_counts_like_what_it_read() -> None:
    """A private question about a public text has a private answer, and a stranger's question a stranger's."""
    private = proof_of("it = extract('x', f'like {inbox(\"\")}?', str)\nanswer(it)").variables["it"].flat
    assert private.readers == {"user"}
    assert "inbox" in {source.tool for source in private.sources}
    strange = proof_of("it = extract('x', fetch('page'), str)\nanswer(it)").variables["it"].flat
    assert "fetch" in {source.tool for source in strange.sources}


def test_what_a_tool_makes_of_nothing_is_its_own() -> None:
    @tool(effect="pure")
    def pi() -> float:
        """A number."""
        return 3.14

    plan = Plan(steps=(Call(name="x", tool="pi"), Answer(value=Ref(name="x"))))
    assert prove(plan, Registry([pi]), careful).answer is Label({Source("system", "pi", "", "0")})


def test_a_call_that_is_never_come_to_needs_no_proof() -> None:
    plan = plan_of("answer(1)\npay(fetch('page'), 1)")
    assert prove(plan, REGISTRY, careful).proved


def test_a_tool_that_nobody_knows_is_refused_whatever_policy_says() -> None:
    plan = Plan(steps=(Call(name="x", tool="payy", args={"to": Const(value="bob")}), Answer(value=Ref(name="x"))))
    proof = prove(plan, REGISTRY, lambda facts: Allowed())
    assert proof.calls[0].verdict == Refused("there is no tool 'payy'; did you mean 'pay'?")
    assert proof.answer is not None
    assert UNKNOWN.sources <= proof.answer.flat.sources


def test_what_is_denied_is_refused_unless_the_run_may_know_better() -> None:
    plan = plan_of("m = inbox('')[0]\nsend('ada', m.sender)\nanswer(1)")

    def secret(facts: CallFacts) -> Decision:
        return (
            Allowed() if all(each.label.readers is PUBLIC for each in facts.arguments) else Denied("not for everyone")
        )

    assert last(prove(plan, REGISTRY, secret)).verdict == Conditional((), "not for everyone")
    denied = prove(plan, REGISTRY, lambda facts: Denied(f"no {facts.tool}"))
    assert [call.verdict for call in denied.calls] == [Refused("no inbox"), Refused("no send")]
    assert len(denied.refused) == 2


def test_what_nobody_can_say_yes_to_beforehand_is_no_question() -> None:
    plan = plan_of("send('ada', 'hi')\nanswer(1)")
    proof = prove(plan, REGISTRY, lambda facts: Depends("a policy may stop it"))
    assert last(proof).verdict == Conditional((), "a policy may stop it")
    assert (proof.proved, proof.questions, proof.refused) == (False, (), ())


def test_every_branch_that_answers_counts_for_the_answer() -> None:
    proof = proof_of("if balance('a') > 1:\n    answer('x')\nelse:\n    answer(fetch('page'))")
    assert proof.answer is not None
    assert not proof.answer.flat.trusted


def test_in_the_weaker_mode_control_flow_is_nowhere() -> None:
    facts = last(proof_of(_ended("if fetch('page'):\n    pay('bob', 1)"), "normal")).facts
    assert facts is not None
    assert facts.pc is Label()
    assert facts.mode == "normal"


# Pieces -------------------------------------------------------------------------------------------------------------


def test_the_names_of_a_branch_are_those_that_either_side_may_change() -> None:
    plan = plan_of(
        "xs = []\nif fetch('p'):\n    a = 1\nelse:\n    xs.append(2)\nfor i, x in enumerate(xs):\n    b = x\nanswer(1)"
    )
    when, each = (step for step in plan.steps if isinstance(step, When | Each))
    assert branch_names(when) == {"a", "xs"}
    assert branch_names(each) == {"i", "x", "b"}
    assert not can_answer(when)
    assert can_answer(When(condition=Const(value=True), steps=(Answer(value=Const(value=1)),)))


def test_the_path_of_a_step_in_the_plan_has_no_turns() -> None:
    assert static_path("2[17]/then/0[3]/1") == "2/then/0/1"
    assert static_path("2/then/0") == "2/then/0"


def test_bounded_types_cannot_hold_free_text() -> None:
    for type_ in (BOOL, INT, FLOAT, DATE, DURATION, NULL, LiteralType(("a", "b")), optional_type(INT)):
        assert is_bounded(type_)
    for type_ in (STR, ANY, ListType(INT), optional_type(STR)):
        assert not is_bounded(type_)


# Plans that would wear it out ---------------------------------------------------------------------------------------


def _timed(plan: Plan, seconds: float) -> Proof:
    started = time.thread_time()
    proof = prove(plan, REGISTRY, careful)
    assert time.thread_time() - started < seconds
    return proof


def _growing(value: Expr, *more: Step) -> Plan:
    begin = (Call(name="x", tool="fetch", args={"url": Const(value="p")}), Compute(name="xs", value=ListOf()))
    loop = Each(names=("i",), over=Ref(name="xs"), steps=(Compute(name="x", value=value), *more))
    return Plan(steps=(*begin, loop, Answer(value=Ref(name="x"))))


@pytest.mark.parametrize(
    "value",
    [
        "[x]",
        "[x, x]",
        "{'a': x, 'b': [x, x]}",
        "[{'a': y, 'b': y, 'c': [y]} for y in [x, x]]",
        "{k: x for k in ['a']}",
        "[x, x, x, x, x, x, x, x, x, x, x, x]",
        "group_by([x, [x]], lambda v: 'k')",
    ],
)
def test_a_value_that_grows_in_a_loop_comes_to_an_end(value: str) -> None:
    step = parse(f"x = ask('?')\nx = {value}\nanswer(x)", REGISTRY).plan.steps[1]
    assert isinstance(step, Compute)
    proof = _timed(_growing(step.value), 10)
    assert proof.answer is not None
    assert {"fetch", "request"} == {source.tool for source in proof.answer.flat.sources}


def test_loops_inside_loops_take_no_exponential_time() -> None:
    step: Step = Update(name="x", op="add", value=Const(value="a"))
    for _ in range(45):
        step = Each(names=("i",), over=Ref(name="xs"), steps=(Compute(name="y", value=Ref(name="x")), step))
    begin = (Compute(name="xs", value=ListOf()), Call(name="x", tool="fetch", args={"url": Const(value="p")}))
    proof = _timed(Plan(steps=(*begin, step, Answer(value=Ref(name="y")))), 5)
    assert proof.answer is not None
    assert not proof.answer.flat.trusted


def test_a_long_chain_of_variables_is_followed_to_its_end() -> None:
    count = 60
    begin = [Compute(name=f"v{n}", value=Const(value="bob")) for n in range(count)]
    moves = [Compute(name=f"v{n}", value=Ref(name=f"v{n + 1}")) for n in range(count - 1)]
    loop = Each(names=(f"v{count - 1}",), over=ListOf(items=(Ref(name="page"),)), steps=tuple(moves))
    page = Call(name="page", tool="fetch", args={"url": Const(value="p")})
    pay = Call(tool="pay", args={"to": Ref(name="v0"), "amount": Const(value=1)})
    proof = _timed(Plan(steps=(page, *begin, loop, pay, Answer(value=Const(value=1)))), 10)
    assert isinstance(last(proof).verdict, Conditional)


def test_a_long_plan_is_proved_in_time_proportional_to_its_length() -> None:
    steps: list[Step] = [Call(name="x0", tool="balance", args={"account": Const(value="a")})]
    steps += [
        Compute(name=f"x{n}", value=ListOf(items=(Ref(name=f"x{n - 1}"), Const(value=n)))) for n in range(1, 1000)
    ]
    _timed(Plan(steps=(*steps, Answer(value=Ref(name="x999")))), 10)


def test_a_plan_that_is_nested_too_deep_is_refused() -> None:
    step: Step = Compute(name="x", value=Const(value=1))
    for _ in range(60):
        step = When(condition=Const(value=True), steps=(step,))
    with pytest.raises(PlanError) as error:
        prove(Plan(steps=(step,)), REGISTRY, careful)
    assert error.value.code == "plan.too-deep"


def test_a_record_with_very_many_fields_keeps_what_it_holds() -> None:
    source = "d = {}\n" + "\n".join(f"d['k{n}'] = {n}" for n in range(300)) + "\nd['to'] = fetch('page')\npay(d.to, 1)"
    proof = _timed(plan_of(_ended(source)), 20)
    assert isinstance(last(proof).verdict, Conditional)
    assert isinstance(proof.variables["d"], RecordLabels)
