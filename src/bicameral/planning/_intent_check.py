"""Comparison of a plan with its intent: what is missing, and what nobody asked for.

`check_against_intent` returns findings: they are repaired, and a plan with a severe one is never used.
`find_omissions` returns hints that a valid plan is wrong. Fewer than three in a hundred of the correct plans of the
training corpus have one, so a hint is no reason to refuse a plan, only to have another model write it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from bicameral.planning._intent import Intent
from bicameral.planning._matching import ADDRESS_PATTERN, FILE_PATTERN, LINK_PATTERN
from bicameral.planning._rounds import EarlierRounds
from bicameral.plans import Call, Const, Each, Plan, When, children, free_names, print_plan, walk
from bicameral.text import has_any_phrase, mentions, mentions_path
from bicameral.tools import Effect, Registry

_MISSING_EFFECT = "plan.missing-effect"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference between a plan and its intent. A plan with a `severe` one is never used."""

    code: Literal[
        "plan.missing-effect", "plan.unasked-effect", "plan.other-tool", "plan.unused-object", "plan.invented-object"
    ]
    message: str
    severe: bool = False
    path: str | None = None


def check_against_intent(
    plan: Plan, intent: Intent, registry: Registry, *, earlier: EarlierRounds | None = None, looks: bool = False
) -> list[Mismatch]:
    """All differences between a plan and its intent.

    Args:
        earlier: Earlier rounds; their effects and literals count, too.
        looks: Whether the plan only looks at results: then nothing can be missing yet.
    """
    earlier = earlier or EarlierRounds()
    effects = _effect_mismatches(plan, intent, registry, earlier)
    return [
        *(each for each in effects if not (looks and each.code == _MISSING_EFFECT)),
        *_other_tool_mismatches(plan, intent, registry),
        *([] if looks else _unused_objects(plan, intent, earlier)),
        *_invented_objects(plan, intent),
    ]


def _effect_mismatches(plan: Plan, intent: Intent, registry: Registry, earlier: EarlierRounds) -> list[Mismatch]:
    done: dict[Effect, str] = {}
    for _, step in walk(plan.steps):
        if isinstance(step, Call) and (tool := registry.get(step.tool)) is not None and tool.changes:
            done.setdefault(tool.effect, tool.name)
    found: list[Mismatch] = []
    for effect in intent.required:
        if effect not in done and effect not in earlier.effects:
            tools = ", ".join(tool.name for tool in registry if tool.effect == effect)
            message = f"The request asks to {_EFFECT_VERBS[effect]}, and the plan does not: use {tools}."
            found.append(Mismatch(_MISSING_EFFECT, message))
    for effect, name in done.items():
        if effect not in intent.effects:
            message = f"{name} would {_EFFECT_VERBS[effect]}, and the request does not ask for that: remove it."
            found.append(Mismatch("plan.unasked-effect", message, severe=effect != "write"))
    return found


def _other_tool_mismatches(plan: Plan, intent: Intent, registry: Registry) -> list[Mismatch]:
    """Calls with effects for which the words of the request ask for another tool of the same toolbox."""
    found: list[Mismatch] = []
    for path, step in walk(plan.steps):
        tool = registry.get(step.tool) if isinstance(step, Call) else None
        if tool is None or not tool.changes or not tool.words or has_any_phrase(intent.request, tool.words):
            continue
        meant = [
            other.name
            for other in registry
            if other.toolbox == tool.toolbox
            and other.effect == tool.effect
            and has_any_phrase(intent.request, other.words)
        ]
        if meant:
            message = f"The request does not ask for {tool.name}; what it says is done by {', '.join(meant)}."
            found.append(Mismatch("plan.other-tool", message, path=path))
    return found


_EFFECT_VERBS: dict[Effect, str] = {
    "write": "write something",
    "send": "send something",
    "irreversible": "delete something",
}


def _unused_objects(plan: Plan, intent: Intent, earlier: EarlierRounds) -> list[Mismatch]:
    """Files, addresses, links and numbers that the request names and the plan does not mention."""
    literals = "\n".join((*earlier.literals, *(str(value) for value in plan_literals(plan))))
    found: list[Mismatch] = []
    for kind, pattern in (("file", FILE_PATTERN), ("address", ADDRESS_PATTERN), ("link", LINK_PATTERN)):
        for name in dict.fromkeys(pattern.findall(intent.request)):
            if name.rstrip(".,;:!?)/").lower() not in literals.lower():
                message = f"The request names the {kind} {name!r}; the plan never uses it."
                found.append(Mismatch("plan.unused-object", message))
    return found


def _invented_objects(plan: Plan, intent: Intent) -> list[Mismatch]:
    """Addresses, links and files in the plan that the request does not name: the model invented them."""
    request = intent.request
    found: list[Mismatch] = []
    for value in plan_literals(plan):
        if not isinstance(value, str):
            continue
        for kind, pattern in (("address", ADDRESS_PATTERN), ("link", LINK_PATTERN), ("file", FILE_PATTERN)):
            whole = pattern.fullmatch(value.strip())
            if whole and not _is_named(value.strip(), request, kind):
                message = f"Nobody named the {kind} {value!r}: use what the request names or what a tool returns."
                found.append(Mismatch("plan.invented-object", message, severe=kind == "address"))
                break
    return found


def _is_named(value: str, request: str, kind: str) -> bool:
    """Whether the request names this as a whole; for a file its last part is enough (`report.txt` into a folder)."""
    if kind == "file":
        return mentions_path(request, value) or mentions_path(request, value.rsplit("/", 1)[-1])
    return mentions(request, value)


def drop_unasked_steps(plan: Plan, intent: Intent, registry: Registry) -> Plan:
    """The plan without the calls whose effects nobody asked for, where no other step uses their results."""
    read = {name for _, step in walk(plan.steps) for part in _own_expressions(step) for name in free_names(part)}

    def without_unasked(steps: tuple[Any, ...]) -> tuple[Any, ...]:
        found: list[Any] = []
        for step in steps:
            match step:
                case Call() if (tool := registry.get(step.tool)) is not None and tool.changes:
                    if tool.effect not in intent.effects and step.name not in read:
                        continue
                case Each() if (inner := without_unasked(step.steps)) != step.steps:
                    step = step.model_copy(update={"steps": inner}) if inner else None
                case When() if (inner := (without_unasked(step.steps), without_unasked(step.otherwise))) != (
                    step.steps,
                    step.otherwise,
                ):
                    step = step.model_copy(update={"steps": inner[0], "otherwise": inner[1]}) if inner[0] else step
                case _:
                    pass
            if step is not None:
                found.append(step)
        return tuple(found)

    return plan.model_copy(update={"steps": without_unasked(plan.steps)})


def _own_expressions(step: Any) -> list[Any]:
    """The expressions of a step itself, without those of nested steps."""
    names = ("value", "key", "source", "instruction", "over", "condition", "question")
    own = [getattr(step, name, None) for name in names]
    return [part for part in (*own, *getattr(step, "args", {}).values()) if part is not None]


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
        for part in _own_expressions(step):
            collect(part)
    return found


_NUMBER = re.compile(r"(?<![\w.,:/-])\d+(?:[.,]\d+)*(?![\w:/-]|[.,]\d)")
_CAPITALISED_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][a-z]+\b")
_QUOTED = re.compile(r"[\"“]([^\"”\n]{1,80})[\"”]")
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ONE_DAY = dt.timedelta(days=1)


def find_omissions(plan: Plan, intent: Intent, registry: Registry) -> Iterator[str]:
    """Hints that a plan leaves out something of its request, or adds something, a sentence each."""
    code = print_plan(plan.model_copy(update={"goal": ""}), registry)
    values = plan_literals(plan)
    said = "\n".join(map(str, values)).lower()
    rest = intent.request
    for named in intent.dates:
        # Plans write the phrases that mean days as dates.
        rest = rest.replace(named.phrase, " ")
    for number in dict.fromkeys(_NUMBER.findall(rest)):
        if not _has_number(number, values, said):
            yield f"the request says {number}, and the plan does not"
    for name in dict.fromkeys(_CAPITALISED_NAME.findall(rest)):
        if name.lower() not in code.lower():
            yield f"the request names {name}, and the plan does not"
    for quoted in dict.fromkeys(_QUOTED.findall(intent.request)):
        if quoted.lower().strip(" .,") not in said:
            yield f"the request says {quoted!r}, and the plan does not"
    yield from _unasked_days(code, intent)
    yield from _unasked_changes(plan, intent, registry)


def _has_number(number: str, values: list[object], said: str) -> bool:
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
