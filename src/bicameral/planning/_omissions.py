"""Hints that a valid plan leaves out something of its request or adds something, and the literals they look at.

Fewer than three in a hundred of the correct plans of the training corpus have such a hint, so it is no reason to refuse
a plan, only to have another model write it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from bicameral.planning._intent_document import Intent
from bicameral.plans import Call, Const, Plan, children, print_plan, step_expressions, unbind_cells, walk
from bicameral.text import has_any_phrase, lazy_pattern
from bicameral.tools import Registry

NUMBER = lazy_pattern(r"(?<![\w.,:/-])\d+(?:[.,]\d+)*(?![\w:/-]|[.,]\d)")
_CAPITALISED_NAME = lazy_pattern(r"(?<![.!?:]\s)(?<!^)\b[A-Z][a-z]+\b")
_QUOTED = lazy_pattern(r"[\"“]([^\"”\n]{1,80})[\"”]")
_ISO_DAY = lazy_pattern(r"\d{4}-\d\d-\d\d")
_ONE_DAY = dt.timedelta(days=1)


def plan_literals(plan: Plan) -> list[Any]:
    """Every literal in a plan, in order."""
    found: list[Any] = []

    def collect(node: Any) -> None:
        if isinstance(node, Const):
            found.append(node.value)
        elif hasattr(node, "parts"):
            found.extend(part for part in node.parts if isinstance(part, str))
        for child in children(node):
            collect(child)

    for _, step in walk(plan.steps):
        for part in step_expressions(step):
            collect(part)
    return found


def find_omissions(plan: Plan, intent: Intent, registry: Registry) -> Iterator[str]:
    """Hints that a plan leaves out something of its request, or adds something, a sentence each."""
    plan = unbind_cells(plan)
    code = print_plan(plan.model_copy(update={"goal": ""}), registry)
    values = plan_literals(plan)
    said = "\n".join(map(str, values)).lower()
    rest = intent.request
    for named in intent.dates:
        # Plans write the phrases that mean days as dates.
        rest = rest.replace(named.phrase, " ")
    for number in dict.fromkeys(NUMBER.findall(rest)):
        if not has_number(number, values, said):
            yield f"the request says {number}, and the plan does not"
    for name in dict.fromkeys(_CAPITALISED_NAME.findall(rest)):
        if name.lower() not in code.lower():
            yield f"the request names {name}, and the plan does not"
    for quoted in dict.fromkeys(_QUOTED.findall(intent.request)):
        if quoted.lower().strip(" .,") not in said:
            yield f"the request says {quoted!r}, and the plan does not"
    yield from _unasked_days(code, intent)
    yield from _unasked_changes(plan, intent, registry)


def has_number(number: str, values: list[object], said: str) -> bool:
    """Whether a number of a request is one of these values, or stands in what is said."""
    if number.lower() in said:
        return True
    try:
        wanted = float(number.replace(",", ""))
    except ValueError:
        return True
    return any(type(value) in (int, float) and value == wanted for value in values)


def _unasked_days(code: str, intent: Intent) -> Iterator[str]:
    """Days in the plan that the request does not mention. The days before and after one may be bounds."""
    known = {
        day
        for named in intent.dates
        for end in (named.start, named.end)
        for day in (end - _ONE_DAY, end, end + _ONE_DAY)
    }
    for day in dict.fromkeys(_ISO_DAY.findall(code)):
        if day not in intent.request and day not in map(str, known):
            yield f"the plan has the day {day}, of which the request does not speak"


def _unasked_changes(plan: Plan, intent: Intent, registry: Registry) -> Iterator[str]:
    """Calls with effects, where the words of the request ask for none of them, or for fewer."""
    found = {step.tool for _, step in walk(plan.steps) if isinstance(step, Call)}
    changing = [tool for name in sorted(found) if (tool := registry.get(name)) is not None and tool.changes]
    for tool in changing:
        if tool.words and not has_any_phrase(intent.request, tool.words):
            yield f"the plan changes something with {tool.name}, and the request has no word for that"
    if len(changing) > len(intent.effects) > 0:
        names = ", ".join(tool.name for tool in changing)
        yield f"the plan changes more than the request speaks of: {names}"
