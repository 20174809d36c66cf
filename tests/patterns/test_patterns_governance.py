"""V7: no way to a tool or to an effect leads past the specification, and its exceptions end."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from patterns_world import HOSTILE, Table, Work, World, answered, table

from bicameral.errors import PolicyError, RunError
from bicameral.journal import open_journal_at
from bicameral.labels import Labelled
from bicameral.limits import strategy_limits
from bicameral.models import ToolCall
from bicameral.patterns import GaveUp, Governance, ReAct, from_user, pattern_tool, untrusted_value
from bicameral.patterns.kernel import (
    Context,
    NoteEvent,
    Pattern,
    PatternWork,
    replay_pattern,
    resume_pattern,
    run_pattern,
)
from bicameral.patterns.reliability.governance import WaiverClock
from bicameral.patterns.strategies import Runtime
from bicameral.policy import Duty, Specification, Waiver
from bicameral.runs import Answers, ApprovalQuestion, Suspend
from bicameral.tools import Origin, Tool, tool
from invariants import holds

NOON = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
MAILS = '@id("mails") permit (principal, action, resource in Tool::"send");'
LOGGED = '@id("mails") @duties("log") permit (principal, action, resource in Tool::"send");'
NO_MAILS = '@id("no-mails") forbid (principal, action, resource in Tool::"send");'
LOGS = '@id("logs") permit (principal, action, resource in Tool::"log");'
LOG = Duty("log", "log", {"what": "mail"}, {"who": "to"})
NOTHING = Specification("none", "1", "")

DoWork = Callable[[Context], Awaitable[Labelled[Any]]]


def send_mail(context: Context) -> Awaitable[Labelled[Any]]:
    return context.call("send", {"to": from_user("ann@example.com"), "body": from_user("Hello")})


def make_world() -> tuple[World, Sequence[Tool]]:
    world = World()

    @tool(effect="write", outbound=False, origins=Origin("system"), purpose={"what": "carries", "who": "carries"})
    def log(what: str, who: str) -> str:
        """Write a line into the log."""
        world.done.append(("log", (what, who)))
        return "logged"

    @tool(effect="write", outbound=False, origins=Origin("system"), purpose={"what": "carries", "who": "carries"})
    def broken_log(what: str, who: str) -> str:
        """A log that is full."""
        raise OSError("secret: disk full")

    return world, (*world.tools(), log, broken_log)


def govern(
    work: DoWork, spec: Specification, *, clock: Callable[[], dt.datetime] = lambda: NOON, **options: Any
) -> tuple[Table, Any]:
    world, tools = make_world()
    there = table(world=world, tools=tools, **options)
    pattern = Governance(Work(work), spec, clock=WaiverClock(clock))
    return there, asyncio.run(pattern.run(there.desk))


def decisions(outcome: Any) -> list[dict[str, Any]]:
    return [dict(each.facts) for each in outcome.trace if isinstance(each, NoteEvent) and each.what == "decision"]


def waive(**changes: Any) -> Waiver:
    facts: dict[str, Any] = {"rule": "no-mails", "tools": ("send",), "author": "Ada Moss", "reason": "audit"}
    facts |= {"begins": NOON - DAY, "ends": NOON + DAY}
    return Waiver(**facts | changes)


def test_a_permitted_call_is_made_and_the_decision_is_recorded() -> None:
    there, outcome = govern(send_mail, Specification("mails", "7", MAILS))
    assert answered(outcome).value == "sent"
    assert there.world.done == [("send", ("ann@example.com", "Hello"))]
    (decision,) = decisions(outcome)
    assert decision["moment"] == NOON.isoformat()
    assert (decision["permitted"], decision["rules"], decision["version"]) == (True, "mails", "7")


# Uncovered paths ----------------------------------------------------------------------------------------------------


async def in_a_part(context: Context) -> Labelled[Any]:
    return await context.run_part("inner", send_mail)


async def side_by_side(context: Context) -> Labelled[Any]:
    results = await context.gather([("left", send_mail), ("right", send_mail)], width=2)
    for each in results:
        if not isinstance(each, Labelled):
            raise each
    return context.derive(len(results))


async def within_limits(context: Context) -> Labelled[Any]:
    async with context.within_limits(strategy_limits(seconds=10)) as inner:
        return await send_mail(inner)


async def in_a_round(context: Context) -> Labelled[Any]:
    async for turn in context.rounds(most=1, best=len):
        turn.give(await send_mail(turn.context))
    return context.derive("done")


async def in_another_pattern(context: Context) -> Labelled[Any]:
    return await context.run_pattern("inner", Work(send_mail))


@holds("V7.1")
@pytest.mark.parametrize(
    "path",
    [send_mail, in_a_part, side_by_side, within_limits, in_a_round, in_another_pattern],
)
def test_no_path_to_a_tool_leads_past_the_specification(path: DoWork) -> None:
    there, outcome = govern(path, NOTHING)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "policy.denied"
    assert there.world.done == []
    assert not any(each["permitted"] for each in decisions(outcome))
    # The twin: with a permit the same path works.
    there, outcome = govern(path, Specification("mails", "1", MAILS))
    answered(outcome)
    assert there.world.done


@holds("V7.1")
def test_a_conversation_cannot_call_past_it() -> None:
    world, tools = make_world()
    call = ToolCall("1", "send", {"to": "ann@example.com", "body": "Hello"})
    there = table([[call], "Done."], world=world, tools=tools)
    outcome = asyncio.run(Governance(ReAct(), NOTHING).run(there.desk, from_user("Send a mail")))
    assert world.done == []
    assert [each["permitted"] for each in decisions(outcome)] == [False]


@holds("V7.1")
def test_a_pattern_that_is_a_tool_cannot_call_past_it() -> None:
    async def ask(context: Context) -> Labelled[Any]:
        return await context.call("helper", {"request": from_user("Send a mail")})

    async def send_for(context: Context) -> Labelled[Any]:
        return (await send_mail(context)).map(str)

    for rules, done in ((HELPER, False), (HELPER + MAILS, True)):
        world, tools = make_world()
        inner = table(world=world, tools=tools).desk
        helper = pattern_tool(TextWork(send_for), world.tools(), partial(use, inner), name="helper", about="Do it.")
        desk = table(world=world, tools=(*tools, helper)).desk
        outcome = asyncio.run(Governance(Work(ask), Specification("helped", "1", rules)).run(desk))
        assert len(world.done) == done
        assert [each["permitted"] for each in decisions(outcome)] == [True]
        assert isinstance(outcome, GaveUp) is not done


def use(desk: Runtime) -> Runtime:
    return desk


HELPER = '@id("helper") permit (principal, action, resource in Tool::"helper");'


@dataclass(frozen=True)
class TextWork(Pattern[[Labelled[str]], Any]):
    """A function of a context as a pattern that takes a text."""

    id: ClassVar[str] = "R5"
    work: DoWork

    async def execute(self, context: Context, /, request: Labelled[str]) -> Labelled[Any]:
        return await self.work(context)


@holds("V7.1")
def test_work_outside_of_the_tools_is_denied_unless_it_is_listed() -> None:
    saved: list[str] = []

    async def save() -> Labelled[str]:
        saved.append("note")
        return from_user("saved")

    async def work(context: Context) -> Labelled[Any]:
        return await context.once("save the note", save)

    _, outcome = govern(work, NOTHING)
    assert isinstance(outcome, GaveUp)
    assert (outcome.error.code, saved) == ("policy.denied", [])
    _, outcome = govern(work, Specification("notes", "1", "", work=("save the note",)))
    assert (answered(outcome).value, saved) == ("saved", ["note"])


def test_a_specification_permits_nothing_that_policy_stops() -> None:
    async def work(context: Context) -> Labelled[Any]:
        page = await context.call("read_page", {"name": from_user("home")})
        return await context.call("send", {"to": page, "body": from_user("Hello")})

    there, outcome = govern(work, Specification("all", "1", '@id("all") permit (principal, action, resource);'))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.needs-approval"
    assert there.world.done == []


def test_a_denial_quotes_nothing_of_the_call_and_leaves_its_label() -> None:
    async def work(context: Context) -> Labelled[Any]:
        body = untrusted_value(HOSTILE, "mail")
        try:
            return await context.call("send", {"to": from_user("ann@example.com"), "body": body})
        except RunError as error:
            return context.derive(str(error))

    _, outcome = govern(work, NOTHING)
    assert "denied by the specification 'none' 1" in answered(outcome).value
    assert HOSTILE not in answered(outcome).value
    assert HOSTILE not in str(outcome.trace)
    assert not outcome.label.trusted


# Duties -------------------------------------------------------------------------------------------------------------


def test_a_duty_is_done_before_the_call_with_its_arguments() -> None:
    there, outcome = govern(send_mail, Specification("mails", "1", LOGGED + LOGS, (LOG,)))
    answered(outcome)
    assert there.world.done == [("log", ("mail", "ann@example.com")), ("send", ("ann@example.com", "Hello"))]


def test_a_duty_is_judged_itself_and_without_it_the_call_is_not_made() -> None:
    there, outcome = govern(send_mail, Specification("mails", "1", LOGGED, (LOG,)))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "policy.duty-failed"
    assert there.world.done == []


@pytest.mark.parametrize(
    "duty", [Duty("log", "broken_log", {"what": "x", "who": "y"}), Duty("log", "log", {}, {"who": "nobody"})]
)
def test_a_duty_that_fails_stops_the_call_and_its_words_are_not_told(duty: Duty) -> None:
    permit = '@id("logs") permit (principal, action, resource in Effect::"write");'
    there, outcome = govern(send_mail, Specification("mails", "1", LOGGED + permit, (duty,)))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "policy.duty-failed"
    assert "secret" not in str(outcome.error)
    assert there.world.done == []


@holds("V7.7")
def test_duties_that_form_a_cycle_do_not_start() -> None:
    cycle = '@id("logs") @duties("log") permit (principal, action, resource in Tool::"log");'
    there, outcome = govern(send_mail, Specification("mails", "1", LOGGED + cycle, (LOG,)))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "policy.duty-cycle"
    assert there.world.done == []


@holds("V7.7")
def test_a_cycle_that_only_a_real_call_has_ends_when_it_is_met() -> None:
    # The most harmless call of `log` is of the user's own words, and has no duty.
    cycle = """
    @id("theirs") @duties("log") permit (principal, action, resource in Tool::"log")
    when { !resource.carries.trusted };
    """

    async def work(context: Context) -> Labelled[Any]:
        given = {"what": from_user("mail"), "who": untrusted_value("eve", "mail")}
        return await context.call("log", given)

    duty = Duty("log", "log", {"what": "log"}, {"who": "who"})
    there, outcome = govern(work, Specification("mails", "1", LOGS + cycle, (duty,)))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code in ("policy.duty-cycle", "policy.duty-failed")
    assert there.world.done == []


@holds("V7.7")
@pytest.mark.parametrize(("most", "fits"), [(0, False), (1, True)])
def test_the_depth_of_duties_is_capped(most: int, fits: bool) -> None:
    world, tools = make_world()
    there = table(world=world, tools=tools)
    spec = Specification("mails", "1", LOGGED + LOGS, (LOG,))
    outcome = asyncio.run(Governance(Work(send_mail), spec, max_obligations=most).run(there.desk))
    assert bool(world.done) is fits
    if not fits:
        assert isinstance(outcome, GaveUp)
        assert outcome.error.code == "policy.duties-too-deep"


# Waivers ------------------------------------------------------------------------------------------------------------

WAIVED = Specification("waived", "1", MAILS + NO_MAILS, waivers=(waive(),))


def test_a_waiver_in_force_lets_the_call_pass_and_is_in_the_record() -> None:
    there, outcome = govern(send_mail, WAIVED)
    answered(outcome)
    assert there.world.done
    assert decisions(outcome)[0]["waivers"] == "no-mails by Ada Moss"


@pytest.mark.parametrize("at", [NOON + DAY, NOON + 100 * DAY, NOON - 2 * DAY])
def test_a_waiver_after_its_end_or_before_its_begin_does_not_count(at: dt.datetime) -> None:
    there, outcome = govern(send_mail, WAIVED, clock=lambda: at)
    assert isinstance(outcome, GaveUp)
    assert there.world.done == []


def test_a_clock_that_is_set_back_brings_no_waiver_back() -> None:
    moments = iter([NOON + 2 * DAY, NOON, NOON + 3 * DAY])

    async def work(context: Context) -> Labelled[Any]:
        await context.gather([("first", send_mail)], width=1)
        await context.gather([("second", send_mail)], width=1)
        return await send_mail(context)

    there, outcome = govern(work, WAIVED, clock=lambda: next(moments))
    assert there.world.done == []
    assert [each["moment"] for each in decisions(outcome)] == [
        (NOON + 2 * DAY).isoformat(),
        "",
        (NOON + 3 * DAY).isoformat(),
    ]


def test_a_clock_that_is_corrected_a_little_is_believed() -> None:
    moments = iter([NOON, NOON - dt.timedelta(seconds=1)])
    clock = WaiverClock(lambda: next(moments))
    assert [clock.read(), clock.read()] == [NOON, NOON]


# Record -------------------------------------------------------------------------------------------------------------


@holds("V7.2")
def test_a_replay_judges_the_recorded_inputs_to_the_recorded_verdict_whatever_time_it_is(tmp_path: Path) -> None:
    with open_journal_at(tmp_path / "journal.db") as journal:
        there, outcome = govern(send_mail, WAIVED, journal=journal)
        answered(outcome)
        late = Governance(Work(send_mail), WAIVED, clock=WaiverClock(lambda: NOON))
        desk = there.desk
        again = asyncio.run(replay_pattern(journal, outcome.run, desk.registry, desk.policy, pattern=late))
        assert [each for each in again.differences if "settings or other code" not in each] == []
        changed = Governance(Work(send_mail), Specification("waived", "1", MAILS + NO_MAILS), clock=late.clock)
        again = asyncio.run(replay_pattern(journal, outcome.run, desk.registry, desk.policy, pattern=changed))
        assert not again.identical


class Inbox:
    """Nobody answers at first; later somebody says yes."""

    def __init__(self, *, says_yes: bool) -> None:
        self.says_yes = says_yes

    async def approve(self, question: ApprovalQuestion) -> Answers:
        if not self.says_yes:
            raise Suspend
        return Answers.yes(question.calls)


class Moment:
    """What the clock of a machine says."""

    now = NOON + 2 * DAY


def say() -> dt.datetime:
    return Moment.now


def test_a_run_that_goes_on_with_a_clock_set_back_has_no_waiver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(context: Context) -> Labelled[Any]:
        await context.gather([("first", send_mail)], width=1)
        await context.approve("Shall it be sent again?")
        return await send_mail(context)

    world, tools = make_world()
    with open_journal_at(tmp_path / "journal.db") as journal:
        desk = table(world=world, tools=tools, journal=journal, approver=Inbox(says_yes=False)).desk
        pattern = Governance(Work(work), WAIVED, clock=WaiverClock(say))
        waits = asyncio.run(run_pattern(PatternWork(pattern), desk, run="r", may_wait=True))
        assert isinstance(waits, GaveUp)
        assert waits.error.code == "run.waits"
        monkeypatch.setattr(Moment, "now", NOON)
        # As in another process: a clock that has seen nothing yet.
        pattern = Governance(Work(work), WAIVED, clock=WaiverClock(say))
        desk = table(world=world, tools=tools, journal=journal, approver=Inbox(says_yes=True)).desk
        ended = asyncio.run(resume_pattern(journal, "r", desk, pattern=pattern))
    assert isinstance(ended, GaveUp)
    assert ended.error.code == "policy.denied"
    assert world.done == []


def test_a_specification_of_another_world_does_not_start() -> None:
    spec = Specification("wrong", "1", '@id("a") permit (principal, action, resource in Tool::"sned");')
    _, outcome = govern(send_mail, spec)
    assert isinstance(outcome, GaveUp)
    assert isinstance(outcome.error, PolicyError)
    assert outcome.error.code == "policy.unknown-tool"


def test_two_specifications_hold_both() -> None:
    world, tools = make_world()
    there = table(world=world, tools=tools)
    both = Governance(Governance(Work(send_mail), Specification("inner", "1", MAILS)), NOTHING)
    assert isinstance(asyncio.run(both.run(there.desk)), GaveUp)
    assert world.done == []
