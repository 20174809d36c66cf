"""MCP over HTTP stands behind the guard of the server: tokens, names, sizes, rates, and sessions of their user."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import httpx
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp_types import JSONRPCError
from mcp_world import Person, ServedMcp, code, facts
from server_world import FORWARD

from bicameral.config import Config
from bicameral.durable import Approval
from bicameral.errors import ServerError
from bicameral.runs import PendingCall
from bicameral.server import McpOptions, TokenFile, new_token
from bicameral.server._context import HttpError, ServerContext
from bicameral.server._mcp_calls import HANDLERS, ToolCall, _progress_text  # pyright: ignore[reportPrivateUsage]
from bicameral.server._mcp_questions import Filled, Form, FormReply
from bicameral.server._mcp_serve import allowed_names
from bicameral.server._mcp_server import build_server
from bicameral.server._mcp_tools import ApprovalAskArguments

if TYPE_CHECKING:
    from bicameral.agent import Agent
    from bicameral.durable import Runs
    from bicameral.runs import Event

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def post(served: ServedMcp, content: Any, user: str | None = "ana", **headers: str) -> httpx.Response:
    given = {} if user is None else {"Authorization": f"Bearer {served.tokens.get(user, user)}"}
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    kind = {"Content-Type": "application/json"}
    return httpx.post(served.address, content=body, headers=kind | ACCEPT | given | headers, timeout=30)


def opened(served: ServedMcp, user: str = "ana") -> str:
    """The id of a session that this user has opened."""
    response = post(served, HELLO, user)
    assert response.status_code == 200, response.text
    return response.headers["mcp-session-id"]


def test_only_the_holder_of_a_token_gets_in(served_mcp: ServedMcp) -> None:
    for user in (None, "bic_no-token-of-this-server"):
        refused = post(served_mcp, HELLO, user)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
        error = JSONRPCError.model_validate(refused.json()).error
        assert error.data["code"] == "server.unauthenticated"
    assert post(served_mcp, HELLO).status_code == 200


@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("Host", "attacker.example", True),
        ("Host", "127.0.0.1.attacker.example:80", True),
        ("Origin", "https://attacker.example", True),
        ("Origin", "null", True),
        ("Host", "localhost:6274", False),
        ("Origin", "http://localhost:6274", False),
    ],
)
def test_a_page_that_rebinds_its_name_gets_nowhere(served_mcp: ServedMcp, name: str, value: str, refused: bool) -> None:
    response = post(served_mcp, HELLO, **{name: value})
    assert (response.status_code in (403, 421)) is refused
    assert (response.status_code == 200) is not refused


def test_a_session_belongs_to_the_user_who_opened_it(served_mcp: ServedMcp) -> None:
    session = opened(served_mcp)
    theirs = post(served_mcp, PING, "ben", **{"Mcp-Session-Id": session})
    unknown = post(served_mcp, PING, "ben", **{"Mcp-Session-Id": "0" * 32})
    # The answer is that of an id that never was.
    assert (theirs.status_code, theirs.text) == (unknown.status_code, unknown.text) == (404, unknown.text)
    assert post(served_mcp, PING, **{"Mcp-Session-Id": session}).status_code == 200


def test_bodies_have_a_size_and_a_kind(served_mcp: ServedMcp) -> None:
    session = {"Mcp-Session-Id": opened(served_mcp)}
    large = {**PING, "params": {"_meta": {"filler": "x" * 1_100_000}}}
    assert post(served_mcp, large, **session).json()["error"]["data"]["code"] == "server.too-large"
    other = post(served_mcp, PING, **session, **{"Content-Type": "text/plain"})
    assert other.json()["error"]["data"]["code"] == "server.unsupported-type"
    assert post(served_mcp, b"{", **session).status_code == 400
    assert post(served_mcp, PING, **session).status_code == 200


def test_there_is_nothing_besides_the_protocol(served_mcp: ServedMcp) -> None:
    base = served_mcp.address.removesuffix("/mcp")
    headers = {"Authorization": f"Bearer {served_mcp.tokens['ana']}"}
    for path in ("/", "/v1/runs", "/mcp/", "/openapi.json", "/healthz"):
        assert httpx.get(base + path, headers=headers).status_code == 404


@dataclass
class LeavingPerson(Person):
    """Says yes, and loses the token while the second question is open."""

    lose: Callable[[], object] = field(default=lambda: None)

    async def answer(self, context: Any, params: Any) -> types.ElicitResult:
        if len(self.asked) == 1:
            self.lose()
        return await super().answer(context, params)


async def test_an_answer_after_the_end_of_its_token_does_not_count(served_mcp: ServedMcp) -> None:
    """Between the question and the yes the token was removed: whoever holds it now says yes for nobody."""
    before, tokens = served_mcp.posted(), served_mcp.token_file
    [token] = [each for each in tokens.all_tokens() if each.user == "cat"]
    person = LeavingPerson(lose=lambda: tokens.remove(token.id))
    ended: list[BaseException] = []
    try:
        async with served_mcp.client(user="cat", person=person) as client:
            ended.append(AssertionError(await client.call_tool("run", {"plan": FORWARD})))
    except Exception as error:
        # The client has its own groups of errors for what the connection was answered with.
        ended.append(error)
    assert len(person.asked) == 2
    assert not isinstance(ended[0], AssertionError)
    assert served_mcp.posted() == before
    _, served_mcp.tokens["cat"] = tokens.add("cat")
    async with served_mcp.client(user="cat", person=Person()) as client:
        [open_] = facts(await client.call_tool("approvals_list", {}))["approvals"]
        assert open_["state"] == "open"
        assert facts(await client.call_tool("approval_ask", {"approval": open_["approval"]}))["state"] == "approved"
        ended_run = facts(await client.call_tool("run_show", {"run": open_["run"], "wait": 60}))
    assert ended_run["state"] == "finished"
    assert len(served_mcp.posted()) == len(before) + 1


@dataclass
class OneQuestion:
    """The durable runs as far as a question needs them: one that is open, and what was answered."""

    answered: list[tuple[str, list[str]]] = field(default_factory=list[tuple[str, list[str]]])

    async def approval(self, id: str, user: str) -> Approval:
        call = PendingCall("1", "post", "send", {"to": "kim@example.com"}, "0" * 64, "post: may it be sent?")
        now = datetime(2027, 3, 1, tzinfo=UTC)
        return Approval(id, "r-1", user, "calls", (call.to_json(),), "", now, now, "open")

    async def answer(self, id: str, approved: list[str], *, user: str, by: str) -> Approval:
        self.answered.append((user, approved))
        return await self.approval(id, user)


@pytest.mark.parametrize("ends", [True, False])
async def test_an_answer_after_the_end_of_its_token_is_not_stored(tmp_path: Path, ends: bool) -> None:
    """Where the question is put during a call, nothing comes in between that would check the token again."""
    tokens, runs = TokenFile(tmp_path / "tokens.json"), OneQuestion()
    token, _ = tokens.add("ana")

    class Answering:
        can_be_asked = True

        async def ask(self, form: Form) -> FormReply:
            if ends:
                tokens.remove(token.id)
            return Filled({"approve": True})

    async def report(progress: float, text: str) -> None:
        raise AssertionError("nothing runs here")

    context = ServerContext(Config.defaults(), cast("Runs", runs), tokens, cast("Agent", None))
    call = ToolCall(context, McpOptions(), token, Answering(), report)
    if ends:
        with pytest.raises(HttpError) as refused:
            await call.approval_ask(ApprovalAskArguments(approval="a-1"))
        assert refused.value.error.code == "server.token-ended"
    else:
        await call.approval_ask(ApprovalAskArguments(approval="a-1"))
    assert runs.answered == ([] if ends else [("ana", ["0" * 64])])


def context_of(rate: int = 600) -> ServerContext:
    """A context for what needs neither runs nor an agent."""
    config = Config.defaults()
    config = config.model_copy(update={"server": config.server.model_copy(update={"rate": rate})})
    token, _ = new_token("ana")
    return ServerContext(config, cast("Runs", None), TokenFile(None, [token]), cast("Agent", None))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_rates_and_waits_are_limited_without_http_too(mode: str) -> None:
    context = context_of(rate=8)
    [token] = context.tokens.all_tokens()
    async with Client(build_server(context, McpOptions("trusted"), token), mode=mode) as client:
        with ExitStack() as taken:
            for _ in range(context.config.server.watches):
                taken.enter_context(context.watches.slot("ana"))
            busy = await client.call_tool("run", {"request": "anything"})
        assert code(busy) == "server.too-many-watches"
        assert not (await client.call_tool("pattern_show", {"id": "R5"})).is_error
        assert code(await client.call_tool("pattern_show", {"id": "R5"})) == "server.too-many-requests"


@pytest.mark.parametrize("right", [False, True])
async def test_a_result_that_is_not_as_its_schema_says_is_an_error_with_a_code(
    monkeypatch: pytest.MonkeyPatch, right: bool
) -> None:
    """What is told of it names none of its values: they were not yet between marks."""

    async def patterns(call: ToolCall, given: object) -> dict[str, Any]:
        return {"patterns": [] if right else "water the plants"}

    monkeypatch.setitem(cast("dict[str, Any]", HANDLERS), "patterns_list", patterns)
    context = context_of()
    [token] = context.tokens.all_tokens()
    async with Client(build_server(context, McpOptions(), token), mode="auto") as client:
        result = await client.call_tool("patterns_list", {})
    if right:
        assert facts(result) == {"patterns": []}
    else:
        assert code(result) == "server.internal"
        assert "plants" not in str(result)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("run-waits", "the user is asked"),
        ("reason-planned", "the next round is planned"),
        ("reason-round", "the next round is planned"),
        ("anything-else", None),
    ],
)
async def test_progress_says_what_happened(kind: str, said: str | None) -> None:
    event = cast("Event", SimpleNamespace(kind=kind, step=""))
    assert _progress_text(event) == said


async def test_a_call_around_the_guard_is_nobodys() -> None:
    async with Client(build_server(context_of(), McpOptions()), mode="auto") as client:
        assert (await client.list_tools()).tools
        with pytest.raises(MCPError, match="there is no token"):
            await client.call_tool("pattern_show", {"id": "R5"})


def test_names_are_known_before_it_listens() -> None:
    assert allowed_names("127.0.0.1", ()) == ("127.0.0.1", "localhost", "[::1]")
    assert allowed_names("::1", ["tools.example.org"])[-1] == "tools.example.org"
    assert allowed_names("192.0.2.7", ()) == ("192.0.2.7",)
    assert allowed_names("2001:db8::7", ()) == ("[2001:db8::7]",)
    assert allowed_names("box.example.org", ()) == ("box.example.org",)
    assert allowed_names("0.0.0.0", ["a.example.org"]) == ("a.example.org",)
    with pytest.raises(ServerError) as refused:
        allowed_names("0.0.0.0", ())
    assert refused.value.code == "server.no-name"
