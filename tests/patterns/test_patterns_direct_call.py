"""I1: code calls, no model is in the path, nothing is sent unchecked, and no attempt is hidden."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

import pytest
from patterns_models import performed
from patterns_world import EVE, HOSTILE, Table, answered, table

from bicameral.errors import CatalogError, ToolError
from bicameral.journal import open_journal_at
from bicameral.labels import TRUSTED_USER
from bicameral.models import LocalProvider, Message
from bicameral.patterns import DirectCall, GaveUp, ZeroShot, program_text, untrusted_value
from bicameral.patterns.integration.direct_call import Parameters, RequestCheck, ToolBreakers
from bicameral.patterns.kernel import (
    NoteEvent,
    PatternWork,
    from_user,
    pattern_tool,
    replay_pattern,
    resume_pattern,
    run_pattern,
)
from bicameral.policy import Policy
from bicameral.runs import Answers, ApprovalQuestion, Suspend
from bicameral.secrets import isolate_secrets, register_secret
from bicameral.tools import Origin, Registry, Tool, tool
from invariants import holds

DOWN = ToolError("tools.unreachable", "nobody answers")
USD: Parameters = {"currency": from_user("USD")}


class Rate(TypedDict):
    rate: float
    headers: str


@dataclass
class Service:
    """A service that does what the script says, one entry a request, and then works."""

    script: list[Exception | float] = field(default_factory=list[Exception | float])
    requests: list[str] = field(default_factory=list[str])

    def tool(self, *, idempotent: bool = True, act: Callable[[], Any] | None = None) -> Tool:
        @tool(
            name="exchange_rate",
            effect="read",
            outbound=False,
            origins=Origin("system", "public"),
            purpose={"currency": "selects"},
            idempotent=idempotent,
        )
        async def exchange_rate(currency: str, amount: int = 1) -> Rate:
            """The rate of a currency."""
            self.requests.append(currency)
            if act is not None:
                await act()
            told = self.script.pop(0) if self.script else 0.0
            if isinstance(told, Exception):
                raise told
            await asyncio.sleep(told)
            return {"rate": 1.25, "headers": "x-internal: canary-3302"}

        return exchange_rate


def made(**options: Any) -> DirectCall:
    return DirectCall("exchange_rate", pause=0.0, **options)


def ran(service: Service, pattern: DirectCall | None = None, parameters: Parameters = USD, **options: Any) -> Any:
    there = table(tools=[service.tool()], **options)
    return asyncio.run((pattern or made()).run(there.desk, parameters))


def codes(outcome: Any) -> list[Any]:
    return [each.facts["code"] for each in outcome.trace if isinstance(each, NoteEvent) and each.what == "attempt"]


# No model -------------------------------------------------------------------------------------------------------------


@holds("I1.1")
def test_no_model_is_called_between_signal_and_result() -> None:
    service = Service()
    there = table(["never"], ["never"], tools=[service.tool()])
    outcome = answered(asyncio.run(made().run(there.desk, USD)))
    assert outcome.value["rate"] == 1.25
    assert outcome.taken.calls == 0
    assert not (there.privileged.asked)
    assert not (there.quarantined.asked)
    assert not (outcome.model_calls)


@holds("I1.1")
def test_a_tool_that_asks_a_model_is_stopped_before_the_model_is_asked() -> None:
    there: Table

    async def charged() -> None:
        await there.desk.models.ask("reasoning", (Message("user", "Which rate?"),), TRUSTED_USER, None)

    service = Service()
    there = table(["1.25"], tools=[service.tool(act=charged)])
    outcome = asyncio.run(made().run(there.desk, USD))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.model-in-path"
    assert not there.privileged.asked


@holds("I1.1")
def test_a_pattern_as_a_tool_is_stopped_before_a_model_is_asked() -> None:
    there = table(["1.25"])
    expert = pattern_tool(ZeroShot(), [], lambda: there.desk, name="ask_expert", about="Ask an expert.")
    registry = Registry([expert])
    there.desk = replace(there.desk, registry=registry, policy=Policy((), registry))
    outcome = asyncio.run(DirectCall("ask_expert").run(there.desk, {"request": program_text("Which rate?")}))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.model-in-path"
    assert not there.privileged.asked


# The check ------------------------------------------------------------------------------------------------------------


@holds("I1.7")
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"currency": from_user(7)},
        {"currency": from_user("USD"), "amount": from_user("3")},
        {"currency": from_user("USD"), "amount": from_user(True)},
        {"currency": from_user("USD"), "admin": from_user(True)},
        from_user("USD"),
        from_user('{"currency": "USD"}'),
        from_user(["USD"]),
        untrusted_value(HOSTILE, "reply"),
        untrusted_value({"currency": HOSTILE, "amount": HOSTILE}, "reply"),
    ],
)
def test_what_does_not_fit_the_declaration_is_not_sent(parameters: Any) -> None:
    """Also not a text of a model that looks like the parameters: only a record of the right types is taken."""
    service = Service()
    outcome = ran(service, parameters=parameters)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code.startswith("tools.")
    assert service.requests == []
    assert HOSTILE not in str(outcome.error)


def _only_usd(values: Any) -> str | None:
    return None if values["currency"] == "USD" else f"{values['currency']} is no currency of ours"


def _raises(values: Any) -> str | None:
    raise ValueError(values["currency"])


@holds("I1.3")
@pytest.mark.parametrize(
    ("currency", "check", "sent"), [("USD", _only_usd, True), ("XAU", _only_usd, False), ("USD", _raises, False)]
)
def test_the_check_comes_before_the_wire_and_is_on_record(currency: str, check: RequestCheck, sent: bool) -> None:
    service = Service()
    outcome = ran(service, made(check=check), {"currency": from_user(currency)})
    assert outcome.ok is sent
    assert service.requests == ["USD"] * sent
    kinds = [each.what if isinstance(each, NoteEvent) else type(each).__name__ for each in outcome.trace]
    assert kinds == (["checked", "ToolCallEvent", "attempt"] if sent else [])


def test_a_check_cannot_change_what_is_sent() -> None:
    sent: list[Any] = []

    @tool(effect="read", outbound=False, origins=Origin("system"), purpose={"names": "selects"})
    def look_up(names: list[str]) -> int:
        """How many there are."""
        sent.extend(names)
        return len(names)

    def bends(values: Any) -> None:
        values["names"].append("root")

    there = table(tools=[look_up])
    outcome = asyncio.run(DirectCall("look_up", check=bends).run(there.desk, {"names": from_user(["ada"])}))
    assert answered(outcome).value == 1
    assert sent == ["ada"]


def test_words_of_a_check_about_untrusted_values_reach_no_error() -> None:
    service = Service()
    outcome = ran(service, made(check=_only_usd), untrusted_value({"currency": HOSTILE}, "mail"))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.bad-request"
    assert HOSTILE not in str(outcome.error)
    assert service.requests == []


@holds("I1.2")
def test_the_same_parameters_make_the_same_request() -> None:
    def request(**values: Any) -> Any:
        outcome = ran(Service(), parameters={name: from_user(value) for name, value in values.items()})
        return next(each.facts["request"] for each in outcome.trace if isinstance(each, NoteEvent))

    assert request(currency="USD", amount=2) == request(amount=2, currency="USD")
    assert request(currency="USD", amount=2) != request(currency="USD", amount=3)


# Attempts -------------------------------------------------------------------------------------------------------------


@holds("I1.4")
@pytest.mark.parametrize(
    ("script", "made_codes"),
    [
        ([], ["ok"]),
        ([DOWN], ["tools.unreachable", "ok"]),
        ([DOWN] * 9, ["tools.unreachable"] * 3),
        ([ToolError("tools.failed", "no such currency")], ["tools.failed"]),
        ([ValueError("canary-3302")], ["tools.failed"]),
    ],
)
def test_every_attempt_is_on_record_and_there_are_at_most_max_attempts(
    script: list[Exception | float], made_codes: list[str], tmp_path: Path
) -> None:
    service = Service(list(script))
    with open_journal_at(tmp_path / "journal.db") as journal:
        there = table(tools=[service.tool()], journal=journal)
        outcome = asyncio.run(made().run(there.desk, USD))
        assert codes(outcome) == made_codes
        assert len(service.requests) == len(made_codes)
        retried = [event for event in journal.events(outcome.run) if event.kind == "step-retried"]
        assert len(retried) == len(made_codes) - 1
        again = asyncio.run(replay_pattern(journal, outcome.run, there.desk.registry, there.desk.policy))
        assert again.identical, again.differences
        assert len(service.requests) == len(made_codes), "a replay sends nothing"


def test_a_call_that_may_not_be_repeated_is_tried_once() -> None:
    service = Service([DOWN])
    there = table(tools=[service.tool(idempotent=False)])
    outcome = asyncio.run(made().run(there.desk, USD))
    assert codes(outcome) == ["tools.unreachable"]
    assert len(service.requests) == 1


def test_an_attempt_takes_at_most_its_seconds() -> None:
    service = Service([5.0])
    outcome = answered(ran(service, made(seconds=0.05)))
    assert codes(outcome) == ["tools.timeout", "ok"]


@holds("I1.4")
def test_after_failures_in_a_row_nothing_is_sent_and_the_refusal_is_on_record(tmp_path: Path) -> None:
    service = Service([DOWN] * 4)
    pattern = made(max_attempts=2, breaker_after=3, breakers=ToolBreakers(rest=60))
    with open_journal_at(tmp_path / "journal.db") as journal:
        there = table(tools=[service.tool()], journal=journal)
        outcomes = [asyncio.run(pattern.run(there.desk, USD)) for _ in range(3)]
        assert [codes(each) for each in outcomes] == [
            ["tools.unreachable", "tools.unreachable"],
            ["tools.unreachable", "tools.circuit-open"],
            ["tools.circuit-open"],
        ]
        assert [each.error.code for each in outcomes if isinstance(each, GaveUp)][1:] == ["tools.circuit-open"] * 2
        assert len(service.requests) == 3
        # The replay has a breaker of its own, which is closed, and decides as it was decided.
        for outcome in outcomes:
            again = asyncio.run(replay_pattern(journal, outcome.run, there.desk.registry, there.desk.policy))
            assert again.identical, again.differences


def test_the_breaker_lets_one_request_through_after_its_rest() -> None:
    service = Service([DOWN])
    pattern = made(max_attempts=1, breaker_after=1, breakers=ToolBreakers(rest=0.05))
    there = table(tools=[service.tool()])

    async def twice() -> list[Any]:
        first = await pattern.run(there.desk, USD)
        refused = await pattern.run(there.desk, USD)
        await asyncio.sleep(0.06)
        return [first, refused, await pattern.run(there.desk, USD), await pattern.run(there.desk, USD)]

    outcomes = asyncio.run(twice())
    assert [codes(each) for each in outcomes] == [["tools.unreachable"], ["tools.circuit-open"], ["ok"], ["ok"]]


def test_a_call_that_policy_stops_does_not_hold_up_the_breaker() -> None:
    """In the half-open state one caller may try: one whose call is never made gives the place back."""
    pattern = DirectCall("send", max_attempts=1, pause=0.0)
    there = table()
    for _ in range(3):
        outcome = asyncio.run(pattern.run(there.desk, untrusted_value({"to": EVE, "body": "x"}, "mail")))
        assert isinstance(outcome, GaveUp)
        assert outcome.error.code == "run.needs-approval"
    assert there.world.done == []


# Approval, labels and shape -------------------------------------------------------------------------------------------


class Person:
    """Answers every question in the same way, and remembers them."""

    def __init__(self, *, yes: bool) -> None:
        self.yes = yes
        self.seen: list[Any] = []

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.seen += [dict(each.arguments) for each in question.calls]
        return Answers.yes(question.calls) if self.yes else Answers.no()


@holds("I1.6")
@pytest.mark.parametrize("person", [None, Person(yes=False), Person(yes=True)])
def test_a_privileged_request_is_sent_only_with_an_approval(person: Person | None) -> None:
    service = Service()
    outcome = ran(service, made(privileged=True), approver=person)
    said_yes = person is not None and person.yes
    assert outcome.ok is said_yes
    assert service.requests == ["USD"] * said_yes
    if person is not None:
        assert person.seen == [{"currency": "USD"}]
    if isinstance(outcome, GaveUp):
        assert outcome.error.code == ("run.needs-approval" if person is None else "run.refused")


class Away:
    """Somebody who answers later."""

    async def approve(self, question: ApprovalQuestion) -> Answers:
        raise Suspend


@holds("I1.4")
@pytest.mark.parametrize("privileged", [False, True])
def test_attempts_after_a_wait_for_a_person_are_on_record_too(privileged: bool, tmp_path: Path) -> None:
    mail = untrusted_value({"to": "bob@example.com", "body": "hello"}, "mail")
    work = PatternWork(DirectCall("send", privileged=privileged), [mail])
    with open_journal_at(tmp_path / "journal.db") as journal:
        waits = asyncio.run(run_pattern(work, table(journal=journal, approver=Away()).desk, run="r", may_wait=True))
        assert isinstance(waits, GaveUp)
        assert waits.error.code == "run.waits"
        later = table(journal=journal, approver=Person(yes=True))
        ended = answered(asyncio.run(resume_pattern(journal, "r", later.desk)))
        assert codes(ended) == ["ok"]
        assert later.world.done == [("send", ("bob@example.com", "hello"))]
        again = asyncio.run(replay_pattern(journal, "r", later.desk.registry, later.desk.policy))
        assert again.identical, again.differences


def test_what_a_stranger_supplied_directs_nothing_without_a_yes() -> None:
    there = table()
    mail = untrusted_value({"to": EVE, "body": "all I know"}, "mail")
    outcome = asyncio.run(DirectCall("send").run(there.desk, mail))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.needs-approval"
    assert there.world.done == []


def test_untrusted_content_to_a_trusted_receiver_keeps_its_own_label() -> None:
    there = table()
    parts = {"to": program_text("bob@example.com"), "body": untrusted_value("The fee is 40 euros.", "page")}
    assert answered(asyncio.run(DirectCall("send").run(there.desk, parts))).value == "sent"
    assert there.world.done == [("send", ("bob@example.com", "The fee is 40 euros."))]


def test_the_words_of_a_tool_about_untrusted_values_reach_no_error() -> None:
    service = Service([ToolError("tools.failed", f"what is {HOSTILE}?")])
    outcome = ran(service, parameters=untrusted_value({"currency": HOSTILE}, "mail"))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "tools.failed"
    assert HOSTILE not in str(outcome.error)


@holds("I1.8")
def test_only_declared_fields_come_back() -> None:
    outcome = answered(ran(Service(), made(fields=("rate",))))
    assert outcome.value == {"rate": 1.25}
    assert "canary-3302" not in str(outcome.trace)
    missing = ran(Service(), made(fields=("rate", "body")))
    assert isinstance(missing, GaveUp)


@holds("I1.8")
@pytest.mark.parametrize(("cap", "fits"), [(500, True), (5, False)])
def test_a_result_stays_under_its_cap(cap: int, fits: bool) -> None:
    outcome = ran(Service(), made(result_tokens=cap))
    assert outcome.ok is fits
    if not fits:
        assert outcome.error.code == "pattern.long-result"
        assert "canary-3302" not in str(outcome.error)


@holds("I1.5")
def test_credentials_are_the_clients_and_appear_in_no_result_and_no_record(tmp_path: Path) -> None:
    key = "sk-canary-9915-0c1d2e3f"
    sent: list[str] = []

    @tool(effect="read", outbound=False, origins=Origin("system"), idempotent=True)
    def balance() -> str:
        """The balance of the account."""
        sent.append(f"Authorization: Bearer {key}")
        raise ToolError("tools.failed", f"403 for Bearer {key}")

    with isolate_secrets(), open_journal_at(tmp_path / "journal.db") as journal:
        register_secret("BALANCE_KEY", key)
        there = table(tools=[balance], journal=journal)
        outcome = asyncio.run(DirectCall("balance").run(there.desk, {}))
        assert isinstance(outcome, GaveUp)
        assert len(sent) == 1
        assert key not in str([event.body for event in journal.events(outcome.run)])
        assert key not in str(outcome.error)


def test_knobs_are_kept_in_bounds() -> None:
    for wrong in ({"max_attempts": 0}, {"max_attempts": 11}, {"seconds": 0.0}, {"breaker_after": 0}):
        with pytest.raises(CatalogError, match=r"pattern\.bad-knob"):
            made(**wrong)


@pytest.mark.model
def test_the_example_comes_out_right(small_model: LocalProvider, tmp_path: Path) -> None:
    example, outcome = performed("I1", small_model, tmp_path)
    assert example.is_correct(answered(outcome)), outcome
