"""What to write instead: Python that people and models reach for and that a plan does not have."""

from __future__ import annotations

from collections.abc import Mapping

FUNCTION_HINTS: Mapping[str, str] = {
    "map": "Use a comprehension: `[f(x) for x in xs]`.",
    "filter": "Use a comprehension: `[x for x in xs if …]`.",
    "input": "Use `ask(question)`.",
    "open": "Use a tool that reads or writes files.",
    "isinstance": "Types are known before a plan runs; leave it out.",
    "type": "Types are known before a plan runs; leave it out.",
    "getattr": "Write `value.field`.",
    "setattr": "Records do not change; make a dict: `d[key] = value`.",
    "next": "Use `first(xs)`.",
    "iter": "Loop over the list itself.",
    "eval": "A plan cannot run text as code.",
    "exec": "A plan cannot run text as code.",
    "pow": "Multiply instead.",
    "divmod": "Use `//` and `%`.",
}

METHOD_HINTS: Mapping[str, str] = {
    "format": 'Use an f-string: f"{value}".',
    "append": "Make it a statement of its own: `xs.append(value)`.",
    "extend": "Make it a statement of its own: `xs.extend(more)`.",
    "insert": "Write `xs = [value] + xs`.",
    "pop": "Use an index or a slice: `last = xs[-1]`.",
    "remove": "Write `xs = [x for x in xs if x != value]`.",
    "clear": "Write `xs = []`.",
    "copy": "Values do not change behind your back; use the value itself.",
    "update": "Write `d[key] = value`.",
    "add": "Use a list and `unique(xs)`.",
    "setdefault": "Write `d.setdefault(key, []).append(value)` as a statement.",
    "now": "Use a tool that tells the time.",
    "today": "Use a tool that tells the date.",
    "strptime": 'Use `parse_date(text)` or `date("2026-03-01")`.',
    "fromisoformat": 'Use `date("2026-03-01")` or `datetime("2026-03-01T09:00")`.',
    "encode": "Text has no bytes in a plan.",
    "sort": "Make it a statement of its own, or use `sorted(xs)`.",
    "reverse": "Make it a statement of its own, or use `reversed(xs)`.",
}
