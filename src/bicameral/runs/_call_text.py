"""The calls that a person is asked about: a first view of a line or two for each, and all details on demand.

The first view says what would be done, to whom or to what, and why. What directs a call (a recipient, a path, an
amount, an address) is always in it and never cut. Content may be cut, and says so. Everything here may hold untrusted
text that imitates our own output: a value stands in quotation marks in the first line if it is short, and otherwise
behind a bar on lines of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from bicameral.display import (
    MAX_VALUE_LINES,
    break_line,
    cell_text,
    column_width,
    shorten,
    value_lines,
    value_preview,
    visible_line,
    visible_name,
    wrap_line,
)

if TYPE_CHECKING:
    from bicameral.labels import Source
    from bicameral.runs._approvals import PendingCall
    from bicameral.tools import Registry

CallPreview = Callable[["PendingCall"], Sequence[str]]
"""What a call would change, line by line, for the details."""

SHOWS_DETAILS = "d shows them"
_EFFECT_WORDS = {"pure": "", "read": "reads", "write": "writes", "send": "sends", "irreversible": "cannot be undone"}
_MIN_WIDTH = 20
_MANY_LINES = 20
"""A value with more lines than this would push others off the screen."""
_MAX_UNKNOWN_LINES = 200
"""Lines of an argument of which it is not known whether it directs the call."""
_MAX_INLINE = 60
"""Columns of a value with spaces that may stand in the first line of a call."""
_MAX_REQUEST = 60
_MAX_INLINE_ITEMS = 6
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_PLAIN_WORD = re.compile(r"[^\s\"“”]+")
_PREPOSITIONS = {
    **dict.fromkeys(("to", "target", "destination", "recipient", "recipients", "receiver", "receivers"), "to "),
    **dict.fromkeys(("folder", "place"), "in "),
    **dict.fromkeys(("path", "file", "url", "source"), ""),
}
"""What stands before the value of an argument with this name; others stand after their names."""
_TITLES = ("subject", "title")
_RULE_NOTES = {
    "never-reviewed": "nobody has reviewed this tool",
    "directed-by-strangers": "",
    "decided-by-strangers": "",
    "strangers-text-in-your-name": "",
    "leaves-its-readers": "it shows to others what only you may read",
    "assembled-by-the-plan": "the plan put it together: you have not named it",
    "strangers-text-executed": "it goes into a file that programs may execute",
}
"""What the first view says about a default policy; nothing, if the line about what others wrote says it already."""


def calls_text(
    calls: Sequence[PendingCall],
    registry: Registry,
    *,
    width: int = 80,
    whole: bool = False,
    first: int = 1,
    before: bool = False,
    request: str = "",
    how: str = SHOWS_DETAILS,
    content_lines: int | None = None,
    preview: CallPreview | None = None,
) -> str:
    """The calls as a person is asked about them.

    Args:
        calls: The calls.
        registry: Their tools: those of an earlier record do not say themselves which arguments carry content.
        width: The width of the terminal.
        whole: Show everything that would be sent, and why exactly it is asked about.
        first: The number of the first call.
        before: The run has had no effect yet.
        request: The request of the run, in the user's words.
        how: How to see the content that was cut.
        content_lines: The most lines of content in the first view; by default 3 of one call, and 1 of each of several.
        preview: What a call would change, for the details.
    """
    width = max(width, _MIN_WIDTH)
    lines = ["", *wrap_line(_calls_headline(calls, first, before=before), width)]
    numbered = len(calls) > 1 or first > 1
    # One line for one call says all of it; several calls share the request.
    asked = _request_text(request) if request and not whole else ""
    if asked and len(calls) > 1:
        lines += wrap_line(asked[:1].upper() + asked[1:], width)
    for number, call in enumerate(calls, first):
        mark = f"{number}. " if numbered else ""
        later = call.ahead and not before
        if whole:
            lines += ["", *_detail_lines(call, mark, width, later=later, preview=preview)]
        else:
            most = content_lines or (3 if len(calls) == 1 else 1)
            content = _content_names(call, registry)
            why = f" — {asked}" if asked and len(calls) == 1 else ""
            lines += ["", *_brief_lines(call, content, mark, why, width, most, later=later, how=how)]
    lines += _reason_lines(calls, first, width, whole=whole)
    for offer in dict.fromkeys(str(call.offer) for call in calls if call.offer is not None):
        lines += _wrap_indented(f"(You may also allow {offer}.)", width)
    if any(call.ahead for call in calls) and not before:
        lines += _wrap_indented("(later: made in its turn, and asked about anew if it is not the same then.)", width)
    if whole and request:
        lines += ["", "  you asked:", *(f"    │ {part}" for part in _broken_lines(request, width - 6))]
    return "\n".join(lines)


def _calls_headline(calls: Sequence[PendingCall], first: int, *, before: bool) -> str:
    if first > 1 or not calls:
        return "The next call:"
    need = "One call needs your yes" if len(calls) == 1 else f"{len(calls)} calls need your yes"
    if (number := sum(call.times for call in calls)) > len(calls):
        need += f", {number} times in all"
    return f"{need}, and nothing has been done yet:" if before else f"{need}:"


def _request_text(request: str) -> str:
    return f"you asked: {_quote(shorten(visible_line(request), _MAX_REQUEST))}"


def _content_names(call: PendingCall, registry: Registry) -> frozenset[str] | None:
    """The arguments that only carry content; every other one directs the call, and is never cut. None: not known."""
    if call.carries is not None:
        return frozenset(call.carries)
    tool = registry.get(call.tool)
    return frozenset(each.name for each in tool.arguments if each.purpose == "carries") if tool else None


# The first view


def call_title(call: PendingCall) -> str:
    """What a call does, in words: the name of its tool, which is shown as it is if it is no plain name."""
    name = visible_line(call.tool)
    return name.replace("_", " ").capitalize() if _PLAIN_NAME.fullmatch(name) else name


def call_headline(call: PendingCall, content: frozenset[str]) -> tuple[str, set[str]]:
    """A call in one line: what, to whom or to what; and the arguments of which all is in that line."""
    given = _given_arguments(call)
    said: set[str] = set()
    phrases: list[str] = []
    named: list[str] = []
    for name, value in given.items():
        if name in content:
            continue
        text = _inline_text(value)
        if text is None:
            named.append(f"{name} as listed")
            continue
        said.add(name)
        if name in _PREPOSITIONS:
            phrases.append(f"{_PREPOSITIONS[name]}{text}")
        else:
            named.append(f"{name} {text}")
    title = next((name for name in _TITLES if name in given and name in content), None)
    text = _inline_text(given[title], quoted=True) if title else None
    if title and text is not None:
        said.add(title)
    times = [f"× {call.times}"] if call.times > 1 else []
    line = ", ".join([" ".join([call_title(call), *times, *phrases]), *named])
    return (f"{line}: {text}" if text is not None else line), said


def _brief_lines(
    call: PendingCall,
    known: frozenset[str] | None,
    mark: str,
    why: str,
    width: int,
    most: int,
    *,
    later: bool,
    how: str,
) -> Iterator[str]:
    content = known or frozenset[str]()
    headline, said = call_headline(call, content)
    warned = "cannot be undone" if call.effect == "irreversible" else ""
    flags = ", ".join(filter(None, (warned, "later" if later else "")))
    untrusted = {part.argument for part in call.untrusted}
    rest = {name: value for name, value in _given_arguments(call).items() if name not in said}
    column = max(map(len, rest), default=0)
    room = max(width - column - 6, _MIN_WIDTH - 8)
    # Where nobody says which arguments are content, one that is longer than any list of recipients may be.
    limit = _MAX_UNKNOWN_LINES if known is None else MAX_VALUE_LINES
    drawn: list[tuple[str, list[str]]] = []
    for name, value in rest.items():
        shown = value_preview(value, room, most, how) if name in content else value_lines(value, room, limit, how=how)
        drawn.append((name, shown))
    head = wrap_line(f"  {mark}{headline}{f'  ({flags})' if flags else ''}{why}", width, "      ")
    # Many lines come first: untrusted text in them cannot push what the call does off the screen.
    ordered = sorted(drawn, key=lambda each: len(each[1]) <= _MANY_LINES)
    long = [each for each in ordered if len(each[1]) > _MANY_LINES]
    yield from _argument_lines(long, untrusted, column)
    yield from head
    yield from _argument_lines(ordered[len(long) :], untrusted, column)
    yield from _file_lines(call, width)


def _argument_lines(drawn: Sequence[tuple[str, list[str]]], untrusted: set[str], column: int) -> Iterator[str]:
    for name, lines in drawn:
        mark = "!" if name in untrusted else " "
        for number, text in enumerate(lines):
            yield f"  {mark} {name if not number else '':<{column}}  {text}"


def _file_lines(call: PendingCall, width: int) -> Iterator[str]:
    for text in (*map(str, call.files), *call.changed):
        # A path may hold untrusted text too; these lines are never cut.
        yield from (f"    │ {part}" for part in break_line(visible_line(text), max(width - 6, _MIN_WIDTH - 8)))


def _given_arguments(call: PendingCall) -> Mapping[str, Any]:
    return {name: value for name, value in call.arguments.items() if value not in (None, "", [], {})}


def _inline_text(value: Any, *, quoted: bool = False) -> str | None:
    """A short value for the first line of a call; None if it must stand on lines of its own."""
    match value:
        case str():
            return _inline_word(value, quoted=quoted)
        case list() | tuple():
            items = cast("Sequence[Any]", value)
            texts = [_inline_text(each) for each in items if not isinstance(each, list | tuple | dict)]
            whole = len(texts) == len(items) <= _MAX_INLINE_ITEMS and all(text is not None for text in texts)
            return ", ".join(text for text in texts if text is not None) if whole else None
        case dict():
            return None
        case _:
            # A number, a day or a time of day: no text that could pass for something else.
            return cell_text(value)


def _inline_word(text: str, *, quoted: bool) -> str | None:
    shown, odd = visible_name(text)
    plain = _PLAIN_WORD.fullmatch(shown) is not None
    if "\n" in text or (column_width(shown) > _MAX_INLINE and not plain):
        return None
    return (shown if plain and not quoted else _quote(shown)) + (f" ({odd})" if odd else "")


def _quote(text: str) -> str:
    """The text in quotation marks, which none in the text can end."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# Reasons


def _reason_lines(calls: Sequence[PendingCall], first: int, width: int, *, whole: bool) -> Iterator[str]:
    """Why the calls are asked about; the same reason of several calls is given once."""
    reasons: dict[tuple[str, ...], list[int]] = {}
    for number, call in enumerate(calls, first):
        reasons.setdefault(tuple(_full_reason(call) if whole else _brief_reason(call)), []).append(number)
    for texts, numbers in reasons.items():
        if whole:
            yield ""
        which = f"{_numbers_text(numbers)}: " if len(reasons) > 1 and texts else ""
        for number, text in enumerate(texts):
            mark = "" if whole else "! "
            yield from _wrap_indented(f"{mark}{which if not number else ''}{text}", width)


def _brief_reason(call: PendingCall) -> Iterator[str]:
    parts: dict[tuple[Source, ...], list[str]] = {}
    for part in call.untrusted:
        parts.setdefault(part.sources, []).append(part.argument)
    for sources, names in parts.items():
        arguments = ", ".join(name for name in names if name)
        what = f"others may have written {arguments}" if arguments else "others may have decided that this is done"
        if arguments and "" in names:
            what += ", and have decided that this is done"
        yield f"{what}: {_sources_text(sources)}"
    own = [rule for rule in call.rules if rule not in _RULE_NOTES]
    if own or not call.rules:
        yield _policy_text(call)
    yield from (note for rule in call.rules if (note := _RULE_NOTES.get(rule)))


def _full_reason(call: PendingCall) -> Iterator[str]:
    """The policy's question, and the sources of untrusted parts that it does not mention."""
    yield _policy_text(call)
    parts: dict[tuple[Source, ...], list[str]] = {}
    for part in call.untrusted:
        if (f"argument {part.argument!r}" if part.argument else "was decided by") not in call.why:
            parts.setdefault(part.sources, []).append(repr(part.argument) if part.argument else "that it is called")
    for sources, names in parts.items():
        yield f"A stranger had a hand in {', '.join(names)}, too: {', '.join(map(str, sources))}."
    if any(part.argument for part in call.untrusted):
        yield "(! marks what a stranger may have written.)"
    if call.rules:
        yield f"policies: {', '.join(call.rules)}"


def _policy_text(call: PendingCall) -> str:
    why = call.why.removeprefix(f"{call.tool}: ")
    return why[:1].upper() + why[1:]


def _sources_text(sources: Sequence[Source]) -> str:
    told = [str(source) for source in sources[:2]]
    return ", ".join([*told, *([f"and {len(sources) - 2} more"] if len(sources) > 2 else [])])


# The details


def _detail_lines(
    call: PendingCall, mark: str, width: int, *, later: bool, preview: CallPreview | None
) -> Iterator[str]:
    """Everything that would be sent, and what the answer is bound to."""
    does = ", ".join(filter(None, (_EFFECT_WORDS.get(call.effect, ""), "later" if later else "")))
    times = f" × {call.times}" if call.times > 1 else ""
    yield from wrap_line(f"  {mark}{visible_line(call.tool)}{times}" + (f"  ({does})" if does else ""), width, "      ")
    untrusted = {part.argument for part in call.untrusted}
    column = max(map(len, call.arguments), default=0)
    room = max(width - column - 6, _MIN_WIDTH - 8)
    drawn = [
        (name, value_lines(value, room, MAX_VALUE_LINES) if value not in (None, "", [], {}) else ["(empty)"])
        for name, value in call.arguments.items()
    ]
    yield from _argument_lines(sorted(drawn, key=lambda each: len(each[1]) <= _MANY_LINES), untrusted, column)
    yield from _file_lines(call, width)
    if preview is not None and (changes := preview(call)):
        yield "    changes:"
        for line in changes:
            yield from (f"    │ {part}" for part in break_line(visible_line(line), max(width - 6, _MIN_WIDTH - 8)))
    steps = f"step {', '.join(call.steps)}; the yes is for the call {call.hash[:16]}"
    yield from wrap_line(f"    {steps}", width, "    ")


def _broken_lines(text: str, width: int) -> Iterator[str]:
    for line in text.split("\n"):
        yield from break_line(visible_line(line), max(width, _MIN_WIDTH - 8))


def _wrap_indented(text: str, width: int) -> list[str]:
    return wrap_line(f"  {visible_line(text)}", width, "    ")


def _numbers_text(numbers: list[int]) -> str:
    return ("call " if len(numbers) == 1 else "calls ") + ", ".join(map(str, numbers))
