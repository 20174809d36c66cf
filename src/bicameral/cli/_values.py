"""Values and pending calls as a person sees them for a decision.

Any value that a person decides on may hold untrusted text, which could imitate our own output. So every line of a long
value has a bar before it, lines are broken here and not by the terminal, invisible and control characters are written
as their numbers, and long values are folded with their size. All places that show a value for a decision use
`value_lines`. An argument that directs a call is folded only if it is longer than anybody would read.
"""

from __future__ import annotations

import json
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from bicameral.cli._plain_values import column_width, to_plain_json
from bicameral.display import fold_lines, make_visible

if TYPE_CHECKING:
    from bicameral.labels import Source
    from bicameral.runs import PendingCall
    from bicameral.tools import Registry, Tool


MAX_VALUE_LINES = 10_000
"""The most lines of a value, even if all of it is asked for."""
_MIN_FOLDED_BLANK = 3
"""From so many empty lines in a row on, only their number is shown: they would push the rest off the screen."""
_MIN_VALUE_WIDTH = 8
_MAX_QUESTION_LINES = 40


def value_lines(value: Any, width: int, most: int = MAX_VALUE_LINES, *, how: str = "") -> list[str]:
    """The lines of a value: a short text as it is, several or long lines behind a bar.

    At most about `most` lines are shown, from the beginning and the end; `how` says how to see the others.
    """
    match value:
        case str():
            lines = value.replace("\r\n", "\n").split("\n")
        case list() | tuple() if all(isinstance(item, str) for item in cast("list[Any]", value)):
            lines = cast("list[str]", value)
        case _:
            lines = [json.dumps(to_plain_json(value), ensure_ascii=False, default=str)]
    plain = [visible_line(line) for line in lines]
    if len(plain) == 1 and column_width(plain[0]) <= width:
        return plain
    pieces = [part for line in plain for part in break_line(line, max(width - 2, _MIN_VALUE_WIDTH))]
    whole = value if isinstance(value, str) else "\n".join(lines)
    return fold_lines(list(_fold_blank_runs(pieces)), most, whole, how)


def question_text(question: str, width: int) -> str:
    """A question of a plan, which may hold untrusted text: on one line, or each of its lines behind a bar."""
    lines = value_lines(question, max(width - 4, _MIN_VALUE_WIDTH), _MAX_QUESTION_LINES)
    return f"? {lines[0]}" if len(lines) == 1 else "\n".join(["?", *(f"  {line}" for line in lines)])


def visible_line(text: str) -> str:
    """A text on one line, with invisible characters made visible. In names, letters of other alphabets are named."""
    # It may be an address, a link or a path, where a letter of another alphabet can deceive.
    name = " " not in text.strip() and any(mark in text for mark in "@/.")
    seen = make_visible(text, strict=name).replace("\n", "<000a>").replace("\t", "    ")
    odd = sorted({char for char in seen if not char.isascii() and char.isalpha()}) if name else []
    return seen + (f"  (with {', '.join(unicodedata.name(char, '?').lower() for char in odd[:3])})" if odd else "")


def break_line(line: str, width: int) -> list[str]:
    """The line in pieces of this width, so that the terminal does not break it and lose the bar."""
    pieces: list[str] = []
    start = used = 0
    for at, char in enumerate(line):
        wide = column_width(char)
        if used + wide > width:
            pieces.append(line[start:at])
            start, used = at, 0
        used += wide
    return [*pieces, line[start:]]


def _fold_blank_runs(pieces: Sequence[str]) -> Iterator[str]:
    """The lines behind bars. A run of empty lines becomes one line with their number, without a bar."""
    blank = 0
    for piece in [*pieces, None]:
        if piece is not None and not piece.strip():
            blank += 1
            continue
        if blank >= _MIN_FOLDED_BLANK:
            yield f"… {blank:,} empty lines"
        else:
            yield from ["│ "] * blank
        blank = 0
        if piece is not None:
            yield f"│ {piece}"


_EFFECT_WORDS = {"pure": "", "read": "reads", "write": "writes", "send": "sends", "irreversible": "cannot be undone"}
_MIN_CALL_WIDTH = 20
_MAX_DIRECTING_LINES = 200
"""Lines that are shown of an argument that directs a call: more than a list of recipients needs."""
_MANY_LINES = 20
"""A value with more lines than this would push others off the screen."""


def calls_text(
    calls: Sequence[PendingCall],
    registry: Registry,
    *,
    width: int = 80,
    whole: bool = False,
    first: int = 1,
    before: bool = False,
    how: str = "v shows all",
) -> str:
    """The calls with their arguments, marks at untrusted ones, and why they need approval.

    Args:
        calls: The calls.
        registry: Their tools, which say which arguments direct a call.
        width: The width of the terminal.
        whole: Show long values whole instead of fitting everything on a screen.
        first: The number of the first call.
        before: The run has had no effect yet.
        how: How to see all of a value that was folded.
    """
    lines = ["", _calls_headline(calls, first, before=before)]
    most = MAX_VALUE_LINES if whole else 10 if len(calls) == 1 else 3 if len(calls) < 4 else 1
    reasons: dict[tuple[str, ...], list[int]] = {}
    for number, call in enumerate(calls, first):
        lines += [
            "",
            *_call_lines(
                number,
                call,
                registry.get(call.tool),
                width,
                most,
                numbered=len(calls) > 1 or first > 1,
                later=call.ahead and not before,
                how=how,
            ),
        ]
        reasons.setdefault(tuple(_reason_lines(call)), []).append(number)
    for (why, *origins), numbers in reasons.items():
        which = f"{_numbers_text(numbers)}: " if len(reasons) > 1 else ""
        lines += [
            "",
            *_wrap_line(which + why, width),
            *(line for origin in origins for line in _wrap_line(origin, width)),
        ]
    for offer in dict.fromkeys(str(call.offer) for call in calls if call.offer is not None):
        lines += _wrap_line(f"(You may also allow {offer}.)", width)
    if any(part.argument for call in calls for part in call.untrusted):
        lines += _wrap_line("(! marks what a stranger may have written.)", width)
    if any(call.ahead for call in calls) and not before:
        lines += _wrap_line(
            "(later: it is made when its turn comes, and asked about anew if it is not the same then.)", width
        )
    return "\n".join(lines)


def _calls_headline(calls: Sequence[PendingCall], first: int, *, before: bool) -> str:
    if first > 1 or not calls:
        return "The next call:"
    need = "One call needs your yes" if len(calls) == 1 else f"{len(calls)} calls need your yes"
    if (number := sum(call.times for call in calls)) > len(calls):
        need += f", {number} times in all"
    return f"{need}, and nothing has been done yet:" if before else f"{need}:"


def _call_lines(
    number: int, call: PendingCall, tool: Tool | None, width: int, most: int, *, numbered: bool, later: bool, how: str
) -> Iterator[str]:
    does = ", ".join(filter(None, (_EFFECT_WORDS.get(call.effect, ""), "later" if later else "")))
    times = f" × {call.times}" if call.times > 1 else ""
    yield f"  {f'{number}. ' if numbered else ''}{call.tool}{times}" + (f"  ({does})" if does else "")
    untrusted = {part.argument for part in call.untrusted}
    shown = {name: value for name, value in call.arguments.items() if value not in (None, "", [], {})}
    column = max(map(len, shown), default=0)
    drawn: list[tuple[str, list[str]]] = []
    for name, value in shown.items():
        directs = tool is None or any(each.name == name and each.purpose == "directs" for each in tool.arguments)
        room = max(width - column - 8, _MIN_CALL_WIDTH)
        limit = max(_MAX_DIRECTING_LINES, most) if directs else most
        drawn.append((name, value_lines(value, room, limit, how=how)))
    # Long values come first: untrusted text in them cannot push the other arguments off the screen.
    for name, lines in sorted(drawn, key=lambda each: len(each[1]) <= _MANY_LINES):
        mark = "!" if name in untrusted else " "
        for line, text in enumerate(lines):
            yield f"  {mark} {name if not line else '':<{column}}  {text}"
    for text in (*map(str, call.files), *call.changed):
        # A path may hold untrusted text too; these lines are never cut.
        yield from (f"    │ {part}" for part in break_line(visible_line(text), max(width - 8, _MIN_CALL_WIDTH)))


def _reason_lines(call: PendingCall) -> Iterator[str]:
    """The policy's question, and the sources of untrusted parts that it does not mention."""
    why = call.why.removeprefix(f"{call.tool}: ")
    yield why[:1].upper() + why[1:]
    parts: dict[tuple[Source, ...], list[str]] = {}
    for part in call.untrusted:
        if (f"argument {part.argument!r}" if part.argument else "was decided by") not in call.why:
            parts.setdefault(part.sources, []).append(repr(part.argument) if part.argument else "that it is called")
    for sources, names in parts.items():
        yield f"A stranger had a hand in {', '.join(names)}, too: {', '.join(map(str, sources))}."


def _wrap_line(text: str, width: int) -> list[str]:
    return textwrap.wrap(visible_line(text), max(width, _MIN_CALL_WIDTH), initial_indent="  ", subsequent_indent="  ")


def _numbers_text(numbers: list[int]) -> str:
    return ("call " if len(numbers) == 1 else "calls ") + ", ".join(map(str, numbers))
