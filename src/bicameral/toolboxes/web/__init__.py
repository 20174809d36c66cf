"""Web pages: fetch a page as text with its links, or JSON.

The host of a URL is checked against the settings and resolved once, and the connection goes to the address that was
checked. Loopback, private and link-local addresses are refused unless their host is listed; the checks are repeated for
every redirect. A response is decompressed up to a limit, and parsed in the parser process (`toolboxes._text`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bicameral.toolboxes.web._tools import Link, Page, WebSettings, toolbox

__all__ = ["Link", "Page", "WebSettings", "toolbox"]

_MODULES = {"WebSettings": "_tools", "Link": "_tools", "Page": "_tools", "toolbox": "_tools"}


def __getattr__(name: str) -> Any:
    # Lazy: importing the package does not load the tools.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
