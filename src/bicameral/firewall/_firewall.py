"""The firewall itself: the tools, the policy and the limits that all sessions of a process share."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from bicameral.errors import ConfigError
from bicameral.firewall._approvals import Inbox
from bicameral.firewall._documents import Resources, document_tools
from bicameral.firewall._listing import ToolList
from bicameral.firewall._session import FirewallSession
from bicameral.firewall._settings import FirewallSettings
from bicameral.labels import NOTHING, Label
from bicameral.rates import CallRate
from bicameral.tools import Registry

if TYPE_CHECKING:
    from bicameral.boundary import Executor
    from bicameral.policy import Policy
    from bicameral.runs import Decider, Journal

Changed = Callable[[], Awaitable[None]]


class Firewall:
    """Stands between MCP clients and tools: every client gets a session of its own.

    Args:
        registry: The tools. Whoever connects to their servers keeps the connections.
        policy: Decides about every call; whatever tools it was made for, it is used for these.
        settings: How clients are treated.
        journal: Where sessions are recorded. What cannot be recorded is not done.
        extractor: The quarantined model, for typed values of results that are not shown. Without one there is no
            `extract_value`.
        inbox: Where people answer elsewhere. With the durable runs (`Runs`) they do so with `bicameral approvals`.
        resources: Documents of servers.
        clock: The clock of the rates, for tests.

    Example:
        >>> firewall = Firewall(registry, Policy(), FirewallSettings(approvals="refuse"))
        >>> await serve_firewall(firewall, StdioTransport())
    """

    def __init__(
        self,
        registry: Registry,
        policy: Policy,
        settings: FirewallSettings | None = None,
        *,
        journal: Journal | None = None,
        extractor: Executor | None = None,
        inbox: Inbox | None = None,
        resources: Resources | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings or FirewallSettings()
        self.policy = policy
        self.journal = journal
        self.extractor = extractor
        self.inbox = inbox
        self.resources = resources
        self._clock = clock
        self._rates: dict[str, CallRate] = {}
        self._listeners: dict[object, Changed] = {}
        if self.settings.approvals == "inbox" and inbox is None:
            raise ConfigError(
                "firewall.no-inbox",
                'approvals = "inbox", and there is no inbox',
                fix='Install `pip install "bicameral[durable]"`, or set approvals = "elicitation" or "refuse".',
            )
        self.registry = registry
        self.tools = self._list_tools(registry)
        self.decider = self._make_decider(registry)
        """Decides about the calls of all sessions."""

    def new_session(self, owner: str = "local", read: Label = NOTHING) -> FirewallSession:
        """A session for one client; nothing of it is shared with another one but the tools and their rates.

        `read` is what the client's model has read before, in a session that has ended without its doing.
        """
        return FirewallSession(self, owner, read)

    def count_call(self, server: str) -> None:
        """Count a call of a server, of whichever session; `rates.exceeded` if it is one too many."""
        if (rate := self.settings.rules(server).rate) is None:
            return
        known = self._rates.setdefault(server, CallRate(rate, f"the server {server!r}", now=self._clock))
        known.count_call()

    async def replace_registry(self, registry: Registry) -> None:
        """Use other tools from now on, and tell the clients if they see a difference."""
        tools, decider = self._list_tools(registry), self._make_decider(registry)
        before, self.registry, self.tools, self.decider = self.tools, registry, tools, decider
        if before.listings != tools.listings:
            for listener in list(self._listeners.values()):
                await listener()

    def on_change(self, listener: Changed) -> Callable[[], None]:
        """Call a function whenever clients see other tools; returns what ends that."""
        key = object()
        self._listeners[key] = listener

        def stop() -> None:
            self._listeners.pop(key, None)

        return stop

    def _list_tools(self, registry: Registry) -> ToolList:
        return ToolList.of(registry, self.settings, extracts=self.extractor is not None)

    def _make_decider(self, registry: Registry) -> Decider:
        """Decides about calls of these tools: always strictly, since there is no plan that a person has read."""
        from bicameral.patterns.strategies import run_decider

        documents = [] if self.resources is None else document_tools(self.resources)
        policy = self.policy.with_registry(Registry([*registry, *documents]))
        return run_decider(policy, careful=self.settings.careful)
