"""References of a plan: which are open, where they stand, and the plan with what they were bound to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bicameral import types as t
from bicameral.plans import _expressions as ir, _plan as ps
from bicameral.plans.check._checker import StepChecker
from bicameral.plans.check._inference import ReferenceSite
from bicameral.plans.check._scope import Scope
from bicameral.tools import Registry

FindBound = Callable[[str, ir.Reference], ir.BoundTo | None]
"""What an open reference at the step with this path is bound to; None leaves it open."""


def plan_references(plan: ps.Plan) -> tuple[ir.Reference, ...]:
    """The references of a plan, in order."""
    found = [
        each for _, step in ps.walk(plan.steps) for expr in ps.step_expressions(step) for each in _references_in(expr)
    ]
    return tuple(found)


def open_references(plan: ps.Plan) -> tuple[ir.Reference, ...]:
    """The references of a plan that are not bound yet, each once, in order."""
    return tuple(dict.fromkeys(each for each in plan_references(plan) if each.bound is None))


def _references_in(expr: Any) -> Iterator[ir.Reference]:
    if isinstance(expr, ir.Reference):
        yield expr
    for child in ir.children(expr):
        yield from _references_in(child)


def reference_sites(
    plan: ps.Plan, registry: Registry, scope: Mapping[str, t.Type] | None = None
) -> tuple[ReferenceSite, ...]:
    """Where the open references of a plan stand, with the columns among which one is looked for.

    A column that is looked for in rows of unknown columns has no `names`; once the table before it is bound, the
    registry knows more, so the sites are asked for again after each binding.
    """
    checker = StepChecker(registry)
    checker.check_block(plan.steps, Scope.from_types(scope or {}))
    sites = tuple(checker.reference_sites)
    known = {(site.path, site.refers, site.words) for site in sites if _is_known(site)}
    # Noted once as an expression, and once more with what is known of it.
    return tuple(site for site in sites if _is_known(site) or (site.path, site.refers, site.words) not in known)


def _is_known(site: ReferenceSite) -> bool:
    return site.names is not None or site.column is not None or site.tool is not None


def bind_references(plan: ps.Plan, find_bound: FindBound) -> ps.Plan:
    """The plan with its open references bound.

    A column becomes a literal where it selects a part of a value, which carries the label of the table. Elsewhere the
    name that somebody gave a column would become text of the plan, so there only the words themselves are taken. All
    other references keep their words and carry the label of what they were bound to.
    """
    return plan.model_copy(update={"steps": _bind_steps(plan.steps, find_bound, "")})


def _bind_steps(steps: tuple[Any, ...], find_bound: FindBound, at: str) -> tuple[Any, ...]:
    return tuple(_bind_step(step, find_bound, f"{at}{number}") for number, step in enumerate(steps))


def _bind_step(step: Any, find_bound: FindBound, path: str) -> Any:
    inner: dict[str, Any] = {}
    match step:
        case ps.Each():
            inner = {"steps": _bind_steps(step.steps, find_bound, f"{path}/")}
        case ps.When():
            inner = {
                "steps": _bind_steps(step.steps, find_bound, f"{path}/then/"),
                "otherwise": _bind_steps(step.otherwise, find_bound, f"{path}/else/"),
            }
        case _:
            pass

    def bind(node: Any, selects: bool = False) -> Any:
        match node:
            case ir.Reference(bound=None):
                return _bind_reference(node, find_bound(path, node), selects=selects)
            case ir.Index():
                return node.model_copy(update={"value": bind(node.value), "at": bind(node.at, selects=True)})
            case ir.Apply() if (key := _KEY_POSITIONS.get(node.function)) is not None:
                args = tuple(bind(each, selects=number == key) for number, each in enumerate(node.args))
                return ir.map_children(node, bind).model_copy(update={"args": args})
            case _:
                return node if isinstance(node, ps.STEP_TYPES) else ir.map_children(node, bind)

    def bind_argument(node: Any) -> Any:
        # Which arguments name columns only the registry knows. A reference that stands as another argument is left open
        # by whoever binds the plan (`ReferenceSite.tool`).
        match node:
            case ir.Reference():
                return bind(node, selects=True)
            case ir.ListOf():
                return node.model_copy(update={"items": tuple(map(bind_argument, node.items))})
            case _:
                return bind(node)

    return ir.map_children(step, bind_argument if isinstance(step, ps.Call) else bind).model_copy(update=inner)


_KEY_POSITIONS = {"get": 1, "group_by": 1}
"""Library functions with an argument that selects a field."""


def _bind_reference(reference: ir.Reference, bound: ir.BoundTo | None, *, selects: bool) -> ir.Expr:
    if bound is None:
        return reference
    if reference.refers != "column":
        return reference.model_copy(update={"bound": bound})
    return ir.Const(value=bound.value) if selects or bound.value == reference.words else reference
