"""Read a plan that is written in a subset of Python."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from bicameral.errors import Place, PlanError
from bicameral.tools import Registry

from ._depth import deep_step, too_deep
from ._lift import Reader, Reading
from ._parse_branches import BRANCHES
from ._parse_calls import CALLS
from ._parse_expressions import EXPRESSIONS
from ._parse_statements import read_block
from ._plan import Plan, walk
from ._source import Source, syntax_tree
from ._survey import Survey

_READERS: Mapping[type[ast.expr], Reader] = {**EXPRESSIONS, **CALLS, **BRANCHES}

# What is read in few levels cannot be too deep: no construct adds more than one level of its own.
_SHALLOW = 24


@dataclass(frozen=True, slots=True)
class Parsed:
    """A plan and, for each path of a step (see `walk`), the place where the step is written."""

    plan: Plan
    places: dict[str, Place]


def parse(source: str, registry: Registry | None = None, *, file: str | None = None) -> Parsed:
    """Read a plan; the first thing that is wrong raises a PlanError with its place.

    With a registry the arguments of tools may be given by position; without one they need their names.

    Example:
        >>> parse('answer(f"{1 + 1} apples")').plan.steps[0].do
        'answer'
    """
    text = Source.of(source, file)
    tree = syntax_tree(text)
    reading = Reading(text, Survey(tree, source), registry, _READERS)
    goal, body = _goal(reading, tree.body)
    try:
        read_block(reading, body, last=True)
        plan = Plan(goal=goal, steps=tuple(reading.steps))
    except ValidationError as error:  # every rule of the IR has its own message above; this is the net below them
        raise PlanError("plan.invalid", error.errors()[0]["msg"], place=Place(file=file)) from None
    except RecursionError:  # called from deep inside another program
        raise too_deep(Place(file=file)) from None
    if reading.deepest > _SHALLOW and (number := deep_step(plan)) is not None:
        raise too_deep(reading.places[id(plan.steps[number])])
    return Parsed(plan, {path: reading.places[id(step)] for path, step in walk(plan.steps)})


def _goal(reading: Reading, body: list[ast.stmt]) -> tuple[str, list[ast.stmt]]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str() as goal)) as first, *rest]:
            return reading.text(first, goal), rest
        case _:
            return "", body
