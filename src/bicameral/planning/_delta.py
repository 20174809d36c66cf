"""Delta: an intent and a registry become a plan that passes the check, or an error that says why there is none."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

from bicameral.errors import BicameralError, Place, PlanError
from bicameral.limits import open_ledger
from bicameral.models import Provider
from bicameral.planning._compiled_plan import (
    PLAN_CACHE_FORM,
    CompiledPlan,
    PlanAttempt,
    PlanCheck,
    parse_entry,
    render_entry,
)
from bicameral.planning._decode import (
    PREFILL,
    PROMPT_VERSION,
    STATEMENT_TOKENS,
    PlanDraft,
    Sampling,
    adapter_setup_messages,
    prompt_text,
    repair_text,
    setup_messages,
)
from bicameral.planning._failed_plans import FailedPlan, NoPlanError, PlanFault
from bicameral.planning._intent_check import (
    UnaskedEffectError,
    check_against_intent,
    drop_unasked_steps,
    dropped_mismatches,
    dropped_tools,
)
from bicameral.planning._intent_document import Intent
from bicameral.planning._matching import PlanExample, load_examples, nearest_tools, relevant_examples, relevant_tools
from bicameral.planning._neutral_names import NeutralNames
from bicameral.planning._planning_job import PlanningJob
from bicameral.planning._quotations import restore_quotations
from bicameral.planning._refusals import refusal_error, refute_refusal
from bicameral.planning._rounds import EarlierRounds, PlannerCode, replace_look, with_left_variables
from bicameral.plans import Call, Plan, PlanLimits, Report, check, parse, plan_references, walk
from bicameral.sessions import Listener, Session
from bicameral.tools import Effect, Registry
from bicameral.types import Type

MAX_REPAIRS = 2
EXAMPLE_COUNT = 3
PLAN_TOKENS = 700
ADAPTER_JOB = "delta"
"""The job of the adapter for writing plans; a model with it needs no examples."""


class Delta:
    """Writes plans at temperature 0: the same intent, registry and model give the same bytes.

    Args:
        limits: The limits that plans are checked against.
        cache: Plans of earlier requests. An entry is parsed and checked like a plan that was just written.
        repairs: How often a plan that does not pass the check may be repaired.
        confidence: Whether new plans report the probability of each token.
        project: Part of the cache key: a plan of one project is never used in another.
        own: Values of the user's settings that may direct effects, such as the own addresses (`policy.me`).

    Example:
        >>> compiled = await Delta(provider).compile(intent, registry)
        >>> print(print_plan(compiled.plan, registry))
    """

    def __init__(
        self,
        provider: Provider,
        *,
        limits: PlanLimits | None = None,
        cache: MutableMapping[str, str] | None = None,
        listener: Listener | None = None,
        timeout: float | None = 900.0,
        repairs: int = MAX_REPAIRS,
        confidence: bool = False,
        project: str = "",
        own: Collection[str] = (),
    ) -> None:
        self._provider = provider
        self._limits = limits or PlanLimits()
        self._cache = cache
        self._listener = listener
        self._timeout = timeout
        self._repairs = repairs
        self._confidence = confidence
        self._project = project
        self._own = frozenset(own)

    async def compile(
        self,
        intent: Intent,
        registry: Registry,
        *,
        fresh: bool = False,
        watch: Callable[[str], None] | None = None,
        earlier: EarlierRounds | None = None,
        without: frozenset[str] = frozenset(),
        begin: str = "",
    ) -> CompiledPlan:
        """The plan for an intent; a PlanError `plan.none` says why there is none and names the nearest tools.

        With `earlier` it is a plan in rounds: it continues with the variables of earlier plans, and may ask to see a
        result.

        Args:
            intent: What is wanted.
            registry: The tools.
            fresh: Do not use a cached plan.
            watch: Called with each statement as it is written.
            earlier: The rounds before this plan.
            without: Tools that the plan must not call, though the prompt may name them.
            begin: The first statements of the plan, for a provider with grammars.
        """
        started = time.perf_counter()
        writing = replace(self._prepare_job(intent, registry, watch, earlier, without), begin=begin)
        key = self._job_key(writing)
        if not fresh and (known := self._load_cached(key, writing)) is not None:
            return replace(known, cached=True, seconds=time.perf_counter() - started)
        with open_ledger() as ledger:
            attempt, repairs = await self._write_and_repair(writing)
            if attempt.refusal is not None and repairs == 0:
                attempt = await self._verify_refusal(attempt, attempt.refusal, writing)
        if attempt.refusal is not None:
            raise refusal_error(attempt.refusal, registry, intent.request)
        if (compiled := attempt.usable) is None and attempt.claims_dropped:
            raise _unasked_error(attempt, registry, attempt.describe(writing.names.to_readable))
        if compiled is None:
            raise self._no_plan_error(writing, registry, attempt)
        # The plan of a substitute model is not cached: an entry could not say that it is one. Neither is a plan that
        # untrusted text influenced, which may have happened only while it was written.
        if self._cache is not None and key is not None and not ledger.degraded and not writing.is_influenced:
            self._cache[key] = render_entry(key, compiled)
        return replace(compiled, repairs=repairs, seconds=time.perf_counter() - started)

    async def draw(self, intent: Intent, registry: Registry, sampling: Sampling) -> CompiledPlan | None:
        """One more plan for an intent, sampled and neither repaired nor cached; None if it may not be used.

        The prompt is that of `compile`, so a provider evaluates none of it again. A plan with errors, or with a severe
        mismatch such as a directing value that nobody gave, may not be used.

        Args:
            sampling: Temperature and seed; the same ones give the same plan.
        """
        writing = replace(self._prepare_job(intent, registry, None, None), sampling=sampling)
        return (await self._attempt(writing)).usable

    def restore(self, draft: Plan, intent: Intent, registry: Registry) -> CompiledPlan | None:
        """A plan from its stored draft, judged like one that was just written; None if it may not be used."""
        # A model cannot write what a reference is bound to, so neither can a store: it would choose value and label.
        if any(each.bound is not None for each in plan_references(draft)):
            return None
        draft = draft.model_copy(update={"goal": intent.request})
        writing = self._prepare_job(intent, registry, None, None)
        return self._judge_plan(draft, None, writing).usable

    def has_plan(self, intent: Intent, registry: Registry) -> bool:
        """Whether a plan for an intent is in the cache and passes the check; no model is asked."""
        writing = self._prepare_job(intent, registry, None, None)
        return self._load_cached(self._job_key(writing), writing) is not None

    @property
    def cache(self) -> MutableMapping[str, str] | None:
        """Where plans are cached."""
        return self._cache

    def _prepare_job(
        self,
        intent: Intent,
        registry: Registry,
        watch: Callable[[str], None] | None,
        earlier: EarlierRounds | None,
        without: frozenset[str] = frozenset(),
    ) -> PlanningJob:
        """Choose tools and examples, and build the prompt."""
        chosen = relevant_tools(intent.request, registry)
        allowed = chosen.without(without)
        names = (earlier.names if earlier is not None else None) or NeutralNames(intent.request)
        # With a grammar the prompt stays the same, so that a provider evaluates none of it again.
        shown = names.planner_registry(chosen if self._provider.grammars else allowed)
        trained = self._is_trained
        near = () if trained else relevant_examples(intent.request, load_examples().bank, EXAMPLE_COUNT)
        # The words of the request choose among many tools, and stand beside those that describe themselves.
        session = self._session(shown, near, fixed=chosen is registry and not names.influenced)
        request = prompt_text(intent)
        if earlier is not None and not (earlier.opening and self._provider.grammars):
            request = earlier.with_request(request)
        seen = None if earlier is None else earlier.for_planner
        usable = names.planner_registry(allowed) if without else shown
        return PlanningJob(session, request, intent, usable, allowed, watch, seen, earlier, names, self._confidence)

    async def prepare(self, registry: Registry) -> None:
        """Let a local model read the rules and these tools, which a provider may keep for later processes.

        Where the request decides what stands in the prompt, there is nothing to prepare.
        """
        names = NeutralNames()
        shown = names.planner_registry(registry)
        if relevant_tools("", registry) is registry and not names.influenced:
            await self._session(shown, (), fixed=True).prepare()

    @property
    def _is_trained(self) -> bool:
        return ADAPTER_JOB in self._provider.adapters

    def _session(self, shown: Registry, near: Sequence[PlanExample], *, fixed: bool) -> Session:
        """A session whose prompt has these tools; `fixed` if no word of the request decided anything of them."""
        same = adapter_setup_messages(shown) if self._is_trained else setup_messages(shown)
        return Session(
            "delta",
            self._provider,
            setup_messages(shown, near) if near else same,
            max_tokens=PLAN_TOKENS,
            timeout=self._timeout,
            listener=self._listener,
            adapter=ADAPTER_JOB if self._is_trained else None,
            fixed=len(same) if fixed else 0,
        )

    # The cache ------------------------------------------------------------------------------------------------------

    def cache_key(self, intent: Intent, registry: Registry, earlier: EarlierRounds | None = None) -> str | None:
        """The cache key of a plan; None if untrusted text influences it, so that it is never cached."""
        return self._job_key(self._prepare_job(intent, registry, None, earlier))

    def _job_key(self, writing: PlanningJob) -> str | None:
        """A hash over the messages that are sent, the model, its decoding parameters, and the project.

        Later messages follow from these and from the replies. A plan that untrusted text influences has no key: it must
        not be used again where that text is absent.
        """
        if writing.is_influenced:
            return None
        earlier = writing.earlier
        parts: list[Any] = [
            PLAN_CACHE_FORM,
            PROMPT_VERSION,
            self._project,
            [self._provider.name, self._provider.grammars, self._provider.adapters.get(ADAPTER_JOB)],
            [PLAN_TOKENS, STATEMENT_TOKENS, self._repairs, repr(self._limits)],
            [[message.speaker, message.text] for message in writing.session.setup],
            writing.request,
            PREFILL,
            writing.first_grammar,
            writing.intent.to_json(),
            writing.registry.fingerprint,
        ]
        if writing.begin:
            parts += ["begin", writing.begin]
        if self._own:
            # They decide which plans are repaired.
            parts += ["own", sorted(self._own)]
        if earlier is not None:
            types = {name: str(type_) for name, type_ in earlier.variables.items()}
            parts += ["rounds", types, sorted(earlier.effects), list(earlier.literals), earlier.may_look]
            parts += ["opening", earlier.opening] if earlier.opening else []
            parts += ["given"] if earlier.given else []
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _load_cached(self, key: str | None, writing: PlanningJob) -> CompiledPlan | None:
        """The cached plan, if it still passes the check; an entry that does not is dropped.

        The cache is trusted no more than a model: an entry is parsed, checked, and compared with the intent like a plan
        that was just written.
        """
        text = self._cache.get(key) if self._cache is not None and key is not None else None
        if text is None or key is None or self._cache is None:
            return None
        compiled = None
        if (found := parse_entry(key, text)) is not None:
            plan = found.plan.model_copy(update={"goal": writing.intent.request})
            attempt = self._judge_plan(plan, found.looks, writing)
            compiled = attempt.usable
            if found.refusal is not None:
                compiled = self._plan_instead(found.refusal, attempt, writing)
        if compiled is None:
            self._cache.pop(key, None)
        return compiled

    # Writing --------------------------------------------------------------------------------------------------------

    async def _write_and_repair(self, writing: PlanningJob) -> tuple[PlanAttempt, int]:
        """The best attempt, and the number of repairs: each repair tells the planner what the check found."""
        best = await self._attempt(writing)
        for count in range(1, self._repairs + 1):
            if not best.problems:
                return best, count - 1
            mended = await self._repair(best, writing)
            if mended.code == best.code:
                return best, count
            if (mended.usable is None, len(mended.problems)) <= (best.usable is None, len(best.problems)):
                best = mended
        return best, self._repairs

    async def _repair(self, best: PlanAttempt, writing: PlanningJob) -> PlanAttempt:
        """Another attempt: from the wrong statement on, without its tool, or else from the start with the problems."""
        if self._provider.grammars and best.wrong_line is not None:
            lines = best.code.splitlines(keepends=True)
            wrong = lines[best.wrong_line - 1]
            avoid = frozenset(name for name in writing.registry.names if f"{name}(" in wrong)
            if avoid:
                after = "".join(lines[: best.wrong_line - 1])
                draft = await writing.write_typed(after=after, avoid=avoid)
                return self._judge_draft(draft, writing)
        again = f"{writing.request}\n\n{repair_text(best.code, best.problems)}"
        return await self._attempt(replace(writing, request=again))

    async def _attempt(self, writing: PlanningJob) -> PlanAttempt:
        draft = await (writing.write_typed() if self._provider.grammars else writing.write_freely())
        return self._judge_draft(draft, writing)

    # Refusals -------------------------------------------------------------------------------------------------------

    async def _verify_refusal(self, refused: PlanAttempt, reason: str, writing: PlanningJob) -> PlanAttempt:
        """The refusal, or a plan in its place if code finds the tools that it says are missing.

        The plan is decoded once, after the same prompt, by a grammar that has no refusal. It is not repaired: a planner
        that has no good plan was right to refuse.
        """
        # In rounds a refusal may be about what earlier rounds have shown, of which this code knows nothing.
        if not self._provider.grammars or writing.earlier is not None:
            return refused
        if refute_refusal(reason, writing.intent, writing.registry) is None:
            return refused
        try:
            # Nobody watches: the plan is shown only if it is taken.
            draft = await replace(writing, watch=None).write_typed(may_refuse=False)
        except BicameralError:
            return refused
        attempt = self._judge_draft(draft, writing)
        compiled = self._plan_instead(reason, attempt, writing)
        if compiled is None:
            return refused
        if writing.watch is not None:
            for line in (f"# {compiled.overridden}", *writing.names.to_readable(attempt.code).splitlines()):
                writing.watch(line)
        return replace(attempt, compiled=compiled)

    def _plan_instead(self, reason: str, attempt: PlanAttempt, writing: PlanningJob) -> CompiledPlan | None:
        """The plan of an attempt in place of a refusal; None if the refusal stands.

        It must be without any finding, and must call a tool of which the planner said that there is none: a plan that
        avoids it does something else than was asked for.
        """
        overridden = refute_refusal(reason, writing.intent, writing.registry)
        compiled = attempt.usable
        if overridden is None or compiled is None or compiled.draft is None or attempt.problems or compiled.dropped:
            return None
        called = {step.tool for _, step in walk(compiled.draft.steps) if isinstance(step, Call)}
        return None if called.isdisjoint(overridden.tools) else replace(compiled, overridden=overridden)

    # Judging --------------------------------------------------------------------------------------------------------

    def _judge_draft(self, draft: PlanDraft, writing: PlanningJob) -> PlanAttempt:
        intent, registry, earlier = writing.intent, writing.registry, writing.earlier
        if draft.refusal is not None:
            return PlanAttempt(draft.code, refusal=draft.refusal)
        if draft.problem is not None:
            return PlanAttempt(draft.code, (draft.problem,), (PlanFault("", draft.problem),))
        try:
            code = replace_look(draft.code) if earlier is not None and earlier.may_look else PlannerCode(draft.code)
            parsed = parse(code.text, registry)
        except PlanError as error:
            return PlanAttempt(draft.code, (str(error),), (PlanFault.of_error(error),))
        written = restore_quotations(parsed.plan.model_copy(update={"goal": intent.request}), intent)
        attempt = self._judge_plan(written, code.looks, writing, places=parsed.places)
        compiled = attempt.compiled
        if compiled is not None:
            compiled = replace(compiled, confidence=draft.confidence)
        return replace(attempt, code=draft.code, compiled=compiled)

    def _judge_plan(
        self,
        written: Plan,
        looks: tuple[str, ...] | None,
        writing: PlanningJob,
        *,
        places: Mapping[str, Place] | None = None,
    ) -> PlanAttempt:
        """Drop the calls of a draft that nobody asked for, check the rest, and compare it with its intent.

        Every draft comes here, however it was made: what its answer says of a dropped call is found nowhere else.
        """
        plan = drop_unasked_steps(written, writing.intent, writing.registry)
        dropped = dropped_tools(written, plan)
        if plan.steps[:-1] != written.steps[:-1]:
            places = None
        try:
            draft = _with_left_variables(plan, looks, writing.registry, writing.earlier)
            report = self._check(draft, writing.registry, writing.earlier, places)
            real = writing.names.to_real(plan)
            final = _with_left_variables(real, looks, writing.real_registry, writing.real_earlier)
        except (PlanError, ValueError) as error:
            code = error.code if isinstance(error, PlanError) else "plan.invalid"
            return PlanAttempt(problems=(code,), faults=(PlanFault(code, str(getattr(error, "message", code))),))
        if not report.ok:
            first = next((finding.place for finding in report.errors), None)
            faults = tuple(map(PlanFault.of_finding, report.errors))
            return PlanAttempt("", tuple(map(str, report.errors)), faults, first.line if first else None)
        intent, earlier = writing.intent, writing.earlier
        looking = looks is not None
        mismatches = (
            *dropped_mismatches(written, dropped, intent, writing.registry, looks=looking),
            *check_against_intent(draft, intent, writing.registry, earlier=earlier, looks=looking, settings=self._own),
        )
        # What forbids the plan comes first: it is the reason that a person is told if no better plan is found.
        gravest = sorted(mismatches, key=lambda each: not each.severe)
        problems = (*(each.message for each in gravest), *_unused_results(draft, report, writing.registry))
        faults = (
            *(PlanFault(each.code, each.message.rstrip("."), _line_of(each.path, places)) for each in gravest),
            *(PlanFault("plan.unused", text.rstrip(".")) for text in problems[len(gravest) :]),
        )
        wrong = next((each.path for each in mismatches if each.path is not None), None)
        line = _line_of(wrong, places)
        types = dict(report.types)
        check = PlanCheck(final, writing.registry, self._limits, _scope_of(earlier), report)
        compiled = CompiledPlan(
            final,
            report,
            mismatches,
            0,
            False,
            0.0,
            looks,
            draft=draft,
            written=written,
            draft_types=types,
            dropped=tuple(map(writing.names.to_readable, dropped)),
            check=check,
        )
        return PlanAttempt("", problems, faults, line, compiled)

    def _check(
        self, plan: Plan, registry: Registry, earlier: EarlierRounds | None, places: Mapping[str, Place] | None
    ) -> Report:
        return check(plan, registry, limits=self._limits, scope=_scope_of(earlier), places=places, unbound=True)

    def _no_plan_error(self, writing: PlanningJob, registry: Registry, attempt: PlanAttempt) -> BicameralError:
        request = writing.intent.request
        near = ", ".join(nearest_tools(request, registry)) or "none comes near"
        reason = attempt.problems[0] if attempt.problems else "the model wrote nothing usable"
        return NoPlanError(
            "plan.none",
            f"no plan was found that serves the request: {writing.names.to_readable(reason)}",
            fix=f"Say it in other words or in smaller steps. Nearest tools: {near}.",
            failure=attempt.describe(writing.names.to_readable),
        )


def _line_of(path: str | None, places: Mapping[str, Place] | None) -> int | None:
    place = places.get(path) if path is not None and places is not None else None
    return place.line if place else None


def _unasked_error(attempt: PlanAttempt, registry: Registry, failure: FailedPlan) -> UnaskedEffectError:
    dropped = () if attempt.compiled is None else attempt.compiled.dropped
    effects: list[Effect] = [tool.effect for name in dropped if (tool := registry.get(name)) is not None]
    return UnaskedEffectError(dropped, effects, failure)


def _scope_of(earlier: EarlierRounds | None) -> Mapping[str, Type]:
    """The variables that exist before the first step of a plan."""
    return {} if earlier is None else earlier.variables


def _with_left_variables(
    plan: Plan, looks: tuple[str, ...] | None, registry: Registry, earlier: EarlierRounds | None
) -> Plan:
    return plan if looks is None or earlier is None else with_left_variables(plan, looks, registry, earlier)


def _unused_results(plan: Plan, report: Report, registry: Registry) -> list[str]:
    """Unused results of calls without effects: a sign that a step is missing."""
    steps = dict(walk(plan.steps))
    unused = [(finding.message, steps[finding.path]) for finding in report.findings if finding.code == "plan.unused"]
    return [f"{text}." for text, step in unused if not (isinstance(step, Call) and registry[step.tool].changes)]
