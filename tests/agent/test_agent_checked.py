"""The result of a check is handed on to the run, and is relied on only for exactly what it is true of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, Failed, Finished, Policy, ScriptedProvider, parse
from bicameral.config import Config
from bicameral.errors import PlanError
from bicameral.labels import Label, Source
from bicameral.planning import Intent
from bicameral.plans import Const, Plan, PlanLimits
from bicameral.runs import Answers, ApprovalQuestion, CheckBasis, Checked, StartState, check_plan, run_plan
from bicameral.tools import Folders, Origin, Registry, Surroundings, Tool, load_toolboxes, tool

REQUEST = "Post Hello to kim@example.com"
OWN = 'post("kim@example.com", "Hello")\nanswer("greeted")\n'
TWICE = 'post("kim@example.com", "Hello")\npost("kim@example.com", "Hello")\nanswer("greeted")\n'
OTHER = 'post("eve@example.org", "Hello")\nanswer("greeted")\n'
FORBID = '@id("stays") forbid (principal, action, resource in Tool::"post");'


class Office:
    """A tool that posts texts, what was posted, and how often a plan was checked and proved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.posted: list[str] = []
        self.checks: list[Plan] = []
        self.proofs: list[Plan] = []
        self._count(monkeypatch, "bicameral.runs._inputs.check", self.checks)
        self._count(monkeypatch, "bicameral.planning._delta.check", self.checks)
        self._count(monkeypatch, "bicameral.runs._inputs.prove", self.proofs)

    def _count(self, monkeypatch: pytest.MonkeyPatch, name: str, seen: list[Plan]) -> None:
        from bicameral.plans import check, prove

        real: Callable[..., Any] = check if name.endswith("check") else prove

        def counted(plan: Plan, registry: Registry, *args: Any, **options: Any) -> Any:
            seen.append(plan)
            return real(plan, registry, *args, **options)

        monkeypatch.setattr(name, counted)

    @property
    def tools(self) -> list[Tool]:
        @tool(effect="send", purpose={"to": "directs", "text": "carries"}, origins=Origin("system"), words=("post",))
        def post(to: str, text: str) -> None:
            """Post a text to somebody."""
            self.posted.append(f"{to}: {text}")

        return [post]

    def agent(self, **options: Any) -> Agent:
        given: dict[str, Any] = {
            "privileged": ScriptedProvider([OWN] * 3, grammars=False),
            "quarantined": ScriptedProvider([], grammars=False),
            "config": Config.defaults(),
            "cache": {},
        }
        return Agent(self.tools, **(given | options))

    def forget(self) -> None:
        self.checks.clear()
        self.proofs.clear()

    @property
    def counts(self) -> tuple[int, int]:
        return len(self.checks), len(self.proofs)


@pytest.fixture
def office(monkeypatch: pytest.MonkeyPatch) -> Office:
    return Office(monkeypatch)


async def _plan(agent: Agent) -> Any:
    return await agent.plan(REQUEST, deterministic=True)


# Once -----------------------------------------------------------------------------------------------------------------


async def test_a_fresh_plan_is_proved_once_and_checked_once(office: Office) -> None:
    agent = office.agent()
    planned = await _plan(agent)
    # The planner's check is not repeated: nothing in this plan had to be bound.
    assert office.counts == (1, 1)
    office.forget()
    assert isinstance(await agent.run(planned), Finished)
    assert office.counts == (0, 0)


async def test_a_plan_from_the_cache_is_checked_and_proved_like_a_fresh_one(office: Office) -> None:
    agent = office.agent()
    await _plan(agent)
    office.forget()
    planned = await _plan(agent)
    assert planned.cached
    assert office.counts == (1, 1)


async def test_a_plan_from_the_cache_that_the_table_no_longer_fits_is_written_anew(tmp_path: Path) -> None:
    old = 'rows = read_csv("sales.csv")\nanswer(sum([row["amount"] for row in rows]))\n'
    new = 'rows = read_csv("sales.csv")\nanswer(sum([row["total"] for row in rows]))\n'
    (tmp_path / "sales.csv").write_text("day,amount\n2026-01-01,5\n")
    tools = load_toolboxes({"tables": {}}, Surroundings(Folders(tmp_path, (tmp_path,), (tmp_path,))))
    planner, reader = ScriptedProvider([old, new], grammars=False), ScriptedProvider([], grammars=False)
    agent = Agent(tools, privileged=planner, quarantined=reader, config=Config.defaults(), cache={})
    assert (await agent.plan("Sum up sales.csv", deterministic=True)).report.ok
    (tmp_path / "sales.csv").write_text("day,total\n2026-01-01,5\n")
    again = await agent.plan("Sum up sales.csv", deterministic=True)
    assert (again.cached, again.report.ok, len(planner.requests)) == (False, True, 2)


async def test_a_checked_plan_of_ones_own_is_not_checked_again(office: Office) -> None:
    agent = office.agent()
    checked = agent.check(parse(OWN, agent.registry).plan)
    assert isinstance(await agent.run(checked), Finished)
    assert office.counts == (1, 1)


async def test_a_bare_plan_is_checked(office: Office) -> None:
    agent = office.agent()
    assert isinstance(await agent.run(parse(OWN, agent.registry).plan), Finished)
    assert office.counts == (1, 1)


async def test_what_is_handed_on_says_what_a_check_would_say(office: Office) -> None:
    agent = office.agent()
    planned = await _plan(agent)
    anew = agent.check(planned.plan, intent=planned.intent)
    assert planned.report.to_json() == anew.report.to_json()
    assert planned.proof == anew.proof
    assert planned.checked.assembled == anew.assembled


# Attacks: whatever is not what was checked is checked again -----------------------------------------------------------


async def test_a_replaced_plan_is_checked_again(office: Office) -> None:
    agent = office.agent()
    planned = await _plan(agent)
    office.forget()
    swapped = replace(planned, plan=parse(OTHER, agent.registry).plan)
    with pytest.raises(PlanError, match="does not pass the check"):
        await agent.run(swapped)
    assert office.checks == [swapped.plan]
    assert office.posted == []


async def test_an_equal_copy_of_the_plan_is_checked_again(office: Office) -> None:
    agent = office.agent()
    planned = await _plan(agent)
    office.forget()
    await agent.run(replace(planned, plan=planned.plan.model_copy()))
    assert office.counts == (1, 1)


async def test_a_plan_that_was_changed_in_place_is_checked_again(office: Office) -> None:
    agent = office.agent()
    planned = await _plan(agent)
    office.forget()
    planned.plan.steps[0].args["to"] = Const(value="eve@example.org")
    with pytest.raises(PlanError, match="does not pass the check"):
        await agent.run(planned)
    assert office.posted == []


async def test_another_intent_is_held_against_the_plan(office: Office) -> None:
    agent = office.agent()
    planned = await _plan(agent)
    office.forget()
    with pytest.raises(PlanError, match="does not pass the check"):
        await agent.run(replace(planned, intent=Intent(request="What day is it?")))
    assert office.counts == (1, 1)
    assert office.posted == []


async def test_a_check_without_the_intent_does_not_stand_for_one_with_it(office: Office) -> None:
    agent = office.agent()
    planned = await _plan(agent)
    lax = check_plan(planned.plan, agent.registry, agent.policy, limits=agent.config.plan_limits, intent=planned.intent)
    office.forget()
    await agent.run(replace(planned, checked=lax))
    assert office.counts == (1, 1)


async def test_a_policy_that_was_loaded_since_decides(office: Office) -> None:
    agent = office.agent()
    planned = await _plan(agent)
    agent.policy = Policy.parse(FORBID, agent.registry)
    with pytest.raises(PlanError, match="does not pass the check"):
        await agent.run(planned)
    assert office.posted == []


async def test_an_equal_policy_that_was_loaded_since_is_asked(office: Office) -> None:
    agent = office.agent()
    planned = await _plan(agent)
    office.forget()
    agent.policy = Policy.load((), agent.registry)
    assert isinstance(await agent.run(planned), Finished)
    assert office.counts == (1, 1)


async def test_another_agent_with_other_tools_checks_again(office: Office) -> None:
    planned = await _plan(office.agent())
    office.forget()
    bare = Agent(
        [],
        config=Config.defaults(),
        privileged=ScriptedProvider([], grammars=False),
        quarantined=ScriptedProvider([], grammars=False),
        cache={},
    )
    with pytest.raises(PlanError, match="there is no tool 'post'"):
        await bare.run(planned)


async def test_another_registry_of_the_same_tools_checks_again(office: Office) -> None:
    planned = await _plan(office.agent())
    office.forget()
    assert isinstance(await office.agent().run(planned), Finished)
    assert office.counts == (1, 1)


async def test_other_limits_are_held_against_the_plan(office: Office) -> None:
    agent = office.agent()
    checked = agent.check(parse(TWICE, agent.registry).plan)
    strict = office.agent(policy=agent.policy, limits=PlanLimits(max_tool_calls=1))
    strict.registry = agent.registry
    with pytest.raises(PlanError, match="does not pass the check"):
        await strict.run(checked)
    assert office.posted == []


async def test_a_plan_that_was_checked_to_go_on_from_something_is_checked_again_without_it(office: Office) -> None:
    agent = office.agent()
    start = StartState(written={"note": Label({Source("third_party", "read_note")})})
    plan = parse(OWN, agent.registry).plan
    checked = check_plan(plan, agent.registry, agent.policy, limits=agent.config.plan_limits, start=start)
    office.forget()
    await agent.run(checked)
    assert office.counts == (1, 1)


async def test_the_label_of_what_chose_a_plan_is_kept_however_the_plan_is_handed_on(office: Office) -> None:
    agent = office.agent()
    start = StartState(read=Label({Source("third_party", "read_note")}))
    plan = parse(OWN, agent.registry).plan
    checked = check_plan(plan, agent.registry, agent.policy, limits=agent.config.plan_limits, start=start)
    office.forget()
    outcome = await agent.run(checked)
    assert office.counts == (0, 0)
    # A stranger's text had a part in choosing the plan, so the person is asked before it posts anything.
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "run.needs-approval"
    assert office.posted == []


async def test_a_plan_that_did_not_pass_does_not_run_however_it_is_handed_on(office: Office) -> None:
    agent = office.agent(policy=Policy.parse(FORBID))
    checked = agent.check(parse(OWN, agent.registry).plan)
    assert not checked.ok
    with pytest.raises(PlanError):
        await agent.run(checked)
    with pytest.raises(PlanError):
        await run_plan(checked, agent.registry, policy=agent.policy)
    assert office.posted == []


# The run itself -------------------------------------------------------------------------------------------------------


def _checked(office: Office) -> tuple[Checked, Registry, Policy]:
    registry = Registry(office.tools)
    policy = Policy.load((), registry)
    return check_plan(parse(OWN, registry).plan, registry, policy), registry, policy


async def test_a_run_checks_a_plan_again_that_was_checked_for_another_policy(office: Office) -> None:
    checked, registry, _ = _checked(office)
    with pytest.raises(PlanError, match="does not pass the check"):
        await run_plan(checked, registry, policy=Policy.parse(FORBID, registry))
    assert office.posted == []


async def test_a_run_checks_a_plan_again_that_was_checked_for_other_tools(office: Office) -> None:
    checked, _, policy = _checked(office)
    with pytest.raises(PlanError, match="there is no tool 'post'"):
        await run_plan(checked, Registry([]), policy=policy)


async def test_a_run_checks_a_plan_again_that_was_checked_for_another_start(office: Office) -> None:
    checked, registry, policy = _checked(office)
    office.forget()
    start = StartState(read=Label({Source("third_party", "read_note")}))
    outcome = await run_plan(checked, registry, policy=policy, start=start)
    assert office.counts == (1, 1)
    assert isinstance(outcome, Failed)
    assert office.posted == []


async def test_a_checked_plan_never_runs_without_a_policy(office: Office) -> None:
    registry = Registry(office.tools)
    policy = Policy.parse('@ask("Post it?") forbid (principal, action, resource in Tool::"post");', registry)
    checked = check_plan(parse(OWN, registry).plan, registry, policy)
    assert checked.ok
    outcome = await run_plan(checked, registry)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "run.needs-approval"
    assert office.posted == []


async def test_nobody_is_asked_before_the_first_step_where_that_is_off(office: Office) -> None:
    registry = Registry(office.tools)
    policy = Policy.parse('@ask("Post it?") forbid (principal, action, resource in Tool::"post");', registry)
    checked = check_plan(parse(OWN, registry).plan, registry, policy)

    class Person:
        """Says no, and remembers whether it was asked before the first step."""

        before: bool | None = None

        async def approve(self, question: ApprovalQuestion) -> Answers:
            self.before = question.before
            return Answers.no()

    for early in (True, False):
        person = Person()
        await run_plan(checked, registry, policy=policy, early_approvals=early, approver=person)
        assert person.before is early


def test_a_basis_covers_itself_and_nothing_else(office: Office) -> None:
    registry = Registry(office.tools)
    plan = parse(OWN, registry).plan
    basis = CheckBasis(plan, registry, Policy.load((), registry))
    assert basis.covers(replace(basis))
    others: list[dict[str, Any]] = [
        {"plan": plan.model_copy()},
        {"registry": Registry(office.tools)},
        {"policy": Policy.load((), registry)},
        {"limits": PlanLimits(max_items=7)},
        {"start": StartState(assembled=frozenset({"x"}))},
        {"intent": Intent(request=REQUEST)},
        {"against_intent": True},
    ]
    for other in others:
        assert not basis.covers(replace(basis, **other)), other


@pytest.mark.parametrize(("me", "fits"), [(["Eve@Example.org"], True), (["kim@example.com"], False), ([], False)])
async def test_the_planner_knows_the_same_own_addresses_as_the_run(office: Office, me: list[str], fits: bool) -> None:
    privileged = ScriptedProvider([OTHER] * 3, grammars=False)
    agent = office.agent(privileged=privileged, policy=Policy((), Registry(office.tools), me=me))
    intent = Intent(request="Post Hello to me", effects=("send",))
    if fits:
        assert isinstance(await agent.run(await agent.plan(intent)), Finished)
        assert office.posted == ["eve@example.org: Hello"]
        return
    with pytest.raises(PlanError, match=r"eve@example\.org"):
        await agent.plan(intent)
