"""Approvals in the inbox: the questions of a session are among those of submitted runs, and answered like them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from firewall_world import ANA, EVE, HOSTILE, Person, Reader, Stand, World, code_of, handle_of, make_stand, yes

from bicameral.cli.commands.approvals import approval_text
from bicameral.durable import Approval, Runs
from bicameral.errors import ConfigError, DurableError
from bicameral.firewall import Firewall, FirewallSettings
from bicameral.policy import Policy
from bicameral.tools import Registry

INBOX = FirewallSettings(approvals="inbox")
FIRST = {"to": ANA, "body": "first"}


@asynccontextmanager
async def inboxed(folder: Path, settings: FirewallSettings = INBOX, **parts: Any) -> AsyncGenerator[tuple[Stand, Runs]]:
    async with await Runs.open(str(folder / "durable.db")) as runs:
        yield make_stand(folder, settings, inbox=runs, **parts), runs


async def open_question(runs: Runs, user: str = "local") -> Approval:
    """The question, as soon as it is there."""
    async with asyncio.timeout(20):
        while not (found := await runs.approvals(user)):
            pass
    return found[0]


async def tainted_call(client: Any, arguments: dict[str, Any] | None = None) -> asyncio.Task[Any]:
    await client.call_tool("mail_list", {})
    return asyncio.create_task(client.call_tool("mail_send", arguments or FIRST))


async def test_a_yes_in_the_inbox_makes_the_call(tmp_path: Path) -> None:
    async with inboxed(tmp_path) as (stand, runs), stand.client("auto", person := yes()) as client:
        call = await tainted_call(client)
        question = await open_question(runs)
        assert stand.world.sent == []
        await runs.answer(question.id, "all", by="ana")
        assert (await call).is_error is False
        answered = await runs.approval(question.id)
    assert person.asked == []
    assert stand.world.sent == [(ANA, "first")]
    assert (answered.state, answered.by) == ("approved", "ana")
    assert question.run == stand.sessions[-1].id
    assert "the MCP client" in question.request


async def test_the_command_line_shows_the_question_with_what_others_wrote(tmp_path: Path) -> None:
    async with inboxed(tmp_path) as (stand, runs), stand.client("legacy") as client:
        mails = handle_of(await client.call_tool("mail_list", {}))
        call = asyncio.create_task(client.call_tool("mail_send", {"to": ANA, "body": f"{mails}[0].body"}))
        question = await open_question(runs)
        shown = approval_text(question, full=True)
        await runs.answer(question.id, "none")
        assert code_of(await call) == "run.refused"
    assert HOSTILE[:40] in shown
    assert "mail_list" in shown
    assert stand.world.sent == []


async def test_an_offer_that_is_accepted_holds_for_the_session_and_for_no_other_value(tmp_path: Path) -> None:
    async with inboxed(tmp_path, extractor=Reader(found=EVE)) as (stand, runs), stand.client("auto") as client:
        mail = handle_of(await client.call_tool("mail_read", {"folder": "inbox"}))
        asked = {"results": [mail], "what": "who wrote it", "type": "email"}
        sender = handle_of(await client.call_tool("extract_value", asked))
        call = asyncio.create_task(client.call_tool("mail_send", {"to": sender, "body": "hello"}))
        question = await open_question(runs)
        assert "offer" in question.calls[0]
        await runs.answer(question.id, "all", for_run=[question.calls[0]["hash"]])
        assert (await call).is_error is False
        assert (await client.call_tool("mail_send", {"to": sender, "body": "again"})).is_error is False
        other = asyncio.create_task(client.call_tool("mail_send", {"to": f"x{sender}", "body": "hello"}))
        await runs.answer((await open_question(runs)).id, "none")
        assert code_of(await other) == "run.refused"
    assert stand.world.sent == [(EVE, "hello"), (EVE, "again")]


async def test_time_runs_out_as_a_no(tmp_path: Path) -> None:
    settings = FirewallSettings(approvals="inbox", approval_seconds=0.05)
    async with inboxed(tmp_path, settings) as (stand, runs), stand.client("auto") as client:
        assert code_of(await (await tainted_call(client))) == "run.refused"
        assert await runs.approvals() == []
        (expired,) = await runs.approvals(open_only=False)
        with pytest.raises(DurableError) as late:
            await runs.answer(expired.id, "all")
    assert late.value.code == "durable.expired"
    assert stand.world.sent == []


async def test_a_call_that_was_cancelled_withdraws_its_question(tmp_path: Path) -> None:
    async with inboxed(tmp_path) as (stand, runs), stand.client("auto") as client:
        call = await tainted_call(client)
        question = await open_question(runs)
        call.cancel()
        await asyncio.wait({call})
        await asyncio.wait(stand.sessions[-1].calls or {call})
        withdrawn = await runs.approval(question.id)
        with pytest.raises(DurableError):
            await runs.answer(question.id, "all")
    assert withdrawn.state == "withdrawn"
    assert stand.world.sent == []


async def test_questions_belong_to_their_owner(tmp_path: Path) -> None:
    from mcp import Client

    from bicameral.firewall import create_server

    async with inboxed(tmp_path) as (stand, runs), Client(create_server(stand.firewall, owner="ana")) as client:
        call = await tainted_call(client)
        question = await open_question(runs, "ana")
        assert await runs.approvals("eve") == []
        with pytest.raises(DurableError):
            await runs.answer(question.id, "all", user="eve")
        await runs.answer(question.id, "none", user="ana")
        assert code_of(await call) == "run.refused"


async def test_a_client_that_cannot_ask_falls_back_to_the_inbox(tmp_path: Path) -> None:
    async with inboxed(tmp_path, FirewallSettings()) as (stand, runs), stand.client("auto") as client:
        call = await tainted_call(client)
        await runs.answer((await open_question(runs)).id, "all")
        assert (await call).is_error is False
    assert stand.world.sent == [(ANA, "first")]


async def test_a_client_that_can_ask_and_says_no_is_not_asked_elsewhere(tmp_path: Path) -> None:
    person = Person(lambda message: "cancel")
    async with inboxed(tmp_path, FirewallSettings()) as (stand, runs), stand.client("auto", person) as client:
        assert code_of(await (await tainted_call(client))) == "run.refused"
        assert await runs.approvals(open_only=False) == []


async def test_a_database_that_is_gone_is_no(tmp_path: Path) -> None:
    async with inboxed(tmp_path) as (stand, runs), stand.client("auto") as client:
        await client.call_tool("mail_list", {})

        async def gone(*_: Any, **__: Any) -> Any:
            raise DurableError("durable.no-database", "the database is gone")

        runs.ask = gone  # pyright: ignore[reportAttributeAccessIssue]
        assert code_of(await client.call_tool("mail_send", FIRST)) == "run.refused"
    assert stand.world.sent == []


def test_an_inbox_that_is_not_there_is_an_error_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        Firewall(Registry(World().tools()), Policy(), INBOX)
    assert error.value.code == "firewall.no-inbox"
    assert "durable" in (error.value.fix or "")


async def test_old_questions_of_sessions_are_deleted(tmp_path: Path) -> None:
    from bicameral.durable._questions import delete_old_questions

    settings = FirewallSettings(approvals="inbox", approval_seconds=0.02)
    async with inboxed(tmp_path, settings) as (stand, runs), stand.client("auto") as client:
        await (await tainted_call(client))
        await runs.dispatch.run(delete_old_questions, 3600.0)
        assert len(await runs.approvals(open_only=False)) == 1
        await runs.dispatch.run(delete_old_questions, -3600.0)
        assert await runs.approvals(open_only=False) == []


async def test_a_no_in_the_inbox_holds_for_the_session_and_silence_does_not(tmp_path: Path) -> None:
    settings = FirewallSettings(approvals="inbox", approval_seconds=0.4)
    async with inboxed(tmp_path, settings) as (stand, runs), stand.client("auto") as client:
        assert code_of(await (await tainted_call(client))) == "run.refused"
        call = asyncio.create_task(client.call_tool("mail_send", FIRST))
        await runs.answer((await open_question(runs)).id, "none")
        assert code_of(await call) == "run.refused"
        assert code_of(await client.call_tool("mail_send", FIRST)) == "run.refused"
        assert sorted(each.state for each in await runs.approvals(open_only=False)) == ["denied", "expired"]
        other = asyncio.create_task(client.call_tool("mail_send", {"to": ANA, "body": "second"}))
        await runs.answer((await open_question(runs)).id, "all")
        assert (await other).is_error is False
    assert stand.world.sent == [(ANA, "second")]
