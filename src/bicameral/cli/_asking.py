"""Ask the person at the terminal. Waiting for a reply can be interrupted like anything else."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from bicameral.errors import RunError
from bicameral.types import (
    BoolType,
    DateTimeType,
    DateType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    OptionalType,
    StrType,
    TimeType,
    Type,
    mismatch,
)

from ._output import Output
from ._rendering import question_text

_ATTEMPTS = 3
_YES, _NO = ("y", "yes", "true"), ("n", "no", "false")

Quiet = Callable[[], AbstractContextManager[object]]


class TerminalAsker:
    """Asks on standard error, reads from standard input, and asks again when the reply does not fit."""

    def __init__(self, out: Output, quiet: Quiet = nullcontext) -> None:
        self._out = out
        self._quiet = quiet

    async def ask(self, question: str, type: Type) -> Any:
        with self._quiet():
            hint = "" if isinstance(type, StrType) else f" ({_wanted(type)})"
            asked = question_text(question, shutil.get_terminal_size().columns)
            asked += "\n " if "\n" in asked else ""
            for _ in range(_ATTEMPTS):
                reply = await read_line(self._out, f"{asked}{hint} ")
                if reply is None:
                    break
                try:
                    return parse_reply(reply, type)
                except ValueError:
                    self._out.say(f"  that is not {_wanted(type)}")
        raise RunError("run.needs-answer", f"there was no usable reply to: {question}", expected=_wanted(type))


async def confirmed(out: Output, question: str) -> bool:
    """Whether the person says yes; silence is no."""
    return ((await read_line(out, f"{question} [y/N] ")) or "").lower() in ("y", "yes")


async def read_line(out: Output, prompt: str) -> str | None:
    """One line from the terminal without its end, or None at the end of input."""
    from bicameral.display import visible

    sys.stderr.write(visible(prompt))
    sys.stderr.flush()
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    # A blocking read would hold off Ctrl-C until Enter; waiting in the loop does not.
    loop.add_reader(sys.stdin.fileno(), lambda: readable.done() or readable.set_result(None))
    try:
        await readable
    finally:
        loop.remove_reader(sys.stdin.fileno())
    line = sys.stdin.readline()
    if not line:
        sys.stderr.write("\n")
        return None
    return line.strip()


def parse_reply(text: str, type_: Type) -> Any:
    """A typed reply as a value of the wanted type; a ValueError if it is none."""
    match type_:
        case StrType():
            return text
        case OptionalType(item=item):
            return parse_reply(text, item) if text else None
        case BoolType():
            return _boolean(text)
        case IntType():
            return int(text)
        case FloatType():
            return float(text)
        case DateType():
            return dt.date.fromisoformat(text)
        case TimeType():
            return dt.time.fromisoformat(text)
        case DateTimeType():
            return dt.datetime.fromisoformat(text).replace(tzinfo=None)
        case ListType(item=item):
            return [parse_reply(part.strip(), item) for part in text.split(",") if part.strip()]
        case LiteralType(values=values):
            return _choice(text, values)
        case _:
            value = json.loads(text)
            if reason := mismatch(value, type_):
                raise ValueError(reason)
            return value


def _boolean(text: str) -> bool:
    if text.lower() not in (*_YES, *_NO):
        raise ValueError(text)
    return text.lower() in _YES


def _choice(text: str, values: tuple[str, ...]) -> str:
    found = [value for value in values if value.lower() == text.lower()]
    if not found:
        raise ValueError(text)
    return found[0]


def _wanted(type_: Type) -> str:
    """What to type, in words."""
    match type_:
        case BoolType():
            return "yes or no"
        case IntType():
            return "a whole number"
        case FloatType():
            return "a number"
        case DateType():
            return "a date like 2026-03-01"
        case TimeType():
            return "a time like 14:30"
        case DateTimeType():
            return "a date and time like 2026-03-01 14:30"
        case LiteralType(values=values):
            return " or ".join(values)
        case ListType(item=StrType()):
            return "a list, separated by commas"
        case ListType(item=item):
            return f"a list of {_wanted(item)}, separated by commas"
        case OptionalType(item=item):
            return f"{_wanted(item)}, or nothing"
        case StrType():
            return "some text"
        case _:
            return f"JSON for {type_}"
