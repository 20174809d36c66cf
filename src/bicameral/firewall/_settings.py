"""Settings of the firewall: what the client counts as, how results are shown, how people are asked, and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from bicameral.rates import Rate
from bicameral.tools import Tool

Names = Annotated[tuple[str, ...], Field(strict=False)]
Show = Literal["handles", "marked-text"]
Approvals = Literal["elicitation", "inbox", "refuse"]

TOOLBOX_PREFIX = "mcp:"
"""The toolbox of a tool of an MCP server begins with this; the name of the server follows."""


class ServerRules(BaseModel):
    """What holds for the tools of one server."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    show: Show | None = None
    """Results that others may have written as `handles`, or as `marked-text`, which makes the session untrusted."""
    allow: Names | None = None
    """The only tools of the server that the client sees and can call. Without it, all of them."""
    rate: Rate | None = None
    """How many calls all clients together may make in a time, such as `60/min`."""


class FirewallSettings(BaseModel):
    """How the firewall treats its clients.

    Example:
        >>> FirewallSettings(approvals="inbox", servers={"mail": ServerRules(rate="30/min")})
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    client: Literal["trusted", "untrusted"] = "trusted"
    """Whether what the client's model writes counts as the user's own word until it has read something else."""
    show: Show = "handles"
    """As in the rules of a server, for those that do not say it."""
    servers: Mapping[str, ServerRules] = Field(default_factory=dict[str, ServerRules])
    """The rules of single servers, by their names."""
    undeclared: Literal["hide", "show"] = "hide"
    """Tools that nobody has reviewed. Their names are untrusted text: showing them makes a session untrusted."""
    approvals: Approvals = "elicitation"
    """How a person is asked: by the client (where it cannot, in the inbox), in the `inbox`, or not at all."""
    approval_seconds: Annotated[float, Field(gt=0, le=86_400)] = 300.0
    """How long an answer is waited for. After that it is no."""
    careful: bool = False
    """Ask also about what policy allows if it cannot be taken back."""
    calls_at_once: Annotated[int, Field(ge=1, le=1_000)] = 16
    """Calls of one session that may be under way at once, those that wait for a person included."""
    calls: Annotated[int, Field(ge=1)] = 100_000
    """Calls of one session, those of models included."""
    tokens: Annotated[int, Field(ge=1)] = 20_000_000
    """Tokens that the quarantined model may take in one session."""
    money: Annotated[float, Field(gt=0)] = 10.0
    """What its calls may cost in one session."""
    argument_chars: Annotated[int, Field(ge=100)] = 1_000_000
    """Characters that a client may write as the arguments of one call."""
    kept_chars: Annotated[int, Field(ge=1_000)] = 64_000_000
    """Characters of results that are kept by name. Beyond it the oldest are forgotten."""

    def rules(self, server: str) -> ServerRules:
        """The rules of a server; one without any has the defaults."""
        return self.servers.get(server, _DEFAULT_RULES)

    def shows_text(self, server: str) -> bool:
        """Whether results of a server are shown as marked text."""
        return (self.rules(server).show or self.show) == "marked-text"


_DEFAULT_RULES = ServerRules()


def server_of(tool: Tool) -> str:
    """The server that a tool belongs to: that of its toolbox, or the toolbox itself."""
    return tool.toolbox.removeprefix(TOOLBOX_PREFIX)
