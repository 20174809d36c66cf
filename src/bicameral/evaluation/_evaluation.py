"""Evaluation: every case is put to a subject, once per repeat, and each output is checked.

An attempt is never made again for a better result. Errors count as wrong, and what was not run is listed as such.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from bicameral.errors import BicameralError, EvaluationError
from bicameral.evaluation._cases import Case, Suite, SuiteFacts, suite_of
from bicameral.evaluation._checks import CaseJudge, Judged
from bicameral.evaluation._report import CaseResult, CaseUsage, Report
from bicameral.evaluation._results_file import ResultsFile
from bicameral.evaluation._subject import Evaluable, Subject, subject_of
from bicameral.labels import Labelled, open_labelled, remember_released
from bicameral.limits import BudgetSpent, Charge, collect_charges

In = TypeVar("In")
Out = TypeVar("Out")

NOT_REACHED = "evaluation.not-reached"
OVER_LIMIT = "evaluation.over-limit"


@dataclass(frozen=True, slots=True)
class Progress:
    """An attempt has ended: `done` of `total`."""

    done: int
    total: int
    result: CaseResult[Any]


def _watch_nothing(_: Progress) -> None:
    """Nobody watches."""


def score_value(case: Case[Any, Out], output: Labelled[Out]) -> float:
    """The score of an output by the check of its case, which is code. The output counts as released to the program."""
    criterion = case.criterion
    if isinstance(criterion, Judged):
        raise _no_judge_error(case.id)
    value = open_labelled(output)
    remember_released(value, output.label_tree)
    try:
        score = criterion.score(value)
    except Exception:
        # Its message may quote the output.
        score = math.nan
    if not 0 <= score <= 1:
        raise EvaluationError(
            "evaluation.check-failed", f"the check of the case {case.id!r} gave no score", expected="0 to 1"
        )
    return score


def _no_judge_error(case: str) -> EvaluationError:
    return EvaluationError(
        "evaluation.no-judge",
        f"the case {case!r} is for a judge, and there is none",
        fix="Give the evaluation a `judge`, or the case a check.",
    )


@dataclass
class Evaluation(Generic[In, Out]):
    """An evaluation of one subject. `report` has what was measured so far, also after an interruption.

    Args:
        subject: What is evaluated.
        suite: The cases.
        judge: Scores the cases that are `Judged`.
        repeats: How often each case is run.
        parallel: How many attempts run at the same time.
        seed: The seed of the first repeat; the next ones have the next numbers.
        limit: Run only the first so many cases; the others are reported as not run.
        seconds: The time for one attempt.
        results: A file that gets each result, and from which an evaluation that was interrupted goes on.
        watch: Gets each result.
        clock: Seconds that pass.
    """

    subject: Subject[In, Out]
    suite: Suite[In, Out]
    judge: CaseJudge[In, Out] | None = None
    repeats: int = 1
    parallel: int = 1
    seed: int = 0
    limit: int | None = None
    seconds: float | None = None
    results: Path | None = None
    watch: Callable[[Progress], None] = _watch_nothing
    clock: Callable[[], float] = time.perf_counter
    _facts: SuiteFacts = field(init=False)
    _found: dict[tuple[str, int], CaseResult[Out]] = field(init=False, default_factory=dict[Any, Any])
    _stopped: str = field(init=False, default="")

    def __post_init__(self) -> None:
        for name, number in (("repeats", self.repeats), ("parallel", self.parallel), ("limit", self.limit)):
            if number is not None and number < 1:
                raise EvaluationError("evaluation.bad-setting", f"{name} is {number}", expected="1 or more")
        if self.judge is None:
            judged = next((case.id for case in self.suite.cases if isinstance(case.criterion, Judged)), None)
            if judged is not None:
                raise _no_judge_error(judged)
        self._facts = self.suite.facts

    async def run(self) -> Report[Out]:
        """Run every case that has no result yet; `evaluation.suite-changed` if the cases are others at the end."""
        file = self._open_results()
        total = len(self._planned)
        waiting = [each for each in self._planned if (each[0].id, each[1]) not in self._found]
        room = asyncio.Semaphore(self.parallel)

        async def one(case: Case[In, Out], repeat: int) -> None:
            async with room:
                if self._stopped:
                    return
                try:
                    result = await self._attempt(case, repeat)
                except BudgetSpent as error:
                    # Every further attempt would end in the same way, and none of them would be the subject's fault.
                    self._stopped = error.code
                    return
                if file is not None:
                    file.append(result)
                self._found[case.id, repeat] = result
                self.watch(Progress(len(self._found), total, result))

        try:
            async with asyncio.TaskGroup() as group:
                for case, repeat in waiting:
                    group.create_task(one(case, repeat))
        except* EvaluationError as errors:
            # The file of results cannot be written: all attempts have the same error.
            raise next(each for each in errors.exceptions if isinstance(each, EvaluationError)) from None
        if self.suite.hash != self._facts.hash:
            raise EvaluationError(
                "evaluation.suite-changed",
                "the cases were changed while they were run",
                fix="Let neither the subject nor a check change an input.",
            )
        return self.report()

    @property
    def _planned(self) -> list[tuple[Case[In, Out], int]]:
        return [(case, repeat) for repeat in range(self.repeats) for case in self.suite.cases[: self.limit]]

    def _open_results(self) -> ResultsFile | None:
        if self.results is None:
            return None
        head: dict[str, Any] = {
            "suite": self._facts.hash,
            "subject": self.subject.name,
            "fingerprint": self.subject.fingerprint,
            "judge": self._judge_fingerprint,
            "repeats": self.repeats,
            "seed": self.seed,
        }
        file = ResultsFile(self.results, head, self._facts)
        self._found = {(each.case, each.repeat): each for each in file.read() if each.repeat < self.repeats}
        return file

    @property
    def _judge_fingerprint(self) -> str:
        judged = any(isinstance(case.criterion, Judged) for case in self.suite.cases)
        return self.judge.fingerprint if self.judge is not None and judged else ""

    async def _attempt(self, case: Case[In, Out], repeat: int) -> CaseResult[Out]:
        result: CaseResult[Out] = CaseResult(case.id, case.category, case.critical, repeat, "failed")
        begun = self.clock()
        with collect_charges() as charges:
            output, error = await self._ask(case, self.seed + repeat)
        seconds = self.clock() - begun
        with collect_charges() as judging:
            score = 0.0
            if output is not None:
                try:
                    score = await self._score(case, output)
                except BudgetSpent:
                    raise
                except BicameralError as failed:
                    error = failed.code
        real = [each for each in charges if each.ending != "remembered"]
        return replace(
            result,
            ending="failed" if error else "answered",
            score=0.0 if error else score,
            error=error,
            taken=usage_of(real, seconds, sum(each.tokens for each in judging)),
            models=tuple(sorted({each.model for each in (*charges, *judging)})),
            output=output,
        )

    async def _ask(self, case: Case[In, Out], seed: int) -> tuple[Labelled[Out] | None, str | None]:
        """The output, or the code of the error."""
        try:
            async with asyncio.timeout(self.seconds):
                output = await self.subject.attempt(case.labelled, seed)
        except TimeoutError:
            return None, "evaluation.timeout"
        except BudgetSpent:
            raise
        except BicameralError as error:
            return None, error.code
        except Exception:
            return None, "evaluation.subject-failed"
        # The subject is a function of somebody's own, whatever its type says.
        return (output, None) if isinstance(output, Labelled) else (None, "evaluation.naked-output")  # pyright: ignore[reportUnnecessaryIsInstance]

    async def _score(self, case: Case[In, Out], output: Labelled[Out]) -> float:
        if not isinstance(case.criterion, Judged):
            return score_value(case, output)
        if self.judge is None:
            raise _no_judge_error(case.id)
        try:
            score = await self.judge.score(case.labelled, output)
        except BicameralError:
            raise
        except Exception:
            score = math.nan
        if not 0 <= score <= 1:
            raise EvaluationError("evaluation.check-failed", "the judge gave no score", expected="0 to 1")
        return score

    def report(self) -> Report[Out]:
        """What was measured so far; every case and repeat is in it."""
        reached = {case.id for case in self.suite.cases[: self.limit]}
        results: list[CaseResult[Out]] = []
        for repeat in range(self.repeats):
            for id, facts in self._facts.cases.items():
                found = self._found.get((id, repeat))
                why = (self._stopped or NOT_REACHED) if id in reached else OVER_LIMIT
                missing: CaseResult[Out] = CaseResult(id, facts.category, facts.critical, repeat, "not-run", error=why)
                results.append(found or missing)
        return Report(
            self._facts,
            self.subject.name,
            self.subject.fingerprint,
            self._judge_fingerprint,
            self.repeats,
            self.seed,
            tuple(results),
        )


def usage_of(charges: Iterable[Charge], seconds: float, judge_tokens: int = 0) -> CaseUsage:
    """What model calls took together."""
    found = list(charges)
    prices = [each.money for each in found]
    money = None if None in prices else math.fsum(price for price in prices if price is not None)
    return CaseUsage(len(found), sum(each.tokens for each in found), money, seconds, judge_tokens)


async def evaluate(
    subject: Subject[In, Out] | Evaluable[Any, In, Out] | Callable[[Labelled[In]], Awaitable[Labelled[Out]]],
    cases: Suite[In, Out] | Iterable[Case[In, Out]],
    *,
    runtime: object = None,
    judge: CaseJudge[In, Out] | None = None,
    repeats: int = 1,
    parallel: int = 1,
    seed: int = 0,
    limit: int | None = None,
    seconds: float | None = None,
    results: Path | None = None,
    watch: Callable[[Progress], None] = _watch_nothing,
) -> Report[Out]:
    """Put every case to a subject, and report what was right and what it took.

    Args:
        subject: A pattern or a role (with a `runtime`), an agent, a `Subject`, or an async function.
        cases: A suite, or its cases.
        runtime: What a pattern or a role runs with.
        judge, repeats, parallel, seed, limit, seconds, results, watch: As of `Evaluation`.

    Example:
        >>> report = await evaluate(ReAct(), suite, runtime=agent.runtime(), parallel=4)
        >>> report.accuracy
        0.85
    """
    return await Evaluation(
        subject_of(subject, runtime),
        suite_of(cases),
        judge,
        repeats,
        parallel,
        seed,
        limit,
        seconds,
        results,
        watch,
    ).run()
