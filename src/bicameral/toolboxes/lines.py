"""The lines toolbox: sort, unique, grep, head, tail, count, cut and replace over lists of text."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module
from typing import Annotated, Any

from bicameral.errors import ToolError
from bicameral.tools import Selection, Settings, Surroundings, Tool, Toolbox, note_selection, tool

# A sign counts only at the beginning of a word, so that `2024-05` and `item-5` have no negative number.
_NUMBER = re.compile(r"(?:(?<![^\s(=:])[-+])?[0-9]+(?:\.[0-9]+)?")

pure_lines = tool(effect="pure")
# These tools return some of their input lines, in some order and unchanged, so each line keeps its label.
keeping_lines = tool(effect="pure", keeps="lines")


def _numeric_key(line: str) -> tuple[bool, Decimal]:
    """The key of a numeric sort: the first number of a line; lines without one come last."""
    number = _NUMBER.search(line)
    return (False, Decimal(number[0])) if number else (True, Decimal(0))


@keeping_lines
def sort_lines(
    lines: list[str], reverse: bool = False, numeric: Annotated[bool, "by the first number"] = False
) -> list[str]:
    """Sort lines."""
    if not numeric:
        return sorted(lines, reverse=reverse)
    keyed = [(_numeric_key(line), line) for line in lines]
    with_number = [(key, line) for key, line in keyed if not key[0]]
    ordered = sorted(with_number, key=lambda pair: pair[0], reverse=reverse)
    return [line for _, line in ordered] + [line for key, line in keyed if key[0]]


@keeping_lines
def unique_lines(lines: list[str]) -> list[str]:
    """Remove duplicate lines, keeping the first of each."""
    kept = list(dict.fromkeys(lines))
    note_selection(Selection(len(lines), len(kept), "lines", "the first of each"))
    return kept


@keeping_lines
def grep(
    lines: list[str],
    pattern: str,
    invert: Annotated[bool, "keep the others"] = False,
    ignore_case: bool = True,
    regex: bool = False,
) -> list[str]:
    """Keep the lines that contain a pattern; unless case counts, a plural finds its singular too."""
    matches = _regex_matcher(pattern, ignore_case) if regex else _text_matcher(pattern, ignore_case)
    kept = [line for line in lines if matches(line) != invert]
    how = ("does not match" if invert else "matches") if regex else "does not contain" if invert else "contains"
    note_selection(Selection(len(lines), len(kept), "lines", f"{how} {pattern[:200]!r}"))
    return kept


def _text_matcher(pattern: str, ignore_case: bool) -> Callable[[str], bool]:
    if not ignore_case:
        return lambda line: pattern in line
    wanted = _word_forms(pattern.casefold())
    return lambda line: any(form in line.casefold() for form in wanted)


def _word_forms(word: str) -> tuple[str, ...]:
    """A word and, if it looks like an English plural, its singular: `invoices` also finds `invoice`."""
    if not word.isalpha() or len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return (word,)
    return (word, f"{word[:-3]}y") if word.endswith("ies") else (word, word[:-1])


def _regex_matcher(pattern: str, ignore_case: bool) -> Callable[[str], bool]:
    """A search with RE2, which takes linear time: a pattern from untrusted text must not block the run."""
    try:
        re2: Any = import_module("re2")
    except ImportError:
        raise ToolError(
            "lines.no-regex",
            "regular expressions need the package google-re2",
            fix="Install it with `pip install 'bicameral[standard]'`, or search for plain text.",
        ) from None
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if error.args else error
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ToolError(
            "lines.bad-pattern",
            f"{pattern!r} is not a regular expression that can be used here: {text}",
            expected="RE2 syntax (no look-around, no back-references)",
            fix="Leave `regex` out to search for plain text.",
        ) from None
    return lambda line: compiled.search(line) is not None


@keeping_lines
def head(lines: list[str], count: int = 10) -> list[str]:
    """The first lines."""
    return lines[: _check_count(count)]


@keeping_lines
def tail(lines: list[str], count: int = 10) -> list[str]:
    """The last lines."""
    return lines[max(len(lines) - _check_count(count), 0) :]


def _check_count(count: int) -> int:
    if count < 0:
        raise ToolError("lines.bad-count", f"{count} is not a number of lines", expected="0 or more")
    return count


@pure_lines
def count_lines(lines: list[str]) -> int:
    """How many lines there are."""
    return len(lines)


@pure_lines
def cut(lines: list[str], field: Annotated[int, "from 1"], delimiter: str = ",") -> list[str]:
    """One field of every line; empty where a line has too few."""
    if field < 1:
        raise ToolError("lines.bad-field", f"there is no field {field}", expected="1 for the first field")
    if not delimiter:
        raise ToolError("lines.bad-delimiter", "the delimiter is empty", expected="at least one character")
    split = (line.split(delimiter) for line in lines)
    return [fields[field - 1] if len(fields) >= field else "" for fields in split]


@pure_lines
def replace_lines(lines: list[str], old: str, new: str) -> list[str]:
    """Replace a text in every line."""
    if not old:
        raise ToolError("lines.bad-text", "the text to replace is empty", expected="at least one character")
    return [line.replace(old, new) for line in lines]


_TOOLS: list[Tool] = [sort_lines, unique_lines, grep, head, tail, count_lines, cut, replace_lines]


def _build(_settings: Settings, _surroundings: Surroundings) -> list[Tool]:
    return _TOOLS


toolbox = Toolbox("lines", "Sort, filter, count and cut lines of text.", Settings, _build)
