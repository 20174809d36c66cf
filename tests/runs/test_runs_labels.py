"""Labels during a run: the proof covers them, strangers cannot change what they call trusted, and they cost little."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import flow_world
from flow_plans import BEGIN, exprs, plans
from flow_strategies import differs
from flow_world import WORLDS, LabelledRun, World, two_worlds
from hypothesis import HealthCheck, event, given, settings, strategies as st
from runs_boundary import Person

from bicameral.boundary import ExtractionOutcome, Filled, ReadOnlyExecutor
from bicameral.labels import covers
from bicameral.plans import Call, Const, Each, Plan, Proved, Step, When, prove, static_path
from bicameral.policy import Mode, Policy
from bicameral.runs import Answers, ApprovalQuestion, Failed, Finished, RunOutcome, run_plan
from bicameral.tools import Origin, Registry, Tool, tool
from bicameral.types import IntType, Type
from property_examples import examples

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
MODES: st.SearchStrategy[Mode] = st.sampled_from(["strict", "normal"])
POLICIES = (
    "",
    'forbid (principal, action, resource in Tool::"pay") when { !resource.directs.trusted };',
    'forbid (principal, action, resource in Tool::"send") when { resource.all.sources.contains("fetch") };',
    'forbid (principal, action, resource in Effect::"read") when { context.receivers.contains("eve") };',
    'forbid (principal, action, resource in Tool::"newest") when { !resource.all.trusted };',
)


class _Strangers:
    """Whoever fills blanks works for the strangers of this world; whoever is asked says the same every time."""

    model, overlap = "strangers", 4

    def __init__(self, world: World) -> None:
        self._world = world

    async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome:
        turn = len(str(source))
        return Filled(self._world.number(turn) if isinstance(wanted, IntType) else self._world.text(turn))

    async def ask(self, question: str, type: Type) -> Any:
        return 7 if isinstance(type, IntType) else "said"


@tool(effect="write", purpose={"path": "directs", "text": "carries"}, outbound=False, origins=Origin("system"))
def save(path: str, text: str) -> None:
    """Write a file."""


@tool(effect="read", purpose={"path": "selects"}, outbound=False, origins=Origin("user", "public"))
def load(path: str) -> str:
    """Read a file of the user's own."""
    raise AssertionError("nothing is really called")


FILES = Registry([*flow_world.REGISTRY, save, load])
LOOKED_UP = FILES.with_executor_tools(["load"])


class _Curious(ReadOnlyExecutor):
    """An executor that looks up whatever it can before it fills in what strangers want."""

    async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome:
        desk = self._desk
        if desk is not None:
            for each in desk.tools:
                for path in ("k", "ada"):
                    await desk.read(each, {"path": path})
        return await self._executor.extract(source, instruction, wanted)


@st.composite
def plans_with_files(draw: st.DrawFn) -> Plan:
    """Random plans that also write files and read them, in loops and branches too."""
    steps = list(draw(plans()).steps)
    for _ in range(draw(st.integers(1, 4))):
        path = draw(
            st.one_of(st.sampled_from(["k", "ada", "x/k"]).map(lambda text: Const(value=text)), exprs("text", 1))
        )
        saving: Step = Call(tool="save", args={"path": path, "text": draw(exprs("text", 1))})
        step = draw(st.sampled_from([saving, Call(name=draw(st.sampled_from("st")), tool="load", args={"path": path})]))
        around = draw(st.integers(0, 3))
        if around == 0:
            step = Each(names=("a",), over=draw(exprs("nums", 1)), steps=(step,))
        elif around == 1:
            step = When(condition=draw(exprs("bool", 1)), steps=(step,))
        steps.insert(draw(st.integers(len(BEGIN), len(steps) - 1)), step)
    return Plan(steps=tuple(steps))


def _acting(tool: Tool, world: World) -> Tool:
    if tool.name in ("save", "load"):
        return _filing(tool, world)
    answers = flow_world._ANSWERS[tool.name]  # pyright: ignore[reportPrivateUsage]

    async def run(values: Mapping[str, Any]) -> Any:
        given = dict(values)
        for _ in range(len(str(given)) % 3):
            await asyncio.sleep(0)
        return answers(world, given, flow_world._asked(given))  # pyright: ignore[reportPrivateUsage]

    return replace(tool, run=run)


_files: dict[int, dict[str, str]] = {}


def _filing(tool: Tool, world: World) -> Tool:
    """Files that last as long as a run."""
    files = _files.setdefault(id(world), {})

    async def run(values: Mapping[str, Any]) -> Any:
        if tool.name == "save":
            files[values["path"]] = values["text"]
            return None
        return files.get(values["path"], "nothing")

    return replace(tool, run=run)


@cache
def _policy(number: int, mode: Mode) -> Policy:
    return Policy.parse(POLICIES[number], FILES, mode=mode)


def _run(plan: Plan, world: World, policy: Policy, approver: Any = None) -> RunOutcome:
    _files.clear()
    registry = Registry(_acting(tool, world) for tool in FILES)
    people = _Strangers(world)
    return asyncio.run(
        run_plan(plan, registry, policy=policy, extractor=people, asker=people, approver=approver or Person())
    )


@settings(max_examples=examples(100, quick=40), suppress_health_check=SLOW)
@given(plans_with_files(), WORLDS, st.integers(0, len(POLICIES) - 1), MODES)
def test_a_call_that_is_proved_is_never_denied_or_asked_about(
    plan: Plan, world: World, number: int, mode: Mode
) -> None:
    policy, person = _policy(number, mode), Person()
    proof = prove(plan, FILES, policy.preview, mode)
    outcome = _run(plan, world, policy, person)
    stopped = {static_path(call.step) for question in person.asked for call in question.calls}
    if not isinstance(outcome, Finished):
        assert isinstance(outcome, Failed)
        error = outcome.error
        if error.code == "policy.denied":
            stopped.add(static_path(error.place.step or "" if error.place else ""))
    event(f"stopped: {bool(stopped)}, proved: {proof.proved}")
    assert not [step for step in stopped if isinstance(proof.verdict(step), Proved)]


@settings(max_examples=examples(100, quick=40), suppress_health_check=SLOW)
@given(plans(), WORLDS, MODES)
def test_the_labels_of_a_run_are_covered_by_the_proof_and_cover_those_of_steps_one_by_one(
    plan: Plan, world: World, mode: Mode
) -> None:
    outcome = _run(plan, world, _policy(0, mode))
    if not isinstance(outcome, Finished):
        event("failed")
        return
    proof = prove(plan, flow_world.REGISTRY, _policy(0, mode).preview, mode)
    assert outcome.shade is not None
    assert proof.answer is not None
    assert covers(proof.answer, outcome.shade)
    one_by_one = LabelledRun(world, mode).run(plan)
    assert one_by_one.answer is not None
    assert outcome.answer == one_by_one.answer[0]
    assert covers(outcome.shade, one_by_one.answer[1])


@settings(max_examples=examples(100, quick=40), suppress_health_check=SLOW)
@given(plans_with_files(), WORLDS, MODES)
def test_the_labels_of_files_are_covered_by_the_proof(plan: Plan, world: World, mode: Mode) -> None:
    outcome = _run(plan, world, _policy(0, mode))
    if isinstance(outcome, Finished):
        proof = prove(plan, FILES, _policy(0, mode).preview, mode)
        assert outcome.shade is not None
        assert proof.answer is not None
        assert covers(proof.answer, outcome.shade)


def _run_curiously(plan: Plan, world: World, policy: Policy, approver: Any = None) -> RunOutcome:
    _files.clear()
    registry, people = Registry(_acting(tool, world) for tool in LOOKED_UP), _Strangers(world)
    reader = _Curious(people, tools=["load"])
    return asyncio.run(
        run_plan(plan, registry, policy=policy, extractor=reader, asker=people, approver=approver or Person())
    )


@settings(max_examples=examples(100, quick=40), suppress_health_check=SLOW)
@given(plans_with_files(), WORLDS, st.integers(0, len(POLICIES) - 1), MODES)
def test_the_proof_covers_what_the_executor_looks_up(plan: Plan, world: World, number: int, mode: Mode) -> None:
    policy, person = _policy(number, mode), Person()
    proof = prove(plan, LOOKED_UP, policy.preview, mode)
    outcome = _run_curiously(plan, world, policy, person)
    stopped = {static_path(call.step) for question in person.asked for call in question.calls}
    assert not [step for step in stopped if isinstance(proof.verdict(step), Proved)]
    if isinstance(outcome, Finished):
        assert outcome.shade is not None
        assert proof.answer is not None
        assert covers(proof.answer, outcome.shade)


@settings(max_examples=examples(100, quick=40), suppress_health_check=SLOW)
@given(plans(), two_worlds())
def test_what_strangers_write_never_changes_what_a_run_calls_trusted(plan: Plan, worlds: tuple[World, World]) -> None:
    one, other = (_run(plan, world, _policy(0, "strict")) for world in worlds)
    if not (isinstance(one, Finished) and isinstance(other, Finished)):
        event("failed")
        return
    assert one.shade is not None
    assert other.shade is not None
    if one.shade is other.shade:
        event("same labels")
        assert differs(one.shade, one.answer, other.answer) is None


class _Suspicious(Person):
    """Refuses whatever strangers had a hand in, and remembers what was let through unasked."""

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.asked.append(question)
        return Answers.no()


@settings(max_examples=examples(100, quick=40), suppress_health_check=SLOW)
@given(plans(), two_worlds())
def test_without_a_yes_strangers_change_no_effect(plan: Plan, worlds: tuple[World, World]) -> None:
    """The calls that were made in both runs before anybody was asked are the same ones, whatever strangers wrote."""
    made: list[list[Any]] = []
    for world in worlds:
        seen: list[Any] = []
        registry = Registry(_seen(_acting(tool, world), seen) for tool in flow_world.REGISTRY)
        people = _Strangers(world)
        options: dict[str, Any] = {"policy": _policy(0, "strict"), "extractor": people, "asker": people}
        asyncio.run(run_plan(plan, registry, approver=_Suspicious(), **options))
        made.append(seen)
    shorter, longer = sorted(made, key=len)
    assert shorter == longer[: len(shorter)]


def _seen(tool: Tool, seen: list[Any]) -> Tool:
    if not tool.changes:
        return tool
    run = tool.run

    async def remembered(values: Mapping[str, Any]) -> Any:
        # What is carried may be a stranger's where the readers are; whom it goes to may not.
        seen.append((tool.name, values["to"]))
        return await run(values)

    return replace(tool, run=remembered)
