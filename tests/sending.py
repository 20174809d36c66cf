"""Settings with which mail can be sent, so that planners are told of the tool; no server is reached for."""

from __future__ import annotations

from typing import Any

SENDING_TOML = '[toolbox.mail]\naddress = "me@example.org"\nsmtp = { host = "localhost", tls = "none" }\n'
"""A table of `bicameral.toml`."""
SENDING: dict[str, dict[str, Any]] = {
    "mail": {"address": "me@example.org", "smtp": {"host": "localhost", "tls": "none"}}
}
"""The same as `Config(toolbox=…)` takes it."""
