"""One server for all tests of a file that do not need their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mcp_world import ServedMcp, serving_mcp
from server_world import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture(scope="session")
def served_mcp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMcp]:
    """An MCP server as it is started without options."""
    with serving_mcp(tmp_path_factory.mktemp("served-mcp")) as found:
        yield found
