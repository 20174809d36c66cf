"""How deep a plan is nested; one bound keeps every part of the house from recursing without end."""

from __future__ import annotations

from typing import Any, cast

from bicameral.errors import Place, PlanError

from ._expressions import Const, Ref, children
from ._plan import Answer, Ask, Call, Compute, Each, Extract, Plan, Update, When

MAX_DEPTH = 50


def bound_depth(plan: Plan) -> None:
    """Refuse a plan that is nested more than 50 levels deep, however it was made."""
    number = deep_step(plan)
    if number is not None:
        raise too_deep(Place(step=str(number)))


def deep_step(plan: Plan) -> int | None:
    """The first step that is nested too deep, if any is."""
    return next((number for number, step in enumerate(plan.steps) if _too_deep(step)), None)


def too_deep(place: Place) -> PlanError:
    return PlanError(
        "plan.too-deep",
        "the plan is nested too deep",
        place=place,
        expected=f"at most {MAX_DEPTH} levels",
        fix="Give names to parts of it in steps of their own.",
    )


def _too_deep(step: Any) -> bool:
    level, depth = [step], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return True
        level = [inner for part in level for inner in _parts(part)]
    return False


def _parts(part: Any) -> tuple[Any, ...]:
    if type(part) is Ref or type(part) is Const:
        return ()
    if found := children(part):
        return found
    match part:
        case Call():
            return tuple(part.args.values())
        case Compute() | Answer():
            return (part.value,)
        case Extract():
            return (part.source, part.instruction, part.type)
        case Ask():
            return (part.question, part.type)
        case Update():
            return (part.value,) if part.key is None else (part.key, part.value)
        case Each():
            return (part.over, *part.steps)
        case When():
            return (part.condition, *part.steps, *part.otherwise)
        case dict():  # a composite type as JSON
            return tuple(cast("dict[str, Any]", part).values())
        case list():
            return tuple(cast("list[Any]", part))
        case _:
            return ()
