"""One tree of errors, each with a stable code and what to do next.

    BicameralError
    ├── ConfigError      bicameral.toml or an environment variable is wrong
    ├── LabelError       something is no label, or says what no label can say
    ├── ToolError        a tool, manifest or toolbox is wrong, or a call failed
    ├── PolicyError      a policy, or a file of cases for one, is wrong
    ├── ModelError       weights, an engine or a provider failed
    ├── RetrievalError   a document, an index or a search in one is not as it must be
    ├── IntentError      the request cannot be turned into an intent
    ├── BindError        words of a request cannot be looked up in the world
    ├── PlanError        a plan does not parse, does not check, or could not be written
    ├── RunError         a run failed or was stopped
    ├── JournalError     the record of a run cannot be read or written
    ├── RecordError      a stored record cannot be read, written or accepted
    ├── CatalogError     the catalogue has no such pattern, or a file of it is wrong
    ├── EvaluationError  cases, results or a baseline are not as they must be
    ├── DurableError     a submitted run, a worker or a question is not as it must be
    └── ServerError      what was asked of the server cannot be answered, or it cannot be started

A code reads `room.what-is-wrong` (for example `plan.unknown-tool`) and never changes its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any

from bicameral.secrets import mask, mask_value


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a fault: a file, a line and column, a step, an argument."""

    file: str | None = None
    line: int | None = None
    column: int | None = None
    step: str | None = None
    argument: str | None = None

    def __str__(self) -> str:
        parts: list[str] = []
        if self.file:
            parts.append(self.file)
        if self.line is not None:
            parts.append(f"line {self.line}" + (f", column {self.column}" if self.column is not None else ""))
        if self.step:
            parts.append(f"step {self.step!r}")
        if self.argument:
            parts.append(f"argument {self.argument!r}")
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


class BicameralError(Exception):
    """An error that a person can act on: a code, a message, a place, and what to do next. Known secrets are masked.

    Args:
        code: The stable code, `room.what-is-wrong`.
        message: What is wrong, in one sentence without its full stop.
        place: Where it is wrong.
        expected: What was expected instead.
        nearest: The nearest valid name.
        fix: What to do next, as a sentence.

    Example:
        >>> raise PlanError("plan.unknown-tool", "there is no tool 'grp'", nearest="grep")
        Traceback (most recent call last):
        bicameral.errors.PlanError: there is no tool 'grp'. Did you mean 'grep'? [plan.unknown-tool]
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        place: Place | None = None,
        expected: str | None = None,
        nearest: str | None = None,
        fix: str | None = None,
    ) -> None:
        message = mask(message)
        super().__init__(message)
        self.code = code
        self.message = message
        self.place = place
        self.expected = mask(expected) if expected else expected
        self.nearest = mask(nearest) if nearest else nearest
        self.fix = mask(fix) if fix else fix

    def __str__(self) -> str:
        where = mask(f"{self.place}: ") if self.place and str(self.place) else ""
        text = f"{where}{self.message}"
        if self.expected:
            text += f"; expected {self.expected}"
        text += "." if not text.endswith((".", "?", "!")) else ""
        if self.nearest:
            text += f" Did you mean {self.nearest!r}?"
        if self.fix:
            text += f" {self.fix}"
        return f"{text} [{self.code}]"

    def to_json(self) -> dict[str, Any]:
        """The same facts as JSON; absent ones are left out."""
        pairs = (
            ("code", self.code),
            ("message", self.message),
            ("place", mask_value(self.place.to_json()) if self.place else None),
            ("expected", self.expected),
            ("nearest", self.nearest),
            ("fix", self.fix),
        )
        return {key: value for key, value in pairs if value is not None}


class ConfigError(BicameralError):
    """The configuration is wrong."""


class LabelError(BicameralError):
    """Something is no label, or says what no label can say."""


class ToolError(BicameralError):
    """A tool, manifest or toolbox is wrong, or a call failed."""


class PolicyError(BicameralError):
    """A policy, or a file of cases for one, is wrong."""


class ModelError(BicameralError):
    """Weights, an engine or a provider failed."""


class RetrievalError(BicameralError):
    """A document, an index or a search in one is not as it must be."""


class IntentError(BicameralError):
    """The request cannot be turned into an intent."""


class BindError(BicameralError):
    """Words of a request cannot be looked up in the world."""


class PlanError(BicameralError):
    """A plan does not parse, does not check, or could not be written."""


class RunError(BicameralError):
    """A run failed or was stopped."""


class JournalError(BicameralError):
    """The record of a run cannot be read or written."""


class RecordError(BicameralError):
    """A stored record cannot be read, written or accepted."""


class CatalogError(BicameralError):
    """The catalogue has no such pattern, or one of its files is wrong."""


class EvaluationError(BicameralError):
    """Cases, results or a baseline are not as they must be."""


class DurableError(BicameralError):
    """A submitted run, a worker or a question that waits is not as it must be."""


class ServerError(BicameralError):
    """What was asked of the server cannot be answered, or it cannot be started."""


_MAX_NAME_LENGTH = 200
_MAX_NAMES = 5_000
MAX_DESCRIPTION = 2_000


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar to `name`, or None if none is close."""
    if len(name) > _MAX_NAME_LENGTH:
        return None
    # Names may be untrusted, such as those of columns, and a comparison takes quadratic time. So only short names are
    # compared, and a bounded number of them.
    candidates = islice((candidate for candidate in known if len(candidate) <= _MAX_NAME_LENGTH), _MAX_NAMES)
    matches = get_close_matches(name, list(candidates), n=1, cutoff=0.6)
    return matches[0] if matches else None


def missing_packages(*packages: str) -> list[str]:
    """The packages that are not installed; a dotted name whose parent is missing counts as missing."""
    from importlib.util import find_spec

    def is_installed(package: str) -> bool:
        try:
            return find_spec(package) is not None
        except ModuleNotFoundError:
            return False

    return [package for package in packages if not is_installed(package)]


def require_extra(extra: str, *packages: str, error: type[BicameralError], code: str, needs: str) -> None:
    """Raise `error` with `code` if a package of an extra is not installed.

    Example:
        >>> require_extra("server", "uvicorn", error=ServerError, code="server.not-installed", needs="the server needs")
    """
    if missing := missing_packages(*packages):
        raise error(
            code,
            f"{needs} {', '.join(missing)}, which is not installed",
            fix=f'Install it with `pip install "bicameral[{extra}]"`.',
        )


def describe_error(error: BaseException) -> str:
    """An error of foreign code in one line: its class and its message, if it has one, cut in the middle."""
    try:
        # Masked before the cut, since half a secret is not recognised.
        message = mask(str.__str__(str(error)))
    except Exception:
        message = ""
    name = type(error).__name__[:100]
    if len(message) > MAX_DESCRIPTION:
        # What wraps an error stands before it; the cause often comes last.
        message = f"{message[: MAX_DESCRIPTION // 2]}…{message[-(MAX_DESCRIPTION // 2) :]}"
    return f"{name}: {message}" if message else name
