"""The effects of a plan in plain sentences, for a person who chooses among plans: to whom, what, when, for which.

A sentence names the words of the request and how the plan puts them together. It is made before anything is bound, so
nothing of the world is in it, and nobody who wrote a file or a mail can persuade the person by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bicameral.plans import (
    Answer,
    Apply,
    Ask,
    Call,
    Compare,
    Comprehension,
    Compute,
    Const,
    Each,
    Extract,
    Format,
    Get,
    Index,
    ListOf,
    Plan,
    Ref,
    Reference,
    Shown,
    Update,
    When,
    render_expr,
)
from bicameral.tools import Registry

MAX_SENTENCE = 400
_MAX_PART = 160
_FUNCTIONS = {"sum": "the sum of", "len": "the number of", "mean": "the average of", "max": "the most of"}


def describe_effects(plan: Plan, registry: Registry) -> tuple[str, ...]:
    """One sentence for each call of a plan that has an effect; what it answers if it has none.

    Args:
        plan: The plan as it was written, before anything is bound.
        registry: The tools.

    Example:
        >>> describe_effects(plan, registry)
        ('Send mail: to Kim; subject "Friday"; body "Friday is fine."',)
    """
    teller = _Teller(registry)
    found = tuple(dict.fromkeys(teller.tell(plan.steps, ())))
    return found or tuple(dict.fromkeys(teller.answers))


class _Teller:
    """Follows a plan and keeps in words what each variable is."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[str, str] = {}
        self.answers: list[str] = []

    def tell(self, steps: tuple[Any, ...], under: tuple[str, ...]) -> Iterator[str]:
        for step in steps:
            match step:
                case Call():
                    tool = self._registry.get(step.tool)
                    said = self._say_call(step)
                    if tool is None or tool.changes:
                        yield _shorten(", ".join([said, *under]), MAX_SENTENCE)
                    if step.name is not None:
                        self._known[step.name] = self._say_reading(step, said)
                case Extract():
                    self._known[step.name] = f"{self._say(step.instruction)} in {self._say(step.source)}"
                case Ask():
                    self._known[step.name] = "your answer"
                case Compute():
                    self._known[step.name] = self._say(step.value)
                case Update():
                    before = self._known.get(step.name, "")
                    self._known[step.name] = _shorten(f"{before} and {self._say(step.value)}", _MAX_PART)
                case Each():
                    over = self._say(step.over)
                    self._known |= dict.fromkeys(step.names, "each")
                    yield from self.tell(step.steps, (*under, f"for each of {over}"))
                case When():
                    condition = self._say(step.condition)
                    yield from self.tell(step.steps, (*under, f"if {condition}"))
                    yield from self.tell(step.otherwise, (*under, f"if not {condition}"))
                case Answer():
                    self.answers.append(_shorten(f"Answer {self._say(step.value)}", MAX_SENTENCE))
                case _:
                    raise AssertionError(f"{type(step).__name__} is no step")

    def _say_call(self, step: Call) -> str:
        parts = [f"{name.replace('_', ' ')} {self._say(expr)}" for name, expr in step.args.items()]
        return f"{step.tool.replace('_', ' ').capitalize()}: {'; '.join(parts)}"

    def _say_reading(self, step: Call, said: str) -> str:
        given: Mapping[str, Any] = step.args
        if {"rows", "column", "op", "value"} <= set(given):
            names = ("rows", "column", "op", "value")
            rows, column, op, value = (self._say(given[name]) for name in names)
            return _shorten(f"{rows} where {column} {op.strip(chr(34))} {value}", _MAX_PART)
        if len(given) == 1:
            return self._say(next(iter(given.values())))
        return _shorten(f"({said})", _MAX_PART)

    def _say(self, expr: Any) -> str:
        match expr:
            case Const(value=str(text)):
                said = f'"{text}"'
            case Reference():
                said = expr.words
            case Ref():
                said = self._known.get(expr.name, expr.name)
            case Get():
                said = f"{expr.field.replace('_', ' ')} of {self._say(expr.value)}"
            case Index():
                said = f"{self._say(expr.at)} of {self._say(expr.value)}"
            case ListOf():
                said = ", ".join(map(self._say, expr.items)) or "nothing"
            case Format():
                said = '"' + "".join(_part(part, self._say) for part in expr.parts) + '"'
            case Apply() if len(expr.args) == 1 and not expr.named:
                said = f"{_FUNCTIONS.get(expr.function, expr.function)} {self._say(expr.args[0])}"
            case Compare():
                rest = " ".join(f"{op} {self._say(value)}" for op, value in expr.rest)
                said = f"{self._say(expr.first)} {rest}"
            case Comprehension() if expr.key is None and len(expr.clauses) == 1:
                said = self._say_comprehension(expr)
            case _:
                said = render_expr(expr)
        return _shorten(said, _MAX_PART)

    def _say_comprehension(self, expr: Comprehension) -> str:
        (clause,) = expr.clauses
        over = self._say(clause.over)
        before = dict(self._known)
        self._known |= dict.fromkeys(clause.names, "each")
        conditions = "".join(f" if {self._say(condition)}" for condition in clause.conditions)
        said = f"{self._say(expr.element)} of {over}{conditions}"
        self._known = before
        return said


def _part(part: Any, say: Any) -> str:
    return "{" + say(part.value) + "}" if isinstance(part, Shown) else str(part)


def _shorten(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
