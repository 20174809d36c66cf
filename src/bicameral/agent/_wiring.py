"""Wiring of an agent: its parts from the caller's arguments and the configuration, its budget, and the worst case.

Budgets and prices are in force around everything an agent does.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from bicameral.boundary import MAX_OUTPUT_TOKENS, MAX_SOURCE, Executor, Extractor
from bicameral.limits import Budgets, Ledger, Meter, ModelCall, Prices, budget_scope, use_prices
from bicameral.models import Provider
from bicameral.planning import Delta, Echo, PlanCascade
from bicameral.plans import PlanLimits, Report
from bicameral.routing import Cascade, check_finished, provider_for_role
from bicameral.runs import Journal
from bicameral.sessions import Chambers, Listener, Quarantined
from bicameral.tools import Registry, Tool

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.policy import Policy


def build_planner(privileged: Provider, cascade: Mapping[str, Provider], **options: Any) -> Delta | PlanCascade:
    """Delta with the one model, or a cascade of them."""
    return PlanCascade(cascade, **options) if cascade else Delta(provider_for_role(privileged, "delta"), **options)


def echo_provider(privileged: Provider, stages: Sequence[Provider]) -> Provider:
    """Who is asked what a request means: the first of a cascade, and a larger one only if its account is not whole."""
    return Cascade(*stages, accept=check_finished) if stages else provider_for_role(privileged, "echo")


P = ParamSpec("P")
R = TypeVar("R")


class BudgetHolder(Protocol):
    """Whoever has a budget."""

    def spending(self) -> AbstractContextManager[Meter]: ...


S = TypeVar("S", bound=BudgetHolder)


@contextmanager
def open_budget(budgets: Budgets, prices: Prices) -> Generator[Meter]:
    """The meter of what is done inside, with these prices; one that is open already goes on."""
    with use_prices(prices), budget_scope(budgets) as meter:
        yield meter


def within_budget(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Hold what a method does to the budgets. A method that calls another shares its budget with it."""

    @wraps(method)
    async def within(self: S, *args: P.args, **options: P.kwargs) -> R:
        with self.spending():
            return await method(self, *args, **options)

    return within


MAX_ASKS = 3
"""A blank is asked for once more where one field is wrong, and once more where nothing is said to be there."""
MAX_READ_TOKENS = (MAX_SOURCE + 8_000) // 2
"""The most tokens that a request to fill a blank has: two characters each, with its instruction and form."""


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The most that the models can take in a run of a plan. `money` is None if the price of one is not known."""

    calls: int
    tokens: int
    money: float | None
    models: tuple[str, ...]
    unpriced: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "tokens": self.tokens,
            "money": self.money,
            "models": list(self.models),
            "unpriced": list(self.unpriced),
        }


def worst_case(report: Report, models: Sequence[str], prices: Prices) -> WorstCase:
    """What the check's bound on model calls comes to: every call at its longest, by the dearest of the models."""
    calls = report.cost.model_calls.most * MAX_ASKS
    found = {model: prices.of(model) for model in models}
    unpriced = tuple(model for model, price in found.items() if price is None)
    dearest = max(
        (price.worst_case(MAX_READ_TOKENS, MAX_OUTPUT_TOKENS) for price in found.values() if price is not None),
        default=0.0,
    )
    money = None if unpriced and calls else calls * dearest
    return WorstCase(calls, calls * (MAX_READ_TOKENS + MAX_OUTPUT_TOKENS), money, tuple(models), unpriced)


class AgentWiring:
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
        limits: PlanLimits | None = None,
        now: Callable[[], datetime] = datetime.now,
        listener: Listener | None = None,
        budgets: Budgets | None = None,
        prices: Prices | None = None,
    ) -> None:
        from bicameral.config import Config, budgets_of, open_policy, open_prices

        self.config = config or Config.defaults()
        self.registry = _tool_registry(tools, self.config)
        self._models, cascade = _model_pair(self.config, privileged, quarantined, cascade)
        self._stages = [Chambers(each, self._models.quarantined).privileged for each in cascade.values()]
        self.policy = open_policy(self.config, self.registry) if policy is None else policy
        self._journal = journal
        self.budgets = budgets_of(self.config) if budgets is None else budgets
        self.prices = open_prices(self.config) if prices is None else prices
        self._now = now
        self.ledger = Ledger()
        self._listener = listener
        self._limits = limits or self.config.plan_limits
        self._wire_models(cascade, executor, cache)

    def _wire_models(
        self, cascade: Mapping[str, Provider], executor: Executor | None, cache: MutableMapping[str, str] | None
    ) -> None:
        """Who understands requests, who plans, and who fills blanks: each with the model it works with."""
        from bicameral.config import open_cache

        cache = open_cache(self.config) if cache is None else cache
        limits, privileged = self.config.limits, self._models.privileged
        # A model that the configuration names for this is asked, cascade or not.
        first = [] if "echo" in self.config.llm.model_roles else self._stages
        asked: dict[str, Any] = {"listener": self._on_model_call, "timeout": limits.model_timeout}
        kept: dict[str, Any] = {"cache": cache, "project": self.config.project}
        self._echo = Echo(echo_provider(privileged, first), **kept, **asked)
        self._delta = build_planner(privileged, cascade, limits=self._limits, repairs=limits.repairs, **kept, **asked)
        self._executor = executor or Extractor(self._models.quarantined, **asked)

    @classmethod
    def from_config(cls, config: Config | None = None, **options: Any) -> Self:
        """The agent that `bicameral.toml` describes, with its journal."""
        from bicameral.config import Config, open_journal

        config = config or Config.load()
        return cls(config=config, journal=open_journal(config), **options)

    def spending(self) -> AbstractContextManager[Meter]:
        """What the agent may spend on what is done inside: without this, each call of a method has a budget of its own.

        Example:
            >>> with agent.spending() as meter:
            ...     planned = await agent.plan(request)
            ...     outcome = await agent.run(planned)
            >>> meter.usage.money
        """
        return open_budget(self.budgets, self.prices)

    @property
    def executor(self) -> Executor:
        """Whoever fills blanks."""
        return self._executor

    def worst_case(self, report: Report) -> WorstCase:
        """The most that the models can take in a run of a plan, from what the check found out about it."""
        return worst_case(report, self._models.quarantined.models, self.prices)

    def architecture(self, name: str = "agent") -> dict[str, Any]:
        """The architecture of this agent, as `bicameral lint` and `bicameral estimate` read it, under this name.

        Example:
            >>> lint(stack_of(agent)).of("error")
        """
        from bicameral.agent._architecture import describe_architecture

        models = {"privileged": self._models.privileged.name, "quarantined": self._models.quarantined.name}
        return describe_architecture(self, journal=self._journal is not None, models=models, name=name)

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

    def _on_model_call(self, call: ModelCall) -> None:
        self.ledger.add_reply(call)
        if self._listener is not None:
            self._listener(call)


def _tool_registry(tools: Registry | Iterable[Tool] | None, config: Config) -> Registry:
    from bicameral.config import open_registry

    if tools is None:
        return open_registry(config)
    return tools if isinstance(tools, Registry) else Registry(tools)


def _model_pair(
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
