"""Library functions on text, and those that text shares with lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bicameral.types import BOOL, INT, STR, ListType, Type

from ._bounds import MAX_TEXT, check_length, weigh
from ._failure import EvaluationError, brief, wrong
from ._function import Function, Parameter, Signature, may, need
from ._kinds import INTEGER, LIST, MANY, TEXT, TEXTS
from ._library_dates import replace_date_signature
from ._order import contains
from ._show import show

_LINES = ListType(STR)


def _split(text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    return text.split(_separator(sep), maxsplit)


def _rsplit(text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    return text.rsplit(_separator(sep), maxsplit)


def _separator(sep: str | None) -> str | None:
    if sep == "":
        raise EvaluationError("run.not-found", "a text cannot be split at ''", fix="Use list(text) for its characters.")
    return sep


def _join(sep: str, texts: list[str]) -> str:
    for text in texts:
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a run may bring anything
            raise wrong(f"join() needs texts, not {brief(text)}", [text], fix="Use [str(x) for x in xs].")
    check_length("the text", sum(map(len, texts)) + len(sep) * len(texts), MAX_TEXT)
    return sep.join(texts)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    found = text.count(old) if count < 0 else min(text.count(old), count)
    check_length("the text", len(text) + found * (len(new) - len(old)), MAX_TEXT)
    return text.replace(old, new, count)


def _padded(pad: Callable[..., str]) -> Callable[..., str]:
    def run(text: str, width: int, fill: str = " ") -> str:
        check_length("the text", width, MAX_TEXT)
        if len(fill) != 1:
            raise EvaluationError("run.not-found", f"a text is filled up with one character, not {brief(fill)}")
        return pad(text, width, fill)

    return run


def _zfill(text: str, width: int) -> str:
    check_length("the text", width, MAX_TEXT)
    return text.zfill(width)


def _text_index(text: str, part: str) -> int:
    found = text.find(part)
    if found < 0:
        raise EvaluationError("run.not-found", f"{brief(part)} is not in the text", fix="Use `if part in text:` first.")
    return found


def _list_index(xs: list[Any], value: object) -> int:
    weigh(xs)
    try:
        return xs.index(value)
    except ValueError:
        raise EvaluationError(
            "run.not-found", f"{brief(value)} is not in the list", fix="Use `if value in xs:` first."
        ) from None


def _list_count(xs: list[Any], value: object) -> int:
    weigh(xs)
    return xs.count(value)


def _method(
    name: str, doc: str, result: Type, run: Callable[..., Any], *more: Parameter, grows: bool = False
) -> Function:
    return Function(name, doc, "text", (Signature((need("text", TEXT), *more), result, run),), True, grows=grows)


_AFFIX, _CHARS = need("affix", TEXT), may("characters", TEXT)
_SEP, _MOST = may("sep", TEXT), may("maxsplit", INTEGER)
_WIDTH, _FILL = need("width", INTEGER), may("fill", TEXT)
_PART = need("part", TEXT)

TEXT_FUNCTIONS: tuple[Function, ...] = (
    _method("lower", "In small letters.", STR, str.lower),
    _method("upper", "In capital letters.", STR, str.upper, grows=True),
    _method("title", "Each Word With a Capital.", STR, str.title, grows=True),
    _method("capitalize", "The first letter a capital, the others small.", STR, str.capitalize, grows=True),
    _method("strip", "Without white space (or the given characters) at both ends.", STR, str.strip, _CHARS),
    _method("lstrip", "Without white space at the start.", STR, str.lstrip, _CHARS),
    _method("rstrip", "Without white space at the end.", STR, str.rstrip, _CHARS),
    _method("removeprefix", "Without this start, if it has it.", STR, str.removeprefix, _AFFIX),
    _method("removesuffix", "Without this end, if it has it.", STR, str.removesuffix, _AFFIX),
    _method("split", "The parts between separators (by default white space).", _LINES, _split, _SEP, _MOST, grows=True),
    _method("rsplit", "Like split, counted from the end.", _LINES, _rsplit, _SEP, _MOST, grows=True),
    _method("splitlines", "The lines of a text.", _LINES, str.splitlines, grows=True),
    Function(
        "join",
        'The texts of a list with a separator between them: `", ".join(names)`.',
        "text",
        (Signature((need("sep", TEXT), need("texts", TEXTS)), STR, _join),),
        method=True,
    ),
    Function(
        "replace",
        "With each `old` replaced by `new`; or a date with another year, month or day.",
        "text",
        (
            Signature((need("text", TEXT), need("old", TEXT), need("new", TEXT), may("count", INTEGER)), STR, _replace),
            *replace_date_signature(),
        ),
        method=True,
    ),
    _method("startswith", "Whether the text begins so.", BOOL, str.startswith, _AFFIX),
    _method("endswith", "Whether the text ends so.", BOOL, str.endswith, _AFFIX),
    _method("find", "Where the part begins, or -1.", INT, str.find, _PART),
    Function(
        "count",
        "How often a part is in a text, or a value in a list.",
        "text",
        (
            Signature((need("text", TEXT), _PART), INT, str.count),
            Signature((need("xs", LIST), need("value")), INT, _list_count),
        ),
        method=True,
        cost="deep",
    ),
    Function(
        "index",
        "Where a part begins in a text, or a value stands in a list; it must be there.",
        "text",
        (
            Signature((need("text", TEXT), _PART), INT, _text_index),
            Signature((need("xs", LIST), need("value")), INT, _list_index),
        ),
        method=True,
        cost="deep",
    ),
    Function(
        "contains",
        "Whether a text has a part, a list a value, a dict a key: the same as `value in container`.",
        "text",
        (
            Signature((need("text", TEXT), _PART), BOOL, contains),
            Signature((need("xs", MANY), need("value")), BOOL, contains),
        ),
        cost="deep",
    ),
    _method("isdigit", "Whether there are only digits (and at least one).", BOOL, str.isdigit),
    _method("isalpha", "Whether there are only letters (and at least one).", BOOL, str.isalpha),
    _method("zfill", "With zeros in front up to a width.", STR, _zfill, _WIDTH),
    _method("ljust", "Filled up at the end to a width.", STR, _padded(str.ljust), _WIDTH, _FILL),
    _method("rjust", "Filled up in front to a width.", STR, _padded(str.rjust), _WIDTH, _FILL),
    Function("str", "Any value as text.", "text", (Signature((need("value"),), STR, show),), cost="deep"),
)
