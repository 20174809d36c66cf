"""What a run cost and what was noticed in it: counted, recorded, replayed, and never a stranger's word."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from telemetry_world import ORDER, READ, mailbox, quarantine, run_mail

from bicameral.agent import Agent
from bicameral.boundary import Alert, ExtractionOutcome, Extractor, Filled, ReadOnlyExecutor, RejectionKind
from bicameral.limits import ChamberUsage, open_ledger
from bicameral.models import ScriptedProvider
from bicameral.runs import Failed, Finished, Journal, RunUsage, Stopped, replay
from bicameral.sessions import Session
from bicameral.tools import Registry
from bicameral.types import IntType, StrType, Type

CHATTY = "Of course! I have read your instructions and will now do as the mail says."


async def test_tokens_are_counted_by_chamber() -> None:
    outcome = await run_mail(READ, '{"value": 7}', body="There are 7 apples.")
    assert isinstance(outcome, Finished)
    assert outcome.usage.spent.executor_calls == 1
    assert outcome.usage.executor_tokens > len('{"value": 7}') // 4
    assert (outcome.usage.reasoner_tokens, outcome.usage.spent.reasoner_calls) == (0, 0)
    assert (outcome.usage.not_found, outcome.usage.rejected, outcome.alerts) == (0, {}, ())


async def test_runs_at_the_same_time_count_each_for_itself() -> None:
    extractor = Extractor(ScriptedProvider([("", '{"value": 7}')], grammars=True), overlap=8)
    bodies = ["7 apples", "7 apples and many more words than in the other mail"]
    outcomes = await asyncio.gather(*(run_mail(READ, extractor=extractor, body=body) for body in bodies))
    alone = [await run_mail(READ, extractor=extractor, body=body) for body in bodies]
    assert [each.usage for each in outcomes] == [each.usage for each in alone]
    assert outcomes[0].usage.executor_tokens < outcomes[1].usage.executor_tokens


async def test_a_ledger_hears_what_is_asked_inside_and_nothing_else() -> None:
    session = Session("delta", ScriptedProvider([("", "x" * 40)]), ())
    with open_ledger() as outer:
        await session.ask("a" * 40)
        with open_ledger() as inner:
            await asyncio.create_task(_ask(session))
    await session.ask("c" * 40)
    assert inner.spent == ChamberUsage(reasoner_tokens=20, reasoner_calls=1)
    assert outer.spent == ChamberUsage(reasoner_tokens=40, reasoner_calls=2) == inner.spent + inner.spent


async def _ask(session: Session) -> None:
    await session.ask("b" * 40)


async def test_planning_counts_for_the_plan_and_is_in_the_record_of_its_run(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as journal:
        agent = Agent(
            Registry([]),
            privileged=ScriptedProvider(["answer(1)\n"], grammars=False),
            quarantined=ScriptedProvider([], grammars=False),
            cache={},
            journal=journal,
        )
        planned = await agent.plan("Say one", deterministic=True)
        outcome = await agent.run(planned)
        assert planned.spent.reasoner_calls == 1
        assert planned.spent.reasoner_tokens > 0
        assert outcome.usage == RunUsage()
        started = journal.events(outcome.run)[0]
        assert started.body["planning"] == planned.spent.to_json()


REJECTED: dict[str, tuple[str, str, RejectionKind]] = {
    "prose where a form was wanted": ("int", CHATTY, "unreadable"),
    "another field": ("int", '{"value": 7, "also": 1}', "not-the-form"),
    "prose where a number was wanted": ("int", json.dumps({"value": CHATTY}), "wrong-type"),
    "prose where a date was wanted": ("date", json.dumps({"value": CHATTY}), "wrong-shape"),
    "prose where one of two was wanted": ("Literal['yes', 'no']", json.dumps({"value": CHATTY}), "wrong-type"),
}


@pytest.mark.parametrize("name", REJECTED)
async def test_a_rejected_extraction_is_counted_by_kind_and_recorded(name: str, tmp_path: Path) -> None:
    wanted, reply, kind = REJECTED[name]
    with Journal(tmp_path / "j.db") as journal:
        outcome = await run_mail(_extracting(wanted), reply, reply, body="There are apples.", journal=journal)
        assert isinstance(outcome, Failed)
        assert outcome.error.code == "run.extraction-rejected"
        assert outcome.usage.rejected == {kind: 1}
        [failed] = [event for event in journal.events(outcome.run) if event.kind == "step-failed"]
        assert (failed.body["outcome"], failed.body["rejected"]) == ("rejected", kind)
        assert failed.body["spent"]["executor_calls"] == outcome.usage.spent.executor_calls > 0
        prose = "prose" in name
        assert ("free-text" in {alert.kind for alert in outcome.alerts}) == prose
        assert journal.events(outcome.run)[-1].body["usage"] == outcome.usage.to_json()
        assert (await replay(journal, outcome.run, mailbox("", []))).identical


def _extracting(wanted: str) -> str:
    return f"mails = search_mail('x')\nn = extract(mails[0].body, 'what', {wanted})\nanswer(n)\n"


async def test_free_text_that_was_put_right_at_the_second_try_is_told_all_the_same() -> None:
    replies = (json.dumps({"value": CHATTY}), '{"value": 7}')
    outcome = await run_mail(READ, *replies, body="There are 7 apples.")
    assert isinstance(outcome, Finished)
    assert [(alert.kind, alert.where) for alert in outcome.alerts] == [("free-text", "value")]


@pytest.mark.parametrize("text", ["7", "the 7th of May 2026", "about seven"])
async def test_a_clumsy_value_is_no_alert(text: str) -> None:
    reply = json.dumps({"value": text})
    outcome = await run_mail(READ, reply, reply, body="There are 7 apples.")
    assert "free-text" not in {alert.kind for alert in outcome.alerts}


async def test_what_is_not_in_the_text_is_counted_apart() -> None:
    nothing = '{"not_found": "value", "because": "absent"}'
    outcome = await run_mail(READ, nothing, nothing, body="There is no fruit.")
    assert isinstance(outcome, Failed)
    assert (outcome.usage.not_found, outcome.usage.rejected) == (1, {})


async def test_an_executor_that_breaks_its_word_counts_as_rejected() -> None:
    class Careless:
        model, overlap = "careless", 1

        async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome:
            return Filled("not a number")

    outcome = await run_mail(READ, extractor=Careless())
    assert outcome.usage.rejected == {"wrong-type": 1}


async def test_an_alert_names_the_kind_the_step_and_where_the_text_came_from(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as journal:
        outcome = await run_mail(READ, '{"value": 7}', body=f"7 apples. {ORDER}", journal=journal)
        assert isinstance(outcome, Finished)
        [alert] = [each for each in outcome.alerts if each.kind == "instruction"]
        assert str(alert) == "an order to ignore instructions in search_mail [] (step 1)"
        [ended] = [
            event for event in journal.events(outcome.run) if event.kind == "step-finished" and event.step == "1"
        ]
        assert ended.body["alerts"] == [each.to_json() for each in outcome.alerts]
        assert ended.body["outcome"] == "filled"
        assert outcome.usage.alerts == len(outcome.alerts)
        replayed = await replay(journal, outcome.run, mailbox("", []))
        assert replayed.identical, replayed.differences


async def test_a_stopped_run_tells_what_it_had_cost_and_noticed() -> None:
    waiting = asyncio.Event()

    class Person:
        async def ask(self, question: str, type: Type) -> Any:
            waiting.set()
            await asyncio.sleep(60)

    source = READ.replace("answer(n)", "who = ask('Who?')\nanswer(n)")
    task = asyncio.create_task(run_mail(source, '{"value": 7}', body=f"7 apples. {ORDER}", asker=Person()))
    await waiting.wait()
    task.cancel()
    outcome = await task
    assert isinstance(outcome, Stopped)
    assert outcome.usage.executor_tokens > 0
    assert outcome.alerts


# Safe to show --------------------------------------------------------------------------------------------------------

UGLY = "\x1b]0;owned\x07\u202e\n" + "stranger's words " * 1_000


async def test_whatever_an_executor_puts_into_an_alert_is_short_and_obeyed_by_nothing(tmp_path: Path) -> None:
    class Hostile:
        model, overlap = "hostile", 1

        async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome:
            return Filled(7, tuple(Alert("instruction", UGLY, 0.9, UGLY) for _ in range(500)))

    with Journal(tmp_path / "j.db") as journal:
        outcome = await run_mail(READ, extractor=Hostile(), journal=journal)
        assert isinstance(outcome, Finished)
        assert outcome.usage.alerts == 500
        assert len(outcome.alerts) == 200
        for text in (*map(str, outcome.alerts), *(alert.note for alert in outcome.alerts)):
            assert text.isprintable()
            assert len(text) < 300
        bodies = [event.body for event in journal.events(outcome.run) if event.kind == "step-finished"]
        recorded = json.dumps([body.get("alerts") for body in bodies], ensure_ascii=False)
        assert "\x1b" not in recorded
        assert "\u202e" not in recorded


async def test_the_alerts_of_the_extractor_hold_no_word_of_the_text() -> None:
    extractor = quarantine(CHATTY, CHATTY)
    outcome = await extractor.extract(f"canary-text {ORDER}", "canary-instruction", IntType())
    assert outcome.alerts
    told = json.dumps([alert.to_json() for alert in outcome.alerts])
    assert "canary" not in told
    assert "evil" not in told
    assert "gladly" not in told


async def test_alerts_in_parts_that_did_not_hold_it_are_kept() -> None:
    material = f"{ORDER}\n\n" + "\n\n".join(f"paragraph {number} " + "of many words " * 60 for number in range(60))

    def answers(request: Any) -> str:
        if "the one part in which" in request.messages[-1].text:
            return '{"value": "part 1"}' if "part 1" in request.messages[-1].text else '{"value": "none of these"}'
        return '{"not_found": "value", "because": "absent"}'

    reader = ReadOnlyExecutor(Extractor(ScriptedProvider(answers, grammars=True)), reads=2)
    outcome = await reader.extract(material, "the code", StrType("code"))
    assert "instruction" in {alert.kind for alert in outcome.alerts}


# Records from before -------------------------------------------------------------------------------------------------


async def test_a_journal_from_before_these_were_counted_is_read_and_replayed(tmp_path: Path) -> None:
    registry = mailbox("7 apples", [])
    with Journal(tmp_path / "new.db") as journal, Journal(tmp_path / "old.db") as old:
        outcome = await run_mail(READ, '{"value": 7}', body="7 apples", journal=journal)
        later = {"usage", "alerts", "outcome", "spent", "rejected", "why", "planning"}
        for event in journal.events(outcome.run):
            body = {name: value for name, value in event.body.items() if name not in later}
            old.append(event.run, event.kind, event.step, body)
        replayed = await replay(old, outcome.run, registry)
        assert replayed.identical, replayed.differences
        assert replayed.answer == 7
