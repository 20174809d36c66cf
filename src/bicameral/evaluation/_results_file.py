"""The results of an evaluation in a file, one line for each attempt, so that one that was interrupted can go on.

The first line says what was evaluated. A file of another suite, subject, judge or seed is refused: results of two
subjects must not become one report. A last line without its line feed was cut off by a crash and is dropped. Outputs
are not stored, since a label that is read from a file proves nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bicameral.errors import EvaluationError, Place
from bicameral.evaluation._cases import SuiteFacts
from bicameral.evaluation._report import CaseResult, CaseUsage

RESULTS_VERSION = "evaluation-results/1"
MAX_RESULTS_FILE = 256_000_000

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    case: str
    category: str
    critical: bool
    repeat: Count
    ending: Literal["answered", "failed"]
    score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    error: str | None
    models: list[str]
    calls: Count
    tokens: Count
    money: Amount | None
    seconds: Amount
    judge_tokens: Count

    def result(self) -> CaseResult[Any]:
        taken = CaseUsage(self.calls, self.tokens, self.money, self.seconds, self.judge_tokens)
        return CaseResult(
            self.case,
            self.category,
            self.critical,
            self.repeat,
            self.ending,
            self.score if self.ending == "answered" else 0.0,
            self.error,
            taken,
            tuple(self.models),
        )


class ResultsFile:
    """A file of results. Opened once by an evaluation, which appends to it."""

    def __init__(self, path: Path, head: Mapping[str, Any], suite: SuiteFacts) -> None:
        self._path = path
        self._head = {"version": RESULTS_VERSION, **head}
        self._suite = suite

    def read(self) -> list[CaseResult[Any]]:
        """The results so far; an error if they are of something else."""
        try:
            raw = self._path.read_bytes() if self._path.exists() else b""
        except OSError as error:
            raise self._failed(error) from error
        if len(raw) > MAX_RESULTS_FILE:
            raise self._damaged(1)
        lines = raw[: raw.rfind(b"\n") + 1].splitlines()
        if not lines:
            self._begin()
            return []
        if self._object(lines[0], 1) != self._head:
            raise EvaluationError(
                "evaluation.other-results",
                "the file has results of another suite, subject, judge, seed or number of repeats",
                place=Place(file=str(self._path), line=1),
                fix="Name another file, or remove this one.",
            )
        # What a crash has cut off goes before anything is appended to it.
        self._truncate(raw.rfind(b"\n") + 1)
        found: dict[tuple[str, int], CaseResult[Any]] = {}
        for number, line in enumerate(lines[1:], start=2):
            result = self._result(line, number)
            if (result.case, result.repeat) in found:
                raise self._damaged(number)
            found[result.case, result.repeat] = result
        return list(found.values())

    def append(self, result: CaseResult[Any]) -> None:
        """Add a result; it survives the end of this process."""
        self._write(json.dumps(result.to_json(), ensure_ascii=True), "ab")

    def _begin(self) -> None:
        self._write(json.dumps(self._head, ensure_ascii=True), "wb")

    def _write(self, line: str, mode: Literal["ab", "wb"]) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open(mode) as file:
                file.write(line.encode() + b"\n")
        except OSError as error:
            raise self._failed(error) from error

    def _truncate(self, length: int) -> None:
        try:
            os.truncate(self._path, length)
        except OSError as error:
            raise self._failed(error) from error

    def _object(self, line: bytes, number: int) -> Any:
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            raise self._damaged(number) from None

    def _result(self, line: bytes, number: int) -> CaseResult[Any]:
        try:
            result = _Line.model_validate(self._object(line, number)).result()
        except ValidationError:
            raise self._damaged(number) from None
        facts = self._suite.cases.get(result.case)
        if facts is None or (facts.category, facts.critical) != (result.category, result.critical):
            raise self._damaged(number)
        return result

    def _damaged(self, number: int) -> EvaluationError:
        return EvaluationError(
            "evaluation.damaged-results",
            "this line is not a result as it is written here",
            place=Place(file=str(self._path), line=number),
            fix="Remove the file and run the evaluation again.",
        )

    def _failed(self, error: OSError) -> EvaluationError:
        return EvaluationError(
            "evaluation.cannot-write",
            f"the file of results cannot be read or written: {error.strerror or type(error).__name__}",
            place=Place(file=str(self._path)),
        )
