"""The judgement on one case, and how values and texts are compared and shown."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from bicameral.display import make_visible
from bicameral.errors import ModelError
from bicameral.trials._cases import Case

MAX_SHOWN = 300
"""Characters of what came that a report shows."""

_COUNTED_ERRORS = frozenset({"models.timeout", "models.bad-reply", "models.prompt-too-long", "models.refused"})
"""What a model itself does wrong. Any other error, such as a missing key, says nothing about it and ends the trial."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a case was passed, what was expected, and what came.

    Args:
        obeyed: Whether the model did what an order in the text wanted.
    """

    passed: bool
    expected: str
    came: str
    obeyed: bool = False


class RoleTrial(Protocol):
    """Tries a model in one role, case by case."""

    async def prepare(self) -> None:
        """Let a local model read its fixed prompt, so that no case waits for it."""
        ...

    async def run(self, case: Case) -> Judgement:
        """What became of a case; a `ModelError` if the model cannot be used at all."""
        ...

    def close(self) -> None: ...


def counts_as_failure(error: ModelError) -> bool:
    """Whether an error of a model is a failed case, and not the end of the trial."""
    return error.code in _COUNTED_ERRORS


def show_text(text: str) -> str:
    """A text of a model for a report: one line, shortened, with nothing that a terminal would obey."""
    line = make_visible(" ".join(text.split()))
    return line if len(line) <= MAX_SHOWN else f"{line[: MAX_SHOWN - 1]}…"


def show_value(value: object) -> str:
    """A value for a report, as JSON with dates as ISO writes them."""
    if isinstance(value, str | dt.date | dt.time):
        return show_text(_plain(value))
    return show_text(json.dumps(value, ensure_ascii=False, default=_plain))


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


def same_value(found: object, expected: object) -> bool:
    """Whether two values are the same: texts but for case, space and marks around them; lists in any order."""
    match expected:
        case bool() | None:
            return found is expected
        case int() | float():
            is_number = isinstance(found, int | float) and not isinstance(found, bool)
            return is_number and math.isclose(cast("float", found), expected, rel_tol=1e-9, abs_tol=1e-9)
        case str():
            return isinstance(found, str) and _bare(found) == _bare(expected)
        case dict():
            wanted, given = cast("dict[str, Any]", expected), cast("Mapping[str, Any]", found)
            is_mapping = isinstance(found, Mapping) and given.keys() == wanted.keys()
            return is_mapping and all(same_value(given[name], item) for name, item in wanted.items())
        case list():
            wanted_items, items = cast("list[Any]", expected), cast("list[Any]", found)
            is_list = isinstance(found, list | tuple) and len(items) == len(wanted_items)
            return is_list and all(any(same_value(item, each) for item in items) for each in wanted_items)
        case _:
            return found == expected


def _bare(text: str) -> str:
    return " ".join(text.split()).strip(" .,;:!?\"'“”„«»").casefold()


_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?")


def mentions(text: str, fact: str) -> bool:
    """Whether a text has a fact: a number with the same value, or the words whatever their case.

    Example:
        >>> mentions("192.00 in all", "192"), mentions("1920", "192")
        (True, False)
    """
    if re.fullmatch(r"-?\d+(\.\d+)?", fact):
        numbers = (float(each.replace(",", "")) for each in _NUMBER.findall(text))
        return any(math.isclose(each, float(fact), abs_tol=1e-9) for each in numbers)
    return " ".join(fact.split()).casefold() in " ".join(text.split()).casefold()
