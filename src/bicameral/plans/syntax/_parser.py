"""The parser of plans: statements, conditional expressions and comprehensions of a subset of Python become steps.

A conditional expression or comprehension without calls of tools stays an expression; one with calls becomes a `when` or
an `each`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from bicameral.errors import Place, PlanError
from bicameral.plans import _expressions as ir
from bicameral.plans._plan import (
    PLAN_ID_PATTERN,
    Answer,
    Compute,
    Each,
    Plan,
    Update,
    When,
    first_too_deep_step,
    too_deep_error,
    walk,
)
from bicameral.plans.syntax import _expression_parser as exprs
from bicameral.plans.syntax._lowering import (
    AssignmentTarget,
    Lowering,
    NodeReader,
    PlanSource,
    Prepass,
    is_step_call,
    loop_target,
    syntax_tree,
    target_parts,
)
from bicameral.tools import Registry

AnyComprehension = ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp


def write_assignment(lowering: Lowering, name: str, node: ast.expr, at: ast.AST | None = None) -> None:
    """Write the steps of `name = …`, a statement that begins `at` a node."""
    at = at or node
    match node:
        case ast.Call() if is_step_call(node):
            lowering.add_step(exprs.read_step_call(lowering, node, name), at)
        case ast.IfExp() if lowering.needs_steps(node.body, node.orelse):
            _write_choice(lowering, name, node, at)
        case ast.ListComp() | ast.GeneratorExp() | ast.DictComp() if _needs_loop(
            lowering, node
        ) and name not in _used_names(node):
            _write_loop(lowering, name, node, at)
        case _:
            lowering.add_step(Compute(name=name, value=lowering.lower_expression(node)), at)


def _read_choice(lowering: Lowering, node: ast.IfExp) -> ir.Expr:
    if lowering.needs_steps(node.body, node.orelse):
        name = lowering.fresh_name()
        _write_choice(lowering, name, node, node)
        return ir.Ref(name=name)
    condition = lowering.lower_expression(node.test)
    return ir.Choose(
        condition=condition, then=lowering.lower_expression(node.body), otherwise=lowering.lower_expression(node.orelse)
    )


def _write_choice(lowering: Lowering, name: str, node: ast.IfExp, at: ast.AST) -> None:
    condition = lowering.lower_expression(node.test)
    with lowering.collect_steps() as then:
        write_assignment(lowering, name, node.body)
    with lowering.collect_steps() as otherwise:
        write_assignment(lowering, name, node.orelse)
    lowering.add_step(When(condition=condition, steps=tuple(then), otherwise=tuple(otherwise)), at)


def _read_comprehension(lowering: Lowering, node: AnyComprehension) -> ir.Expr:
    if _needs_loop(lowering, node):
        name = lowering.fresh_name()
        _write_loop(lowering, name, node, node)
        found: ir.Expr = ir.Ref(name=name)
    else:
        found = _read_pure_comprehension(lowering, node, list(node.generators), ())
    return ir.Apply(function="unique", args=(found,)) if isinstance(node, ast.SetComp) else found


def _needs_loop(lowering: Lowering, node: AnyComprehension) -> bool:
    """Whether anything but the first list has calls: they must run once for each item."""
    first, *others = node.generators
    return lowering.needs_steps(*_element_nodes(node), *first.ifs, *others)


def _element_nodes(node: AnyComprehension) -> tuple[ast.expr, ...]:
    return (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)


def _read_pure_comprehension(
    lowering: Lowering, node: AnyComprehension, rest: list[ast.comprehension], clauses: tuple[ir.Clause, ...]
) -> ir.Expr:
    if not rest:
        *key, element = map(lowering.lower_expression, _element_nodes(node))
        return ir.Comprehension(key=key[0] if key else None, element=element, clauses=clauses)
    generator = _require_sync_generator(lowering, node, rest[0])
    over = lowering.lower_expression(generator.iter)
    target = loop_target(lowering, generator.target)
    with lowering.substitute_names(target.parts, hidden=target.names):
        conditions = tuple(map(lowering.lower_expression, generator.ifs))
        clause = ir.Clause(names=target.names, over=over, conditions=conditions)
        return _read_pure_comprehension(lowering, node, rest[1:], (*clauses, clause))


def _require_sync_generator(lowering: Lowering, node: ast.AST, generator: ast.comprehension) -> ast.comprehension:
    if generator.is_async:
        raise lowering.refusal(node, "`async`", "Steps that can run at the same time do so by themselves.")
    return generator


def _write_loop(lowering: Lowering, name: str, node: AnyComprehension, at: ast.AST) -> None:
    empty = ir.DictOf() if isinstance(node, ast.DictComp) else ir.ListOf()
    lowering.add_step(Compute(name=name, value=empty), at)
    _write_clause(lowering, name, node, list(node.generators))


def _write_clause(lowering: Lowering, name: str, node: AnyComprehension, rest: list[ast.comprehension]) -> None:
    if not rest:
        *key, value = map(lowering.lower_expression, _element_nodes(node))
        op = "put" if key else "append"
        lowering.add_step(Update(name=name, op=op, key=key[0] if key else None, value=value), node)
        return
    generator = _require_sync_generator(lowering, node, rest[0])
    over = lowering.lower_expression(generator.iter)
    target = _rename_loop_target(lowering, node, loop_target(lowering, generator.target))
    with lowering.collect_steps() as body, lowering.substitute_names(target.parts, hidden=target.names):
        _write_conditions(lowering, name, node, list(generator.ifs), rest[1:])
    lowering.add_step(Each(names=target.names, over=over, steps=tuple(body)), node)


def _write_conditions(
    lowering: Lowering, name: str, node: AnyComprehension, conditions: list[ast.expr], rest: list[ast.comprehension]
) -> None:
    if not conditions:
        _write_clause(lowering, name, node, rest)
        return
    condition = lowering.lower_expression(conditions[0])
    with lowering.collect_steps() as then:
        _write_conditions(lowering, name, node, conditions[1:], rest)
    lowering.add_step(When(condition=condition, steps=tuple(then)), node)


def _rename_loop_target(lowering: Lowering, node: AnyComprehension, target: AssignmentTarget) -> AssignmentTarget:
    """The target with fresh names where a loop made from a comprehension would overwrite a name outside of it."""
    inside = Counter(_used_names(node))
    parts = dict(target.parts)
    names: list[str] = []
    for name in target.names:
        if lowering.prepass.name_counts[name] > inside[name] > 0:
            names.append(lowering.fresh_name())
            parts[name] = ir.Ref(name=names[-1])
        else:
            names.append(name)
    return AssignmentTarget(tuple(names), parts)


def _used_names(node: ast.AST) -> list[str]:
    return [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]


BRANCH_READERS: Mapping[type[ast.expr], NodeReader] = {
    ast.IfExp: _read_choice,
    ast.ListComp: _read_comprehension,
    ast.GeneratorExp: _read_comprehension,
    ast.SetComp: _read_comprehension,
    ast.DictComp: _read_comprehension,
}


_REFUSED_STATEMENTS: Mapping[type[ast.stmt], tuple[str, str | None]] = {
    ast.While: ("a `while` loop", "Use `for x in list:`; it always ends."),
    ast.FunctionDef: ("a function definition", "Write its steps where they are needed."),
    ast.AsyncFunctionDef: ("a function definition", "Write its steps where they are needed."),
    ast.ClassDef: ("a class", "Use a dict."),
    ast.Try: ("`try`", "A step that fails ends the run with its error; leave it out."),
    ast.TryStar: ("`try`", "A step that fails ends the run with its error; leave it out."),
    ast.With: ("`with`", "Call the tools directly."),
    ast.AsyncWith: ("`with`", "Call the tools directly."),
    ast.AsyncFor: ("`async`", "Steps that can run at the same time do so by themselves."),
    ast.Global: ("`global`", "All names of a plan are known everywhere in it."),
    ast.Nonlocal: ("`nonlocal`", "All names of a plan are known everywhere in it."),
    ast.Delete: ("`del`", "Leave it out, or make a new list without the item."),
    ast.Assert: ("`assert`", "Use `if`."),
    ast.Raise: ("`raise`", "Use `answer(…)` to say what is wrong."),
    ast.Match: ("`match`", "Use `if` and `elif`."),
    ast.Break: ("`break`", "Use a list with only the items you want: `xs[:3]`, `[x for x in xs if …]`."),
    ast.Continue: ("`continue`", "Put the other steps under an `if`."),
}


_FIELD_ASSIGNMENT = ("an assignment to a field", "Records do not change; make a dict: `d[key] = value`.")
_INNER_CHANGE = ("a change inside a value", "Give the inner value a name, change it, and put it back.")


def read_block(lowering: Lowering, nodes: Sequence[ast.stmt], *, last: bool) -> None:
    """Write the steps of some statements; `last` says that nothing comes after them."""
    for number, node in enumerate(nodes):
        lowering.enter(node)
        _read_statement(lowering, node, last=last and number == len(nodes) - 1)
        lowering.depth -= 1


def _read_statement(lowering: Lowering, node: ast.stmt, *, last: bool) -> None:
    match node:
        case ast.Assign(targets=targets, value=value):
            _read_assignment(lowering, node, targets, value)
        case ast.AnnAssign(target=target, value=value):
            if value is not None:  # the annotation is for the reader; the check finds the type by itself
                _read_assignment(lowering, node, [target], value)
        case ast.AugAssign():
            _read_augmented_assignment(lowering, node)
        case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
            pass
        case ast.Expr(value=value):
            _read_expression_statement(lowering, node, value, last=last)
        case ast.Return(value=value):
            answer = ir.Const(value=None) if value is None else lowering.lower_expression(value)
            lowering.add_step(Answer(value=answer), node)
        case ast.If():
            _read_if(lowering, node, last=last)
        case ast.For():
            _read_for(lowering, node)
        case ast.Import(names=names):
            raise _import_refused_error(lowering, node, names[0].name)
        case ast.ImportFrom(module=module):
            raise _import_refused_error(lowering, node, module or "")
        case _:
            what, fix = _REFUSED_STATEMENTS.get(type(node), (f"{type(node).__name__!r}", None))
            raise lowering.refusal(node, what, fix)


def _import_refused_error(lowering: Lowering, node: ast.AST, module: str) -> Exception:
    dates = module.split(".")[0] in ("datetime", "dateutil", "time")
    fix = "Remove it; the date functions are built in." if dates else "Remove it; use the tools and functions you have."
    return lowering.refusal(node, "`import`", fix)


def _read_assignment(lowering: Lowering, node: ast.stmt, targets: Sequence[ast.expr], value: ast.expr) -> None:
    match targets:
        case [ast.Name(id=name), *others]:
            write_assignment(lowering, lowering.check_name(targets[0], name), value, node)
            whole: ir.Expr = ir.Ref(name=name)
        case [ast.Subscript() as target]:
            _write_put(lowering, node, target, lowering.lower_expression(value))
            return
        case _:
            others, fresh = targets, lowering.fresh_name()
            write_assignment(lowering, fresh, value, node)
            whole = ir.Ref(name=fresh)
    for target in others:
        _write_binding(lowering, node, target, whole)


def _write_binding(lowering: Lowering, node: ast.stmt, target: ast.expr, whole: ir.Expr) -> None:
    match target:
        case ast.Subscript():
            _write_put(lowering, node, target, whole)
        case ast.Attribute():
            raise lowering.refusal(target, *_FIELD_ASSIGNMENT)
        case _:
            for name, part in target_parts(lowering, target, whole).items():
                lowering.add_step(Compute(name=name, value=part), node)


def _write_put(lowering: Lowering, node: ast.stmt, target: ast.Subscript, value: ir.Expr) -> None:
    name, key = _read_slot(lowering, target)
    lowering.add_step(Update(name=name, op="put", key=key, value=value), node)


def _read_slot(lowering: Lowering, target: ast.Subscript) -> tuple[str, ir.Expr]:
    """The variable and the key of `d[key]`, where it is the target of a change."""
    if not isinstance(target.value, ast.Name) or isinstance(target.slice, ast.Slice):
        raise lowering.refusal(target, *_INNER_CHANGE)
    return lowering.check_name(target, target.value.id), lowering.lower_expression(target.slice)


def _read_augmented_assignment(lowering: Lowering, node: ast.AugAssign) -> None:
    op = exprs.read_operator(lowering, node, node.op)
    match node.target:
        case ast.Name(id=name):
            value = lowering.lower_expression(node.value)
            if op == "+":
                lowering.add_step(Update(name=lowering.check_name(node, name), op="add", value=value), node)
            else:
                changed = ir.Arithmetic(op=op, left=ir.Ref(name=lowering.check_name(node, name)), right=value)
                lowering.add_step(Compute(name=name, value=changed), node)
        case ast.Subscript() as target:
            name, key = _read_slot(lowering, target)
            before = ir.Index(value=ir.Ref(name=name), at=key)
            changed = ir.Arithmetic(op=op, left=before, right=lowering.lower_expression(node.value))
            lowering.add_step(Update(name=name, op="put", key=key, value=changed), node)
        case target:
            raise lowering.refusal(target, *_FIELD_ASSIGNMENT)


def _read_expression_statement(lowering: Lowering, node: ast.stmt, value: ast.expr, *, last: bool) -> None:
    match value:
        case ast.Call(func=ast.Name(id="answer" | "print" as word)):
            if word == "print" and not last:
                raise lowering.refusal(node, "`print` before its end", "Use `answer(value)` once, at the end.")
            given = exprs.bind_word_arguments(lowering, value, ("value",), required=1)["value"]
            lowering.add_step(Answer(value=lowering.lower_expression(given)), node)
        case ast.Call() if is_step_call(value):
            lowering.add_step(exprs.read_step_call(lowering, value, None, wanted=False), node)
        case ast.Call(func=ast.Attribute(value=receiver, attr=method)) if method in _CHANGE_WRITERS:
            _CHANGE_WRITERS[method](lowering, value, receiver)
        case _:
            raise lowering.error(
                node, "plan.no-effect", "this value is not used", fix="Give it a name (`x = …`), or `answer(…)` it."
            )


def _write_list_growth(lowering: Lowering, node: ast.Call, receiver: ast.expr) -> None:
    appends = cast("ast.Attribute", node.func).attr == "append"
    value = _read_only_argument(lowering, node)
    match receiver:
        case ast.Name(id=name):
            op = "append" if appends else "add"
            lowering.add_step(Update(name=lowering.check_name(receiver, name), op=op, value=value), node)
        case _:
            _write_longer_list(lowering, node, receiver, ir.ListOf(items=(value,)) if appends else value)


def _write_longer_list(lowering: Lowering, node: ast.Call, receiver: ast.expr, more: ir.Expr) -> None:
    """`d[key].append(v)` and `d.setdefault(key, []).append(v)`: put a longer list under the key."""
    match receiver:
        case ast.Subscript():
            name, key = _read_slot(lowering, receiver)
            before: ir.Expr = ir.Index(value=ir.Ref(name=name), at=key)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="setdefault"), args=[at, start], keywords=[]):
            key = lowering.lower_expression(at)
            before = ir.Apply(
                function="get",
                args=(ir.Ref(name=lowering.check_name(receiver, name)), key, lowering.lower_expression(start)),
            )
        case _:
            raise lowering.refusal(receiver, *_INNER_CHANGE)
    longer = ir.Arithmetic(op="+", left=before, right=more)
    lowering.add_step(Update(name=name, op="put", key=key, value=longer), node)


def _read_only_argument(lowering: Lowering, node: ast.Call) -> ir.Expr:
    if len(node.args) != 1 or node.keywords:
        method = cast("ast.Attribute", node.func).attr
        raise lowering.error(
            node, "plan.missing-argument", f"{method!r} takes one value", expected=f"xs.{method}(value)"
        )
    return exprs.read_items(lowering, node.args)[0]


def _reorder_writer(function: str) -> Callable[[Lowering, ast.Call, ast.expr], None]:
    def write(lowering: Lowering, node: ast.Call, receiver: ast.expr) -> None:
        if not isinstance(receiver, ast.Name):
            raise lowering.refusal(receiver, "a change inside a value", f"Use `xs = {function}(xs)`.")
        called = ast.Call(ast.Name(function, ast.Load()), [receiver, *node.args], node.keywords)
        lowering.add_step(
            Compute(
                name=lowering.check_name(receiver, receiver.id),
                value=lowering.lower_expression(ast.copy_location(called, node)),
            ),
            node,
        )

    return write


_CHANGE_WRITERS: Mapping[str, Callable[[Lowering, Any, ast.expr], None]] = {
    "append": _write_list_growth,
    "extend": _write_list_growth,
    "sort": _reorder_writer("sorted"),
    "reverse": _reorder_writer("reversed"),
}


def _read_if(lowering: Lowering, node: ast.If, *, last: bool) -> None:
    condition = lowering.lower_expression(node.test)
    with lowering.collect_steps() as then:
        read_block(lowering, node.body, last=last)
    with lowering.collect_steps() as otherwise:
        read_block(lowering, node.orelse, last=last)
    if then:
        lowering.add_step(When(condition=condition, steps=tuple(then), otherwise=tuple(otherwise)), node)
    elif otherwise:  # `if c: pass` with something to do only where c does not hold
        lowering.add_step(When(condition=ir.Not(value=condition), steps=tuple(otherwise)), node)


def _read_for(lowering: Lowering, node: ast.For) -> None:
    if node.orelse:
        raise lowering.refusal(node.orelse[0], "`else` after a loop", "Write the steps after the loop.")
    over = lowering.lower_expression(node.iter)
    target = loop_target(lowering, node.target)
    with lowering.collect_steps() as body:
        target.unpack(lowering, node)
        unpacked = len(body)
        read_block(lowering, node.body, last=False)
    if len(body) > unpacked:
        lowering.add_step(Each(names=target.names, over=over, steps=tuple(body)), node)


_READERS: Mapping[type[ast.expr], NodeReader] = {**exprs.EXPRESSION_READERS, **exprs.CALL_READERS, **BRANCH_READERS}

# A plan parsed within these levels cannot be too deep: no construct adds more than one level of its own.
_SHALLOW_DEPTH = 24


@dataclass(frozen=True, slots=True)
class ParsedPlan:
    """A plan and, for each path of a step (see `walk`), the place where the step is written."""

    plan: Plan
    places: dict[str, Place]


def parse(source: str, registry: Registry | None = None, *, file: str | None = None) -> ParsedPlan:
    """Parse a plan; the first mistake raises a PlanError with its place.

    Args:
        source: The text of the plan.
        registry: The tools, so that their arguments may be given by position; without it they need their names.
        file: The name of the file, for places in errors.

    Example:
        >>> parse('answer(f"{1 + 1} apples")').plan.steps[0].do
        'answer'
    """
    text = PlanSource.from_text(source, file)
    tree = syntax_tree(text)
    lowering = Lowering(text, Prepass(tree, source), registry, _READERS)
    goal, body = _read_goal(lowering, tree.body)
    plan_id, body = _read_plan_id(lowering, body)
    try:
        read_block(lowering, body, last=True)
        plan = Plan(goal=goal, steps=tuple(lowering.steps), plan_id=plan_id)
    except ValidationError as error:  # a safety net: the parser has its own message for every rule
        raise PlanError("plan.invalid", error.errors()[0]["msg"], place=Place(file=file)) from None
    except RecursionError:  # called from deep inside another program
        raise too_deep_error(Place(file=file)) from None
    if lowering.deepest > _SHALLOW_DEPTH and (number := first_too_deep_step(plan)) is not None:
        raise too_deep_error(lowering.places[id(plan.steps[number])])
    return ParsedPlan(plan, {path: lowering.places[id(step)] for path, step in walk(plan.steps)})


def _read_goal(lowering: Lowering, body: list[ast.stmt]) -> tuple[str, list[ast.stmt]]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str() as goal)) as first, *rest]:
            return lowering.check_text(first, goal), rest
        case _:
            return "", body


def _read_plan_id(lowering: Lowering, body: list[ast.stmt]) -> tuple[str | None, list[ast.stmt]]:
    """The id in `plan_id("…")`, the first statement after the goal."""
    match body:
        case [ast.Expr(value=ast.Call(func=ast.Name(id="plan_id")) as call), *rest]:
            pass
        case _:
            return None, body
    match exprs.bind_word_arguments(lowering, call, ("id",), required=1)["id"]:
        case ast.Constant(value=str() as found) if re.match(PLAN_ID_PATTERN, found) and not found.endswith("\n"):
            return found, rest
        case other:
            raise lowering.error(
                other, "plan.invalid", "this is no id of a plan", expected=f"a text like {PLAN_ID_PATTERN}"
            )
