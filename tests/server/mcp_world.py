"""Real MCP servers for tests, over HTTP and over standard input and output, and clients with a person behind them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from server_world import HERE, POST, settings, stop_server

from bicameral.server import TokenFile

COMMAND = (str(HERE / "served.py"), "mcp", "serve")
"""`bicameral mcp serve` with models that reply from a script."""
Mode = Literal["legacy", "auto"]
MODES: tuple[Mode, ...] = ("legacy", "auto")
"""The handshake of protocols until 2025-11-25, and 2026-07-28."""
HOLD = '''
import asyncio
import json
from typing import TypedDict

from bicameral.tools import Participants


@tool(effect="read", origins=Origin("system"))
async def hold(name: str) -> int:
    """Wait until somebody lets go."""
    Path(f"{name}.held").touch()
    while not Path(f"{name}.free").exists():
        await asyncio.sleep(0.02)
    return 7


@tool(effect="read", origins=Origin("third_party"))
def measure(text: str) -> int:
    """The length of what a stranger says."""
    return len(text)


class Letter(TypedDict):
    sender: str
    to: list[str]
    body: str


@tool(effect="read", origins=Origin("third_party", Participants(("sender", "to"))))
def letter(name: str) -> Letter:
    """A letter, which names those who may read it."""
    return json.loads(Path(f"{name}.json").read_text())
'''


def mcp_settings(folder: Path, more: str = "rate = 1000000\n") -> dict[str, str]:
    """The files of a server, and the environment that it has."""
    environment = settings(folder, more)
    (folder / "own.py").write_text(POST + HOLD)
    return environment


@dataclass
class Person:
    """The person behind a client: what was asked, and the replies, in order; the last one is given again and again.

    A reply is an action, or the content of an accepted form; True fills in every field with yes.
    """

    replies: list[Any] = field(default_factory=lambda: [True])
    asked: list[types.ElicitRequestFormParams] = field(default_factory=list[types.ElicitRequestFormParams])

    async def answer(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        reply: Any = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, str):
            return types.ElicitResult(action=reply)  # pyright: ignore[reportArgumentType]
        if reply is True:
            reply = dict.fromkeys(params.requested_schema["properties"], True)
        return types.ElicitResult(action="accept", content=reply)

    @property
    def messages(self) -> list[str]:
        return [each.message for each in self.asked]


@dataclass
class ServedMcp:
    """An MCP server that runs over HTTP, and its users."""

    folder: Path
    address: str
    tokens: dict[str, str] = field(default_factory=dict[str, str])

    @asynccontextmanager
    async def client(
        self, mode: str = "auto", user: str = "ana", person: Person | None = None, **options: Any
    ) -> AsyncGenerator[Client]:
        headers = {"Authorization": f"Bearer {self.tokens[user]}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(self.address, http_client=http)
            answer = None if person is None else person.answer
            async with Client(transport, mode=mode, elicitation_callback=answer, **options) as client:
                yield client

    def posted(self) -> list[str]:
        """What the tool of the test has sent."""
        file = self.folder / "posted.txt"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def token_file(self) -> TokenFile:
        return TokenFile(self.folder / "xdg_config_home" / "bicameral" / "tokens.json")


@contextmanager
def serving_mcp(
    folder: Path, *words: str, more: str = "rate = 1000000\n", users: tuple[str, ...] = ("ana", "ben", "cat")
) -> Generator[ServedMcp]:
    """`bicameral mcp serve --http` until the block ends."""
    environment = mcp_settings(folder, more)
    tokens = TokenFile(Path(environment["XDG_CONFIG_HOME"]) / "bicameral" / "tokens.json")
    texts = {user: tokens.add(user)[1] for user in users}
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *COMMAND, "--http", "--port", "0", "--json", *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "log.txt").read_text()
        yield ServedMcp(folder, json.loads(line)["address"], texts)
    finally:
        stop_server(process)


@asynccontextmanager
async def stdio(
    folder: Path, *words: str, mode: str = "auto", person: Person | None = None, **options: Any
) -> AsyncGenerator[Client]:
    """A client of `bicameral mcp serve` over standard input and output, in a process of its own."""
    parameters = StdioServerParameters(
        command=sys.executable, args=[*COMMAND, *words], env=mcp_settings(folder), cwd=folder
    )
    answer = None if person is None else person.answer
    # The log of the server is no part of the test's output.
    with closing(os.fdopen(os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT), "w")) as log:
        async with Client(
            stdio_client(parameters, errlog=log), mode=mode, elicitation_callback=answer, **options
        ) as client:
            yield client


def facts(result: types.CallToolResult) -> dict[str, Any]:
    """The structured content of a result, which must also be its text."""
    assert result.structured_content is not None, result.content
    [text] = result.content
    assert isinstance(text, types.TextContent)
    assert json.loads(text.text) == result.structured_content
    return result.structured_content


def text_of(result: types.CallToolResult) -> str:
    """The text of a result, which is its only content."""
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


def code(result: types.CallToolResult) -> str:
    """The code of a result that is an error."""
    assert result.is_error
    assert result.structured_content is None
    assert result.meta is not None
    return result.meta["bicameral/error"]["code"]
