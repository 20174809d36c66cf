"""Questions that pass through a client of the specification 2026-07-28: what it brings back counts once, as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from firewall_world import ANA, EVE, Person, Stand, code_of, make_stand, text_of
from mcp import Client, MCPError

from bicameral.firewall import FirewallSettings
from bicameral.firewall._server import QUESTION  # pyright: ignore[reportPrivateUsage]

ARGUMENTS = {"to": ANA, "body": "first"}
YES: Mapping[str, Any] = {QUESTION: types.ElicitResult(action="accept", content={"approve": True})}


def unasked() -> Person:
    def answer(message: str) -> str:
        raise AssertionError("the client drives the question itself here")

    return Person(answer)


async def asked(client: Client, arguments: dict[str, Any] | None = None) -> types.InputRequiredResult:
    """Call until the question comes."""
    await client.call_tool("mail_list", {})
    result = await client.session.call_tool("mail_send", arguments or ARGUMENTS, allow_input_required=True)
    assert isinstance(result, types.InputRequiredResult)
    assert result.request_state is not None
    assert set(result.input_requests or ()) == {QUESTION}
    return result


async def come_back(
    client: Client,
    state: str | None,
    responses: Mapping[str, Any] | None = YES,
    arguments: dict[str, Any] | None = None,
    tool: str = "mail_send",
) -> Any:
    return await client.session.call_tool(
        tool,
        arguments or ARGUMENTS,
        input_responses=None if responses is None else dict(responses),
        request_state=state,
        allow_input_required=True,
    )


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return make_stand(tmp_path)


async def test_the_answer_that_comes_back_makes_the_call(stand: Stand) -> None:
    async with stand.client("auto", unasked()) as client:
        question = await asked(client)
        assert stand.world.sent == []
        done = await come_back(client, question.request_state)
    assert done.is_error is False
    assert stand.world.sent == [(ANA, "first")]


async def test_a_state_counts_once(stand: Stand) -> None:
    async with stand.client("auto", unasked()) as client:
        question = await asked(client)
        results = await asyncio.gather(*(come_back(client, question.request_state) for _ in range(3)))
        later = await come_back(client, question.request_state)
    assert sorted(each.is_error for each in results) == [False, True, True]
    assert code_of(later) == "firewall.no-question"
    assert stand.world.sent == [(ANA, "first")]


@pytest.mark.parametrize(
    "changed",
    [
        {"to": EVE, "body": "first"},
        {"to": ANA, "body": "first "},
        {"to": ANA, "body": "first", "copies": [EVE]},
        {"to": ANA},
    ],
)
async def test_other_arguments_are_another_call(stand: Stand, changed: dict[str, Any]) -> None:
    async with stand.client("auto", unasked()) as client:
        question = await asked(client)
        with pytest.raises(MCPError):
            await come_back(client, question.request_state, arguments=changed)
        assert stand.world.sent == []
        # The question itself is still open, for the call that it was asked about.
        assert (await come_back(client, question.request_state)).is_error is False
    assert stand.world.sent == [(ANA, "first")]


async def test_a_state_is_for_one_tool(stand: Stand) -> None:
    async with stand.client("auto", unasked()) as client:
        question = await asked(client)
        with pytest.raises(MCPError):
            await come_back(client, question.request_state, tool="notes_write")
    assert stand.world.sent == stand.world.posted == []


async def test_a_state_of_another_session_is_refused(stand: Stand) -> None:
    async with stand.client("auto", unasked()) as first, stand.client("auto", unasked()) as second:
        question = await asked(first)
        await asked(second)
        with pytest.raises(MCPError):
            await come_back(second, question.request_state)
    assert stand.world.sent == []


async def test_a_state_of_another_session_of_the_same_server_is_refused(stand: Stand) -> None:
    """The seal is the same for both, so that the session itself must be in it."""
    from bicameral.firewall import create_server

    server = create_server(stand.firewall)
    one, other = (Client(server, elicitation_callback=unasked()) for _ in range(2))
    async with one as first, other as second:
        question = await asked(first)
        await asked(second)
        with pytest.raises(MCPError):
            await come_back(second, question.request_state)
    assert stand.world.sent == []


@pytest.mark.parametrize("forged", ["", "v1.", "v1.AAAA", "{}", "x" * 10_000])
async def test_a_state_that_was_not_given_is_refused(stand: Stand, forged: str) -> None:
    async with stand.client("auto", unasked()) as client:
        await asked(client)
        with pytest.raises(MCPError):
            await come_back(client, forged)
    assert stand.world.sent == []


async def test_a_changed_state_is_refused(stand: Stand) -> None:
    async with stand.client("auto", unasked()) as client:
        state = (await asked(client)).request_state or ""
        at = len(state) // 2
        changed = state[:at] + ("A" if state[at] != "A" else "B") + state[at + 1 :]
        with pytest.raises(MCPError):
            await come_back(client, changed)
    assert stand.world.sent == []


async def test_an_answer_without_its_state_is_a_new_call(stand: Stand) -> None:
    async with stand.client("auto", unasked()) as client:
        await asked(client)
        again = await come_back(client, None)
    assert isinstance(again, types.InputRequiredResult)
    assert stand.world.sent == []


@pytest.mark.parametrize(
    "responses",
    [
        None,
        {},
        {"other": types.ElicitResult(action="accept", content={"approve": True})},
        {QUESTION: types.ElicitResult(action="accept")},
        {QUESTION: types.ElicitResult(action="decline", content={"approve": True})},
        {**YES, "also": types.ElicitResult(action="accept", content={"approve": True})},
        {QUESTION: types.ListRootsResult(roots=[])},
    ],
)
async def test_a_state_without_a_clear_answer_is_no(stand: Stand, responses: Any) -> None:
    async with stand.client("auto", unasked()) as client:
        question = await asked(client)
        result = await come_back(client, question.request_state, responses)
    assert code_of(result) == "run.refused"
    assert stand.world.sent == []


async def test_after_its_time_a_state_is_refused(tmp_path: Path) -> None:
    stand = make_stand(tmp_path, FirewallSettings(approval_seconds=0.05))
    async with stand.client("auto", unasked()) as client:
        question = await asked(client)
        await asyncio.wait(stand.sessions[-1].calls)
        # Either the seal has expired by now, or the question has.
        with suppress(MCPError):
            assert code_of(await come_back(client, question.request_state)) == "firewall.no-question"
    assert stand.world.sent == []


async def test_who_leaves_with_a_question_open_has_said_no(stand: Stand) -> None:
    async with stand.client("auto", unasked()) as client:
        await asked(client)
    assert stand.world.sent == []
    assert stand.kinds()[-1] == "run-finished"
    assert stand.events()[-1].body["answer"] == {"calls": 2, "failed": 0, "cancelled": 1}


async def test_questions_that_are_left_open_are_bounded(tmp_path: Path) -> None:
    stand = make_stand(tmp_path, FirewallSettings(calls_at_once=3))
    async with stand.client("auto", unasked()) as client:
        await client.call_tool("mail_list", {})
        for number in range(3):
            await client.session.call_tool("mail_send", {"to": ANA, "body": str(number)}, allow_input_required=True)
        result = await client.call_tool("notes_diary", {})
    assert code_of(result) == "firewall.busy"
    assert "under way" in text_of(result)
