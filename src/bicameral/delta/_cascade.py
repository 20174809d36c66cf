"""The cascade of planners: a small model writes the plan, and a larger one only if there is a reason to doubt it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any, Protocol, cast

from bicameral.errors import BicameralError, ModelError
from bicameral.intent import Intent
from bicameral.models import Provider, Route
from bicameral.routing import Marked, one_side, situated
from bicameral.sessions import privileged_side
from bicameral.tools import Registry

from ._delta import Compiled, Delta
from ._doubts import Doubts
from ._rounds import Earlier

BY = "cascade"
FORM = "route-cache/1"
"""The form of an entry of the cache that says on which route a plan was found."""
_NO_PLAN = ("plan.none", "models.prompt-too-long")
"""What one model could not do and a larger one may. A refusal is not among it: that is an answer."""


class Planner(Protocol):
    """Whoever turns an intent into a plan: one model, or several in a cascade."""

    async def compile(
        self,
        intent: Intent,
        registry: Registry,
        *,
        fresh: bool = False,
        watch: Callable[[str], None] | None = None,
        earlier: Earlier | None = None,
    ) -> Compiled: ...


class PlanCascade:
    """Asks the models of `stages` (alias and provider, the smallest first) until one's plan gives no reason for doubt.

    The last one's plan is taken as it is. Who wrote a plan, and why those before did not, is in its `route`, and in
    that of every reply of the model that was asked instead. All stages are of the privileged side.

    Example:
        >>> planner = PlanCascade({"fast": small, "main": large})
        >>> compiled = await planner.compile(intent, registry)
        >>> compiled.route
        Route(alias='main', by='cascade', why='escalated', attempts=(('fast', 'the plan had to be mended (1)'),))
    """

    def __init__(
        self,
        stages: Mapping[str, Provider],
        *,
        doubts: Doubts | None = None,
        cache: MutableMapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        if len(stages) < 2:
            raise ModelError(
                "models.bad-setting",
                f"a cascade of {len(stages)} models is none",
                expected="two models or more, the smallest first",
                fix="Name another model, or leave the cascade out.",
            )
        one_side(list(stages.values()))
        self._stages = [(alias, privileged_side(provider)) for alias, provider in stages.items()]
        self._doubts = doubts or Doubts()
        self._cache = cache
        self._options = options

    async def compile(
        self,
        intent: Intent,
        registry: Registry,
        *,
        fresh: bool = False,
        watch: Callable[[str], None] | None = None,
        earlier: Earlier | None = None,
    ) -> Compiled:
        """The first plan that nothing speaks against, or that of the last model; else its error, as from `Delta`."""
        started = time.perf_counter()
        key = self._key(intent, registry, earlier)
        route = None if fresh or key is None else self._remembered(key)
        if route is not None:
            delta = self._delta(self._place(route.alias), route)
            known = await delta.compile(intent, registry, watch=watch, earlier=earlier)
            return replace(known, route=route, seconds=time.perf_counter() - started)
        compiled = await self._from(0, (), intent, registry, watch, earlier, fresh=fresh)
        if self._cache is not None and key is not None and compiled.route is not None:
            self._cache[key] = json.dumps(compiled.route.to_json() | {"form": FORM, "key": key})
        return replace(compiled, seconds=time.perf_counter() - started)

    def can_go_on(self, route: Route | None) -> bool:
        """Whether there is a larger model than the one that wrote a plan."""
        return route is not None and route.by == BY and route.alias != self._stages[-1][0]

    async def go_on(self, route: Route, reason: str, intent: Intent, registry: Registry) -> Compiled:
        """A plan of the next larger model, after the one on this route turned out not to work.

        The choice is not remembered: what happens when a plan runs may be a stranger's doing, and must not decide
        which plan is taken the next time.
        """
        attempts = (*route.attempts, (route.alias, reason))
        return await self._from(self._place(route.alias) + 1, attempts, intent, registry, None, None, fresh=False)

    async def _from(
        self,
        first: int,
        attempts: tuple[tuple[str, str], ...],
        intent: Intent,
        registry: Registry,
        watch: Callable[[str], None] | None,
        earlier: Earlier | None,
        *,
        fresh: bool,
    ) -> Compiled:
        for place in range(first, len(self._stages)):
            alias, last = self._stages[place][0], place == len(self._stages) - 1
            route = Route(alias, BY, _why(attempts), attempts=attempts)
            # What is in the cache does not say how sure the model was, so a plan that may be doubted is written anew.
            anew = fresh or not last
            try:
                with situated(failures=len(attempts)):
                    compiled = await self._delta(place, route).compile(
                        intent, registry, fresh=anew, watch=watch, earlier=earlier
                    )
            except BicameralError as error:
                if last or error.code not in _NO_PLAN:
                    raise
                reason = f"{error.message} [{error.code}]"
            else:
                found = () if last else self._doubts.about(compiled, intent, registry)
                if not found:
                    return replace(compiled, route=route)
                reason = "; ".join(map(str, found))
            attempts = (*attempts, (alias, reason))
            if watch is not None:
                watch(f"# {alias}: {reason}")
        raise AssertionError("the last model's plan or error is taken")

    def _delta(self, place: int, route: Route) -> Delta:
        provider = Marked(self._stages[place][1], route)
        return Delta(provider, cache=self._cache, confidence=place < len(self._stages) - 1, **self._options)

    def _place(self, alias: str) -> int:
        return [each for each, _ in self._stages].index(alias)

    def _remembered(self, key: str) -> Route | None:
        """On which route the plan for this was found before; an entry that cannot be read is as good as none."""
        known = self._cache.get(key) if self._cache is not None else None
        try:
            found = cast("dict[str, Any]", json.loads(known or ""))
            if (found["form"], found["key"]) != (FORM, key):
                return None
            attempts = tuple((str(alias), str(reason)) for alias, reason in found.get("attempts", ()))
            route = Route(str(found["alias"]), BY, str(found["why"]), attempts=attempts)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
        return route if route.alias in [alias for alias, _ in self._stages] else None

    def _key(self, intent: Intent, registry: Registry, earlier: Earlier | None) -> str | None:
        """What the choice depends on: what each model's plan does, and what makes it doubtful; None like a plan's."""
        plans = [self._delta(place, _NO_ROUTE).key(intent, registry, earlier) for place in range(len(self._stages))]
        if None in plans:
            return None
        parts = [BY, repr(self._doubts), [alias for alias, _ in self._stages], plans]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


_NO_ROUTE = Route("", BY, "")


def _why(attempts: tuple[tuple[str, str], ...]) -> str:
    return "escalated" if attempts else "asked first"
