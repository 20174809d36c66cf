"""What every part of the server works with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ._limits import Places, Rate
from ._metrics import Metrics
from ._tokens import Tokens

if TYPE_CHECKING:
    from bicameral.agent import Agent
    from bicameral.config import Config
    from bicameral.durable import Runs

PLANS_AT_ONCE = 4


class Desk:
    """The runs, the tokens, the limits, and the agent, which is made when it is first needed."""

    def __init__(self, config: Config, runs: Runs, tokens: Tokens, make_agent: Callable[[], Agent]) -> None:
        self.config, self.runs, self.tokens = config, runs, tokens
        self._make_agent = make_agent
        self._agent: Agent | None = None
        self.stopping = asyncio.Event()
        self.metrics = Metrics()
        settings = config.server
        self.caps = config.caps
        """The most that anybody may ask for."""
        self.rate = Rate(settings.rate)
        self.requests = Places(settings.requests, 503, "server.busy", "the server has too much to do")
        self.watches = Places(settings.watches, 429, "server.too-many-watches", "too many runs are being watched")
        self.plans = Places(PLANS_AT_ONCE, 503, "server.busy", "too many plans are being written")

    @property
    def agent(self) -> Agent:
        """The agent that plans and checks here; its models are loaded when they are first asked."""
        if self._agent is None:
            self._agent = self._make_agent()
        return self._agent
