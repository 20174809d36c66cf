"""What one user can take of an MCP server is bounded: sessions, and forms that wait for a person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest
from mcp_world import MODES, Person, ServedMcp, code, facts
from server_world import FORWARD
from starlette.types import Message, Receive, Scope, Send

from bicameral.config import Config
from bicameral.durable import RunView
from bicameral.server import ROLES, McpOptions, Role, TokenFile, new_token
from bicameral.server._context import MAX_OPEN_FORMS, HttpError, ServerContext
from bicameral.server._mcp_calls import ToolCall
from bicameral.server._mcp_questions import Declined, Filled, Form, FormReply
from bicameral.server._mcp_sessions import IDLE_SECONDS, MAX_USER_SESSIONS, UserSessions
from bicameral.server._mcp_tools import PlanArguments, RunArguments

if TYPE_CHECKING:
    from bicameral.agent import Agent
    from bicameral.durable import Runs

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


def headers_of(served: ServedMcp, user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {served.tokens[user]}", "Accept": "application/json, text/event-stream"}


async def test_one_user_does_not_take_the_sessions_of_the_others(served_mcp: ServedMcp) -> None:
    async with httpx.AsyncClient(timeout=30) as http:

        async def open_session(user: str) -> httpx.Response:
            return await http.post(served_mcp.address, json=HELLO, headers=headers_of(served_mcp, user))

        # All at once: each of them could find the last place free.
        answers = await asyncio.gather(*(open_session("ben") for _ in range(MAX_USER_SESSIONS + 20)))
        opened = [each.headers["mcp-session-id"] for each in answers if each.status_code == 200]
        refused = [each for each in answers if each.status_code != 200]
        # Others of his may be open: the server is that of all tests.
        assert 0 < len(opened) <= MAX_USER_SESSIONS
        assert {each.status_code for each in refused} == {429}
        assert {each.json()["error"]["data"]["code"] for each in refused} == {"server.too-many-sessions"}
        assert (await open_session("ana")).status_code == 200
        # The later protocol has no sessions, and so none too many.
        async with served_mcp.client("auto", user="ben") as client:
            assert (await client.list_tools()).tools
        for session in opened:
            ended = {**headers_of(served_mcp, "ben"), "Mcp-Session-Id": session}
            assert (await http.delete(served_mcp.address, headers=ended)).status_code == 200
        again = await open_session("ben")
        assert again.status_code == 200
        ended = {**headers_of(served_mcp, "ben"), "Mcp-Session-Id": again.headers["mcp-session-id"]}
        await http.delete(served_mcp.address, headers=ended)


@dataclass
class Answering:
    """An application that opens sessions, and answers the requests in them, as it is told to."""

    status: int = 200
    opened: int = 0
    free: asyncio.Event = field(default_factory=asyncio.Event)
    fails: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.free.wait()
        self.opened += 1
        headers = [] if scope["headers"] else [(b"mcp-session-id", f"s{self.opened}".encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if self.fails:
            raise OSError("the client went away")


async def ask(sessions: UserSessions, user: str = "ana", session: str = "", method: str = "POST") -> None:
    async def send(message: Message) -> None: ...

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    headers = [(b"mcp-session-id", session.encode())] if session else []
    await sessions.answer(user, {"type": "http", "method": method, "headers": headers}, receive, send)


async def test_requests_that_open_a_session_count_before_they_are_answered() -> None:
    app = Answering()
    sessions = UserSessions(app)
    opening = [asyncio.create_task(ask(sessions)) for _ in range(MAX_USER_SESSIONS + 1)]
    await asyncio.sleep(0)
    assert sessions.count("ana") == MAX_USER_SESSIONS
    app.free.set()
    refused = [each for each in await asyncio.gather(*opening, return_exceptions=True) if each is not None]
    assert [cast("HttpError", each).error.code for each in refused] == ["server.too-many-sessions"]
    assert sessions.count("ana") == MAX_USER_SESSIONS
    await ask(sessions, "ben")
    assert sessions.count("ben") == 1


@pytest.mark.parametrize(("status", "fails", "left"), [(200, False, 1), (200, True, 0), (400, False, 0)])
async def test_a_session_that_was_not_opened_does_not_count(status: int, fails: bool, left: int) -> None:
    app = Answering(status, fails=fails)
    app.free.set()
    sessions = UserSessions(app)
    try:
        await ask(sessions)
    except OSError:
        assert fails
    assert sessions.count("ana") == left


@pytest.mark.parametrize(
    ("method", "status", "user", "left"),
    [("DELETE", 200, "ana", 0), ("DELETE", 403, "ana", 1), ("POST", 404, "ana", 0), ("DELETE", 200, "ben", 1)],
)
async def test_a_session_counts_until_it_has_ended(method: str, status: int, user: str, left: int) -> None:
    app = Answering()
    app.free.set()
    sessions = UserSessions(app)
    await ask(sessions)
    app.status = status
    await ask(sessions, user, "s1", method)
    assert sessions.count("ana") == left


async def test_a_session_that_is_idle_ends_and_one_that_is_used_does_not() -> None:
    now, app = [0.0], Answering()
    app.free.set()
    sessions = UserSessions(app, clock=lambda: now[0])
    for _ in range(3):
        await ask(sessions)
    app.free.clear()
    streaming = asyncio.create_task(ask(sessions, session="s1", method="GET"))
    await asyncio.sleep(0)
    now[0] = IDLE_SECONDS - 1
    app.free.set()
    await ask(sessions, session="s2")
    await streaming
    assert sessions.count("ana") == 3
    now[0] = IDLE_SECONDS + 1
    assert sessions.count("ana") == 2
    app.free.clear()
    streaming = asyncio.create_task(ask(sessions, session="s1", method="GET"))
    await asyncio.sleep(0)
    now[0] = 10 * IDLE_SECONDS
    assert sessions.count("ana") == 1
    app.free.set()
    await streaming


@dataclass
class SilentPerson:
    """A person who is asked and does not answer until they are let."""

    reply: FormReply = field(default_factory=Declined)
    asked: int = 0
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    can_be_asked: bool = True

    async def ask(self, form: Form) -> FormReply:
        self.asked += 1
        await self.answers.wait()
        return self.reply


def call_for(person: SilentPerson, runs: Any = None, roles: Collection[Role] = ROLES) -> ToolCall:
    token, _ = new_token("ana", roles=roles)
    tokens = TokenFile(None, [token])
    context = ServerContext(Config.defaults(), cast("Runs", runs), tokens, cast("Agent", None))

    async def report(progress: float, text: str) -> None: ...

    return ToolCall(context, McpOptions(), token, person, report)


async def test_forms_that_wait_for_one_person_are_bounded() -> None:
    person = SilentPerson()
    call = call_for(person)
    asking = [asyncio.create_task(call.plan(PlanArguments(request=f"count {number}"))) for number in range(480)]
    refused = [each.exception() for each in (await asyncio.wait(asking, timeout=0.5))[0]]
    assert len(refused) == 480 - MAX_OPEN_FORMS
    assert {cast("HttpError", each).error.code for each in refused} == {"server.too-many-questions"}
    # Those of somebody else have places of their own, and an answer frees one.
    with call.context.forms.slot("ben"):
        person.answers.set()
    await asyncio.wait(asking)
    assert (person.asked, call.context.forms.in_use) == (MAX_OPEN_FORMS, 0)


@dataclass
class WaitingRun:
    """The durable runs as far as a run needs them that waits for an approval."""

    answered: list[Any] = field(default_factory=list[Any])

    async def get(self, run: str, user: str) -> RunView:
        now = datetime(2027, 3, 1, tzinfo=UTC)
        return RunView(run, user, "", "stopped" if self.answered else "waiting", now, now, 1, waits_for=("a-1",))

    @property
    def run_journal(self) -> Any:
        @dataclass
        class Journal:
            events_after: Callable[..., list[Any]] = lambda *_: []

        return Journal()

    async def approval(self, id: str, user: str) -> Any:
        from bicameral.durable import Approval
        from bicameral.runs import PendingCall

        asked = PendingCall("1", "post", "send", {"to": "kim@example.com"}, "0" * 64, "post: may it be sent?")
        now = datetime(2027, 3, 1, tzinfo=UTC)
        state = "approved" if self.answered else "open"
        return Approval(id, "r-1", user, "calls", (asked.to_json(),), "", now, now, state)

    async def answer(self, id: str, approved: list[str], *, user: str, by: str) -> Any:
        self.answered.append(approved)
        return await self.approval(id, user)


@pytest.mark.parametrize("full", [True, False])
async def test_a_run_waits_on_if_its_question_has_no_place(full: bool) -> None:
    """The run has begun: its id must not get lost with an error, and nobody is asked."""
    person = SilentPerson(Filled({"approve": True}))
    person.answers.set()
    runs = WaitingRun()
    call = call_for(person, runs)
    call.state.run = "r-1"
    with ExitStack() as taken:
        for _ in range(MAX_OPEN_FORMS if full else 0):
            taken.enter_context(call.context.forms.slot("ana"))
        told = await call.run(RunArguments(plan="answer(1)\n", knobs={}, wait=0))
    assert (told["state"], person.asked) == (("waiting", 0) if full else ("stopped", 1))
    assert runs.answered == ([] if full else [["0" * 64]])


@pytest.mark.parametrize("may_approve", [True, False])
async def test_a_run_puts_no_call_to_the_holder_of_a_token_that_may_not_approve(may_approve: bool) -> None:
    person, runs = SilentPerson(Filled({"approve": True})), WaitingRun()
    person.answers.set()
    call = call_for(person, runs, ("run", "approve") if may_approve else ("run",))
    call.state.run = "r-1"
    told = await call.run(RunArguments(plan="answer(1)\n", knobs={}, wait=0))
    assert (told["state"], person.asked) == (("stopped", 1) if may_approve else ("waiting", 0))
    assert bool(runs.answered) is may_approve


@pytest.mark.parametrize("mode", MODES)
async def test_forms_that_were_answered_leave_their_places(served_mcp: ServedMcp, mode: str) -> None:
    person = Person([{"yes": False}])
    async with served_mcp.client(mode, user="cat", person=person) as client:
        for _ in range(MAX_OPEN_FORMS + 2):
            assert code(await client.call_tool("run", {"plan": FORWARD})) == "intent.not-endorsed"
        assert facts(await client.call_tool("approvals_list", {}))["approvals"] is not None
