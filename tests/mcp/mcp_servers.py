"""Servers of the tests: a program with what it lists, and the settings to reach it."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bicameral.mcp import McpSettings, ServerConnection

PROGRAM = Path(__file__).parent / "mcp_server_program.py"


def write_spec(folder: Path, tools: Sequence[Mapping[str, Any]] = (), **more: Any) -> Path:
    """The file that a server of the tests reads at each request."""
    file = folder / "server.json"
    file.write_text(json.dumps({"tools": list(tools), **more}), "utf-8")
    return file


def server_settings(file: Path, **settings: Any) -> McpSettings:
    """Settings of a server that reads this file, confined to it."""
    given: dict[str, Any] = {"command": [sys.executable, str(PROGRAM), str(file)], "read": [str(file)]}
    return McpSettings.model_validate(given | settings)


@contextmanager
def running_server(
    folder: Path, tools: Sequence[Mapping[str, Any]] = (), *, spec: Mapping[str, Any] | None = None, **settings: Any
) -> Generator[ServerConnection]:
    """A connection to a server with these tools, which is ended afterwards."""
    file = write_spec(folder, tools, **(spec or {}))
    connection = ServerConnection("test", server_settings(file, **settings), base=folder)
    try:
        yield connection
    finally:
        connection.close()
