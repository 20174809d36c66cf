"""What a request says and a plan leaves out, or the other way round: signs of a plan that is valid and wrong.

These are hunches, where `against_intent` has findings: on the plans of the training corpus, which are right, fewer than
three in a hundred have one. They are no reason to refuse a plan, only to have another model write it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator

from bicameral.intent import Intent, says
from bicameral.plans import Call, Plan, print_plan, walk
from bicameral.tools import Registry

from ._against import literals

_NUMBER = re.compile(r"(?<![\w.,:/-])\d+(?:[.,]\d+)*(?![\w:/-]|[.,]\d)")
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][a-z]+\b")
_QUOTED = re.compile(r"[\"“]([^\"”\n]{1,80})[\"”]")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ONE = dt.timedelta(days=1)


def left_out(plan: Plan, intent: Intent, registry: Registry) -> Iterator[str]:
    """Where a plan and the words of its request do not go together, a sentence each."""
    code = _without_goal(plan, registry)
    values = literals(plan)
    said = "\n".join(map(str, values)).lower()
    rest = _without_days(intent)
    for number in dict.fromkeys(_NUMBER.findall(rest)):
        if not _has_number(number, values, said):
            yield f"the request says {number}, and the plan does not"
    for name in dict.fromkeys(_NAME.findall(rest)):
        if name.lower() not in code.lower():
            yield f"the request names {name}, and the plan does not"
    for quoted in dict.fromkeys(_QUOTED.findall(intent.request)):
        if quoted.lower().strip(" .,") not in said:
            yield f"the request says {quoted!r}, and the plan does not"
    yield from _other_days(code, intent)
    yield from _changes(plan, intent, registry)


def _without_goal(plan: Plan, registry: Registry) -> str:
    """The plan as people read it, without the request that stands above it."""
    return print_plan(plan.model_copy(update={"goal": ""}), registry)


def _without_days(intent: Intent) -> str:
    """The request without the words that mean days: plans say these in another way."""
    rest = intent.request
    for named in intent.dates:
        rest = rest.replace(named.phrase, " ")
    return rest


def _has_number(number: str, values: list[object], said: str) -> bool:
    if number.lower() in said:
        return True
    try:
        wanted = float(number.replace(",", ""))
    except ValueError:
        return True
    return any(type(value) in (int, float) and value == wanted for value in values)


def _other_days(code: str, intent: Intent) -> Iterator[str]:
    """Days in the plan that the request does not speak of. The day before and the day after may be bounds."""
    known = {day for named in intent.dates for end in (named.start, named.end) for day in (end - _ONE, end, end + _ONE)}
    for day in dict.fromkeys(_DAY.findall(code)):
        if day not in intent.request and day not in map(str, known):
            yield f"the plan has the day {day}, of which the request does not speak"


def _changes(plan: Plan, intent: Intent, registry: Registry) -> Iterator[str]:
    """Tools that change something, where the request's words call for none of them, or for fewer."""
    found = {step.tool for _, step in walk(plan.steps) if isinstance(step, Call)}
    changing = [tool for name in sorted(found) if (tool := registry.get(name)) is not None and tool.changes]
    for tool in changing:
        if tool.words and not says(intent.request, tool.words):
            yield f"the plan changes something with {tool.name}, and the request has no word for that"
    if len(changing) > len(intent.effects) > 0:
        names = ", ".join(tool.name for tool in changing)
        yield f"the plan changes more than the request speaks of: {names}"
