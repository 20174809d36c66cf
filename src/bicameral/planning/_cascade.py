"""The cascade of planners: a small model writes the plan, and a larger one only if there is a reason to doubt it.

A plan is doubtful if the planner refused before it, if it had to be repaired, does not match its intent, leaves words
of the request out, or if a token that decides what the plan does had a low probability. Names of variables and texts of
sentences are left out: a low probability there only means that there are several good ways to write them.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal, Protocol, cast

from bicameral.errors import BicameralError, ModelError
from bicameral.models import Provider, ReplyToken, Route
from bicameral.planning._compiled_plan import CompiledPlan
from bicameral.planning._delta import Delta
from bicameral.planning._intent_document import Intent
from bicameral.planning._omissions import find_omissions
from bicameral.planning._rounds import EarlierRounds
from bicameral.routing import RouteTag, call_context, common_side
from bicameral.sessions import require_privileged
from bicameral.text import lazy_pattern
from bicameral.tools import Registry

_ASSIGNED_NAME = lazy_pattern(r"^ *(?:for )?(\w+)(?= \+?= | in )", re.MULTILINE)
_STRING_LITERAL = lazy_pattern(r'"(?:[^"\\\n]|\\.)*"|' r"'(?:[^'\\\n]|\\.)*'")


def weakest_token(tokens: Sequence[ReplyToken]) -> ReplyToken | None:
    """The deciding token with the lowest probability; None if there is none or the provider reports none."""
    return min(deciding_tokens(tokens), key=lambda token: token.probability, default=None)


def deciding_tokens(tokens: Sequence[ReplyToken]) -> Iterator[ReplyToken]:
    """The tokens that decide what a plan does: all but names of variables and texts of sentences."""
    text = "".join(token.text for token in tokens)
    free = [match.span(1) for match in _ASSIGNED_NAME.finditer(text)]
    free += [match.span() for match in _STRING_LITERAL.finditer(text) if " " in match[0]]
    ends = accumulate(len(token.text) for token in tokens)
    for token, end in zip(tokens, ends, strict=True):
        start = end - len(token.text)
        if not any(first <= start and end <= last for first, last in free):
            yield token


MIN_CONFIDENCE = 0.65
"""The least probability of a deciding token in a plan without doubt."""

DoubtKind = Literal[
    "refused-before", "repaired", "mismatch", "left-out", "unsure", "unused-mention", "unserved-constraint"
]


@dataclass(frozen=True, slots=True)
class PlanDoubt:
    """A reason to ask a larger model, or to draw several plans.

    It contains no untrusted text: plans are written before any is read.
    """

    kind: DoubtKind
    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class DoubtCriteria:
    """What makes a plan doubtful: repairs, mismatches with its intent, omissions, or a token less likely than `sure`.

    Without probabilities from the provider the other criteria decide.

    Example:
        >>> DoubtCriteria(sure=0.3).find_doubts(compiled, intent, registry)
        ()
    """

    sure: float = MIN_CONFIDENCE

    def find_doubts(self, compiled: CompiledPlan, intent: Intent, registry: Registry) -> tuple[PlanDoubt, ...]:
        """All doubts, the gravest kind first; empty if the plan may be used."""
        return tuple(self._iter_doubts(compiled, intent, registry))

    def _iter_doubts(self, compiled: CompiledPlan, intent: Intent, registry: Registry) -> Iterator[PlanDoubt]:
        if compiled.overridden is not None:
            yield PlanDoubt("refused-before", str(compiled.overridden))
        if compiled.repairs:
            yield PlanDoubt("repaired", f"the plan had to be mended ({compiled.repairs})")
        for mismatch in compiled.mismatches:
            yield PlanDoubt("mismatch", f"{mismatch.message} [{mismatch.code}]")
        if compiled.looks is None:
            for sentence in find_omissions(compiled.plan, intent, registry):
                yield PlanDoubt("left-out", sentence)
        weak = weakest_token(compiled.confidence)
        if weak is not None and weak.probability < self.sure:
            yield PlanDoubt("unsure", f"the model was not sure of {weak.text.strip()!r} ({weak.probability:.2f})")


ROUTED_BY = "cascade"
ROUTE_CACHE_FORM = "route-cache/1"
"""The format of a cache entry with the route of a plan."""
_NO_PLAN_CODES = ("plan.none", "plan.unasked-effect", "models.prompt-too-long")
"""Errors after which a larger model is asked. A refusal is not among them: it is an answer."""


class Planner(Protocol):
    """Turns an intent into a plan: one model, or several in a cascade."""

    async def compile(
        self,
        intent: Intent,
        registry: Registry,
        *,
        fresh: bool = False,
        watch: Callable[[str], None] | None = None,
        earlier: EarlierRounds | None = None,
    ) -> CompiledPlan: ...


class PlanCascade:
    """Asks models, the smallest first, until one writes a plan without doubts; the plan of the last is used as it is.

    The `route` of a plan, and of every reply of a larger model, says which model wrote it and why those before did not.

    Args:
        stages: Providers of the privileged chamber by alias, the smallest model first.
        doubts: The criteria by which a plan is doubtful.
        cache: Plans and routes of earlier requests.
        options: Further arguments of `Delta`.

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
        doubts: DoubtCriteria | None = None,
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
        common_side(list(stages.values()))
        self._stages = [(alias, require_privileged(provider)) for alias, provider in stages.items()]
        self._doubts = doubts or DoubtCriteria()
        self._cache = cache
        self._options = options

    async def compile(
        self,
        intent: Intent,
        registry: Registry,
        *,
        fresh: bool = False,
        watch: Callable[[str], None] | None = None,
        earlier: EarlierRounds | None = None,
    ) -> CompiledPlan:
        """The first plan without doubts, or that of the last model; if it has none, its error, as from `Delta`."""
        started = time.perf_counter()
        key = self._cache_key(intent, registry, earlier)
        route = None if fresh or key is None else self._load_route(key)
        if route is not None:
            delta = self._stage_planner(self._stage_index(route.alias), route)
            known = await delta.compile(intent, registry, watch=watch, earlier=earlier)
            return replace(known, route=route, seconds=time.perf_counter() - started)
        compiled = await self._plan_from(0, (), intent, registry, watch, earlier, fresh=fresh)
        if self._cache is not None and key is not None and compiled.route is not None:
            self._cache[key] = json.dumps(compiled.route.to_json() | {"form": ROUTE_CACHE_FORM, "key": key})
        return replace(compiled, seconds=time.perf_counter() - started)

    def planner_for(self, route: Route | None) -> Delta:
        """The planner of the stage that wrote a plan; the last one if that is not known."""
        known = route is not None and route.alias in [alias for alias, _ in self._stages]
        place = self._stage_index(route.alias) if route is not None and known else len(self._stages) - 1
        return self._stage_planner(place, route or _NO_ROUTE)

    def can_escalate(self, route: Route | None) -> bool:
        """Whether there is a larger model than the one that wrote a plan."""
        return route is not None and route.by == ROUTED_BY and route.alias != self._stages[-1][0]

    async def escalate(self, route: Route, reason: str, intent: Intent, registry: Registry) -> CompiledPlan:
        """A plan of the next larger model, after the one on this route turned out not to work.

        The choice is not cached: untrusted text can make a run fail, and must not decide which plan is used the next
        time.
        """
        attempts = (*route.attempts, (route.alias, reason))
        return await self._plan_from(
            self._stage_index(route.alias) + 1, attempts, intent, registry, None, None, fresh=False
        )

    async def _plan_from(
        self,
        first: int,
        attempts: tuple[tuple[str, str], ...],
        intent: Intent,
        registry: Registry,
        watch: Callable[[str], None] | None,
        earlier: EarlierRounds | None,
        *,
        fresh: bool,
    ) -> CompiledPlan:
        for place in range(first, len(self._stages)):
            alias, last = self._stages[place][0], place == len(self._stages) - 1
            route = Route(alias, ROUTED_BY, "escalated" if attempts else "asked first", attempts=attempts)
            # A cached plan has no probabilities, so a plan that may be doubted is written anew.
            anew = fresh or not last
            try:
                with call_context(failures=len(attempts)):
                    compiled = await self._stage_planner(place, route).compile(
                        intent, registry, fresh=anew, watch=watch, earlier=earlier
                    )
            except BicameralError as error:
                if last or error.code not in _NO_PLAN_CODES:
                    raise
                reason = f"{error.message} [{error.code}]"
            else:
                found = () if last else self._doubts.find_doubts(compiled, intent, registry)
                if not found:
                    return replace(compiled, route=route)
                reason = "; ".join(map(str, found))
            attempts = (*attempts, (alias, reason))
            if watch is not None:
                watch(f"# {alias}: {reason}")
        raise AssertionError("the last model's plan or error is taken")

    def _stage_planner(self, place: int, route: Route) -> Delta:
        provider = RouteTag(self._stages[place][1], route)
        return Delta(provider, cache=self._cache, confidence=place < len(self._stages) - 1, **self._options)

    def _stage_index(self, alias: str) -> int:
        return [each for each, _ in self._stages].index(alias)

    def _load_route(self, key: str) -> Route | None:
        """The cached route of a plan; None if there is no valid entry."""
        known = self._cache.get(key) if self._cache is not None else None
        try:
            found = cast("dict[str, Any]", json.loads(known or ""))
            if (found["form"], found["key"]) != (ROUTE_CACHE_FORM, key):
                return None
            attempts = tuple((str(alias), str(reason)) for alias, reason in found.get("attempts", ()))
            route = Route(str(found["alias"]), ROUTED_BY, str(found["why"]), attempts=attempts)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
        return route if route.alias in [alias for alias, _ in self._stages] else None

    def _cache_key(self, intent: Intent, registry: Registry, earlier: EarlierRounds | None) -> str | None:
        """A hash over the keys of each model's plan and the criteria of doubt; None if a plan has no key."""
        plans = [
            self._stage_planner(place, _NO_ROUTE).cache_key(intent, registry, earlier)
            for place in range(len(self._stages))
        ]
        if None in plans:
            return None
        parts = [ROUTED_BY, repr(self._doubts), [alias for alias, _ in self._stages], plans]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


_NO_ROUTE = Route("", ROUTED_BY, "")
