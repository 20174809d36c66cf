"""Wiring of an agent: its parts from the caller's arguments and the configuration, its budget, and the worst case.

Budgets and prices are in force around everything an agent does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from bicameral.boundary import MAX_OUTPUT_TOKENS, MAX_SOURCE, MAX_TRIES, Executor, executor_facts
from bicameral.limits import QUARANTINED_ROLES, Budgets, Ledger, Meter, ModelCall, Prices, budget_scope, use_prices
from bicameral.models import Provider
from bicameral.planning import CompiledPlan, Delta, DrawSettings, Echo, Intent, PlanCascade, draw_plans
from bicameral.plans import PlanLimits, Report
from bicameral.policy import Policy
from bicameral.routing import Cascade, Router, call_context, check_finished, resolve_model
from bicameral.runs import Asker, Journal
from bicameral.sessions import Chambers, Listener, Quarantined
from bicameral.tools import AbsentTool, Folders, Registry, Surroundings, Tool

if TYPE_CHECKING:
    from bicameral.agent._plan_choice import PlanChoice
    from bicameral.binding import CandidateSource, Encoder, PlanBinder
    from bicameral.config import Config


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="AgentWiring")


def within_budget(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Apply the budgets to what a method does. A method that calls another shares its budget with it."""

    @wraps(method)
    async def within(self: S, *args: P.args, **options: P.kwargs) -> R:
        with self.spending():
            return await method(self, *args, **options)

    return within


CONTACTS = ("contacts.csv", "contacts.vcf")
"""Where people are looked for if nothing is configured."""
MAX_READ_TOKENS = (MAX_SOURCE + 8_000) // 2
"""The most tokens of an extraction's request: two characters each, with its instruction and form."""


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The most that the models can use in a run of a plan. `money` is None if the price of one is not known."""

    calls: int
    tokens: int
    money: float | None
    models: tuple[str, ...]
    unpriced: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"models": list(self.models), "unpriced": list(self.unpriced)}


def worst_case(report: Report, models: Sequence[str], prices: Prices, calls_each: int = MAX_TRIES) -> WorstCase:
    """The worst case by the check's bound on extractions: every call at its longest, with the most expensive model.

    `calls_each` is the most model calls that one extraction takes.
    """
    calls = report.cost.model_calls.most * calls_each
    found = {model: prices.of(model) for model in models}
    unpriced = tuple(model for model, price in found.items() if price is None)
    dearest = max(
        (price.worst_case(MAX_READ_TOKENS, MAX_OUTPUT_TOKENS) for price in found.values() if price is not None),
        default=0.0,
    )
    money = None if unpriced and calls else calls * dearest
    return WorstCase(calls, calls * (MAX_READ_TOKENS + MAX_OUTPUT_TOKENS), money, tuple(models), unpriced)


class AgentWiring:
    """The parts of an agent, and closing them."""

    def __init__(
        self,
        tools: Registry | Iterable[Tool | Callable[..., Any]] | None = None,
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
        candidates: CandidateSource | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        from bicameral.config import (
            Config,
            absent_tools,
            budgets_of,
            mark_executor_tools,
            open_policy,
            open_prices,
            open_registry,
            settings_origin,
            surroundings_of,
        )

        self.config = config or Config.defaults()
        self._folders: Folders | None = None
        self._surroundings: Surroundings | None = None
        self.absent_tools: tuple[AbsentTool, ...] = ()
        """The configured tools that lack a setting: plans can name them, and the planner is not told of them."""
        if tools is None:
            self._surroundings = surroundings = surroundings_of(self.config)
            self._folders = surroundings.folders
            self.registry = open_registry(self.config, surroundings)
            self.absent_tools = absent_tools(self.config, self.registry, surroundings)
        else:
            self.registry = tools if isinstance(tools, Registry) else Registry(tools)
            if executor is None and self.config.quarantine.reads:
                self.registry = mark_executor_tools(self.config, self.registry, settings_origin(self.config).locate)
        self._told: tuple[Registry, Registry] | None = None
        self._models, cascade = _model_pair(self.config, privileged, quarantined, cascade)
        self._stages = [Chambers(each, self._models.quarantined).privileged for each in cascade.values()]
        self.policy = open_policy(self.config, self.registry) if policy is None else policy
        self._journal = journal
        self.budgets = budgets_of(self.config) if budgets is None else budgets
        self.prices = open_prices(self.config) if prices is None else prices
        self._now = now
        self._candidates = candidates
        self._encoder = encoder
        self.ledger = Ledger()
        self._listener = listener
        self._limits = limits or self.config.plan_limits
        self._wire_models(cascade, executor, cache)

    def _wire_models(
        self, cascade: Mapping[str, Provider], executor: Executor | None, cache: MutableMapping[str, str] | None
    ) -> None:
        """Connect Echo, Delta and the executor with their models."""
        from bicameral.config import open_cache, open_executor

        cache = open_cache(self.config) if cache is None else cache
        limits, privileged = self.config.limits, self._models.privileged
        # A model that is configured for Echo is used even if there is a cascade.
        stages = [] if "echo" in self.config.llm.model_roles else self._stages
        calls: dict[str, Any] = {"listener": self._on_model_call, "timeout": limits.model_timeout}
        caching: dict[str, Any] = {"cache": cache, "project": self.config.project}
        # Of a cascade the first model is asked, and a larger one only if its reply is cut off or does not fit.
        echo = Cascade(*stages, accept=check_finished) if stages else _provider_for_role(privileged, "echo")
        self._echo = Echo(echo, temperature=self.config.planning.echo_temperature, **caching, **calls)
        planning: dict[str, Any] = {"limits": self._limits, "repairs": limits.repairs, **caching, **calls}
        # What the check before a run takes from the settings holds while planning, too.
        planning["own"] = self.policy.me
        if cascade:
            self._delta = PlanCascade(cascade, **planning)
        else:
            # The probabilities of tokens are a reason to draw more plans; where none are drawn nobody asks for them.
            confidence = self.config.planning.plans > 0
            self._delta = Delta(_provider_for_role(privileged, "delta"), confidence=confidence, **planning)
        self._executor_models: tuple[Quarantined, ...] = ()
        if executor is None:
            opened = open_executor(self.config, self._models.quarantined, privileged=privileged, now=self._now, **calls)
            executor, self._executor_models = opened.executor, opened.models
        self._executor = executor

    @property
    def _contacts(self) -> Sequence[str]:
        """The files in which the user keeps people, as `find` is told."""
        return self.config.toolbox.get("find", {}).get("contacts", CONTACTS)

    def _plan_binder(self, asker: Asker | None) -> PlanBinder:
        """A binder for one plan: all its references see the same world."""
        from bicameral.binding import (
            Binder,
            Chooser,
            LocalEncoder,
            ModelChooser,
            PersonChooser,
            PlanBinder,
            WorldSource,
        )
        from bicameral.config import model_store

        # One for all plans of this agent: its weights are loaded once, when no name has the words of a mention.
        encoder = self._encoder = self._encoder or LocalEncoder(model_store(self.config))
        choosers: list[Chooser] = [ModelChooser(self._executor), *([] if asker is None else [PersonChooser(asker)])]
        source = self._candidates or WorldSource(
            self.registry, folders=self._folders, contacts=self._contacts, today=self._now().date()
        )
        return PlanBinder(self.registry, Binder(source, encoder, choosers))

    async def _choose_plan(
        self, first: CompiledPlan, intent: Intent, binder: PlanBinder, asker: Asker | None, plans: int | None
    ) -> PlanChoice:
        """The first plan, or a better one of several if it is doubtful."""
        from bicameral.agent._plan_choice import PlanChoice, PlanChooser

        configured = self.config.planning
        settings = DrawSettings(configured.plans if plans is None else plans, configured.temperature)
        drawn = await draw_plans(self._planner_of(first), first, intent, self.planning_registry, settings)
        if len(drawn.plans) == 1:
            return PlanChoice(first, "only", drawn)
        # A choice among plans asks neither a model nor the person what words mean.
        rules = binder.without("model", "person")
        chooser = PlanChooser(self.registry, self.policy, self._limits, rules, asker)
        choice = await chooser.choose(drawn, intent)
        # A drawn plan is of the same model as the first, which may have refused before it wrote one.
        compiled = replace(choice.compiled, route=first.route, cached=first.cached, overridden=first.overridden)
        return replace(choice, compiled=compiled)

    def _planner_of(self, compiled: CompiledPlan | None) -> Delta:
        """The planner that wrote a plan; of several the last if there is none."""
        route = None if compiled is None else compiled.route
        return self._delta.planner_for(route) if isinstance(self._delta, PlanCascade) else self._delta

    @classmethod
    def from_config(cls, config: Config | None = None, **options: Any) -> Self:
        """The agent that `bicameral.toml` describes, with its journal."""
        from bicameral.config import Config, open_journal

        config = config or Config.load()
        return cls(config=config, journal=open_journal(config), **options)

    @contextmanager
    def spending(self) -> Generator[Meter]:
        """One budget for all that is done inside; without this, each call of a method has its own.

        A budget that is open already is shared.

        Example:
            >>> with agent.spending() as meter:
            ...     planned = await agent.plan(request)
            ...     outcome = await agent.run(planned)
            >>> meter.usage.money
        """
        with use_prices(self.prices), budget_scope(self.budgets) as meter:
            yield meter

    @property
    def planning_registry(self) -> Registry:
        """The tools that planners and strategies are told of: those of `registry` that are set up."""
        if self._told is None or self._told[0] is not self.registry:
            told = self.registry.without(each.name for each in self.absent_tools)
            self._told = (self.registry, told)
        return self._told[1]

    def resolve_model(self, role: str = "reasoning", *, untrusted: bool = False) -> str:
        """The alias of the model for a role. Nothing is asked.

        Args:
            role: A role, one of the configuration's own (`coding`), or `quarantined`.
            untrusted: Whether the call has read untrusted text: then the quarantined chamber chooses.

        Example:
            >>> agent.resolve_model("planning")
            'powerful'
        """
        untrusted = untrusted or role in QUARANTINED_ROLES
        with call_context(chamber="quarantined" if untrusted else "privileged", trusted=not untrusted):
            return resolve_model(self._models.quarantined if untrusted else self._models.privileged, role)

    @property
    def surroundings(self) -> Surroundings | None:
        """What the configured tools use of the machine; None if the caller brought the tools."""
        return self._surroundings

    @property
    def planner(self) -> Delta:
        """The planner; of several the last."""
        return self._planner_of(None)

    @property
    def today(self) -> date:
        """The day against which days of requests are resolved."""
        return self._now().date()

    @property
    def executor(self) -> Executor:
        """The executor of extractions."""
        return self._executor

    def worst_case(self, report: Report) -> WorstCase:
        """The most that the models can use in a run of a plan, from its check."""
        own = (model for each in self._executor_models for model in each.models)
        models = tuple(dict.fromkeys((*self._models.quarantined.models, *own)))
        return worst_case(report, models, self.prices, executor_facts(self._executor).most_calls)

    def architecture(self, name: str = "agent") -> dict[str, Any]:
        """The architecture of this agent, as `bicameral lint` and `bicameral estimate` read it, under this name.

        Example:
            >>> lint(stack_of(agent)).of("error")
        """
        from bicameral.agent._architecture import describe_architecture

        models = {"privileged": self._models.privileged.name, "quarantined": self._models.quarantined.name}
        return describe_architecture(self, journal=self._journal is not None, models=models, name=name)

    async def aclose(self) -> None:
        """Free the models' memory, end what tools do in the background, and close the journal."""
        if self._surroundings is not None:
            # In a thread: a piece of background work may have to end first, and other runs go on meanwhile.
            await asyncio.to_thread(self._surroundings.close)
        for model in dict.fromkeys([self._models.privileged, *self._stages]):
            await model.aclose()
        for reader in (self._models.quarantined, *self._executor_models):
            await reader.aclose()
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


def _model_pair(
    config: Config,
    privileged: Provider | None,
    quarantined: Provider | Quarantined | None,
    cascade: Mapping[str, Provider] | None,
) -> tuple[Chambers, Mapping[str, Provider]]:
    """The two models, kept apart, and the cascade of the privileged side.

    The configured cascade belongs to the configured privileged model: it does not replace one that is given.
    """
    from bicameral.config import open_models

    if privileged is None or quarantined is None:
        own = open_models(config)
        if cascade is None and privileged is None:
            cascade = own.cascade
        privileged, quarantined = privileged or own.privileged, quarantined or own.quarantined
    return Chambers(privileged, Quarantined(quarantined)), cascade or {}


def _provider_for_role(provider: Provider, role: str) -> Provider:
    """The provider for calls of one role; a router is restricted to the models for that role."""
    return provider.for_role(role) if isinstance(provider, Router) else provider
