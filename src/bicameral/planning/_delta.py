"""Delta: an intent and a registry become a plan that passes the check, or an error that says why there is none."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from bicameral.errors import BicameralError, Place, PlanError
from bicameral.limits import open_ledger
from bicameral.models import Provider, ReplyToken, Route
from bicameral.planning._decode import STATEMENT_TOKENS, PlanDraft, decode_freely, decode_typed, next_openings
from bicameral.planning._intent import Intent
from bicameral.planning._intent_check import Mismatch, check_against_intent, drop_unasked_steps
from bicameral.planning._matching import load_examples, named_objects, nearest_tools, relevant_examples, relevant_tools
from bicameral.planning._neutral_names import NeutralNames
from bicameral.planning._prompt import (
    PREFILL,
    PROMPT_VERSION,
    adapter_setup_messages,
    repair_text,
    request_text,
    setup_messages,
)
from bicameral.planning._rounds import EarlierRounds, PlannerCode, replace_look, with_left_variables
from bicameral.planning._statement_grammar import statement_grammar
from bicameral.plans import Call, Finding, Plan, PlanLimits, Report, check, parse, walk
from bicameral.sessions import Listener, Session
from bicameral.tools import Registry
from bicameral.types import Type

MAX_REPAIRS = 2
EXAMPLE_COUNT = 3
PLAN_TOKENS = 700
ADAPTER_JOB = "delta"
"""The job that a provider's model may have been trained for; then it needs no examples."""
PLAN_CACHE_FORM = "plan-cache/1"
"""The form of an entry of the cache: one of any other form is none."""


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """The report of `plans.check` on a plan, with everything that the check was given.

    Whoever needs the same check again asks for `report_for`, and is given the report only where it is of exactly that.
    """

    plan: Plan
    registry: Registry
    limits: PlanLimits
    scope: Mapping[str, Type]
    report: Report

    def report_for(
        self, plan: Plan, registry: Registry, limits: PlanLimits, scope: Mapping[str, Type]
    ) -> Report | None:
        """The report, if it is of this plan, these tools, these limits and these variables; None: check it."""
        # Plan and registry by identity: whether another object would check the same is what a check is for.
        if plan is not self.plan or registry is not self.registry:
            return None
        if limits != self.limits or dict(scope) != dict(self.scope):
            return None
        # The lines are those of the text that the model wrote, which nobody is shown.
        return replace(self.report, findings=tuple(replace(each, place=None) for each in self.report.findings))


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """A plan that passes the check, and how it came about."""

    plan: Plan
    report: Report
    mismatches: tuple[Mismatch, ...]
    repairs: int
    cached: bool
    seconds: float
    looks: tuple[str, ...] | None = None
    """The variables that the plan wants to see before it goes on; None if it answers."""
    confidence: tuple[ReplyToken, ...] = ()
    """How sure the model was, token by token, if it was asked and could say."""
    route: Route | None = None
    """Which model wrote it and why that one, where there was a choice."""
    draft: Plan | None = None
    """The plan as the model wrote it: what somebody else called a column has a neutral name in it."""
    draft_types: Mapping[str, Type] = field(default_factory=dict[str, Type])
    """The types of its variables, as a planner may read them."""
    check: PlanCheck | None = field(default=None, repr=False, compare=False)
    """The check that the plan passed, so that it need not be made again."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    code: str
    plan: Plan | None
    report: Report | None
    mismatches: tuple[Mismatch, ...]
    problems: tuple[str, ...]
    wrong_line: int | None = None
    looks: tuple[str, ...] | None = None
    confidence: tuple[ReplyToken, ...] = ()
    draft: Plan | None = None
    draft_types: Mapping[str, Type] = field(default_factory=dict[str, Type])
    check: PlanCheck | None = None

    @property
    def is_usable(self) -> bool:
        return self.plan is not None and not any(mismatch.severe for mismatch in self.mismatches)


@dataclass(frozen=True)
class _PlanningJob:
    """What a plan is written for, and with whom. `registry` and `earlier` are as the planner sees them.

    `real_registry` has the chosen tools under their real names, `full_registry` all tools there are.
    """

    session: Session
    request: str
    intent: Intent
    registry: Registry
    real_registry: Registry
    full_registry: Registry
    watch: Callable[[str], None] | None
    earlier: EarlierRounds | None
    real_earlier: EarlierRounds | None
    names: NeutralNames
    confidence: bool = False

    async def write_typed(self, *, after: str = "", avoid: frozenset[str] = frozenset()) -> PlanDraft:
        return await decode_typed(
            self.session,
            self.request,
            self.registry,
            self._readable_watch,
            named=self._named_objects,
            after=after,
            avoid=avoid,
            earlier=self.earlier,
            confidence=self.confidence,
        )

    async def write_freely(self) -> PlanDraft:
        return await decode_freely(self.session, self.request, self._readable_watch, confidence=self.confidence)

    @cached_property
    def first_grammar(self) -> str | None:
        """The grammar of the first statement, where the provider knows grammars."""
        if not self.session.provider.grammars:
            return None
        return statement_grammar(self.registry, next_openings("", self.registry, self.earlier), self._named_objects)

    @property
    def is_influenced(self) -> bool:
        """Whether somebody else had a hand in what the planner reads."""
        return self.names.influenced or (self.earlier is not None and not self.earlier.read_label.trusted)

    @property
    def _named_objects(self) -> dict[str, list[str]]:
        return named_objects(self.intent.request)

    @property
    def _readable_watch(self) -> Callable[[str], None] | None:
        watch = self.watch
        return None if watch is None else lambda statement: watch(self.names.to_readable(statement))


class Delta:
    """Writes plans at temperature 0: the same intent, registry and model give the same bytes.

    With `confidence` a plan that is written (not one from the cache) says how sure the model was of it. Plans in the
    `cache` are those of one `project`, and an entry of it is judged like a plan that was just written.

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
    ) -> None:
        self._provider = provider
        self._limits = limits or PlanLimits()
        self._cache = cache
        self._listener = listener
        self._timeout = timeout
        self._repairs = repairs
        self._confidence = confidence
        self._project = project

    async def compile(
        self,
        intent: Intent,
        registry: Registry,
        *,
        fresh: bool = False,
        watch: Callable[[str], None] | None = None,
        earlier: EarlierRounds | None = None,
    ) -> CompiledPlan:
        """The plan for an intent; a PlanError `plan.none` says why there is none and names the nearest tools.

        With `earlier` it is a plan in rounds: it goes on from what earlier ones left, and may ask to see a result.
        """
        started = time.perf_counter()
        writing = self._prepare_job(intent, registry, watch, earlier)
        key = self._job_key(writing)
        if not fresh and (attempt := self._load_cached(key, writing)) is not None:
            return _to_compiled(attempt, 0, time.perf_counter() - started, cached=True)
        with open_ledger() as ledger:
            attempt, repairs = await self._write_and_repair(writing)
        if not attempt.is_usable:
            raise self._no_plan_error(writing, registry, attempt)
        # What another model wrote instead is not kept: the next time it could not say so. Neither is what was written
        # under somebody else's influence, which may also have come in only while it was written.
        if self._cache is not None and key is not None and not ledger.degraded and not writing.is_influenced:
            self._cache[key] = _render_entry(key, attempt)
        return _to_compiled(attempt, repairs, time.perf_counter() - started, cached=False)

    def _prepare_job(
        self,
        intent: Intent,
        registry: Registry,
        watch: Callable[[str], None] | None,
        earlier: EarlierRounds | None,
    ) -> _PlanningJob:
        """Everything that a planner is going to read."""
        chosen = relevant_tools(intent.request, registry)
        names = (earlier.names if earlier is not None else None) or NeutralNames(intent.request)
        shown = names.neutral_registry(chosen)
        trained = ADAPTER_JOB in self._provider.adapters
        near = () if trained else relevant_examples(intent.request, load_examples().bank, EXAMPLE_COUNT)
        session = Session(
            "delta",
            self._provider,
            adapter_setup_messages(shown) if trained else setup_messages(shown, near),
            max_tokens=PLAN_TOKENS,
            timeout=self._timeout,
            listener=self._listener,
            adapter=ADAPTER_JOB if trained else None,
        )
        request = request_text(intent, shown, names, account=not trained)
        if earlier is not None:
            request = earlier.with_request(request)
        seen = None if earlier is None else earlier.for_planner
        return _PlanningJob(
            session, request, intent, shown, chosen, registry, watch, seen, earlier, names, self._confidence
        )

    # The cache ------------------------------------------------------------------------------------------------------

    def cache_key(self, intent: Intent, registry: Registry, earlier: EarlierRounds | None = None) -> str | None:
        """What a plan depends on; None if somebody else has a hand in that, so that it is never kept."""
        return self._job_key(self._prepare_job(intent, registry, None, earlier))

    def _job_key(self, writing: _PlanningJob) -> str | None:
        """A hash over the very messages that are sent, the model, how it decodes, and the project.

        Later messages of a plan follow from these and from the replies. A plan in which somebody else has a hand has
        no key: it must not come back where he has none.
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
        if earlier is not None:
            types = {name: str(type_) for name, type_ in earlier.variables.items()}
            parts += ["rounds", types, sorted(earlier.effects), list(earlier.literals), earlier.may_look]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _load_cached(self, key: str | None, writing: _PlanningJob) -> _Attempt | None:
        """The plan that was written for this before, if it still holds; an entry that does not is dropped.

        A folder on a disk is believed no more than a model: what it holds is parsed, checked, and held against the
        intent like a plan that was written just now.
        """
        text = self._cache.get(key) if self._cache is not None and key is not None else None
        if text is None or key is None or self._cache is None:
            return None
        attempt = None
        if (found := _parse_entry(key, text)) is not None:
            plan, looks = found
            plan = plan.model_copy(update={"goal": writing.intent.request})
            attempt = self._judge_plan(drop_unasked_steps(plan, writing.intent, writing.registry), looks, writing)
        if attempt is not None and attempt.is_usable:
            return attempt
        self._cache.pop(key, None)
        return None

    # Writing --------------------------------------------------------------------------------------------------------

    async def _write_and_repair(self, writing: _PlanningJob) -> tuple[_Attempt, int]:
        """Write, check, and mend with the checker's own words, a bounded number of times; the best attempt counts."""
        best = await self._attempt(writing)
        for count in range(1, self._repairs + 1):
            if not best.problems:
                return best, count - 1
            mended = await self._repair(best, writing)
            if mended.code == best.code:
                return best, count
            if (not mended.is_usable, len(mended.problems)) <= (not best.is_usable, len(best.problems)):
                best = mended
        return best, self._repairs

    async def _repair(self, best: _Attempt, writing: _PlanningJob) -> _Attempt:
        """Another attempt: from the statement that is wrong, without its tool, or else anew with the problems told."""
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

    async def _attempt(self, writing: _PlanningJob) -> _Attempt:
        if self._provider.grammars:
            draft = await writing.write_typed()
        else:
            draft = await writing.write_freely()
        return self._judge_draft(draft, writing)

    # Judging --------------------------------------------------------------------------------------------------------

    def _judge_draft(self, draft: PlanDraft, writing: _PlanningJob) -> _Attempt:
        intent, registry, earlier = writing.intent, writing.registry, writing.earlier
        if draft.problem is not None:
            return _Attempt(draft.code, None, None, (), (draft.problem,))
        try:
            code = replace_look(draft.code) if earlier is not None and earlier.may_look else PlannerCode(draft.code)
            # A planner may also know a tool by its own name.
            parsed = parse(
                code.text, Registry({tool.name: tool for tool in (*writing.real_registry, *registry)}.values())
            )
        except PlanError as error:
            return _Attempt(draft.code, None, None, (), (str(error),))
        written = parsed.plan.model_copy(update={"goal": intent.request})
        plan = drop_unasked_steps(written, intent, registry)
        same = plan.steps[:-1] == written.steps[:-1]
        attempt = self._judge_plan(plan, code.looks, writing, places=parsed.places if same else None)
        return replace(attempt, code=draft.code, confidence=draft.confidence)

    def _judge_plan(
        self,
        plan: Plan,
        looks: tuple[str, ...] | None,
        writing: _PlanningJob,
        *,
        places: Mapping[str, Place] | None = None,
    ) -> _Attempt:
        """A plan as it was written: bound to real names, checked, and held against its intent."""
        try:
            draft = _with_left_variables(plan, looks, writing.registry, writing.earlier)
            # Before the names are bound: only now it is known which tables the plan reads.
            seen = self._check(draft, writing.registry, writing.earlier, places)
            bound = writing.names.bind(plan, writing.real_registry)
            final = _with_left_variables(bound.plan, looks, writing.real_registry, writing.real_earlier)
            check = self._check_bound(final, writing, places)
            report = check.report
        except (PlanError, ValueError) as error:
            return _Attempt("", None, None, (), (error.code if isinstance(error, PlanError) else "plan.invalid",))
        if bound.problems or not report.ok:
            first = next((finding.place for finding in report.errors), None)
            problems = (*bound.problems, *_planner_findings(report, seen, writing.names))
            return _Attempt("", None, report, (), problems, first.line if first else None)
        intent, earlier = writing.intent, writing.earlier
        mismatches = tuple(
            check_against_intent(draft, intent, writing.registry, earlier=earlier, looks=looks is not None)
        )
        problems = (*(each.message for each in mismatches), *_unused_results(draft, seen, writing.registry))
        wrong = next((each.path for each in mismatches if each.path is not None), None)
        place = places.get(wrong) if wrong is not None and places is not None else None
        line = place.line if place else None
        kept: dict[str, Any] = {"draft": draft, "draft_types": dict(seen.types), "check": check}
        return _Attempt("", final, report, mismatches, problems, line, looks, **kept)

    def _check_bound(self, plan: Plan, writing: _PlanningJob, places: Mapping[str, Place] | None) -> PlanCheck:
        """Check a plan with real names against all tools, so that nobody after Delta needs to check it again."""
        chosen, every, earlier = writing.real_registry, writing.full_registry, writing.real_earlier
        calls_chosen_only = all(step.tool in chosen for _, step in walk(plan.steps) if isinstance(step, Call))
        # A plan may only call what was chosen. What a model writes cannot name another tool; an entry of the cache can.
        registry = every if calls_chosen_only else chosen
        report = self._check(plan, registry, earlier, places)
        if not report.ok and registry is every:
            # The planner is told what is wrong, and the hints of a check name tools of its registry. The name of a tool
            # that was not chosen may be untrusted text: the planner must not read it.
            registry = chosen
            report = self._check(plan, registry, earlier, places)
        return PlanCheck(plan, registry, self._limits, _scope_of(earlier), report)

    def _check(
        self, plan: Plan, registry: Registry, earlier: EarlierRounds | None, places: Mapping[str, Place] | None
    ) -> Report:
        return check(plan, registry, limits=self._limits, scope=_scope_of(earlier), places=places)

    def _no_plan_error(self, writing: _PlanningJob, registry: Registry, attempt: _Attempt) -> BicameralError:
        request = writing.intent.request
        near = ", ".join(nearest_tools(request, registry)) or "none comes near"
        reason = attempt.problems[0] if attempt.problems else "the model wrote nothing usable"
        return PlanError(
            "plan.none",
            f"no plan was found that serves the request: {writing.names.to_readable(reason)}",
            fix=f"Say it in other words or in smaller steps. Nearest tools: {near}.",
        )


def _to_compiled(attempt: _Attempt, repairs: int, seconds: float, *, cached: bool) -> CompiledPlan:
    if attempt.plan is None or attempt.report is None:
        raise AssertionError("only a usable attempt becomes a plan")
    return CompiledPlan(
        attempt.plan,
        attempt.report,
        attempt.mismatches,
        repairs,
        cached,
        seconds,
        attempt.looks,
        attempt.confidence,
        draft=attempt.draft,
        draft_types=attempt.draft_types,
        check=attempt.check,
    )


def _scope_of(earlier: EarlierRounds | None) -> Mapping[str, Type]:
    """The variables that a plan finds before its first step."""
    return {} if earlier is None else earlier.variables


def _with_left_variables(
    plan: Plan, looks: tuple[str, ...] | None, registry: Registry, earlier: EarlierRounds | None
) -> Plan:
    return plan if looks is None or earlier is None else with_left_variables(plan, looks, registry, earlier)


def _planner_findings(report: Report, seen: Report, names: NeutralNames) -> list[str]:
    """What a planner is told of a plan that does not pass the check.

    The findings of the check itself name what the table calls its columns. So they are told as the same check finds
    them with neutral names; what has no counterpart there is told by its code alone.
    """
    if not names.has_hidden_names:
        return [str(finding) for finding in report.errors]
    neutral: dict[tuple[str, str], list[Finding]] = {}
    for finding in seen.errors:
        neutral.setdefault((finding.code, finding.path), []).append(finding)
    found: dict[str, None] = {}
    for finding in report.errors:
        same = neutral.get((finding.code, finding.path))
        told = [str(each) for each in same] if same else [f"this does not fit what the plan reads [{finding.code}]"]
        found |= dict.fromkeys(told)
    return list(found)


def _render_entry(key: str, attempt: _Attempt) -> str:
    """A plan as the cache holds it, with the key that it was kept under: elsewhere it is none."""
    if attempt.draft is None:
        raise AssertionError("only a usable attempt is kept")
    # What a plan in rounds leaves is added to its draft each time it is judged.
    draft = attempt.draft.to_json()
    return json.dumps({"form": PLAN_CACHE_FORM, "key": key, "looks": attempt.looks, "plan": draft})


def _parse_entry(key: str, text: str) -> tuple[Plan, tuple[str, ...] | None] | None:
    """An entry of the cache; None if it is damaged, of another form, or of another key."""
    try:
        entry: Any = json.loads(text)
        if (entry["form"], entry["key"]) != (PLAN_CACHE_FORM, key):
            return None
        looks = entry["looks"]
        plan = Plan.model_validate_json(entry["plan"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if looks is None:
        return plan, None
    if not isinstance(looks, list) or not all(isinstance(name, str) for name in cast("list[object]", looks)):
        return None
    return plan, tuple(cast("list[str]", looks))


def _unused_results(plan: Plan, report: Report, registry: Registry) -> list[str]:
    """Results that were asked for and then forgotten: a sign that a step is missing. What changes the world may be."""
    steps = dict(walk(plan.steps))
    forgotten = [finding for finding in report.findings if finding.code == "plan.unused"]
    return [f"{finding.message}." for finding in forgotten if not _is_changing_call(steps[finding.path], registry)]


def _is_changing_call(step: object, registry: Registry) -> bool:
    return isinstance(step, Call) and registry[step.tool].changes
