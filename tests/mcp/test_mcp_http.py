"""Servers over HTTP: a real one on this machine, with a token, and others that send more than anybody wants."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from bicameral.errors import ToolError
from bicameral.mcp import McpSettings, ServerConnection


class _Endpoint(BaseHTTPRequestHandler):
    """A server of the older protocol, as small as can be: each request is answered with JSON."""

    protocol_version = "HTTP/1.1"
    kind: ClassVar[str] = ""
    seen: ClassVar[list[dict[str, str]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.append(dict(self.headers))
        method = body.get("method")
        if self.headers.get("Authorization") != "Bearer token-for-the-tests":
            self._send(401, b"{}")
        elif "id" not in body:
            self._send(202, b"")
        elif method == "initialize":
            info = {"name": "http", "version": "1"}
            version = body["params"]["protocolVersion"]
            self._reply(body, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        elif method == "tools/list":
            self._reply(body, {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]})
        elif method == "tools/call":
            self._call(body)
        else:
            error = {"code": -32601, "message": "Method not found"}
            self._send(200, json.dumps({"jsonrpc": "2.0", "id": body["id"], "error": error}).encode())

    def _call(self, body: dict[str, Any]) -> None:
        match self.kind:
            case "huge":
                self._reply(body, {"content": [{"type": "text", "text": "x" * 3_000_000}]})
            case "endless":
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Connection", "close")
                self.end_headers()
                try:
                    while True:
                        self.wfile.write(b" " * 65_536)
                except OSError:
                    self.close_connection = True
            case "compressed":
                self._send(200, b"\x1f\x8b", encoding="gzip")
            case "elsewhere":
                self.send_response(307)
                self.send_header("Location", "http://localhost:1/steal")
                self.send_header("Content-Length", "0")
                self.end_headers()
            case _:
                self._reply(body, {"content": [{"type": "text", "text": "hello"}]})

    def do_GET(self) -> None:
        self._send(405, b"")

    do_DELETE = do_GET

    def _reply(self, body: dict[str, Any], result: dict[str, Any]) -> None:
        self._send(200, json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result}).encode())

    def _send(self, status: int, content: bytes, encoding: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def http_server(folder: Path, kind: str = "") -> Generator[ServerConnection]:
    handler = type("Endpoint", (_Endpoint,), {"kind": kind, "seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
    settings = McpSettings(url=url, bearer="HTTP_TOKEN", max_result=1_000_000, timeout=10.0, start_timeout=10.0)
    connection = ServerConnection("web", settings, base=folder, environment={"HTTP_TOKEN": "token-for-the-tests"})
    try:
        yield connection
    finally:
        connection.close()
        server.shutdown()
        server.server_close()
        thread.join()


async def test_a_server_over_http_gets_its_token_and_answers(tmp_path: Path) -> None:
    with http_server(tmp_path) as connection:
        assert [tool.name for tool in await connection.list_tools()] == ["hello"]
        assert (await connection.call_tool("hello", {})).text == "hello"


@pytest.mark.parametrize("kind", ["huge", "endless", "compressed", "elsewhere"])
async def test_what_a_server_sends_over_http_has_bounds(tmp_path: Path, kind: str) -> None:
    with http_server(tmp_path, kind) as connection:
        await connection.list_tools()
        async with asyncio.timeout(9):
            with pytest.raises(ToolError) as caught:
                await connection.call_tool("hello", {})
    assert caught.value.code in ("mcp.unreachable", "mcp.server-error", "mcp.bad-answer")
    assert "token-for-the-tests" not in str(caught.value)


async def test_a_token_that_does_not_hold_is_an_error(tmp_path: Path) -> None:
    with http_server(tmp_path) as connection:
        other = ServerConnection(
            "web", connection.settings, base=tmp_path, environment={"HTTP_TOKEN": "wrong-token-value"}
        )
        with pytest.raises(ToolError) as caught:
            await other.list_tools()
        await other.aclose()
    assert caught.value.code == "mcp.cannot-start"
    assert "wrong-token-value" not in str(caught.value)


async def test_nobody_there_is_an_error(tmp_path: Path) -> None:
    settings = McpSettings(url="http://127.0.0.1:1/mcp", start_timeout=5.0)
    connection = ServerConnection("web", settings, base=tmp_path)
    with pytest.raises(ToolError) as caught:
        await connection.list_tools()
    assert caught.value.code == "mcp.cannot-start"
