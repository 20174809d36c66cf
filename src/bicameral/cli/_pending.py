"""Calls that wait for a yes, written so that nothing in them can pass for something else.

A stranger may have written any value in them. So every line of a value stands behind a bar or quotes, lines are broken
here and not by the terminal, characters that are not seen or that a terminal would obey are made visible, and what
directs a call is never cut.
"""

from __future__ import annotations

import json
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from ._output import visible
from ._values import columns, readable

if TYPE_CHECKING:
    from bicameral.labels import Source
    from bicameral.runs import PendingCall
    from bicameral.tools import Registry, Tool

_DOES = {"pure": "", "read": "reads", "write": "writes", "send": "sends", "irreversible": "cannot be undone"}
_NARROWEST = 20
_UNSEEN = ("Cf", "Zl", "Zp", "Cc", "Co", "Cs", "Cn")


def calls_text(
    calls: Sequence[PendingCall],
    registry: Registry,
    *,
    width: int = 80,
    whole: bool = False,
    first: int = 1,
    before: bool = False,
) -> str:
    """The calls, what a stranger may have written in them, and why they are asked about; on one screen unless whole.

    `before`: nothing has been done yet.
    """
    lines = ["", _headline(calls, first, before=before)]
    most = 10_000 if whole else 10 if len(calls) == 1 else 3 if len(calls) < 4 else 1
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
    number: int, call: PendingCall, tool: Tool | None, width: int, most: int, *, numbered: bool, later: bool
) -> Iterator[str]:
    does = ", ".join(filter(None, (_DOES.get(call.effect, ""), "later" if later else "")))
    times = f" × {call.times}" if call.times > 1 else ""
    yield f"  {f'{number}. ' if numbered else ''}{call.tool}{times}" + (f"  ({does})" if does else "")
    strangers = {part.argument for part in call.untrusted}
    shown = {name: value for name, value in call.arguments.items() if value not in (None, "", [], {})}
    column = max(map(len, shown), default=0)
    for name, value in shown.items():
        directs = tool is None or any(each.name == name and each.purpose == "directs" for each in tool.arguments)
        lines = _value(value, max(width - column - 8, _NARROWEST), 10_000 if directs else most)
        mark = "!" if name in strangers else " "
        for line, text in enumerate(lines):
            yield f"  {mark} {name if not line else '':<{column}}  {text}"
    for told in (*map(str, call.files), *call.changed):
        # A path may be a stranger's, and these lines are never cut.
        yield from (f"    │ {part}" for part in _broken(_plain(told), max(width - 8, _NARROWEST)))


def _value(value: Any, width: int, most: int) -> list[str]:
    """The lines of a value: words as they are, several lines or what is long behind a bar."""
    match value:
        case str():
            lines = value.replace("\r\n", "\n").split("\n")
        case list() | tuple() if all(isinstance(item, str) for item in cast("list[Any]", value)):
            lines = cast("list[str]", value)
        case _:
            lines = [json.dumps(readable(value), ensure_ascii=False, default=str)]
    plain = [_plain(line) for line in lines]
    if len(plain) == 1 and columns(plain[0]) <= width:
        return plain
    return _cut([f"│ {part}" for line in plain for part in _broken(line, width - 2)], most)


def _broken(line: str, width: int) -> list[str]:
    """Pieces that a terminal does not break again."""
    pieces, used = [""], 0
    for char in line:
        used += columns(char)
        if used > width:
            pieces.append("")
            used = columns(char)
        pieces[-1] += char
    return pieces


def _cut(lines: list[str], most: int) -> list[str]:
    if len(lines) <= most:
        return lines
    return [*lines[:most], f"… {len(lines) - most} more {'line' if len(lines) - most == 1 else 'lines'}"]


def _plain(text: str) -> str:
    """The text with what cannot be seen made visible, and letters that only look like ours named."""
    seen = "".join(
        f"<{ord(char):04x}>" if unicodedata.category(char) in _UNSEEN and char != "\t" else char for char in text
    )
    seen = visible(seen).replace("\n", "<000a>").replace("\t", "    ")
    odd = sorted({char for char in seen if not char.isascii() and char.isalpha()}) if _is_name(seen) else []
    return seen + (f"  (with {', '.join(unicodedata.name(char, '?').lower() for char in odd[:3])})" if odd else "")


def _is_name(text: str) -> bool:
    """Whether this may be an address, a link or a path, in which a letter from another alphabet deceives."""
    return " " not in text.strip() and any(mark in text for mark in "@/.")


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
    return textwrap.wrap(_plain(text), max(width, _NARROWEST), initial_indent="  ", subsequent_indent="  ")


def _listed(numbers: list[int]) -> str:
    return ("call " if len(numbers) == 1 else "calls ") + ", ".join(map(str, numbers))
