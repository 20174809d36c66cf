"""Delta: an intent and a registry become a plan that passes the check, or a clear word that there is none."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, replace
from typing import Any

from bicameral.errors import BicameralError, PlanError
from bicameral.intent import Intent
from bicameral.models import Provider, Route, Token
from bicameral.plans import Call, Limits, Plan, Report, check, parse, walk
from bicameral.sessions import Listener, Session, counted
from bicameral.tools import Registry
from bicameral.types import to_json

from ._against import Mismatch, against_intent, without_unasked
from ._decode import Draft, decode_freely, decode_typed
from ._examples import examples
from ._named import named_in
from ._prompt import VERSION, adapter_setup, ask, repair, setup
from ._relevance import nearest_tools, relevant_examples, relevant_tools
from ._rounds import Code, Earlier, leaving, without_look

REPAIRS = 2
EXAMPLES = 3
ADAPTER = "delta"
"""The job that a provider's model may have been trained for; then it needs no examples."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A plan that passes the check, and how it came about."""

    plan: Plan
    report: Report
    mismatches: tuple[Mismatch, ...]
    repairs: int
    cached: bool
    seconds: float
    looks: tuple[str, ...] | None = None
    """The variables that the plan wants to see before it goes on; None if it answers."""
    confidence: tuple[Token, ...] = ()
    """How sure the model was, token by token, if it was asked and could say."""
    route: Route | None = None
    """Which model wrote it and why that one, where there was a choice."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    code: str
    plan: Plan | None
    report: Report | None
    mismatches: tuple[Mismatch, ...]
    problems: tuple[str, ...]
    wrong_line: int | None = None
    looks: tuple[str, ...] | None = None
    confidence: tuple[Token, ...] = ()

    @property
    def usable(self) -> bool:
        return self.plan is not None and not any(mismatch.severe for mismatch in self.mismatches)


@dataclass(frozen=True, slots=True)
class _Writing:
    """What a plan is written for, and with whom."""

    session: Session
    request: str
    intent: Intent
    registry: Registry
    watch: Callable[[str], None] | None
    earlier: Earlier | None
    confidence: bool = False

    async def typed(self, *, after: str = "", avoid: frozenset[str] = frozenset()) -> Draft:
        return await decode_typed(
            self.session,
            self.request,
            self.registry,
            self.watch,
            named=named_in(self.intent.request),
            after=after,
            avoid=avoid,
            earlier=self.earlier,
            confidence=self.confidence,
        )

    async def freely(self) -> Draft:
        return await decode_freely(self.session, self.request, self.watch, confidence=self.confidence)


class Delta:
    """Writes plans at temperature 0: the same intent, registry and model give the same bytes.

    With `confidence` a plan that is written (not one from the cache) says how sure the model was of it.

    Example:
        >>> compiled = await Delta(provider).compile(intent, registry)
        >>> print(print_plan(compiled.plan, registry))
    """

    def __init__(
        self,
        provider: Provider,
        *,
        limits: Limits | None = None,
        cache: MutableMapping[str, str] | None = None,
        listener: Listener | None = None,
        timeout: float | None = 900.0,
        repairs: int = REPAIRS,
        confidence: bool = False,
    ) -> None:
        self._provider = provider
        self._limits = limits or Limits()
        self._cache = cache
        self._listener = listener
        self._timeout = timeout
        self._repairs = repairs
        self._confidence = confidence

    async def compile(
        self,
        intent: Intent,
        registry: Registry,
        *,
        fresh: bool = False,
        watch: Callable[[str], None] | None = None,
        earlier: Earlier | None = None,
    ) -> Compiled:
        """The plan for an intent; a PlanError `plan.none` says why there is none and names the nearest tools.

        With `earlier` it is a plan in rounds: it goes on from what earlier ones left, and may ask to see a result.
        """
        started = time.perf_counter()
        key = self.key(intent, registry, earlier)
        known = None if fresh else self._remembered(key)
        if known is not None and (report := self._checked(known[0], registry, earlier)).ok:
            plan, looks = known
            apart = against_intent(plan, intent, registry, earlier=earlier, looks=looks is not None)
            return Compiled(plan, report, tuple(apart), 0, True, time.perf_counter() - started, looks)
        with counted() as ledger:
            attempt, repairs = await self._attempts(intent, registry, watch, earlier)
        if attempt.plan is None or attempt.report is None or not attempt.usable:
            raise self._none(intent, registry, attempt)
        # What another model wrote instead is not kept: the next time it could not say so.
        if self._cache is not None and not ledger.degraded:
            self._cache[key] = _kept(attempt.plan, attempt.looks)
        seconds = time.perf_counter() - started
        return Compiled(
            attempt.plan,
            attempt.report,
            attempt.mismatches,
            repairs,
            False,
            seconds,
            attempt.looks,
            attempt.confidence,
        )

    def _checked(self, plan: Plan, registry: Registry, earlier: Earlier | None, **more: Any) -> Report:
        scope = earlier.variables if earlier is not None else None
        return check(plan, registry, limits=self._limits, scope=scope, **more)

    def _remembered(self, key: str) -> tuple[Plan, tuple[str, ...] | None] | None:
        """The plan that was written for this before; an entry that cannot be read is as good as none."""
        known = self._cache.get(key) if self._cache is not None else None
        if known is None:
            return None
        looks, line, text = known.rpartition("\n")
        try:
            return Plan.model_validate_json(text), tuple(looks.split(",")) if line else None
        except ValueError:
            return None

    async def _attempts(
        self,
        intent: Intent,
        registry: Registry,
        watch: Callable[[str], None] | None,
        earlier: Earlier | None,
    ) -> tuple[_Attempt, int]:
        """Write, check, and mend with the checker's own words, a bounded number of times; the best attempt counts."""
        chosen = relevant_tools(intent.request, registry)
        trained = ADAPTER in self._provider.adapters
        near = () if trained else relevant_examples(intent.request, examples().bank, EXAMPLES)
        session = Session(
            "delta",
            self._provider,
            adapter_setup(chosen) if trained else setup(chosen, near),
            max_tokens=700,
            timeout=self._timeout,
            listener=self._listener,
            adapter=ADAPTER if trained else None,
        )
        request = ask(intent, chosen, account=not trained)
        if earlier is not None:
            request = earlier.asked(request)
        writing = _Writing(session, request, intent, chosen, watch, earlier, self._confidence)
        best = await self._attempt(writing)
        for count in range(1, self._repairs + 1):
            if not best.problems:
                return best, count - 1
            mended = await self._mended(best, writing)
            if mended.code == best.code:
                return best, count
            if (not mended.usable, len(mended.problems)) <= (not best.usable, len(best.problems)):
                best = mended
        return best, self._repairs

    async def _mended(self, best: _Attempt, writing: _Writing) -> _Attempt:
        """Another attempt: from the statement that is wrong, without its tool, or else anew with the problems told."""
        if self._provider.grammars and best.wrong_line is not None:
            lines = best.code.splitlines(keepends=True)
            wrong = lines[best.wrong_line - 1]
            avoid = frozenset(name for name in writing.registry.names if f"{name}(" in wrong)
            if avoid:
                after = "".join(lines[: best.wrong_line - 1])
                draft = await writing.typed(after=after, avoid=avoid)
                return self._judged(draft, writing)
        again = f"{writing.request}\n\n{repair(best.code, best.problems)}"
        return await self._attempt(replace(writing, request=again))

    async def _attempt(self, writing: _Writing) -> _Attempt:
        if self._provider.grammars:
            draft = await writing.typed()
        else:
            draft = await writing.freely()
        return self._judged(draft, writing)

    def _judged(self, draft: Draft, writing: _Writing) -> _Attempt:
        intent, registry, earlier = writing.intent, writing.registry, writing.earlier
        if draft.problem is not None:
            return _Attempt(draft.code, None, None, (), (draft.problem,))
        try:
            code = without_look(draft.code) if earlier is not None and earlier.may_look else Code(draft.code)
            parsed = parse(code.text, registry)
        except PlanError as error:
            return _Attempt(draft.code, None, None, (), (str(error),))
        written = parsed.plan.model_copy(update={"goal": intent.request})
        plan = without_unasked(written, intent, registry)
        if code.looks is not None and earlier is not None:
            plan = leaving(plan, code.looks, registry, earlier)
        same = plan.steps[:-1] == written.steps[:-1]
        report = self._checked(plan, registry, earlier, places=parsed.places if same else None)
        if not report.ok:
            first = report.errors[0].place
            problems = tuple(str(finding) for finding in report.errors)
            return _Attempt(draft.code, None, report, (), problems, first.line if first else None)
        looking = code.looks is not None
        mismatches = tuple(against_intent(plan, intent, registry, earlier=earlier, looks=looking))
        problems = [*(each.message for each in mismatches), *_unused(plan, report, registry)]
        wrong = next((each.path for each in mismatches if each.path is not None), None)
        place = parsed.places.get(wrong) if wrong is not None and same else None
        line = place.line if place else None
        return _Attempt(draft.code, plan, report, mismatches, tuple(problems), line, code.looks, draft.confidence)

    def _none(self, intent: Intent, registry: Registry, attempt: _Attempt) -> BicameralError:
        near = ", ".join(nearest_tools(intent.request, registry)) or "none comes near"
        reason = attempt.problems[0] if attempt.problems else "the model wrote nothing usable"
        return PlanError(
            "plan.none",
            f"no plan was found that serves the request: {reason}",
            fix=f"Say it in other words or in smaller steps. Nearest tools: {near}.",
        )

    def key(self, intent: Intent, registry: Registry, earlier: Earlier | None = None) -> str:
        """What a plan depends on: the intent, the tools, the model and the prompt with its examples."""
        shown = self._provider.adapters.get(ADAPTER) or hashlib.sha256(repr(examples()).encode()).hexdigest()
        parts = ["delta", VERSION, intent.to_json(), registry.fingerprint, self._provider.name, shown]
        if earlier is not None:
            types = {name: to_json(type_) for name, type_ in earlier.variables.items()}
            parts += ["rounds", earlier.asked(""), types, sorted(earlier.effects), list(earlier.said)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _kept(plan: Plan, looks: tuple[str, ...] | None) -> str:
    """A plan as the cache holds it: its JSON is one line, and before it is what it looks at."""
    return plan.to_json() if looks is None else f"{','.join(looks)}\n{plan.to_json()}"


def _unused(plan: Plan, report: Report, registry: Registry) -> list[str]:
    """Results that were asked for and then forgotten: a sign that a step is missing. What changes the world may be."""
    steps = dict(walk(plan.steps))
    forgotten = [finding for finding in report.findings if finding.code == "plan.unused"]
    return [f"{finding.message}." for finding in forgotten if not _changes(steps[finding.path], registry)]


def _changes(step: object, registry: Registry) -> bool:
    return isinstance(step, Call) and registry[step.tool].changes
