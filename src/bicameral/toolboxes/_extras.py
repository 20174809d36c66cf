"""Libraries that come with `bicameral[standard]` only."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from bicameral.errors import ToolError


@cache
def require(module: str) -> None:
    """Say what to install when a library is not there."""
    if find_spec(module) is None:
        raise ToolError(
            "toolboxes.not-installed",
            f"this tool needs the package {module!r}",
            fix="Install it with: pip install 'bicameral[standard]'",
        )
