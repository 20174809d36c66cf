"""Web pages: fetch a page as readable text with its links, or JSON.

A URL comes in; the host is held against the settings, resolved once, and the connection goes to the very address that
was checked. Loopback, private and link-local addresses are refused unless their host is listed, on every redirect anew.
"""

from ._settings import WebSettings
from ._tools import Link, Page, toolbox

__all__ = ["Link", "Page", "WebSettings", "toolbox"]
