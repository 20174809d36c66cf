"""V3: three legs begin only under an audit of exactly this system; no tool that is added later escapes the count."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from patterns_world import Work, World, answered, table

from bicameral.errors import CatalogError, RunError
from bicameral.journal import open_journal_at
from bicameral.labels import Label, Labelled, Source, make_labelled
from bicameral.patterns import GaveUp, RuleOfTwo, from_user, pattern_tool, untrusted_value
from bicameral.patterns.kernel import Context, NoteEvent, Pattern, replay_pattern
from bicameral.patterns.reliability.rule_of_two import SystemAudit, system_hash
from bicameral.patterns.signal.zero_shot import ZeroShot
from bicameral.patterns.strategies import Runtime
from bicameral.policy import Policy
from bicameral.tools import Origin, Registry, Tool, tool
from invariants import holds

SECRET = Label({Source("system", "files")}, {"user"})


@tool(effect="read", outbound=False, origins=Origin("system", "user"), purpose={"day": "selects"})
def read_diary(day: str) -> str:
    """What the diary says."""
    return "my secret"


WORLD = World()
PAGE, POPULATION, ADD, SEND = WORLD.tools()


@pytest.fixture(autouse=True)
def nothing_sent() -> None:
    WORLD.done.clear()


def desk_with(*tools: Tool, known: Sequence[Tool] = ()) -> Runtime:
    """A desk whose policies know these tools, and perhaps some that come later."""
    desk = table(tools=tools).desk
    return replace(desk, policy=Policy((), Registry([*tools, *known])))


async def answer(context: Context) -> Labelled[Any]:
    return context.derive("done")


def send(context: Context, body: Labelled[str]) -> Any:
    return context.call("send", {"to": from_user("ann@example.com"), "body": body})


async def send_hello(context: Context) -> Labelled[Any]:
    return await send(context, from_user("Hello"))


def audit(inner: Pattern[..., Any], desk: Runtime, **changes: Any) -> SystemAudit:
    facts: dict[str, Any] = {
        "system": system_hash(inner, desk),
        "boundary": "V4",
        "content_type": "a number",
        "outbound": (),
        "inventory_by": "Ada Moss",
        "audited_by": "Ben Field",
    }
    return SystemAudit(**facts | changes)


def run(pattern: Pattern[..., Any], desk: Runtime, *args: Any) -> Any:
    return asyncio.run(pattern.run(desk, *args))


def code_of(outcome: Any) -> str:
    assert isinstance(outcome, GaveUp), outcome
    return outcome.error.code


def legs(outcome: Any) -> str:
    (note,) = [each for each in outcome.trace if isinstance(each, NoteEvent) and each.what == "legs-counted"]
    return str(note.facts["legs"])


# At the beginning ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tools", "counted"),
    [
        ((), ""),
        ((POPULATION, ADD), ""),
        ((read_diary,), "private"),
        ((read_diary, PAGE), "private, untrusted"),
        ((PAGE, SEND), "outbound, private, untrusted"),
    ],
)
def test_legs_are_counted_over_all_tools(tools: Sequence[Tool], counted: str) -> None:
    outcome = run(RuleOfTwo(Work(answer)), desk_with(*tools))
    assert legs(outcome) == counted
    assert isinstance(outcome, GaveUp) is (counted.count(",") == 2)


@holds("V3.4")
def test_three_legs_without_a_boundary_on_record_do_not_start() -> None:
    begun: list[str] = []

    async def work(context: Context) -> Labelled[Any]:
        begun.append("begun")
        return context.derive("done")

    desk = desk_with(read_diary, PAGE, SEND)
    assert code_of(run(RuleOfTwo(Work(work)), desk)) == "pattern.three-legs"
    assert begun == []
    outcome = run(RuleOfTwo(Work(work), audit(Work(work), desk)), desk)
    assert (answered(outcome).value, begun) == ("done", ["begun"])


@holds("V3.4")
@pytest.mark.parametrize(
    "changes",
    [
        {"boundary": "V6"},
        {"boundary": "V7"},
        {"boundary": ""},
        {"boundary": "be careful"},
        {"content_type": " "},
        {"system": ""},
        {"audited_by": ""},
        {"inventory_by": "ben field"},
    ],
)
def test_an_audit_without_boundary_content_type_or_two_people_does_not_count(changes: dict[str, Any]) -> None:
    with pytest.raises(CatalogError) as caught:
        audit(Work(answer), desk_with(), **changes)
    assert caught.value.code == "pattern.bad-audit"


@holds("V3.4")
def test_a_way_out_that_no_policy_holds_does_not_start_whatever_is_on_record() -> None:
    def shout(text: str) -> str:
        """A plain function, which declares nothing."""
        return text

    desk = desk_with(read_diary, PAGE, Registry([shout])["shout"])
    outcome = run(RuleOfTwo(Work(answer), audit(Work(answer), desk, outbound=("shout",))), desk)
    assert code_of(outcome) == "pattern.three-legs"
    assert "'shout'" in str(outcome.error)


@pytest.mark.parametrize(
    ("given", "counted"),
    [
        (from_user("Hello"), "outbound, private"),
        (untrusted_value("Hello", "mail"), "outbound, private, untrusted"),
    ],
)
def test_what_is_given_brings_legs_too(given: Labelled[str], counted: str) -> None:
    there = table(["Yes."], ["Yes."], tools=(SEND, read_diary))
    outcome = run(RuleOfTwo(ZeroShot()), there.desk, given)
    assert legs(outcome) == counted
    assert isinstance(outcome, GaveUp) is ("untrusted" in counted)


def test_fewer_legs_may_be_allowed() -> None:
    desk = desk_with(read_diary, PAGE)
    assert code_of(run(RuleOfTwo(Work(answer), legs_allowed=1), desk)) == "pattern.three-legs"
    answered(run(RuleOfTwo(Work(answer), audit(Work(answer), desk), legs_allowed=1), desk))
    with pytest.raises(CatalogError, match="legs_allowed is 3"):
        RuleOfTwo(Work(answer), legs_allowed=3)


def test_tools_that_may_not_be_called_do_not_count() -> None:
    async def work(context: Context) -> Labelled[Any]:
        assert context.registry.names == ("read_diary", "read_page")
        return context.derive("done")

    desk = desk_with(read_diary, PAGE, SEND)
    answered(run(RuleOfTwo(Work(work), tools=("read_diary", "read_page")), desk))


# Bound to the system ------------------------------------------------------------------------------------------------


@holds("V3.5")
def test_an_audit_of_another_system_does_not_count() -> None:
    inner, desk = Work(answer), desk_with(read_diary, PAGE, SEND)
    record = audit(inner, desk)
    models = table(tools=(read_diary, PAGE, SEND)).desk.models
    renamed = replace(models, chambers=replace(models.chambers, privileged=_renamed(models)))
    others: dict[str, tuple[Pattern[..., Any], Runtime]] = {
        "a tool more": (inner, desk_with(read_diary, PAGE, SEND, ADD)),
        "another declaration": (inner, desk_with(replace(read_diary, doc="Another."), PAGE, SEND)),
        "other code": (inner, desk_with(replace(read_diary, code=lambda: "changed"), PAGE, SEND)),
        "another prompt": (Work(send_hello), desk),
        "another model": (inner, replace(desk, models=renamed)),
        "other policies": (inner, replace(desk, policy=_stricter(desk))),
    }
    answered(run(RuleOfTwo(inner, record), desk))
    for what, (pattern, changed) in others.items():
        assert code_of(run(RuleOfTwo(pattern, record), changed)) == "pattern.stale-audit", what


def _renamed(models: Any) -> Any:
    from patterns_world import Speaker

    return Speaker([], name="another")


def _stricter(desk: Runtime) -> Policy:
    return Policy.parse('@id("no") forbid (principal, action, resource in Tool::"send");', desk.registry)


# While it runs ------------------------------------------------------------------------------------------------------


def adds(*tools: Tool) -> Work:
    """A pattern that loads tools while it runs, and calls `send` then."""

    async def work(context: Context) -> Labelled[Any]:
        await context.call("read_diary", {"day": from_user("today")})
        context.shared.registry = Registry([*context.shared.registry, *tools])
        return await send_hello(context)

    return Work(work)


@holds("V3.3")
def test_a_tool_that_is_added_while_it_runs_is_counted() -> None:
    desk = desk_with(read_diary, PAGE, known=(SEND,))
    outcome = run(RuleOfTwo(adds(SEND)), desk)
    assert code_of(outcome) == "pattern.three-legs"
    assert WORLD.done == []
    # The twin: two legs stay two legs.
    desk = desk_with(read_diary, known=(SEND,))
    answered(run(RuleOfTwo(adds(SEND)), desk))
    assert len(WORLD.done) == 1


@holds("V3.3", "V3.5")
def test_an_audit_does_not_cover_a_tool_that_is_added_while_it_runs() -> None:
    desk = desk_with(read_diary, PAGE, known=(SEND,))
    inner = adds(SEND)
    outcome = run(RuleOfTwo(inner, audit(inner, desk, outbound=("send",))), desk)
    assert code_of(outcome) == "pattern.stale-audit"
    assert WORLD.done == []


@holds("V3.3")
def test_a_tool_that_takes_the_place_of_another_is_counted() -> None:
    harmless = replace(ADD, name="send")

    async def work(context: Context) -> Labelled[Any]:
        context.shared.registry = Registry([read_diary, PAGE, SEND])
        return await send_hello(context)

    outcome = run(RuleOfTwo(Work(work)), desk_with(read_diary, PAGE, harmless))
    assert code_of(outcome) == "pattern.three-legs"
    assert WORLD.done == []


@holds("V3.3")
def test_tools_of_a_pattern_that_is_a_tool_are_counted() -> None:
    async def ask(context: Context) -> Labelled[Any]:
        return await context.call("helper", {"request": from_user("Go")})

    desk = desk_with(read_diary, PAGE)
    helper = pattern_tool(ZeroShot(), [SEND], lambda: desk, name="helper", about="Do it.")
    assert code_of(run(RuleOfTwo(Work(ask)), desk_with(read_diary, PAGE, helper))) == "pattern.three-legs"


# The third leg ------------------------------------------------------------------------------------------------------


async def send_mixture(context: Context) -> Labelled[Any]:
    diary = await context.call("read_diary", {"day": from_user("today")})
    page = await context.call("read_page", {"name": from_user("home")})
    context.read(diary)
    return await send(context, page)


@holds("V3.6")
def test_with_two_legs_live_an_outbound_call_that_the_audit_does_not_name_is_blocked() -> None:
    desk = desk_with(read_diary, PAGE, SEND)
    inner = Work(send_mixture)
    outcome = run(RuleOfTwo(inner, audit(inner, desk)), desk)
    assert code_of(outcome) == "pattern.third-leg"
    assert WORLD.done == []
    assert any(isinstance(each, NoteEvent) and each.what == "outbound-blocked" for each in outcome.trace)
    # The twin: an audit that names it leaves the decision to policy, which asks.
    outcome = run(RuleOfTwo(inner, audit(inner, desk, outbound=("send",))), desk)
    assert code_of(outcome) == "run.needs-approval"
    assert WORLD.done == []


@holds("V3.6")
def test_with_one_leg_live_an_outbound_call_is_for_policy_to_decide() -> None:
    desk = desk_with(read_diary, PAGE, SEND)
    inner = Work(send_hello)
    answered(run(RuleOfTwo(inner, audit(inner, desk)), desk))
    assert len(WORLD.done) == 1


@holds("V3.6")
def test_values_that_come_from_elsewhere_are_live_too() -> None:
    async def work(context: Context) -> Labelled[Any]:
        context.read(make_labelled("diary", SECRET))
        return await send(context, untrusted_value("page", "web"))

    desk = desk_with(SEND)
    assert code_of(run(RuleOfTwo(Work(work)), desk)) == "pattern.third-leg"
    assert WORLD.done == []


def test_a_replay_counts_the_system_of_the_record(tmp_path: Path) -> None:
    with open_journal_at(tmp_path / "journal.db") as journal:
        desk = replace(desk_with(read_diary, PAGE, SEND), journal=journal)
        pattern = RuleOfTwo(Work(send_hello), audit(Work(send_hello), desk))
        outcome = run(pattern, desk)
        answered(outcome)
        again = asyncio.run(replay_pattern(journal, outcome.run, desk.registry, desk.policy, pattern=pattern))
        assert again.identical, again.differences
    assert len(WORLD.done) == 1


def test_errors_quote_nothing_of_what_was_read() -> None:
    desk = desk_with(read_diary, PAGE, SEND)
    inner = Work(send_mixture)
    outcome = run(RuleOfTwo(inner, audit(inner, desk)), desk)
    assert isinstance(outcome.error, RunError)
    assert WORLD.page not in f"{outcome.error} {outcome.trace}"
    assert "my secret" not in f"{outcome.error} {outcome.trace}"
