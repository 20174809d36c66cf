"""Checks: whether an output is right. A check is a value with a fingerprint, so that a changed one is a changed suite.

Everything but `Judged` is code. A check of code gets the plain output and gives a score from 0 to 1; an output is
correct with the score 1.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from functools import partial
from types import FunctionType
from typing import Any, Generic, Protocol, TypeVar, cast

from pydantic_core import PydanticSerializationError, to_jsonable_python

from bicameral.errors import EvaluationError
from bicameral.labels import Labelled
from bicameral.tools import function_code_hash

Out = TypeVar("Out")
Out_contra = TypeVar("Out_contra", contravariant=True)
In = TypeVar("In")

MAX_CHECKED = 1_000_000
"""The characters of a text that a check reads; a longer one is wrong."""


def hash_of(value: object) -> str:
    """A hash of a plain value: the same in every process, and another for another value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def canonical_json(value: object) -> str:
    """A plain value as JSON, in one way; what JSON cannot say is refused."""
    try:
        return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        raise EvaluationError(
            "evaluation.bad-value",
            "a value of a case cannot be written as JSON",
            expected="texts, numbers, lists, mappings, dates, dataclasses and pydantic models",
        ) from None


def _plain(value: object) -> object:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case set() | frozenset():
            # A set has another order in every process.
            return sorted(canonical_json(each) for each in cast("frozenset[object]", value))
        case Mapping():
            return {str(key): _plain(each) for key, each in cast("Mapping[object, object]", value).items()}
        case list() | tuple():
            return [_plain(each) for each in cast("Sequence[object]", value)]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
        case _:
            return to_jsonable_python(value, by_alias=True)


def code_hash(function: Callable[..., Any]) -> str:
    """A hash of what a function does: its code, the functions of its module that it uses, and what it has captured."""
    if isinstance(function, partial):
        given = cast("partial[Any]", function)
        named = {name: _value_hash(each) for name, each in given.keywords.items()}
        return hash_of([code_hash(given.func), [_value_hash(each) for each in given.args], named])
    name = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', type(function).__qualname__)}"
    if not isinstance(function, FunctionType):
        return hash_of([name])
    captured = [_value_hash(cell.cell_contents) for cell in function.__closure__ or ()]
    return hash_of([name, function_code_hash(function)(), captured])


def _value_hash(value: object) -> str:
    if callable(value):
        return code_hash(value)
    try:
        return hash_of(value)
    except EvaluationError:
        return type(value).__qualname__


class Check(ABC, Generic[Out_contra]):
    """Says how right an output is. Subclasses are frozen dataclasses."""

    @abstractmethod
    def score(self, output: Out_contra) -> float:
        """0 to 1. Whatever it raises counts as an error of the check, and never as right."""

    @property
    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """The check in plain values: its fingerprint, and how a file writes it."""

    @property
    def fingerprint(self) -> str:
        return hash_of(self.facts)


def normal_text(text: str) -> str:
    """A text without differences of case and white space."""
    return " ".join(text[: MAX_CHECKED + 1].casefold().split())


def same_value(one: object, other: object) -> bool:
    """Whether two values are the same: texts without differences of case and white space, true is not 1."""
    if isinstance(one, str) and isinstance(other, str):
        return len(other) <= MAX_CHECKED and normal_text(one) == normal_text(other)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        left, right = cast("Mapping[Any, Any]", one), cast("Mapping[Any, Any]", other)
        return left.keys() == right.keys() and all(same_value(left[key], right[key]) for key in left)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        items, others = cast("Sequence[Any]", one), cast("Sequence[Any]", other)
        return len(items) == len(others) and all(map(same_value, items, others))
    return one == other


@dataclass(frozen=True, slots=True)
class Equals(Check[object]):
    """The output is this value. Texts are compared without differences of case and white space.

    Example:
        >>> Equals("Ghent").score(" ghent ")
        1.0
    """

    value: Any

    def score(self, output: object) -> float:
        return float(same_value(self.value, output))

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"equals": self.value}


@dataclass(frozen=True, slots=True)
class Contains(Check[object]):
    """The output has each of these texts in it, without differences of case and white space."""

    texts: tuple[str, ...]

    def score(self, output: object) -> float:
        shown = _text_of(output)
        return float(shown is not None and all(normal_text(each) in shown for each in self.texts))

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"contains": list(self.texts)}


@dataclass(frozen=True, slots=True)
class Excludes(Check[object]):
    """The output has none of these texts in it. An output that cannot be read as text is wrong."""

    texts: tuple[str, ...]

    def score(self, output: object) -> float:
        shown = _text_of(output)
        return float(shown is not None and not any(normal_text(each) in shown for each in self.texts))

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"excludes": list(self.texts)}


def _text_of(output: object) -> str | None:
    """The normal text of an output; structured outputs are read as JSON; None if there is too much of it."""
    try:
        text = output if isinstance(output, str) else json.dumps(to_jsonable_python(output), ensure_ascii=False)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        return None
    return normal_text(text) if len(text) <= MAX_CHECKED else None


@dataclass(frozen=True, slots=True)
class Near(Check[object]):
    """The output is a number, or the text of one, at most `within` away from this."""

    number: float
    within: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.number) and math.isfinite(self.within) and self.within >= 0):
            raise bad_case_error("a number and its distance must be finite", "a distance of 0 or more")

    def score(self, output: object) -> float:
        if isinstance(output, str) and len(output) <= 100:
            try:
                output = float(output.strip())
            except ValueError:
                return 0.0
        if isinstance(output, bool) or not isinstance(output, int | float | Decimal):
            return 0.0
        return float(abs(float(output) - self.number) <= self.within)

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"near": self.number, "within": self.within}


@dataclass(frozen=True, slots=True)
class Fields(Check[object]):
    """The output is a record, and each of these fields is right. Other fields do not matter."""

    checks: Mapping[str, Check[Any]]

    def score(self, output: object) -> float:
        if not isinstance(output, Mapping):
            return 0.0
        record = cast("Mapping[str, Any]", output)
        return float(all(name in record and check.score(record[name]) == 1 for name, check in self.checks.items()))

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"fields": {name: dict(check.facts) for name, check in self.checks.items()}}


@dataclass(frozen=True, slots=True)
class AllOf(Check[object]):
    """The output is right by each of these checks."""

    checks: tuple[Check[Any], ...]

    def score(self, output: object) -> float:
        return float(all(check.score(output) == 1 for check in self.checks))

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"all": [dict(check.facts) for check in self.checks]}


@dataclass(frozen=True, slots=True)
class By(Check[Out]):
    """A function of the program decides: true, false, or a score from 0 to 1.

    Args:
        version: To be changed when something changes that the function uses and its own code does not show.
    """

    function: Callable[[Out], bool | float]
    version: str = ""
    hash: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Once: a function may count or remember what it is given, and is the same check all the same.
        object.__setattr__(self, "hash", code_hash(self.function))

    def score(self, output: Out) -> float:
        return float(self.function(output))

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"function": self.hash, "version": self.version}


@dataclass(frozen=True, slots=True)
class Judged:
    """A judge decides, who is given to the evaluation. He reads the input and the output, and nothing else."""

    @property
    def fingerprint(self) -> str:
        return hash_of({"judged": True})


class CaseJudge(Protocol[In, Out]):
    """Scores outputs of cases that no code can check. V15 is one: `judge.as_judge(runtime)`."""

    @property
    def fingerprint(self) -> str:
        """Of its rubric, its prompt and its way of judging: another judge needs another baseline."""
        ...

    async def score(self, input: Labelled[In], output: Labelled[Out], /) -> float:
        """0 to 1; a `BicameralError` if there is no verdict."""
        ...


def bad_case_error(message: str, expected: str | None = None, fix: str | None = None) -> EvaluationError:
    return EvaluationError("evaluation.bad-case", message, expected=expected, fix=fix)
