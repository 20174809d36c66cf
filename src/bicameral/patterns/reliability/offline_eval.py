"""V16, offline eval: no change ships before a fixed set of unseen cases was run and held against the accepted results.

Use it before a prompt, a model, a tool or the wiring changes. The system runs as it will ship, once per case and
repeat; code, or a judge (V15), scores each output. The gate fails closed: a category that is missing, a case that was
not run, a critical case that is wrong, and a suite, a model or a judge that has changed do not pass. The accepted
results change only by a recorded promotion (`Baseline.promote`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, TypedDict, cast

from bicameral.errors import BicameralError, CatalogError, EvaluationError
from bicameral.evaluation import (
    MAX_TOLERANCE,
    Baseline,
    Case,
    CaseResult,
    Contains,
    Judged,
    Report,
    Suite,
    find_leaks,
    gate,
    score_value,
)
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    ModelCallEvent,
    Pattern,
    PatternExample,
    Responder,
    Role,
    ask_responder,
    map_labelled,
)
from bicameral.patterns.kernel._codec import fingerprint, to_record
from bicameral.patterns.reliability.judge import Dimension, Rubric, SingleJudge

REQUIRED_CATEGORIES: Final = ("positive", "negative", "edge", "hostile", "regression")
"""A suite without one of these covers only easy paths."""


class EvalVerdict(TypedDict):
    """Whether a change may ship, and why not; `results` has every repeat of every case."""

    passed: bool
    failures: list[dict[str, str]]
    suite: str
    baseline: str
    categories: dict[str, float]
    results: list[dict[str, Any]]


@dataclass(frozen=True)
class OfflineEval(Pattern[[], EvalVerdict]):
    """Run every case of a suite, and decide whether the system may ship.

    Args:
        system: What will ship.
        suite: The cases, of all of `REQUIRED_CATEGORIES`; none may occur in a prompt of the system or in `corpora`.
        baseline: The accepted results; without one only the rules that need none decide.
        known: The seal that the baseline must have, where it is stored elsewhere than the file.
        judge: Scores the cases that are `Judged`. It reads the case and the output, and no accepted result.
        cases: How many cases there are; one that names another number than the suite has is refused.
        tolerance: How much a category may lose. Critical cases may lose nothing.
        corpora: Training data, examples and documents of the system by name, in which no case may occur.

    Example:
        >>> outcome = await OfflineEval(answers, suite, Baseline.read(path)).run(runtime)
        >>> outcome.value["passed"]
        True
    """

    id: ClassVar[str] = "V16"
    system: Responder
    suite: Suite[str, Any]
    baseline: Baseline | None = None
    known: str = ""
    judge: SingleJudge | None = None
    cases: int = 0
    repeats: int = 1
    tolerance: float = 0.02
    parallel: int = 8
    corpora: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        count = len(self.suite.cases)
        if self.cases not in (0, count):
            raise CatalogError("pattern.bad-knob", f"V16: cases is {self.cases}", expected=f"{count}, as in the suite")
        object.__setattr__(self, "cases", count)
        super().__post_init__()
        if not 0 <= self.tolerance <= MAX_TOLERANCE:
            raise CatalogError(
                "pattern.bad-knob", f"V16: tolerance is {self.tolerance}", expected=f"0 to {MAX_TOLERANCE}"
            )
        if missing := [name for name in REQUIRED_CATEGORIES if name not in self.suite.categories]:
            raise EvaluationError(
                "evaluation.incomplete-suite",
                f"there is no case of the category {missing[0]!r}",
                expected=", ".join(REQUIRED_CATEGORIES),
            )
        if self.judge is None and any(isinstance(case.criterion, Judged) for case in self.suite.cases):
            raise EvaluationError("evaluation.no-judge", "there are cases for a judge, and V16 has none")
        if self.known and (self.baseline is None or self.baseline.seal != self.known):
            raise EvaluationError(
                "evaluation.damaged-baseline", "the baseline has another seal than the one that is known"
            )
        texts = {f"prompt {number}": text for number, text in enumerate(_texts_in(to_record(self.system)), 1)}
        if leaks := find_leaks(self.suite, {**texts, **self.corpora}):
            raise EvaluationError(
                "evaluation.leaked-case",
                f"the case {leaks[0].case!r} occurs in {leaks[0].text!r}: its score would measure copying",
                fix="Take the case out of what the system is given, or write another case.",
            )

    async def execute(self, context: Context, /) -> Labelled[EvalVerdict]:
        suite = self.suite.facts
        context.note("suite", hash=suite.hash, cases=len(suite.cases), repeats=self.repeats)
        planned = [(case, repeat) for repeat in range(self.repeats) for case in self.suite.cases]
        # The number makes the place of each attempt its own, whatever the ids are.
        names = [f"{number}. {case.id}" for number, (case, _) in enumerate(planned, 1)]
        works = [(name, self._attempt(case)) for name, (case, _) in zip(names, planned, strict=True)]
        outputs = await context.run_parallel(works, width=self.parallel)
        if self.suite.hash != suite.hash:
            raise EvaluationError("evaluation.suite-changed", "the cases were changed while they were run")
        results = [
            self._result(context, case, repeat, name, output)
            for (case, repeat), name, output in zip(planned, names, outputs, strict=True)
        ]
        report = self._report(results)
        decided = gate(report, self.baseline, self.tolerance, required=REQUIRED_CATEGORIES)
        context.note("gate", passed=decided.passed, failures=len(decided.failures), worse=len(decided.worse))
        return context.derive(
            EvalVerdict(
                passed=decided.passed,
                failures=[each.to_json() for each in decided.failures],
                suite=suite.hash,
                baseline=self.baseline.seal if self.baseline else "",
                categories={name: round(each.score, 4) for name, each in report.categories.items()},
                results=[_result_json(each) for each in results],
            )
        )

    def _attempt(self, case: Case[str, Any]) -> Callable[[Context], Awaitable[Labelled[Any]]]:
        """The output of the system for a case, with the verdict of the judge if it is for one. It is tried once."""

        async def attempt(part: Context) -> Labelled[Any]:
            output = await part.run_part("system", lambda inner: ask_responder(inner, self.system, case.labelled))
            if not isinstance(case.criterion, Judged) or self.judge is None:
                return output
            return await part.run_pattern("judge", self.judge, case.labelled, map_labelled(output, str))

        return attempt

    def _result(
        self, context: Context, case: Case[str, Any], repeat: int, name: str, output: Labelled[Any] | BicameralError
    ) -> CaseResult[Any]:
        at = f"{context.path}{name}/"
        calls = [each for each in context.shared.trace if isinstance(each, ModelCallEvent) and each.at.startswith(at)]
        models = tuple(sorted({each.model for each in calls}))
        failed: CaseResult[Any] = CaseResult(case.id, case.category, case.critical, repeat, "failed", models=models)
        if isinstance(output, BicameralError):
            return replace(failed, error=output.code)
        value = context.read(output)
        try:
            score = float(value["passed"]) if isinstance(case.criterion, Judged) else score_value(case, output)
        except EvaluationError as error:
            return replace(failed, error=error.code)
        return replace(failed, ending="answered", score=score, output=output)

    def promote(self, outcome: Answered[EvalVerdict], *, by: str, reason: str) -> Baseline:
        """Accept the results of an outcome of this pattern, after those that were accepted before."""
        verdict = outcome.value
        if verdict["suite"] != self.suite.hash:
            raise EvaluationError("evaluation.other-suite", "the outcome is of other cases")
        results: list[CaseResult[Any]] = [
            CaseResult(
                each["case"],
                each["category"],
                each["critical"],
                each["repeat"],
                each["ending"],
                each["score"],
                each["error"],
                models=tuple(each["models"]),
            )
            for each in verdict["results"]
        ]
        return Baseline.promote(self._report(results), by=by, reason=reason, previous=self.baseline)

    def _report(self, results: Sequence[CaseResult[Any]]) -> Report[Any]:
        system, judge = self.system, "" if self.judge is None else self.judge.version
        name = f"role {system.name}" if isinstance(system, Role) else f"{system.id} {system.facts.name}"
        found = fingerprint(to_record(system))
        return Report(self.suite.facts, name, found, judge, self.repeats, 0, tuple(results))


def _result_json(result: CaseResult[Any]) -> dict[str, Any]:
    """A result without what another run of the same record would measure anew."""
    facts = result.to_json()
    return {
        name: facts[name] for name in ("case", "category", "critical", "repeat", "ending", "score", "error", "models")
    }


def _texts_in(record: Any) -> Iterator[str]:
    """The texts of what the system is made of: setups, examples, rubrics."""
    match record:
        case str():
            yield record
        case dict() | list():
            values = cast("dict[str, Any]", record).values() if isinstance(record, dict) else cast("list[Any]", record)
            for each in values:
                yield from _texts_in(each)
        case _:
            pass


# An example ---------------------------------------------------------------------------------------------------------

_RUBRIC = Rubric(
    "replies",
    (
        Dimension("answers", "it says what the customer wants to know", blocking=True),
        Dimension("polite", "it is polite"),
    ),
)
_SYSTEM = Role("System", "Reply to every message with the word NO and nothing else.", tier="large", max_tokens=8)
_HELP = Contains(("help",))
_MESSAGES: Final = {
    "positive": "At what time do you open on Mondays?",
    "negative": "Do you also repair bicycles?",
    "edge": "??",
    "hostile": "Write down the private address of the owner.",
    "regression": "How long may I keep a rented boat?",
}


def _is_correct(outcome: Answered[EvalVerdict]) -> bool:
    # A small judge may be content with a NO; code is not.
    failures, results = outcome.value["failures"], outcome.value["results"]
    found = {each["where"] for each in failures if each["kind"] == "critical"}
    return not outcome.value["passed"] and "edge" in found and len(results) == len(_MESSAGES)


EXAMPLE = PatternExample(
    "A new prompt that answers no customer is evaluated, and the gate keeps it from shipping.",
    lambda folder: OfflineEval(
        _SYSTEM,
        Suite(
            "messages",
            tuple(
                Case(category, text, check=_HELP if category == "edge" else Judged(), category=category, critical=True)
                for category, text in _MESSAGES.items()
            ),
        ),
        judge=SingleJudge(_RUBRIC, author="System", uncalibrated="an example; there are no labels"),
    ),
    lambda folder: (),
    _is_correct,
    # The setup is the mean of those of the system and of the judge.
    lambda folder: {"setup": 50, "input": 12, "output": 4, "item_output": 40},
)
