"""Delta: an intent and a registry become a plan that passes the check, or a clear word that there is none."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass

from bicameral.errors import BicameralError, PlanError
from bicameral.intent import Intent
from bicameral.models import Provider
from bicameral.plans import Call, Limits, Plan, Report, check, parse, walk
from bicameral.sessions import Listener, Session
from bicameral.tools import Registry

from ._against import Mismatch, against_intent, without_unasked
from ._decode import Draft, decode_freely, decode_typed
from ._examples import examples
from ._named import named_in
from ._prompt import VERSION, adapter_setup, ask, repair, setup
from ._relevance import nearest_tools, relevant_examples, relevant_tools

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


@dataclass(frozen=True, slots=True)
class _Attempt:
    code: str
    plan: Plan | None
    report: Report | None
    mismatches: tuple[Mismatch, ...]
    problems: tuple[str, ...]
    wrong_line: int | None = None

    @property
    def usable(self) -> bool:
        return self.plan is not None and not any(mismatch.severe for mismatch in self.mismatches)


class Delta:
    """Writes plans at temperature 0: the same intent, registry and model give the same bytes.

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
    ) -> None:
        self._provider = provider
        self._limits = limits or Limits()
        self._cache = cache
        self._listener = listener
        self._timeout = timeout
        self._repairs = repairs

    async def compile(
        self, intent: Intent, registry: Registry, *, fresh: bool = False, watch: Callable[[str], None] | None = None
    ) -> Compiled:
        """The plan for an intent; a PlanError `plan.none` says why there is none and names the nearest tools."""
        started = time.perf_counter()
        key = self._key(intent, registry)
        plan = None if fresh else self._remembered(key)
        report = check(plan, registry, limits=self._limits) if plan is not None else None
        if plan is not None and report is not None and report.ok:
            mismatches = tuple(against_intent(plan, intent, registry))
            return Compiled(plan, report, mismatches, 0, True, time.perf_counter() - started)
        attempt, repairs = await self._attempts(intent, registry, watch)
        if attempt.plan is None or attempt.report is None or not attempt.usable:
            raise self._none(intent, registry, attempt)
        if self._cache is not None:
            self._cache[key] = attempt.plan.to_json()
        seconds = time.perf_counter() - started
        return Compiled(attempt.plan, attempt.report, attempt.mismatches, repairs, False, seconds)

    def _remembered(self, key: str) -> Plan | None:
        """The plan that was written for this before; an entry that cannot be read is as good as none."""
        known = self._cache.get(key) if self._cache is not None else None
        try:
            return Plan.model_validate_json(known) if known is not None else None
        except ValueError:
            return None

    async def _attempts(
        self, intent: Intent, registry: Registry, watch: Callable[[str], None] | None
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
        best = await self._attempt(session, request, intent, chosen, watch)
        for count in range(1, self._repairs + 1):
            if not best.problems:
                return best, count - 1
            mended = await self._mended(best, session, request, intent, chosen, watch)
            if mended.code == best.code:
                return best, count
            if (not mended.usable, len(mended.problems)) <= (not best.usable, len(best.problems)):
                best = mended
        return best, self._repairs

    async def _mended(
        self,
        best: _Attempt,
        session: Session,
        request: str,
        intent: Intent,
        registry: Registry,
        watch: Callable[[str], None] | None,
    ) -> _Attempt:
        """Another attempt: from the statement that is wrong, without its tool, or else anew with the problems told."""
        if self._provider.grammars and best.wrong_line is not None:
            lines = best.code.splitlines(keepends=True)
            wrong = lines[best.wrong_line - 1]
            avoid = frozenset(name for name in registry.names if f"{name}(" in wrong)
            if avoid:
                after = "".join(lines[: best.wrong_line - 1])
                draft = await decode_typed(
                    session, request, registry, watch, named=named_in(intent.request), after=after, avoid=avoid
                )
                return self._judged(draft, intent, registry)
        again = f"{request}\n\n{repair(best.code, best.problems)}"
        return await self._attempt(session, again, intent, registry, watch)

    async def _attempt(
        self,
        session: Session,
        request: str,
        intent: Intent,
        registry: Registry,
        watch: Callable[[str], None] | None,
    ) -> _Attempt:
        if self._provider.grammars:
            draft = await decode_typed(session, request, registry, watch, named=named_in(intent.request))
        else:
            draft = await decode_freely(session, request, watch)
        return self._judged(draft, intent, registry)

    def _judged(self, draft: Draft, intent: Intent, registry: Registry) -> _Attempt:
        if draft.problem is not None:
            return _Attempt(draft.code, None, None, (), (draft.problem,))
        try:
            parsed = parse(draft.code, registry)
        except PlanError as error:
            return _Attempt(draft.code, None, None, (), (str(error),))
        written = parsed.plan.model_copy(update={"goal": intent.request})
        plan = without_unasked(written, intent, registry)
        report = check(plan, registry, places=parsed.places if plan == written else None, limits=self._limits)
        if not report.ok:
            first = report.errors[0].place
            problems = tuple(str(finding) for finding in report.errors)
            return _Attempt(draft.code, None, report, (), problems, first.line if first else None)
        mismatches = tuple(against_intent(plan, intent, registry))
        problems = [*(each.message for each in mismatches), *_unused(plan, report, registry)]
        wrong = next((each.path for each in mismatches if each.path is not None), None)
        place = parsed.places.get(wrong) if wrong is not None and plan == written else None
        return _Attempt(draft.code, plan, report, mismatches, tuple(problems), place.line if place else None)

    def _none(self, intent: Intent, registry: Registry, attempt: _Attempt) -> BicameralError:
        near = ", ".join(nearest_tools(intent.request, registry)) or "none comes near"
        reason = attempt.problems[0] if attempt.problems else "the model wrote nothing usable"
        return PlanError(
            "plan.none",
            f"no plan was found that serves the request: {reason}",
            fix=f"Say it in other words or in smaller steps. Nearest tools: {near}.",
        )

    def _key(self, intent: Intent, registry: Registry) -> str:
        """What a plan depends on: the intent, the tools, the model and the prompt with its examples."""
        shown = self._provider.adapters.get(ADAPTER) or hashlib.sha256(repr(examples()).encode()).hexdigest()
        parts = ["delta", VERSION, intent.to_json(), registry.fingerprint, self._provider.name, shown]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _unused(plan: Plan, report: Report, registry: Registry) -> list[str]:
    """Results that were asked for and then forgotten: a sign that a step is missing. What changes the world may be."""
    steps = dict(walk(plan.steps))
    forgotten = [finding for finding in report.findings if finding.code == "plan.unused"]
    return [f"{finding.message}." for finding in forgotten if not _changes(steps[finding.path], registry)]


def _changes(step: object, registry: Registry) -> bool:
    return isinstance(step, Call) and registry[step.tool].changes
