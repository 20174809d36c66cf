"""Rewriting plans: the same steps and expressions with some of them changed, from the outside in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._expressions import (
    Apply,
    Arithmetic,
    Choose,
    Compare,
    Comprehension,
    DictOf,
    Format,
    Get,
    Index,
    Lambda,
    ListOf,
    Logic,
    Negative,
    Not,
    Shown,
    Slice,
    TupleOf,
)
from ._plan import Answer, Ask, Call, Compute, Each, Extract, Update, When

Change = Callable[[Any], Any]


def rewrite_steps(steps: tuple[Any, ...], change_step: Change, change_expr: Change) -> tuple[Any, ...]:
    """The steps with each step and each expression changed, and then what is inside it.

    Example:
        >>> rewrite_steps(plan.steps, lambda step: step, lambda expr: expr) == plan.steps
        True
    """

    def expr(node: Any) -> Any:
        return rewrite_expr(node, change_expr)

    def block(inner: tuple[Any, ...]) -> tuple[Any, ...]:
        return rewrite_steps(inner, change_step, change_expr)

    return tuple(_rewritten(change_step(step), expr, block) for step in steps)


def _rewritten(step: Any, expr: Change, block: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Any:
    match step:
        case Call(args=args):
            new: dict[str, Any] = {"args": {name: expr(value) for name, value in args.items()}}
        case Extract():
            new = {"source": expr(step.source), "instruction": expr(step.instruction)}
        case Compute() | Answer():
            new = {"value": expr(step.value)}
        case Update():
            new = {"key": None if step.key is None else expr(step.key), "value": expr(step.value)}
        case Each():
            new = {"over": expr(step.over), "steps": block(step.steps)}
        case When():
            new = {"condition": expr(step.condition), "steps": block(step.steps), "otherwise": block(step.otherwise)}
        case Ask():
            new = {"question": expr(step.question)}
        case _:
            raise TypeError(f"{step!r} is not a step")
    return step.model_copy(update=new)


def rewrite_expr(expr: Any, change: Change) -> Any:
    """The expression changed, and then each expression inside what it became."""
    expr = change(expr)
    new = _inside(expr, lambda node: rewrite_expr(node, change))
    return expr.model_copy(update=new) if new else expr


def _inside(expr: Any, each: Change) -> dict[str, Any]:
    def maybe(node: Any) -> Any:
        return None if node is None else each(node)

    match expr:
        case Get() | Negative() | Not():
            return {"value": each(expr.value)}
        case Index():
            return {"value": each(expr.value), "at": each(expr.at)}
        case Slice():
            parts = {name: maybe(getattr(expr, name)) for name in ("start", "stop", "step")}
            return {"value": each(expr.value), **parts}
        case ListOf(items=items) | TupleOf(items=items) | Logic(items=items):
            return {"items": tuple(map(each, items))}
        case DictOf(entries=entries):
            return {"entries": tuple((each(key), each(value)) for key, value in entries)}
        case Arithmetic():
            return {"left": each(expr.left), "right": each(expr.right)}
        case Compare():
            return {"first": each(expr.first), "rest": tuple((op, each(node)) for op, node in expr.rest)}
        case Choose():
            return {name: each(getattr(expr, name)) for name in ("condition", "then", "otherwise")}
        case Apply():
            named = tuple((name, each(value)) for name, value in expr.named)
            return {"args": tuple(map(each, expr.args)), "named": named}
        case Format(parts=parts):
            return {"parts": tuple(_part(part, each) for part in parts)}
        case Comprehension():
            clauses = (
                clause.model_copy(update={"over": each(clause.over), "conditions": tuple(map(each, clause.conditions))})
                for clause in expr.clauses
            )
            return {"element": each(expr.element), "key": maybe(expr.key), "clauses": tuple(clauses)}
        case Lambda():
            return {"body": each(expr.body)}
        case _:
            return {}


def _part(part: Any, each: Change) -> Any:
    return part.model_copy(update={"value": each(part.value)}) if isinstance(part, Shown) else part
