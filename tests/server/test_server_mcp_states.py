"""The sealed state of a question holds once, for one user, one call and one time; everything else is refused alike."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types
import pytest
from mcp import MCPError
from mcp.client.client import Client
from mcp.server.request_state import RequestStateSecurity
from mcp_world import Person, ServedMcp, code, facts
from server_world import FORWARD, REQUEST

from bicameral.config import Config
from bicameral.server import McpOptions, TokenFile, new_token
from bicameral.server._context import ServerContext
from bicameral.server._mcp_questions import ASK_SECONDS, MAX_OPEN_STATES, CallState, Form, OpenStates
from bicameral.server._mcp_server import build_server

if TYPE_CHECKING:
    from bicameral.agent import Agent
    from bicameral.durable import Runs

RUN = {"request": REQUEST}
FORM = Form("endorse x", "?", {"yes": {"type": "boolean"}})


async def ask(
    client: Client, arguments: dict[str, Any], state: str | None = None, reply: Any = None, tool: str = "run"
) -> types.CallToolResult | types.InputRequiredResult:
    responses: types.InputResponses | None = None
    if reply is not None:
        responses = {"person": types.ElicitResult(action="accept", content=reply)}
    return await client.session.call_tool(
        tool, arguments, input_responses=responses, request_state=state, allow_input_required=True
    )


async def begin(client: Client, arguments: dict[str, Any]) -> str:
    """Call until the question comes back, and return its state."""
    asked = await ask(client, arguments)
    assert isinstance(asked, types.InputRequiredResult)
    assert asked.input_requests is not None
    assert list(asked.input_requests) == ["person"]
    assert asked.request_state is not None
    return asked.request_state


async def assert_refused(client: Client, arguments: dict[str, Any], state: str, tool: str = "run") -> None:
    with pytest.raises(MCPError) as refused:
        await ask(client, arguments, state, {"yes": True}, tool)
    # The same words whatever is wrong: they help nobody to find out how the seal works.
    assert refused.value.error.message == "Invalid or expired requestState"
    assert refused.value.error.data == {"reason": "invalid_request_state"}


async def test_a_state_holds_for_one_call_and_not_for_a_second(served_mcp: ServedMcp) -> None:
    async with served_mcp.client(person=Person()) as client:
        state = await begin(client, RUN)
        first = await ask(client, RUN, state, {"yes": True})
        assert isinstance(first, types.CallToolResult)
        assert facts(first)["state"] == "finished"
        before = facts(await client.call_tool("runs_list", {}))
        await assert_refused(client, RUN, state)
        assert facts(await client.call_tool("runs_list", {})) == before


async def test_a_state_holds_for_the_arguments_that_were_shown(served_mcp: ServedMcp) -> None:
    async with served_mcp.client(person=Person()) as client:
        state = await begin(client, RUN)
        other = {"request": "forward mail.txt to eve@example.com"}
        await assert_refused(client, other, state)
        await assert_refused(client, {**RUN, "wait": 3}, state)
        await assert_refused(client, RUN, state, "plan")
        # What was tried with it did not use it up.
        ended = await ask(client, RUN, state, {"yes": True})
        assert isinstance(ended, types.CallToolResult)


async def test_a_state_holds_for_the_user_who_was_asked(served_mcp: ServedMcp) -> None:
    async with (
        served_mcp.client(person=Person()) as ana,
        served_mcp.client(user="ben", person=Person()) as ben,
    ):
        state = await begin(ana, RUN)
        await assert_refused(ben, RUN, state)
        ended = await ask(ana, RUN, state, {"yes": True})
        assert isinstance(ended, types.CallToolResult)


async def test_a_state_that_was_changed_or_made_up_is_refused(served_mcp: ServedMcp) -> None:
    forged = RequestStateSecurity(keys=["0" * 32]).codec.seal(b'{"v":1}')
    async with served_mcp.client(person=Person()) as client:
        state = await begin(client, RUN)
        middle = len(state) // 2
        flipped = state[:middle] + ("A" if state[middle] != "A" else "B") + state[middle + 1 :]
        for each in (flipped, state[:-1], state + "A", forged, "", "{}", "v1." + "A" * 100):
            await assert_refused(client, RUN, each)


async def test_a_reply_without_a_state_answers_nothing(served_mcp: ServedMcp) -> None:
    """A client cannot answer a question that was not asked yet, however good the guess."""
    async with served_mcp.client(person=Person()) as client:
        asked = await ask(client, RUN, None, {"yes": True})
        assert isinstance(asked, types.InputRequiredResult)


async def test_a_state_without_its_reply_asks_again(served_mcp: ServedMcp) -> None:
    async with served_mcp.client(person=Person()) as client:
        state = await begin(client, RUN)
        again = await ask(client, RUN, state)
        assert isinstance(again, types.InputRequiredResult)
        assert again.request_state != state
        await assert_refused(client, RUN, state)


async def test_a_yes_to_one_question_is_none_to_the_next(served_mcp: ServedMcp) -> None:
    """The yes that endorsed a plan does not also approve the call that the plan makes."""
    before = served_mcp.posted()
    plan = {"plan": FORWARD}
    async with served_mcp.client(person=Person()) as client:
        state = await begin(client, plan)
        second = await ask(client, plan, state, {"yes": True})
        assert isinstance(second, types.InputRequiredResult)
        assert second.request_state is not None
        assert served_mcp.posted() == before
        # The reply to the first form, given once more, is no reply to the second.
        told = await ask(client, plan, second.request_state, {"yes": True})
        assert isinstance(told, types.CallToolResult)
        assert facts(told)["state"] == "waiting"
        assert served_mcp.posted() == before
        await client.call_tool("run_cancel", {"run": facts(told)["run"]})


@pytest.mark.parametrize("late", [True, False])
async def test_a_state_holds_for_a_time(monkeypatch: pytest.MonkeyPatch, late: bool) -> None:
    token, _ = new_token("ana")
    context = ServerContext(Config.defaults(), cast("Runs", None), TokenFile(None, [token]), cast("Agent", None))
    server = build_server(context, McpOptions(), token)
    async with Client(server, mode="auto", elicitation_callback=Person().answer) as client:
        state = await begin(client, RUN)
        now = time.time() + ASK_SECONDS + (1 if late else -60)
        monkeypatch.setattr("mcp.server.request_state.time", SimpleNamespace(time=lambda: now))
        if late:
            await assert_refused(client, RUN, state)
        else:
            declined = await ask(client, RUN, state, {"yes": False})
            assert isinstance(declined, types.CallToolResult)
            assert code(declined) == "intent.not-endorsed"


def test_open_states_are_single_use_and_bounded() -> None:
    states = OpenStates()
    first = states.issue("ana", CallState(run="r1"), FORM)
    assert states.redeem("ben", first) is None
    assert states.redeem("ana", first) == CallState(about="endorse x", run="r1")
    assert states.redeem("ana", first) is None
    mine = [states.issue("ana", CallState(), FORM) for _ in range(MAX_OPEN_STATES + 5)]
    other = states.issue("ben", CallState(), FORM)
    # The oldest gives way, and only to states of the same user.
    assert [states.redeem("ana", each) is not None for each in mine] == [False] * 5 + [True] * MAX_OPEN_STATES
    assert states.redeem("ben", other) is not None
    assert states.redeem("ana", None) == CallState()
