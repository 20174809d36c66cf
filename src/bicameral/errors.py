"""One tree of errors, each with a stable code and what to do next.

    BicameralError
    ├── ConfigError      bicameral.toml or an environment variable is wrong
    ├── LabelError       something is no label, or says what no label can say
    ├── ToolError        a tool, manifest or toolbox is wrong, or a call failed
    ├── PolicyError      a policy, or a file of cases for one, is wrong
    ├── ModelError       weights, an engine or a provider failed
    ├── RetrievalError   a document, an index or a search in one is not as it must be
    ├── IntentError      the request cannot be turned into an intent
    ├── PlanError        a plan does not parse, does not check, or could not be written
    ├── RunError         a run failed or was stopped
    ├── JournalError     the record of a run cannot be read or written
    ├── CatalogError     the catalogue has no such pattern, or a file of it is wrong
    ├── DurableError     a submitted run, a worker or a question is not as it must be
    └── ServerError      what was asked of the server cannot be answered, or it cannot be started

A code reads `room.what-is-wrong` (for example `plan.unknown-tool`) and never changes its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any

from bicameral.secrets import mask, mask_value


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is wrong: a file, a line and column, a step, an argument."""

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
        pairs = (
            ("file", self.file),
            ("line", self.line),
            ("column", self.column),
            ("step", self.step),
            ("argument", self.argument),
        )
        return {key: value for key, value in pairs if value is not None}


class BicameralError(Exception):
    """Something a person can act on: a code, a message, a place, and what to do next; known secrets are masked in it.

    Example:
        >>> raise PlanError("plan.unknown-tool", "there is no tool 'grp'", nearest_name="grep")
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
        """The same facts for a program: absent ones are left out."""
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


class PlanError(BicameralError):
    """A plan does not parse, does not check, or could not be written."""


class RunError(BicameralError):
    """A run failed or was stopped."""


class JournalError(BicameralError):
    """The record of a run cannot be read or written."""


class CatalogError(BicameralError):
    """The catalogue has no such pattern, or one of its files is wrong."""


class DurableError(BicameralError):
    """A submitted run, a worker or a question that waits is not as it must be."""


class ServerError(BicameralError):
    """What was asked of the server cannot be answered, or it cannot be started."""


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like `name`, or None if none is close."""
    if len(name) > _LONGEST_NAME:
        return None
    # Names may be a stranger's, such as those of columns, and comparing two takes quadratic time. So only short ones
    # are compared, and not more than anybody would read through.
    likely = islice((each for each in known if len(each) <= _LONGEST_NAME), _MOST_NAMES)
    found = get_close_matches(name, list(likely), n=1, cutoff=0.6)
    return found[0] if found else None


_LONGEST_NAME = 200
_MOST_NAMES = 5_000


MAX_DESCRIPTION = 2_000


def describe_error(error: BaseException) -> str:
    """An error of somebody else's code in a line: its class and what it says, if it can say it, cut to a length."""
    try:
        # Before it is cut: half a secret is not known any more.
        said = mask(str.__str__(str(error)))
    except Exception:
        said = ""
    name = type(error).__name__[:100]
    if len(said) > MAX_DESCRIPTION:
        said = f"{said[:MAX_DESCRIPTION]}…"
    return f"{name}: {said}" if said else name
