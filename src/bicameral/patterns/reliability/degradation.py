"""V19, graceful degradation: each failure of the main path leads to one declared simpler path, and the answer says so.

Use it where an answer is owed and a weaker one is better than none. The main path fails with typed errors; each leads
to a simpler pattern, a cached answer, a rule or a template. If that fails too, the template ends it: no second fallback
is tried, and nothing goes back to the main path. What a guard or a policy refused, or what failed after it had changed
something, is answered by the template alone. An answer says in its type whether it is degraded, by what and why.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, ParamSpec, TypedDict, cast

from bicameral.cache import read_private_file, write_private_file
from bicameral.errors import BicameralError, CatalogError, RunError, ToolError
from bicameral.labels import Labelled, make_labelled, open_labelled, program_text
from bicameral.limits import Limits
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Pattern,
    PatternExample,
    Responder,
    Role,
    ToolCallEvent,
    ask_responder,
    map_labelled,
)
from bicameral.patterns.kernel._codec import from_record, to_record
from bicameral.tools import Origin, Tool, tool

P = ParamSpec("P")

FallbackClass = Literal["model", "cache", "rule", "template"]
REFUSALS = (
    "policy",
    "labels",
    "models.refused",
    "pattern.guarded",
    "pattern.guard-failed",
    "pattern.must-not-read",
    "run.extraction-rejected",
)
"""Codes, and areas of codes, that say that something was refused: only a template may follow."""
_NOT_CALLED = ("policy.denied",)
_MAX_CACHED_BYTES = 1_000_000


class ServedAnswer(TypedDict):
    """An answer with its mark. Of the main path: `degraded` is false, and the rest is None.

    `cause` is the code of the failure, `age` the seconds since a cached answer was kept.
    """

    value: Any
    degraded: bool
    fallback: FallbackClass | None
    cause: str | None
    age: float | None


@dataclass(frozen=True)
class AnswerCache:
    """Earlier answers of the main path, by its arguments and their labels: a file each, which only the user can write.

    An answer keeps its labels. One that is older than `cache_seconds` is a miss.
    """

    folder: Path

    def keep(self, key: str, answer: Labelled[Any], at: float) -> None:
        """Keep an answer that was given at this time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"at": at, "answer": to_record(answer)})
        write_private_file(self.folder / f"{key}.json", [text.encode()])

    def find(self, key: str, now: float, most_seconds: float) -> tuple[Labelled[Any], float] | None:
        """An answer and its age; None if there is none that is young enough, or if it cannot be read."""
        with suppress(OSError, ValueError, KeyError, TypeError, BicameralError):
            facts = json.loads(read_private_file(self.folder / f"{key}.json", _MAX_CACHED_BYTES))
            age = now - float(facts["at"])
            answer = from_record(facts["answer"])
            if 0 <= age <= most_seconds and isinstance(answer, Labelled):
                return cast("Labelled[Any]", answer), round(age, 3)
        return None


@dataclass(frozen=True)
class SimplerPath:
    """A fallback to a cheaper model or pattern, which gets the same arguments and nothing of the failed work."""

    by: Responder


@dataclass(frozen=True)
class CachedPath:
    """A fallback to the last answer of the main path to the same arguments."""

    cache: AnswerCache


@dataclass(frozen=True)
class RulePath:
    """A fallback to a function of the opened arguments; None says that it has no answer."""

    rule: Callable[..., Any]


@dataclass(frozen=True)
class TemplatePath:
    """A fallback to a fixed answer, which cannot fail."""

    answer: Any


FallbackPath = SimplerPath | CachedPath | RulePath | TemplatePath
_Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]
_CLASSES: Mapping[type, FallbackClass] = {
    SimplerPath: "model",
    CachedPath: "cache",
    RulePath: "rule",
    TemplatePath: "template",
}


@dataclass(frozen=True)
class GracefulDegradation(Pattern[P, ServedAnswer], Generic[P]):
    """The answer of the main path, or of the fallback for its failure, marked as such.

    Failures that end the whole run (its limits, its record, a person's no) are not caught.

    Args:
        main: The main path.
        fails: The codes of its failures, or areas of codes such as `models`. Each must be in `on`.
        on: The fallback for each of them. A code that is not declared gets the template, and the trace says so.
        template: What ends every route.
        bounds: Limits of the main path; one that is reached is the failure `strategy.exhausted`.
        max_depth: The fallbacks on one route, the template included.
        cache_seconds: The age at which a cached answer expires.
        alarm_rate: The share of degraded answers from which `alarms` is true.
        min_gain: How many times cheaper than the main path a fallback must be, for `gains`.

    Example:
        >>> serving = GracefulDegradation(
        ...     Search(), ("models",), {"models": CachedPath(AnswerCache(folder))}, TemplatePath("Please try later.")
        ... )
        >>> (await serving.run(runtime, question)).value["degraded"]
        False
    """

    id: ClassVar[str] = "V19"
    main: Pattern[P, Any]
    fails: tuple[str, ...]
    on: Mapping[str, FallbackPath]
    template: TemplatePath
    bounds: Limits | None = None
    max_depth: int = 2
    cache_seconds: float = 3600
    alarm_rate: float = 0.05
    min_gain: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if missing := [code for code in self.fails if _find_path(self.on, code) is None]:
            raise _bad_route_error(f"the failure {missing[0]!r} has no class", "a fallback for each failure")
        if not self.fails:
            raise _bad_route_error("no failure of the main path is declared", "codes of errors, or areas of them")
        main = to_record(self.main)
        for code, path in self.on.items():
            if isinstance(path, TemplatePath):
                continue
            if _is_refusal(code):
                raise _bad_route_error(f"{code!r} is a refusal", "a template alone behind a refusal")
            if self.max_depth < 2:
                raise _bad_route_error(f"{code!r} leads to a fallback and then to the template", "one class on a route")
            if _holds(to_record(path), main):
                raise _bad_route_error(f"the fallback for {code!r} leads back to the main path", "another path")
            by = path.by if isinstance(path, SimplerPath) else None
            if isinstance(by, Pattern) and any(each.id == self.id for _, each in cast("Pattern[..., Any]", by).walk()):
                raise _bad_route_error(f"the fallback for {code!r} has fallbacks of its own", "one class on a route")

    def alarms(self, answers: Sequence[ServedAnswer]) -> bool:
        """Whether more of these answers are degraded than may be."""
        return sum(each["degraded"] for each in answers) > self.alarm_rate * len(answers)

    def gains(self, main_tokens: int, fallback_tokens: int) -> bool:
        """Whether a fallback is as much cheaper than the main path as it must be."""
        return main_tokens >= self.min_gain * fallback_tokens

    async def execute(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[ServedAnswer]:
        entered: list[Context] = []
        try:
            answer = await context.run_part("main", lambda part: self._run_main(part, entered, args, kwargs))
        except BicameralError as error:
            if context.ends_run(error):
                raise
            return await self._serve_instead(context, error.code, (args, kwargs), changed=_has_changed(entered[0]))
        await self._keep(context, (args, kwargs), answer)
        return map_labelled(answer, _main_answer)

    async def _run_main(
        self, part: Context, entered: list[Context], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Labelled[Any]:
        entered.append(part)
        if self.bounds is None:
            return await self.main.execute(part, *args, **kwargs)
        async with part.within_limits(self.bounds) as inner:
            return await self.main.execute(inner, *args, **kwargs)

    async def _serve_instead(
        self, context: Context, cause: str, given: _Arguments, *, changed: bool
    ) -> Labelled[ServedAnswer]:
        declared = _find_path(self.on, cause)
        if declared is None:
            context.note("undeclared-failure", cause=cause)
        # Another path might do again what the main path has done, or do what was refused.
        path = self.template if declared is None or changed or _is_refusal(cause) else declared
        if not isinstance(path, TemplatePath):
            try:
                found = await context.run_part("fallback", lambda part: self._follow(part, path, cause, given))
                context.note("served", fallback=_CLASSES[type(path)], cause=cause)
                return found
            except BicameralError as error:
                if context.ends_run(error):
                    raise
                context.note("fallback-failed", fallback=_CLASSES[type(path)], code=error.code)
        last = path if isinstance(path, TemplatePath) else self.template
        context.note("served", fallback="template", cause=cause)
        return context.derive(_degraded_answer(last.answer, "template", cause, None))

    async def _follow(
        self, part: Context, path: SimplerPath | CachedPath | RulePath, cause: str, given: _Arguments
    ) -> Labelled[ServedAnswer]:
        args, kwargs = given
        match path:
            case SimplerPath(by=Role() as role):
                answer = await ask_responder(part, role, args[0])
            case SimplerPath(by=by):
                answer = await cast("Pattern[..., Any]", by).execute(part, *args, **kwargs)
            case CachedPath(cache=cache):
                return await self._read_cache(part, cache, cause, given)
            case RulePath(rule=rule):
                answer = part.derive(_apply_rule(part, rule, (*args, *kwargs.values())))
        return map_labelled(answer, partial(_degraded_answer, fallback=_CLASSES[type(path)], cause=cause, age=None))

    # The cache ------------------------------------------------------------------------------------------------------

    async def _keep(self, context: Context, given: _Arguments, answer: Labelled[Any]) -> None:
        for cache in {each.cache for each in self.on.values() if isinstance(each, CachedPath)}:

            async def keep(cache: AnswerCache = cache) -> Labelled[None]:
                # A cache that cannot be written is none: the answer is there.
                with suppress(OSError):
                    cache.keep(self._cache_key(given), answer, time.time())
                return context.derive(None)

            await context.once("keep the answer", keep, repeatable=True)

    async def _read_cache(
        self, part: Context, cache: AnswerCache, cause: str, given: _Arguments
    ) -> Labelled[ServedAnswer]:
        async def read() -> Labelled[Any]:
            found = cache.find(self._cache_key(given), time.time(), self.cache_seconds)
            if found is None:
                return part.derive(None)
            answer, age = found
            served = _degraded_answer(open_labelled(answer), "cache", cause, age)
            return make_labelled(cast("Any", served), answer.label).with_label(part.read_label)

        # Recorded, so that a replay serves the same answer with the same age.
        served = await part.once("read the kept answer", read, repeatable=True)
        if part.read(served) is None:
            raise RunError("pattern.no-answer", "there is no kept answer that is young enough")
        return served

    def _cache_key(self, given: _Arguments) -> str:
        """The arguments with their labels: an answer to trusted words is none to the same words of a stranger."""
        asked = json.dumps([to_record(self.main), to_record(given)], sort_keys=True)
        return hashlib.sha256(asked.encode()).hexdigest()


def _find_path(on: Mapping[str, FallbackPath], code: str) -> FallbackPath | None:
    return on.get(code) or on.get(code.partition(".")[0])


def _is_refusal(code: str) -> bool:
    return code in REFUSALS or code.partition(".")[0] in REFUSALS


def _has_changed(main: Context) -> bool:
    """Whether the failed work has changed something, or may have: by a call of a tool, or by work done once."""
    shared = main.shared
    if any(each.step.startswith(main.place) for each in shared.handler.effects):
        return True
    # A call that failed is no effect that is known, and may have been one.
    calls = (each for each in shared.trace if isinstance(each, ToolCallEvent) and each.at.startswith(main.path))
    return any(
        each.error not in _NOT_CALLED and (found := shared.registry.get(each.tool)) is not None and found.changes
        for each in calls
    )


def _holds(record: object, wanted: object) -> bool:
    """Whether a pattern is somewhere in another one, also in what a function of it holds."""
    if record == wanted:
        return True
    if isinstance(record, dict):
        return any(_holds(each, wanted) for each in cast("dict[str, object]", record).values())
    return isinstance(record, list) and any(_holds(each, wanted) for each in cast("list[object]", record))


def _apply_rule(part: Context, rule: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    opened = [part.read(cast("Labelled[Any]", each)) if isinstance(each, Labelled) else each for each in args]
    try:
        found = rule(*opened)
    except Exception as error:
        raise RunError("pattern.no-answer", f"the rule failed with {type(error).__name__}") from None
    if found is None:
        raise RunError("pattern.no-answer", "the rule has no answer")
    return found


def _main_answer(value: Any) -> ServedAnswer:
    return ServedAnswer(value=value, degraded=False, fallback=None, cause=None, age=None)


def _degraded_answer(value: Any, fallback: FallbackClass, cause: str, age: float | None) -> ServedAnswer:
    return ServedAnswer(value=value, degraded=True, fallback=fallback, cause=cause, age=age)


def _bad_route_error(problem: str, expected: str) -> CatalogError:
    return CatalogError("pattern.bad-route", f"V19: {problem}", expected=expected)


# An example ---------------------------------------------------------------------------------------------------------


def _tools(folder: Path) -> Sequence[Tool]:
    @tool(effect="read", outbound=False, origins=Origin("system", "public"), purpose={"city": "selects"})
    def weather(city: str) -> str:
        """The weather of a city."""
        raise ToolError("web.unreachable", "the service cannot be reached")

    return (weather,)


def _make(folder: Path) -> Pattern[..., Any]:
    from bicameral.patterns.integration.direct_call import DirectCall

    later = TemplatePath("The weather cannot be looked up now.")
    return GracefulDegradation(DirectCall("weather", max_attempts=1), ("web",), {"web": later}, later)


def _is_correct(outcome: Answered[ServedAnswer]) -> bool:
    served = outcome.value
    return served["degraded"] and (served["fallback"], served["cause"]) == ("template", "web.unreachable")


EXAMPLE = PatternExample(
    "A service cannot be reached, and the answer says so instead of pretending.",
    _make,
    lambda folder: ({"city": program_text("Ghent")},),
    _is_correct,
    lambda folder: {"setup": 0, "input": 0, "output": 0},
    _tools,
)
