"""A real process behind pipes, and a real server behind HTTP: who connects, and how a connection ends."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from firewall_world import ANA, MODES, Person, Stand, code_of, handle_of, make_stand, no, yes
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from bicameral.errors import JournalError, ServerError
from bicameral.firewall import HttpTransport, serve_firewall
from bicameral.runs import open_journal_at
from bicameral.server import TokenFile

PROGRAM = Path(__file__).with_name("firewall_process.py")


def kinds(folder: Path) -> list[str]:
    journal = open_journal_at(folder / "journal.db")
    return [event.kind for event in journal.events(next(iter(journal.runs())).run)]


@pytest.mark.parametrize("mode", MODES)
async def test_a_process_serves_its_client_and_ends_with_it(tmp_path: Path, mode: str) -> None:
    started = StdioServerParameters(command=sys.executable, args=[str(PROGRAM), str(tmp_path)])
    person = yes()
    async with Client(started, mode=mode, elicitation_callback=person) as client:
        assert (await client.call_tool("noisy_read", {})).is_error is False
        mail = handle_of(await client.call_tool("mail_read", {"folder": "inbox"}))
        assert (await client.call_tool("mail_send", {"to": ANA, "body": mail})).is_error is False
    assert len(person.asked) == 1
    assert kinds(tmp_path)[-1] == "run-finished"
    assert "Dear Ana" in (tmp_path / "ended").read_text()


def message(id: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


INITIALIZE = message(
    1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"}
)


def test_a_message_that_is_too_long_or_no_message_harms_nobody_and_a_signal_ends_the_run(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(INITIALIZE)
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        process.stdin.write(b'{"x":"' + b"x" * 9_000_000 + b'"}\n')
        process.stdin.write(b"\x1b[2J no json\n")
        process.stdin.write(message(2, "tools/call", name="notes_diary", arguments={}))
        process.stdin.flush()
        answers: list[Any] = []
        while not any(each.get("id") == 2 for each in answers):
            answers.append(json.loads(process.stdout.readline()))
        # While the client says nothing, and holds its end open.
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert answers[-1]["result"]["isError"] is False
    assert (tmp_path / "ended").exists()
    assert kinds(tmp_path)[-1] == "run-finished"


@dataclass
class Served:
    """A firewall that is served over HTTP."""

    stand: Stand
    url: str
    tokens: TokenFile
    stop: asyncio.Event

    @asynccontextmanager
    async def client(self, mode: str, token: str, person: Person | None = None) -> AsyncGenerator[Client]:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=20) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=mode, elicitation_callback=person) as client:
                yield client


@asynccontextmanager
async def served(folder: Path, **options: Any) -> AsyncGenerator[Served]:
    stand, tokens, stop = make_stand(folder), TokenFile(folder / "tokens.json"), asyncio.Event()
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve_firewall(stand.firewall, HttpTransport(tokens, **options), stop=stop, started=address.set_result)
    )
    await asyncio.wait({serving, address}, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield Served(stand, await address, tokens, stop)
    finally:
        stop.set()
        await serving


@pytest.mark.parametrize("mode", MODES)
async def test_over_http_each_token_has_sessions_of_its_own(tmp_path: Path, mode: str) -> None:
    async with served(tmp_path) as server:
        ana, bob = server.tokens.add("ana")[1], server.tokens.add("bob")[1]
        async with server.client(mode, ana, yes()) as one, server.client(mode, bob, no()) as other:
            mail = handle_of(await one.call_tool("mail_read", {"folder": "inbox"}))
            assert code_of(await other.call_tool("mail_send", {"to": ANA, "body": mail})) == "tools.wrong-type"
            await other.call_tool("mail_list", {})
            assert code_of(await other.call_tool("mail_send", {"to": ANA, "body": "x"})) == "run.refused"
            assert (await one.call_tool("mail_send", {"to": ANA, "body": mail})).is_error is False
        used = [session for session in server.stand.sessions if session.made]
    assert sorted(session.owner for session in used) == ["ana", "bob"]
    assert len(server.stand.world.sent) == 1
    runs = [run.run for run in server.stand.journal.runs()]
    assert {server.stand.journal.events(run)[-1].kind for run in runs} == {"run-finished"}


async def test_connections_of_older_clients_are_sessions_that_end_with_them(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        token = server.tokens.add("ana")[1]
        async with server.client("legacy", token) as one:
            mail = handle_of(await one.call_tool("mail_read", {"folder": "inbox"}))
            async with server.client("legacy", token) as other:
                assert code_of(await other.call_tool("mail_send", {"to": ANA, "body": mail})) == "tools.wrong-type"
            (first,) = [session for session in server.stand.sessions if not session.is_closed]
            assert first.made == 1


async def test_requests_of_newer_clients_with_one_token_are_one_session(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        token = server.tokens.add("ana")[1]
        async with server.client("auto", token) as one:
            mail = handle_of(await one.call_tool("mail_read", {"folder": "inbox"}))
        # They open no connection, so that nothing ends with one: what was read still counts.
        async with server.client("auto", token, yes()) as again:
            assert (await again.call_tool("mail_send", {"to": ANA, "body": mail})).is_error is False
        assert len([session for session in server.stand.sessions if session.made]) == 1


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Basic {token}", "Bearer {token}x", "Bearer"])
async def test_without_a_token_that_holds_nothing_is_answered(tmp_path: Path, header: str | None) -> None:
    async with served(tmp_path) as server, httpx2.AsyncClient() as http:
        token = server.tokens.add("ana")[1]
        headers = {} if header is None else {"Authorization": header.format(token=token)}
        for method in ("POST", "GET", "DELETE"):
            answer = await http.request(method, server.url, headers=headers, json={})
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
    assert server.stand.sessions == []


async def test_a_token_that_was_removed_ends_its_session(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        token, text = server.tokens.add("ana")
        async with server.client("auto", text) as client:
            assert (await client.call_tool("notes_diary", {})).is_error is False
            server.tokens.remove(token.id)
            with pytest.raises((MCPError, httpx2.HTTPError)):
                await client.call_tool("notes_diary", {})
    assert len(server.stand.world.read) == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Host": "localhost.evil.example:80"}, 421),
    ],
)
async def test_a_page_in_a_browser_cannot_reach_it_by_another_name(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async with served(tmp_path) as server, httpx2.AsyncClient() as http:
        token = server.tokens.add("ana")[1]
        accepted = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        answer = await http.post(
            server.url, headers={"Authorization": f"Bearer {token}"} | accepted | headers, content=INITIALIZE
        )
    assert answer.status_code == status


async def test_a_session_id_of_another_token_does_not_exist(tmp_path: Path) -> None:
    async with served(tmp_path) as server, httpx2.AsyncClient() as http:
        ana, bob = server.tokens.add("ana")[1], server.tokens.add("bob")[1]
        accepted = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        opened = await http.post(server.url, headers={"Authorization": f"Bearer {ana}"} | accepted, content=INITIALIZE)
        session = opened.headers["mcp-session-id"]
        listing = message(2, "tools/list")
        for token, status in ((bob, 404), (ana, 200)):
            headers = {"Authorization": f"Bearer {token}", "Mcp-Session-Id": session} | accepted
            answer = await http.post(server.url, headers=headers, content=listing)
            assert answer.status_code == status
        headers = {"Authorization": f"Bearer {bob}", "Mcp-Session-Id": session}
        assert (await http.delete(server.url, headers=headers)).status_code == 404
        assert not server.stand.sessions[0].is_closed


async def test_other_paths_and_large_bodies_are_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as server, httpx2.AsyncClient() as http:
        token = server.tokens.add("ana")[1]
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        assert (await http.post(server.url + "/other", headers=headers, content=b"{}")).status_code == 404
        large = await http.post(server.url, headers=headers, content=b"x" * 5_000_000)
        assert large.status_code == 413


async def test_a_request_whose_head_never_ends_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: connections that send a byte now and then keep everybody else out."""
    monkeypatch.setattr("bicameral.server._slow_heads.HEAD_SECONDS", 0.3)
    async with served(tmp_path) as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        await writer.drain()
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()
        async with server.client("auto", server.tokens.add("ana")[1]) as client:
            assert (await client.list_tools()).tools


async def test_a_session_that_nobody_uses_ends(tmp_path: Path) -> None:
    from bicameral.firewall._http import FirewallApp, security_for  # pyright: ignore[reportPrivateUsage]

    now = [0.0]
    stand, tokens = make_stand(tmp_path), TokenFile(tmp_path / "tokens.json")
    text = tokens.add("ana")[1]
    names = security_for(["testserver"])
    app = FirewallApp(stand.firewall, tokens, names, idle_seconds=60, clock=lambda: now[0])
    async with (
        app.running(),
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=app), headers={"Authorization": f"Bearer {text}"}
        ) as http,
    ):
        transport = streamable_http_client("http://testserver/mcp", http_client=http)
        async with Client(transport, mode="2026-07-28") as client:
            await client.call_tool("notes_diary", {})
            (session,) = stand.sessions
            now[0] = 59.0
            await app.sweep()
            assert not session.is_closed
            now[0] = 120.0
            await app.sweep()
            assert session.is_closed
    assert stand.kinds()[-1] == "run-finished"


async def test_it_listens_for_other_machines_only_with_tokens(tmp_path: Path) -> None:
    stand = make_stand(tmp_path)
    transport = HttpTransport(TokenFile(tmp_path / "tokens.json"), host="0.0.0.0", names=("tools.example.org",))
    with pytest.raises(ServerError) as error:
        await serve_firewall(stand.firewall, transport)
    assert error.value.code == "server.no-tokens"


async def call_by_http(app: Any, text: str, name: str, person: Person | None = None, **arguments: Any) -> Any:
    """The result of one call by a client that opens no connection."""
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, headers={"Authorization": f"Bearer {text}"}) as http:
        channel = streamable_http_client("http://testserver/mcp", http_client=http)
        async with Client(channel, mode="2026-07-28", elicitation_callback=person) as client:
            return await client.call_tool(name, arguments)


async def test_what_was_read_still_counts_after_the_session_has_ended_unused(tmp_path: Path) -> None:
    from bicameral.firewall._http import FirewallApp, security_for  # pyright: ignore[reportPrivateUsage]

    now = [0.0]
    stand, tokens = make_stand(tmp_path), TokenFile(tmp_path / "tokens.json")
    (ana, bob) = (tokens.add(name)[1] for name in ("ana", "bob"))
    app = FirewallApp(stand.firewall, tokens, security_for(["testserver"]), idle_seconds=60, clock=lambda: now[0])
    sent = {"to": ANA, "body": "x"}
    async with app.running():
        await call_by_http(app, ana, "mail_list")
        now[0] = 61.0
        await app.sweep()
        assert stand.sessions[-1].is_closed
        person = no()
        assert code_of(await call_by_http(app, ana, "mail_send", person, **sent)) == "run.refused"
        assert len(person.asked) == 1
        # Somebody else has read nothing.
        other = await call_by_http(app, bob, "mail_send", asked := no(), **sent)
        assert (other.is_error, asked.asked) == (False, [])
    assert stand.world.sent == [(ANA, "x")]


async def test_a_session_that_cannot_be_recorded_is_replaced_by_one_that_knows_what_was_read(tmp_path: Path) -> None:
    from bicameral.firewall._http import FirewallApp, security_for  # pyright: ignore[reportPrivateUsage]

    stand, tokens = make_stand(tmp_path), TokenFile(tmp_path / "tokens.json")
    text = tokens.add("ana")[1]
    app = FirewallApp(stand.firewall, tokens, security_for(["testserver"]))
    append = stand.journal.append_all

    def full(*_: Any, **__: Any) -> None:
        raise JournalError("journal.unwritable", "the disk is full")

    async with app.running():
        await call_by_http(app, text, "mail_list")
        stand.journal.append_all = full  # pyright: ignore[reportAttributeAccessIssue]
        failed = await call_by_http(app, text, "web_search", query="ducks")
        assert code_of(failed) == "journal.unwritable"
        assert stand.world.posted == []
        stand.journal.append_all = append  # pyright: ignore[reportAttributeAccessIssue]
        assert (await call_by_http(app, text, "notes_diary")).is_error is False
        asked = no()
        assert code_of(await call_by_http(app, text, "mail_send", asked, to=ANA, body="x")) == "run.refused"
        assert len(asked.asked) == 1


async def test_connections_that_are_being_opened_count(tmp_path: Path) -> None:
    from bicameral.firewall._http import MAX_SESSIONS  # pyright: ignore[reportPrivateUsage]

    async with served(tmp_path) as server, httpx2.AsyncClient(timeout=30) as http:
        headers = {
            "Authorization": f"Bearer {server.tokens.add('ana')[1]}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        opening = (http.post(server.url, headers=headers, content=INITIALIZE) for _ in range(MAX_SESSIONS + 12))
        statuses = [answer.status_code for answer in await asyncio.gather(*opening)]
    assert statuses.count(200) <= MAX_SESSIONS
    assert statuses.count(503) >= 12


async def test_a_page_of_another_origin_ends_no_session(tmp_path: Path) -> None:
    async with served(tmp_path) as server, httpx2.AsyncClient() as http:
        headers = {
            "Authorization": f"Bearer {server.tokens.add('ana')[1]}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        opened = await http.post(server.url, headers=headers, content=INITIALIZE)
        headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
        refused = await http.delete(server.url, headers=headers | {"Origin": "https://evil.example"})
        assert refused.status_code == 403
        assert not server.stand.sessions[0].is_closed
        assert (await http.delete(server.url, headers=headers)).status_code == 200
        gone = await http.post(server.url, headers=headers, content=message(2, "tools/list"))
        assert gone.status_code == 404
