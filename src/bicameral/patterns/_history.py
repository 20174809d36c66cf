"""Compaction of a history: the oldest entries get a short form once the whole is long.

The rounds of a reasoning and the messages of a conversation are shortened by the same rule. A short form is made only
of what stands in the entry itself, and stays in the prompt in which the entry was: nothing moves from a quarantined
prompt into a privileged one, and the label of a conversation does not shrink with its text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bicameral.labels import Label
from bicameral.models import Message

MAX_HEAD = 160
"""Characters of a message that its short form keeps."""
_MAX_COUNTED = 12
"""Tools whose calls are counted one by one in the summary of the oldest entries."""
SHORTENED = "What was said and done before, shortened:"


def count_shortened(full: Sequence[int], short: Sequence[int], most: int) -> int:
    """How many of the oldest entries get their short form, by the lengths of both; the newest is never shortened."""
    size = sum(full)
    for at in range(len(full) - 1):
        if size <= most:
            return at
        size += short[at] - full[at]
    return max(0, len(full) - 1)


@dataclass(frozen=True, slots=True)
class LabelledMessage:
    """A message and its label; `name` is the name under which the result in it is kept, if it is."""

    message: Message
    label: Label
    name: str = ""


@dataclass(frozen=True, slots=True)
class CompactedMessages:
    """The messages of a prompt, and the names of results that only their names are left of."""

    messages: tuple[Message, ...]
    names: frozenset[str] = frozenset()


def compact_messages(messages: Sequence[LabelledMessage], most: int | None) -> CompactedMessages:
    """A conversation in at most about `most` characters: the system's words, the request and the newest in full.

    A call and its results are one entry, so no result is left without its call.
    """
    every = tuple(each.message for each in messages)
    if most is None or sum(map(_message_length, every)) <= most:
        return CompactedMessages(every)
    start = next((at + 1 for at, each in enumerate(every) if each.speaker == "user"), len(every))
    entries = _split_entries(messages[start:])
    lines = [_entry_line(entry) for entry in entries]
    left = most - sum(map(_message_length, every[:start]))
    full = [sum(_message_length(each.message) for each in entry) for entry in entries]
    count = count_shortened(full, [len(line) for line in lines], left)
    if not count:
        return CompactedMessages(every)
    kept = _newest_lines(lines[:count], max(left // 4, MAX_HEAD))
    summary = [SHORTENED, *_folded_line(entries[: count - len(kept)]), *kept]
    rest = tuple(each.message for entry in entries[count:] for each in entry)
    names = frozenset(each.name for entry in entries[count - len(kept) : count] for each in entry if each.name)
    return CompactedMessages((*every[:start], Message("user", "\n".join(summary)), *rest), names)


def _message_length(message: Message) -> int:
    return len(message.text) + sum(len(str(call.name)) + len(_arguments_text(call.arguments)) for call in message.calls)


def _arguments_text(arguments: object) -> str:
    try:
        return json.dumps(arguments, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return ""


def _split_entries(messages: Sequence[LabelledMessage]) -> list[list[LabelledMessage]]:
    entries: list[list[LabelledMessage]] = []
    for each in messages:
        if each.message.speaker == "tool" and entries:
            entries[-1].append(each)
        else:
            entries.append([each])
    return entries


def _entry_line(entry: Sequence[LabelledMessage]) -> str:
    first, *results = entry
    if not first.message.calls:
        said = "said" if first.message.speaker == "assistant" else "told"
        return f"- {said}: {_shorten(first.message.text)}"
    answers = [f"${each.name}" if each.name else _shorten(each.message.text) for each in results]
    calls = [str(call.name)[:60] for call in first.message.calls]
    return "- " + "; ".join(f"called {name}: {answer}" for name, answer in zip(calls, answers, strict=False))


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_HEAD else f"{line[: MAX_HEAD - 1]}…"


def _newest_lines(lines: Sequence[str], most: int) -> list[str]:
    """As many of the newest lines as have room."""
    size, first = 0, len(lines)
    while first > 0 and size + len(lines[first - 1]) <= most:
        first -= 1
        size += len(lines[first])
    return list(lines[first:])


def _folded_line(entries: Sequence[Sequence[LabelledMessage]]) -> list[str]:
    """One line for entries that have none of their own, so that a long conversation does not grow line by line."""
    if not entries:
        return []
    calls = Counter(str(call.name)[:60] for entry in entries for each in entry for call in each.message.calls)
    counted = ", ".join(f"{name} ×{count}" for name, count in calls.most_common(_MAX_COUNTED))
    return [f"- {len(entries)} earlier entries" + (f"; calls: {counted}" if counted else "")]
