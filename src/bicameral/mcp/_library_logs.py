"""What the libraries for MCP log: texts of servers, which must not reach a terminal as they are.

The SDK logs the names of events, media types and whole messages of a server, with tracebacks. Where nobody has set up
logging, Python prints warnings as they are, so that a server could clear the screen or write an answer onto it, at any
time. Here such records are written to the log `bicameral.mcp` at the level DEBUG, with hidden characters made visible.
"""

from __future__ import annotations

import asyncio
import logging
import os
from functools import cache
from importlib.util import find_spec
from typing import Any

from bicameral.display import make_visible

_LIBRARIES = {"mcp": "mcp", "client": "mcp", "httpx2": "httpx2", "httpcore2": "httpcore2"}
"""The loggers, and the package that writes to each. The session of the SDK is logged as `client`."""
_MAX_RECORD = 2_000
_log = logging.getLogger("bicameral.mcp")


class _VisibleHandler(logging.Handler):
    """Writes the records of a package to our own log, and leaves those of anybody else to the usual handlers."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def emit(self, record: logging.LogRecord) -> None:
        if not record.pathname.startswith(self._folder):
            # An application may have a logger `client` of its own.
            logging.getLogger().handle(record)
        elif _log.isEnabledFor(logging.DEBUG):
            try:
                text = self.format(record)
            except Exception:
                text = "a record that cannot be formatted"
            _log_visible(record.name, text)


def _log_visible(where: str, text: str) -> None:
    # Cut first: the whole may have megabytes. Continued lines are indented, so that none passes for a record.
    _log.debug("%s: %s", where, make_visible(text[:_MAX_RECORD]).replace("\n", "\n    "))


def log_loop_problem(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The handler of what nobody caught on a loop of the library."""
    _log_visible("asyncio", f"{context.get('message')}: {context.get('exception')!r}")


@cache
def keep_library_logs_visible() -> None:
    """From now on, nothing of these libraries is printed or logged as a server wrote it."""
    for name, package in _LIBRARIES.items():
        spec = find_spec(package)
        folders = [] if spec is None else list(spec.submodule_search_locations or ())
        if not folders:
            continue
        logger = logging.getLogger(name)
        logger.addHandler(_VisibleHandler(os.path.join(folders[0], "")))
        # Otherwise every handler of the application would get the record as it is, or Python's last resort.
        logger.propagate = False
