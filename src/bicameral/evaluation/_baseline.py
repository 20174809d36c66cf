"""Baselines: the results that were accepted, in a file that changes only by recorded promotions.

    {"version": "evaluation-baseline/1", "promotions": [{"number": 0, "by": "…", "reason": "…", …, "seal": "…"}]}

Each promotion has a hash of itself and of the seal before it, so a score that was edited, and a promotion that was
removed or inserted, is found. Hashes cannot show that the whole file was written anew: whoever must know this stores
the last seal elsewhere, such as in the settings of the build, and passes it as `known`.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from bicameral.errors import EvaluationError, Place
from bicameral.evaluation._cases import CaseFacts, SuiteFacts
from bicameral.evaluation._checks import hash_of
from bicameral.evaluation._report import Report

BASELINE_VERSION = "evaluation-baseline/1"
MAX_BASELINE_FILE = 64_000_000
_MAX_WORDS = 2_000

_STRICT = ConfigDict(extra="forbid", strict=True)
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class BaselineCase:
    """A case of a baseline: what it was, and the score of each repeat. An error has the score 0."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    category: str
    critical: bool
    hash: str
    scores: list[Share]


@dataclass(frozen=True, slots=True)
class Promotion:
    """One set of results that was accepted: when, by whom and why."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    number: int
    at: str
    by: str
    reason: str
    suite: str
    suite_hash: str
    subject: str
    fingerprint: str
    judge: str
    models: list[str]
    repeats: Annotated[int, Field(ge=1)]
    cases: dict[str, BaselineCase]
    removed: list[str]
    """The cases of the promotion before that are not in this one."""
    before: str
    seal: str = ""

    @property
    def suite_facts(self) -> SuiteFacts:
        """The suite that was run."""
        return SuiteFacts(
            self.suite, {id: CaseFacts(case.category, case.critical, case.hash) for id, case in self.cases.items()}
        )

    @property
    def expected_seal(self) -> str:
        """The seal that it must have."""
        return hash_of({name: value for name, value in asdict(self).items() if name != "seal"})


@dataclass(frozen=True, slots=True)
class _BaselineDocument:
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    version: Literal["evaluation-baseline/1"]
    promotions: Annotated[list[Promotion], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Baseline:
    """The promotions of a baseline, the oldest first. The last one counts.

    Example:
        >>> baseline = Baseline.promote(report, by="anna", reason="first release")
        >>> baseline.write(Path("baseline.json"))
        >>> gate(await evaluate(subject, suite), baseline).passed
        True
    """

    promotions: tuple[Promotion, ...]

    def __post_init__(self) -> None:
        if not self.promotions:
            raise _damaged_error("it has no promotion")
        before = ""
        for number, each in enumerate(self.promotions):
            if each.number != number or each.before != before or each.seal != each.expected_seal:
                raise _damaged_error(f"promotion {number} is not as it was written")
            if each.suite_facts.hash != each.suite_hash or any(
                len(case.scores) != each.repeats for case in each.cases.values()
            ):
                raise _damaged_error(f"promotion {number} contradicts itself")
            before = each.seal

    @property
    def accepted(self) -> Promotion:
        """The promotion that counts."""
        return self.promotions[-1]

    @property
    def seal(self) -> str:
        """The seal of the last promotion, to be stored elsewhere."""
        return self.accepted.seal

    @staticmethod
    def promote(
        report: Report[Any],
        *,
        by: str,
        reason: str,
        previous: Baseline | None = None,
        at: dt.datetime | None = None,
    ) -> Baseline:
        """Accept the results of a report, after those that were accepted before.

        A report with cases that were not run, or with a critical case that is wrong, is refused.

        Args:
            by: Who accepts them.
            reason: Why; stored in the file.
            previous: The baseline so far; None for the first.
        """
        for name, text in (("by", by), ("reason", reason)):
            if not text.strip() or len(text) > _MAX_WORDS:
                raise _promotion_error(f"a promotion has no usable {name!r}", "a text")
        if report.is_partial:
            raise _promotion_error("not every case was run", "a report on the whole suite")
        if wrong := next((each.case for each in report.results if each.critical and not each.correct), None):
            raise _promotion_error(
                f"the critical case {wrong!r} is not right", "critical cases that are right each time"
            )
        before = previous.accepted if previous else None
        scores: dict[str, list[float]] = {id: [] for id in report.suite.cases}
        for each in report.results:
            scores[each.case].append(round(each.score, 6))
        cases = {
            id: BaselineCase(facts.category, facts.critical, facts.hash, scores[id])
            for id, facts in report.suite.cases.items()
        }
        made = Promotion(
            number=before.number + 1 if before else 0,
            at=(at or dt.datetime.now(dt.UTC)).isoformat(timespec="seconds"),
            by=by,
            reason=reason,
            suite=report.suite.name,
            suite_hash=report.suite.hash,
            subject=report.subject,
            fingerprint=report.fingerprint,
            judge=report.judge,
            models=sorted(report.models),
            repeats=report.repeats,
            cases=cases,
            removed=sorted(set(before.cases) - set(cases)) if before else [],
            before=before.seal if before else "",
        )
        sealed = replace(made, seal=made.expected_seal)
        return Baseline((*(previous.promotions if previous else ()), sealed))

    @staticmethod
    def read(path: Path, *, known: str | None = None) -> Baseline:
        """The baseline of a file; an error if anything in it was changed by other means than a promotion.

        Args:
            known: The seal that the last promotion must have.
        """
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise _file_error(path, error) from error
        try:
            if len(raw) > MAX_BASELINE_FILE:
                raise _damaged_error("it is too large")
            document = TypeAdapter(_BaselineDocument).validate_json(raw)
            found = Baseline(tuple(document.promotions))
        except ValidationError:
            raise _damaged_error("it is not a baseline", path) from None
        except EvaluationError as error:
            raise _damaged_error(error.message, path) from None
        if known is not None and found.seal != known:
            raise _damaged_error("its last promotion has another seal than the one that is known", path)
        return found

    def write(self, path: Path) -> None:
        """Write the file as a whole: a crash leaves the old one or the new one."""
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=True) + "\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                os.chmod(name, 0o644)
                os.replace(name, path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise _file_error(path, error) from error

    def to_json(self) -> dict[str, Any]:
        return {
            "version": BASELINE_VERSION,
            "promotions": [asdict(each) for each in self.promotions],
        }


def category_scores(cases: Mapping[str, BaselineCase]) -> Mapping[str, list[float]]:
    """The mean score of each case, by category."""
    found: dict[str, list[float]] = {}
    for case in cases.values():
        found.setdefault(case.category, []).append(sum(case.scores) / len(case.scores))
    return found


def baseline_schema() -> dict[str, Any]:
    """The published JSON Schema of a baseline file."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **TypeAdapter(_BaselineDocument).json_schema()}


def _damaged_error(why: str, path: Path | None = None) -> EvaluationError:
    return EvaluationError(
        "evaluation.damaged-baseline",
        f"the baseline is not as it was written: {why}" if path is None else why,
        place=None if path is None else Place(file=str(path)),
        fix="Take the file from the version control; change it only with a promotion.",
    )


def _promotion_error(why: str, expected: str) -> EvaluationError:
    return EvaluationError("evaluation.cannot-promote", f"these results cannot be a baseline: {why}", expected=expected)


def _file_error(path: Path, error: OSError) -> EvaluationError:
    return EvaluationError(
        "evaluation.no-baseline",
        f"the baseline cannot be read or written: {error.strerror or type(error).__name__}",
        place=Place(file=str(path)),
        fix="Make the first one with `bicameral evaluate … --save FILE`.",
    )
