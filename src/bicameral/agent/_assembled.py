"""What an agent is made of, put together: what its caller gives, and from the configuration whatever else it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from bicameral.boundary import Executor, Extractor
from bicameral.intent import Echo
from bicameral.models import Provider
from bicameral.plans import Limits, Report
from bicameral.runs import Journal
from bicameral.sessions import Chambers, Ledger, Listener, ModelCall, Quarantined
from bicameral.tools import Registry, Tool

from ._planners import planner, understanding
from ._spending import Worst, purse_of, worst_case

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.policy import Policy
    from bicameral.routing import Budgets, Prices, Purse


class Assembled:
    """The parts of an agent, from the first model to the last price, and their closing."""

    def __init__(
        self,
        tools: Registry | Iterable[Tool] | None = None,
        *,
        config: Config | None = None,
        privileged: Provider | None = None,
        quarantined: Provider | Quarantined | None = None,
        cascade: Mapping[str, Provider] | None = None,
        executor: Executor | None = None,
        policy: Policy | None = None,
        journal: Journal | None = None,
        cache: MutableMapping[str, str] | None = None,
        limits: Limits | None = None,
        now: Callable[[], datetime] = datetime.now,
        listener: Listener | None = None,
        budgets: Budgets | None = None,
        prices: Prices | None = None,
    ) -> None:
        from bicameral.config import Config, budgets_of, open_policy, open_prices

        self.config = config or Config.defaults()
        self.registry = _registry(tools, self.config)
        self._models, cascade = _models(self.config, privileged, quarantined, cascade)
        self._stages = [Chambers(each, self._models.quarantined).privileged for each in cascade.values()]
        self.policy = open_policy(self.config, self.registry) if policy is None else policy
        self._journal = journal
        self.budgets = budgets_of(self.config) if budgets is None else budgets
        self.prices = open_prices(self.config) if prices is None else prices
        self._now = now
        self.ledger = Ledger()
        self._listener = listener
        self._limits = limits or self.config.plan_limits
        self._staff(cascade, executor, cache)

    def _staff(
        self, cascade: Mapping[str, Provider], executor: Executor | None, cache: MutableMapping[str, str] | None
    ) -> None:
        """Who understands requests, who plans, and who fills blanks: each with the model it works with."""
        from bicameral.config import open_cache

        cache = open_cache(self.config) if cache is None else cache
        limits, privileged = self.config.limits, self._models.privileged
        # A model that the configuration names for this is asked, cascade or not.
        first = [] if "echo" in self.config.llm.model_roles else self._stages
        asked: dict[str, Any] = {"listener": self._heard, "timeout": limits.model_timeout}
        kept: dict[str, Any] = {"cache": cache, "project": self.config.project}
        self._echo = Echo(understanding(privileged, first), **kept, **asked)
        self._delta = planner(privileged, cascade, limits=self._limits, repairs=limits.repairs, **kept, **asked)
        self._executor = executor or Extractor(self._models.quarantined, **asked)

    @classmethod
    def from_config(cls, config: Config | None = None, **options: Any) -> Self:
        """The agent that `bicameral.toml` describes, with its journal."""
        from bicameral.config import Config, open_journal

        config = config or Config.load()
        return cls(config=config, journal=open_journal(config), **options)

    def spending(self) -> AbstractContextManager[Purse]:
        """What the agent may spend on what is done inside: without this, each call of a method has a budget of its own.

        Example:
            >>> with agent.spending() as purse:
            ...     planned = await agent.plan(request)
            ...     outcome = await agent.run(planned)
            >>> purse.spent.money
        """
        return purse_of(self.budgets, self.prices)

    @property
    def executor(self) -> Executor:
        """Whoever fills blanks."""
        return self._executor

    def worst(self, report: Report) -> Worst:
        """The most that the models can take in a run of a plan, from what the check found out about it."""
        return worst_case(report, self._models.quarantined.models, self.prices)

    def architecture(self, name: str = "agent") -> dict[str, Any]:
        """What this agent is made of, as `bicameral lint` and `bicameral cost` read it; `name` is what it is called.

        Example:
            >>> lint(stack_of(agent)).of("error")
        """
        from ._architecture import architecture_of

        models = {"privileged": self._models.privileged.name, "quarantined": self._models.quarantined.name}
        return architecture_of(self, journal=self._journal is not None, models=models, name=name)

    async def aclose(self) -> None:
        """Free the models' memory and close the journal."""
        for model in dict.fromkeys([self._models.privileged, *self._stages]):
            await model.aclose()
        await self._models.quarantined.aclose()
        if self._journal is not None:
            self._journal.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _heard(self, call: ModelCall) -> None:
        self.ledger(call)
        if self._listener is not None:
            self._listener(call)


def _registry(tools: Registry | Iterable[Tool] | None, config: Config) -> Registry:
    from bicameral.config import open_registry

    if tools is None:
        return open_registry(config)
    return tools if isinstance(tools, Registry) else Registry(tools)


def _models(
    config: Config,
    privileged: Provider | None,
    quarantined: Provider | Quarantined | None,
    cascade: Mapping[str, Provider] | None,
) -> tuple[Chambers, Mapping[str, Provider]]:
    """The two models, kept apart, and the cascade of the privileged side.

    The configured cascade goes with the configured privileged model: it does not stand in for one that is given.
    """
    from bicameral.config import open_models

    if privileged is None or quarantined is None:
        own = open_models(config)
        if cascade is None and privileged is None:
            cascade = own.cascade
        privileged, quarantined = privileged or own.privileged, quarantined or own.quarantined
    return Chambers(privileged, Quarantined(quarantined)), cascade or {}
