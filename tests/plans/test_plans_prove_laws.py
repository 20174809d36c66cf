"""The laws of the proof: what it says of a plan holds in every run, and strangers decide nothing it calls trusted."""

from __future__ import annotations

from typing import Any

from flow_plans import BEGIN, KINDS, exprs, plans
from flow_strategies import differs
from flow_world import REGISTRY, WORLDS, LabelledRun, World, two_worlds
from hypothesis import HealthCheck, assume, event, given, settings, strategies as st

from bicameral.labels import PUBLIC, Label, covers
from bicameral.plans import Answer, Compute, EvaluationError, Expr, Plan, Ref, check
from bicameral.plans.labels._proof import Proof, Proved, prove
from bicameral.plans.labels._transfer import static_path
from bicameral.policy import Allowed, ArgumentFacts, Ask, CallFacts, Decision, Denied, Mode
from bicameral.tools import ATTACHED_SUFFIX
from property_examples import examples

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
MODES: st.SearchStrategy[Mode] = st.sampled_from(["strict", "normal"])


@st.composite
def one_expression(draw: st.DrawFn) -> Plan:
    """A plan that reads, computes one thing and answers with it: the rules of expressions, in a plan."""
    value: Expr = draw(exprs(draw(st.sampled_from(KINDS)), 3))
    return Plan(steps=(*BEGIN, Compute(name="it", value=value), Answer(value=Ref(name="it"))))


PLANS = st.one_of(one_expression(), plans())


def allow(facts: CallFacts) -> Decision:
    return Allowed()


def _run(
    plan: Plan, world: World, mode: Mode = "strict", *, owns: bool = True, quick: bool = False
) -> LabelledRun | None:
    try:
        return LabelledRun(world, mode, owns, quick).run(plan)
    except EvaluationError as error:
        event(f"failed: {error.code}")
        return None


@settings(max_examples=examples(50, quick=30), suppress_health_check=SLOW)
@given(plans())
def test_the_plans_of_these_tests_are_plans_that_check(plan: Plan) -> None:
    # A test for None of what is never None may make types too narrow; names, tools and arguments are all there.
    wrong = {"plan.unknown-name", "plan.maybe-unbound", "plan.unknown-tool", "plan.unknown-argument"}
    assert not [finding for finding in check(plan, REGISTRY).errors if finding.code in wrong]


@settings(max_examples=examples(500, quick=40), suppress_health_check=SLOW)
@given(PLANS, WORLDS, MODES, st.booleans())
def test_the_proof_covers_every_run(plan: Plan, world: World, mode: Mode, quick: bool) -> None:
    proof = prove(plan, REGISTRY, allow, mode)
    run = _run(plan, world, mode, quick=quick)
    assume(run is not None)
    assert run is not None
    foreseen = {call.step: call.facts for call in proof.calls}
    for made in run.calls:
        facts = foreseen[static_path(made.step)]
        assert facts is not None
        assert covers(facts.pc, made.facts.pc)
        for before, now in zip(facts.arguments, made.facts.arguments, strict=True):
            assert (before.name, before.purpose, before.bounded) == (now.name, now.purpose, now.bounded)
            assert covers(before.label, now.label), before.name
            assert before.principals is None or before.principals == now.principals
    assert run.answer is not None
    assert proof.answer is not None
    assert covers(proof.answer, run.answer[1])
    event(f"calls: {len(run.calls) > 4}, turns: {run.turns > 0}, trusted answer: {proof.answer.flat.trusted}")


@st.composite
def policies(draw: st.DrawFn) -> Any:
    """A policy that denies or asks where a stranger had a hand in something, or someone may not see it."""
    tools = draw(st.sets(st.sampled_from(REGISTRY.names)))
    part = draw(st.sampled_from(["directs", "carries", "selects", "attaches", "pc"]))
    wanted = draw(st.sampled_from(["trusted", "public", "user", "not extracted", "readable"]))
    verdict: Decision = draw(st.sampled_from([Denied("no"), Ask("really?")]))

    def holds(label: Label, facts: CallFacts) -> bool:
        match wanted:
            case "trusted":
                return label.trusted
            case "public":
                return label.readers is PUBLIC
            case "user":
                return all(source.trust == "user" for source in label.sources)
            case "not extracted":
                return all(source.tool != "extract" for source in label.sources)
            case _:
                named = [each.principals for each in facts.arguments_for("directs")]
                return label.readers is PUBLIC or all(each is not None and each <= label.readers for each in named)

    def decide(facts: CallFacts) -> Decision:
        labels = [facts.pc] if part == "pc" else [each.label for each in facts.arguments if each.purpose == part]
        return verdict if facts.tool in tools and not all(holds(each, facts) for each in labels) else Allowed()

    return decide


@settings(max_examples=examples(500, quick=40), suppress_health_check=SLOW)
@given(plans(), WORLDS, MODES, policies())
def test_a_proved_step_is_never_denied_or_asked_about(plan: Plan, world: World, mode: Mode, decide: Any) -> None:
    proof = prove(plan, REGISTRY, decide, mode)
    run = _run(plan, world, mode)
    assume(run is not None)
    assert run is not None
    for made in run.calls:
        proved = isinstance(proof.verdict(static_path(made.step)), Proved)
        allowed = decide(made.facts) == Allowed()
        event(f"proved: {proved}, allowed: {allowed}")
        assert allowed or not proved


def _trusted_calls(run: LabelledRun) -> list[tuple[str, dict[str, Any]]]:
    """The calls that no stranger decided, each with the arguments in which no stranger had a hand.

    What an argument names is no argument and has no value: where a stranger's list is empty, nothing goes along.
    """
    return [
        (made.step, {each.name: made.values.get(each.name) for each in made.facts.arguments if _is_trusted(each)})
        for made in run.calls
        if made.facts.pc.trusted
    ]


def _is_trusted(each: ArgumentFacts) -> bool:
    return each.trusted and not each.name.endswith(ATTACHED_SUFFIX)


@settings(max_examples=examples(700, quick=40), suppress_health_check=SLOW)
@given(PLANS, two_worlds(), st.booleans())
def test_strangers_decide_no_call_that_is_labelled_trusted(
    plan: Plan, worlds: tuple[World, World], quick: bool
) -> None:
    # The quarantined model is theirs too: it writes what they want in each of the two worlds.
    one, other = (_run(plan, world, owns=False, quick=quick) for world in worlds)
    assume(one is not None and other is not None)
    assert one is not None
    assert other is not None
    assert _trusted_calls(one) == _trusted_calls(other)
    event(f"same calls: {len(one.calls) == len(other.calls)}, same values: {one.values == other.values}")
    proof = prove(plan, REGISTRY, allow)
    assert proof.answer is not None
    assert one.answer is not None
    assert other.answer is not None
    for shade in (proof.answer, one.answer[1], other.answer[1]):
        assert differs(shade, one.answer[0], other.answer[0]) is None


def test_a_proof_says_of_every_call_what_it_is() -> None:
    proof = prove(Plan(steps=BEGIN), REGISTRY, allow)
    assert isinstance(proof, Proof)
    assert [call.tool for call in proof.calls] == ["inbox", "inbox", "fetch", "balance"]
