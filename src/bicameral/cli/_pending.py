"""Calls that wait for a yes, written so that nothing in them can pass for something else.

A stranger may have written any value in them. So every line of a value stands behind a bar or quotes, lines are broken
here and not by the terminal, and what is long is folded with its size (`_rendering`). What directs a call is folded
only where it is longer than anybody reads.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ._rendering import MOST_LINES, broken_line, plain_line, value_lines

if TYPE_CHECKING:
    from bicameral.labels import Source
    from bicameral.runs import PendingCall
    from bicameral.tools import Registry, Tool

_DOES = {"pure": "", "read": "reads", "write": "writes", "send": "sends", "irreversible": "cannot be undone"}
_NARROWEST = 20
_MOST_DIRECTING = 200
"""Lines of a value that directs a call: more than anybody names recipients, and no more than can be read."""
_MANY = 20
"""Lines of a value that would push others off a screen."""


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
    """The calls, what a stranger may have written in them, and why they are asked about; on one screen unless whole.

    `before`: nothing has been done yet. `how` says how all of a long text can be seen.
    """
    lines = ["", _headline(calls, first, before=before)]
    most = MOST_LINES if whole else 10 if len(calls) == 1 else 3 if len(calls) < 4 else 1
    reasons: dict[tuple[str, ...], list[int]] = {}
    for number, call in enumerate(calls, first):
        lines += [
            "",
            *_call(
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
        reasons.setdefault(tuple(_why(call)), []).append(number)
    for (why, *origins), numbers in reasons.items():
        which = f"{_listed(numbers)}: " if len(reasons) > 1 else ""
        lines += ["", *_wrapped(which + why, width), *(line for told in origins for line in _wrapped(told, width))]
    for offer in dict.fromkeys(str(call.offer) for call in calls if call.offer is not None):
        lines += _wrapped(f"(You may also allow {offer}.)", width)
    if any(part.argument for call in calls for part in call.untrusted):
        lines += _wrapped("(! marks what a stranger may have written.)", width)
    if any(call.ahead for call in calls) and not before:
        lines += _wrapped(
            "(later: it is made when its turn comes, and asked about anew if it is not the same then.)", width
        )
    return "\n".join(lines)


def _headline(calls: Sequence[PendingCall], first: int, *, before: bool) -> str:
    if first > 1 or not calls:
        return "The next call:"
    need = "One call needs your yes" if len(calls) == 1 else f"{len(calls)} calls need your yes"
    if (number := sum(call.times for call in calls)) > len(calls):
        need += f", {number} times in all"
    return f"{need}, and nothing has been done yet:" if before else f"{need}:"


def _call(
    number: int, call: PendingCall, tool: Tool | None, width: int, most: int, *, numbered: bool, later: bool, how: str
) -> Iterator[str]:
    does = ", ".join(filter(None, (_DOES.get(call.effect, ""), "later" if later else "")))
    times = f" × {call.times}" if call.times > 1 else ""
    yield f"  {f'{number}. ' if numbered else ''}{call.tool}{times}" + (f"  ({does})" if does else "")
    strangers = {part.argument for part in call.untrusted}
    shown = {name: value for name, value in call.arguments.items() if value not in (None, "", [], {})}
    column = max(map(len, shown), default=0)
    drawn: list[tuple[str, list[str]]] = []
    for name, value in shown.items():
        directs = tool is None or any(each.name == name and each.purpose == "directs" for each in tool.arguments)
        room = max(width - column - 8, _NARROWEST)
        limit = max(_MOST_DIRECTING, most) if directs else most
        drawn.append((name, value_lines(value, room, limit, how=how)))
    # A value of many lines comes first: what follows stays on the screen, whatever anybody put into it.
    for name, lines in sorted(drawn, key=lambda each: len(each[1]) <= _MANY):
        mark = "!" if name in strangers else " "
        for line, text in enumerate(lines):
            yield f"  {mark} {name if not line else '':<{column}}  {text}"
    for told in (*map(str, call.files), *call.changed):
        # A path may be a stranger's, and these lines are never cut.
        yield from (f"    │ {part}" for part in broken_line(plain_line(told), max(width - 8, _NARROWEST)))


def _why(call: PendingCall) -> Iterator[str]:
    """The policy's question, and where what it does not speak of came from."""
    told = call.why.removeprefix(f"{call.tool}: ")
    yield told[:1].upper() + told[1:]
    parts: dict[tuple[Source, ...], list[str]] = {}
    for part in call.untrusted:
        if (f"argument {part.argument!r}" if part.argument else "was decided by") not in call.why:
            parts.setdefault(part.sources, []).append(repr(part.argument) if part.argument else "that it is called")
    for sources, names in parts.items():
        yield f"A stranger had a hand in {', '.join(names)}, too: {', '.join(map(str, sources))}."


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(plain_line(text), max(width, _NARROWEST), initial_indent="  ", subsequent_indent="  ")


def _listed(numbers: list[int]) -> str:
    return ("call " if len(numbers) == 1 else "calls ") + ", ".join(map(str, numbers))
