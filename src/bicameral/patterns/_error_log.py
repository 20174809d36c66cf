"""Errors in few words: their type, place and cause, how often each has come, and when there are too many.

The whole error is in the record of the run before it comes here. What is kept here is what a model may read of it where
it stands: the caller has chosen the text, and its label.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PureWindowsPath
from typing import Any, Final, cast

from bicameral.errors import RunError
from bicameral.secrets import mask

MAX_CAUSE: Final = 200
"""How many characters of a cause are shown."""
REPEATED = "error: it came again, and is told once below"
"""What stands in place of an error that is told with its count further below."""
REPEATED_CODE = "pattern.errors-repeated"
TOO_MANY_CODE = "pattern.too-many-errors"

_PREFIX = "error: "
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]{1,300})", line (?P<line>\d{1,9})', re.MULTILINE)
_BODY = re.compile(r"[{\[]")
_CAUSE_KEYS = ("message", "detail", "error", "error_description", "title", "reason", "cause")
_MAX_PARSED = 100_000
_MAX_DEPTH = 6
_VARYING = re.compile(
    r"""'[^']{0,200}' | "[^"]{0,200}"              # what is quoted
    | (?:[A-Za-z]:)?(?:[/\\][\w.\-]+)+             # paths
    | \b(?=[0-9a-f-]*\d)[0-9a-f]{8,}(?:-[0-9a-f]+)* # ids
    | \d+(?:[.:,]\d+)*                             # numbers, addresses, times
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CompactError:
    """An error in one line: what kind it is, where it came up, and why; none of them is empty."""

    type: str
    place: str
    cause: str

    def __post_init__(self) -> None:
        if not (self.type.strip() and self.place.strip() and self.cause.strip()):
            raise RunError("pattern.empty-digest", "an error has no type, no place or no cause")

    @classmethod
    def of(cls, code: str, tool: str, text: str, place: str = "") -> CompactError:
        """The error of a tool from its code and its text: a message, a traceback, or the body of a reply.

        Args:
            place: The place that the text begins with: it says which step it was, and not what went wrong.
        """
        text = text.removeprefix(_PREFIX).removeprefix(f"{place}: ").removesuffix(f"[{code}]")
        cause, frame = read_cause(text)
        return cls(code, f"{tool} ({frame})" if frame else tool, cause or "it gave no reason")

    @property
    def key(self) -> tuple[str, str, str]:
        """Equal for errors of one kind: numbers, paths, ids and what is quoted make no difference."""
        return self.type, _VARYING.sub("#", self.place), " ".join(_VARYING.sub("#", self.cause).lower().split())

    def line(self, count: int) -> str:
        """What a model reads of it."""
        return f"{_PREFIX}{self.type} at {self.place}: {self.cause}{f' (x{count})' if count > 1 else ''}"


def read_cause(text: str) -> tuple[str, str]:
    """The cause that a text tells, on one line, and the last place in a traceback."""
    frame = ""
    text = text[-_MAX_PARSED:].strip()
    if _TRACEBACK in text:
        # The innermost frame of the last exception, and the line behind it, which may have more below it.
        last = text[text.rindex(_TRACEBACK) :]
        frames = list(_FRAME.finditer(last))
        if frames:
            frame = f"{PureWindowsPath(frames[-1]['file']).name}:{frames[-1]['line']}"
        text = "\n".join(_unindented_lines(last.removeprefix(_TRACEBACK))) or last.removeprefix(_TRACEBACK)
    elif (begins := _BODY.search(text)) is not None:
        text = _cause_in_json(text[begins.start() :]) or text
    return _cut_middle(" ".join(mask(text).split())), frame


def _unindented_lines(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if line.strip() and not line[:1].isspace())


def _cause_in_json(text: str) -> str:
    try:
        found, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return ""
    return "; ".join(dict.fromkeys(_causes(found, _MAX_DEPTH)))


def _causes(value: object, depth: int) -> Iterator[str]:
    if depth and isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        for key in _CAUSE_KEYS:
            if isinstance(fields.get(key), str) and fields[key].strip():
                yield fields[key]
        for each in fields.values():
            yield from _causes(each, depth - 1)
    elif depth and isinstance(value, list):
        for each in cast("Sequence[object]", value):
            yield from _causes(each, depth - 1)


def _cut_middle(text: str) -> str:
    """A long text with its beginning and its end: what wraps an error stands before it, and the cause often last."""
    if len(text) <= MAX_CAUSE:
        return text
    half = (MAX_CAUSE - 3) // 2
    return f"{text[:half]} … {text[-half:]}"


@dataclass(slots=True)
class ErrorLog:
    """The errors of one part, kind by kind. At a limit it lets nothing more be done.

    Args:
        max_same: How many errors of one kind may come in a row.
        max_errors: How many may come in all.
    """

    max_same: int
    max_errors: int
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    last: tuple[str, str, str] | None = None
    in_a_row: int = 0
    breach: RunError | None = None
    parts: list[ErrorLog] = field(default_factory=list["ErrorLog"])

    def for_part(self) -> ErrorLog:
        """A log with the same limits for a part: those that run side by side count in any order."""
        self.parts.append(ErrorLog(self.max_same, self.max_errors))
        return self.parts[-1]

    def with_parts(self) -> Iterator[ErrorLog]:
        """This log and those of all parts."""
        yield self
        for part in self.parts:
            yield from part.with_parts()

    def add(self, error: CompactError) -> int:
        """Count an error; how many of its kind there are. From a limit on `require` raises."""
        self.in_a_row = self.in_a_row + 1 if error.key == self.last else 1
        self.last = error.key
        self.counts[error.key] += 1
        if self.in_a_row >= self.max_same:
            self.breach = _breach_error(REPEATED_CODE, f"the same error came {self.in_a_row} times in a row")
        elif self.counts.total() >= self.max_errors:
            self.breach = _breach_error(TOO_MANY_CODE, f"there were {self.counts.total()} errors")
        return self.counts[error.key]

    def add_success(self) -> None:
        """A call gave a result: what comes next is not in a row with what came before."""
        self.last, self.in_a_row = None, 0

    def require(self) -> None:
        """Raise if a limit is reached."""
        if self.breach is not None:
            raise self.breach


def _breach_error(code: str, what: str) -> RunError:
    # Without a word of the errors, which may be untrusted; the record has them.
    return RunError(
        code, what, fix="The record of the run has each of them in full; mend the cause, or allow more of them."
    )
