"""Web pages: fetch a page as readable text with its links, or JSON.

A URL comes in; the host is held against the settings, resolved once, and the connection goes to the very address that
was checked. Loopback, private and link-local addresses are refused unless their host is listed, on every redirect anew.
What a server sends is unpacked up to a limit, and taken apart in the parser process (`_reading`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bicameral.toolboxes.web._tools import Link, Page, WebSettings, toolbox

__all__ = ["Link", "Page", "WebSettings", "toolbox"]

_MODULES = {"WebSettings": "_tools", "Link": "_tools", "Page": "_tools", "toolbox": "_tools"}


def __getattr__(name: str) -> Any:
    # The parser process imports `_reading` from here and needs none of what the tools are made with.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
