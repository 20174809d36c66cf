"""The parser of plans: statements, conditional expressions and comprehensions of a subset of Python become steps.

A conditional expression or comprehension without calls of tools stays an expression; one with calls becomes a `when` or
an `each`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from bicameral.errors import Place, PlanError
from bicameral.plans._expressions import (
    Apply,
    Arithmetic,
    Choose,
    Clause,
    Comprehension,
    Const,
    DictOf,
    Expr,
    Index,
    ListOf,
    Not,
    Ref,
)
from bicameral.plans._plan import Answer, Compute, Each, Plan, Update, When, first_too_deep_step, too_deep_error, walk
from bicameral.plans.syntax._expression_parser import (
    CALL_READERS,
    EXPRESSION_READERS,
    bind_word_arguments,
    read_items,
    read_operator,
    read_step_call,
)
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


def write_assignment(reading: Lowering, name: str, node: ast.expr, at: ast.AST | None = None) -> None:
    """Write the steps of `name = …`, a statement that begins `at` a node."""
    at = at or node
    match node:
        case ast.Call() if is_step_call(node):
            reading.add_step(read_step_call(reading, node, name), at)
        case ast.IfExp() if reading.needs_steps(node.body, node.orelse):
            _write_choice(reading, name, node, at)
        case ast.ListComp() | ast.GeneratorExp() | ast.DictComp() if _needs_loop(
            reading, node
        ) and name not in _used_names(node):
            _write_loop(reading, name, node, at)
        case _:
            reading.add_step(Compute(name=name, value=reading.lower_expression(node)), at)


def _read_choice(reading: Lowering, node: ast.IfExp) -> Expr:
    if reading.needs_steps(node.body, node.orelse):
        name = reading.fresh_name()
        _write_choice(reading, name, node, node)
        return Ref(name=name)
    condition = reading.lower_expression(node.test)
    return Choose(
        condition=condition, then=reading.lower_expression(node.body), otherwise=reading.lower_expression(node.orelse)
    )


def _write_choice(reading: Lowering, name: str, node: ast.IfExp, at: ast.AST) -> None:
    condition = reading.lower_expression(node.test)
    with reading.collect_steps() as then:
        write_assignment(reading, name, node.body)
    with reading.collect_steps() as otherwise:
        write_assignment(reading, name, node.orelse)
    reading.add_step(When(condition=condition, steps=tuple(then), otherwise=tuple(otherwise)), at)


def _read_comprehension(reading: Lowering, node: AnyComprehension) -> Expr:
    if _needs_loop(reading, node):
        name = reading.fresh_name()
        _write_loop(reading, name, node, node)
        found: Expr = Ref(name=name)
    else:
        found = _read_pure_comprehension(reading, node, list(node.generators), ())
    return Apply(function="unique", args=(found,)) if isinstance(node, ast.SetComp) else found


def _needs_loop(reading: Lowering, node: AnyComprehension) -> bool:
    """Whether anything but the first list needs steps: those must be made once for each item."""
    first, *others = node.generators
    return reading.needs_steps(*_element_nodes(node), *first.ifs, *others)


def _element_nodes(node: AnyComprehension) -> tuple[ast.expr, ...]:
    return (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)


def _read_pure_comprehension(
    reading: Lowering, node: AnyComprehension, rest: list[ast.comprehension], clauses: tuple[Clause, ...]
) -> Expr:
    if not rest:
        *key, element = map(reading.lower_expression, _element_nodes(node))
        return Comprehension(key=key[0] if key else None, element=element, clauses=clauses)
    generator = _require_sync_generator(reading, node, rest[0])
    over = reading.lower_expression(generator.iter)
    target = loop_target(reading, generator.target)
    with reading.substitute_names(target.parts, hidden=target.names):
        conditions = tuple(map(reading.lower_expression, generator.ifs))
        clause = Clause(names=target.names, over=over, conditions=conditions)
        return _read_pure_comprehension(reading, node, rest[1:], (*clauses, clause))


def _require_sync_generator(reading: Lowering, node: ast.AST, generator: ast.comprehension) -> ast.comprehension:
    if generator.is_async:
        raise reading.refusal(node, "`async`", "Steps that can run at the same time do so by themselves.")
    return generator


def _write_loop(reading: Lowering, name: str, node: AnyComprehension, at: ast.AST) -> None:
    empty = DictOf() if isinstance(node, ast.DictComp) else ListOf()
    reading.add_step(Compute(name=name, value=empty), at)
    _write_clause(reading, name, node, list(node.generators))


def _write_clause(reading: Lowering, name: str, node: AnyComprehension, rest: list[ast.comprehension]) -> None:
    if not rest:
        *key, value = map(reading.lower_expression, _element_nodes(node))
        op = "put" if key else "append"
        reading.add_step(Update(name=name, op=op, key=key[0] if key else None, value=value), node)
        return
    generator = _require_sync_generator(reading, node, rest[0])
    over = reading.lower_expression(generator.iter)
    target = _rename_loop_target(reading, node, loop_target(reading, generator.target))
    with reading.collect_steps() as body, reading.substitute_names(target.parts, hidden=target.names):
        _write_conditions(reading, name, node, list(generator.ifs), rest[1:])
    reading.add_step(Each(names=target.names, over=over, steps=tuple(body)), node)


def _write_conditions(
    reading: Lowering, name: str, node: AnyComprehension, conditions: list[ast.expr], rest: list[ast.comprehension]
) -> None:
    if not conditions:
        _write_clause(reading, name, node, rest)
        return
    condition = reading.lower_expression(conditions[0])
    with reading.collect_steps() as then:
        _write_conditions(reading, name, node, conditions[1:], rest)
    reading.add_step(When(condition=condition, steps=tuple(then)), node)


def _rename_loop_target(reading: Lowering, node: AnyComprehension, target: AssignmentTarget) -> AssignmentTarget:
    """The names of a loop that was a comprehension must not touch equal names outside of it."""
    inside = Counter(_used_names(node))
    parts = dict(target.parts)
    names: list[str] = []
    for name in target.names:
        if reading.prepass.name_counts[name] > inside[name] > 0:
            names.append(reading.fresh_name())
            parts[name] = Ref(name=names[-1])
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


def read_block(reading: Lowering, nodes: Sequence[ast.stmt], *, last: bool) -> None:
    """Write the steps of some statements; `last` says that nothing comes after them."""
    for number, node in enumerate(nodes):
        reading.enter(node)
        _read_statement(reading, node, last=last and number == len(nodes) - 1)
        reading.depth -= 1


def _read_statement(reading: Lowering, node: ast.stmt, *, last: bool) -> None:
    match node:
        case ast.Assign(targets=targets, value=value):
            _read_assignment(reading, node, targets, value)
        case ast.AnnAssign(target=target, value=value):
            if value is not None:  # the annotation is for the reader; the check finds the type by itself
                _read_assignment(reading, node, [target], value)
        case ast.AugAssign():
            _read_augmented_assignment(reading, node)
        case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
            pass
        case ast.Expr(value=value):
            _read_expression_statement(reading, node, value, last=last)
        case ast.Return(value=value):
            answer = Const(value=None) if value is None else reading.lower_expression(value)
            reading.add_step(Answer(value=answer), node)
        case ast.If():
            _read_if(reading, node, last=last)
        case ast.For():
            _read_for(reading, node)
        case ast.Import(names=names):
            raise _import_refused_error(reading, node, names[0].name)
        case ast.ImportFrom(module=module):
            raise _import_refused_error(reading, node, module or "")
        case _:
            what, fix = _REFUSED_STATEMENTS.get(type(node), (f"{type(node).__name__!r}", None))
            raise reading.refusal(node, what, fix)


def _import_refused_error(reading: Lowering, node: ast.AST, module: str) -> Exception:
    dates = module.split(".")[0] in ("datetime", "dateutil", "time")
    fix = "Remove it; the date functions are built in." if dates else "Remove it; use the tools and functions you have."
    return reading.refusal(node, "`import`", fix)


def _read_assignment(reading: Lowering, node: ast.stmt, targets: Sequence[ast.expr], value: ast.expr) -> None:
    match targets:
        case [ast.Name(id=name), *others]:
            write_assignment(reading, reading.check_name(targets[0], name), value, node)
            whole: Expr = Ref(name=name)
        case [ast.Subscript() as target]:
            _write_put(reading, node, target, reading.lower_expression(value))
            return
        case _:
            others, fresh = targets, reading.fresh_name()
            write_assignment(reading, fresh, value, node)
            whole = Ref(name=fresh)
    for target in others:
        _write_binding(reading, node, target, whole)


def _write_binding(reading: Lowering, node: ast.stmt, target: ast.expr, whole: Expr) -> None:
    match target:
        case ast.Subscript():
            _write_put(reading, node, target, whole)
        case ast.Attribute():
            raise reading.refusal(
                target, "an assignment to a field", "Records do not change; make a dict: `d[key] = value`."
            )
        case _:
            for name, part in target_parts(reading, target, whole).items():
                reading.add_step(Compute(name=name, value=part), node)


def _write_put(reading: Lowering, node: ast.stmt, target: ast.Subscript, value: Expr) -> None:
    name, key = _read_slot(reading, target)
    reading.add_step(Update(name=name, op="put", key=key, value=value), node)


def _read_slot(reading: Lowering, target: ast.Subscript) -> tuple[str, Expr]:
    """The variable and the key of `d[key]`, where it is the target of a change."""
    if not isinstance(target.value, ast.Name) or isinstance(target.slice, ast.Slice):
        raise reading.refusal(
            target, "a change inside a value", "Give the inner value a name, change it, and put it back."
        )
    return reading.check_name(target, target.value.id), reading.lower_expression(target.slice)


def _read_augmented_assignment(reading: Lowering, node: ast.AugAssign) -> None:
    op = read_operator(reading, node, node.op)
    match node.target:
        case ast.Name(id=name):
            value = reading.lower_expression(node.value)
            if op == "+":
                reading.add_step(Update(name=reading.check_name(node, name), op="add", value=value), node)
            else:
                changed = Arithmetic(op=op, left=Ref(name=reading.check_name(node, name)), right=value)
                reading.add_step(Compute(name=name, value=changed), node)
        case ast.Subscript() as target:
            name, key = _read_slot(reading, target)
            before = Index(value=Ref(name=name), at=key)
            changed = Arithmetic(op=op, left=before, right=reading.lower_expression(node.value))
            reading.add_step(Update(name=name, op="put", key=key, value=changed), node)
        case target:
            raise reading.refusal(
                target, "an assignment to a field", "Records do not change; make a dict: `d[key] = value`."
            )


def _read_expression_statement(reading: Lowering, node: ast.stmt, value: ast.expr, *, last: bool) -> None:
    match value:
        case ast.Call(func=ast.Name(id="answer")):
            given = bind_word_arguments(reading, value, ("value",), required=1)["value"]
            reading.add_step(Answer(value=reading.lower_expression(given)), node)
        case ast.Call(func=ast.Name(id="print")):
            if not last:
                raise reading.refusal(node, "`print` before its end", "Use `answer(value)` once, at the end.")
            given = bind_word_arguments(reading, value, ("value",), required=1)["value"]
            reading.add_step(Answer(value=reading.lower_expression(given)), node)
        case ast.Call() if is_step_call(value):
            reading.add_step(read_step_call(reading, value, None, wanted=False), node)
        case ast.Call(func=ast.Attribute(value=receiver, attr=method)) if method in _CHANGE_WRITERS:
            _CHANGE_WRITERS[method](reading, value, receiver)
        case _:
            raise reading.error(
                node,
                "plan.no-effect",
                "this value is not used",
                fix="Give it a name (`x = …`), or `answer(…)` it.",
            )


def _write_append(reading: Lowering, node: ast.Call, receiver: ast.expr) -> None:
    value = _read_only_argument(reading, node)
    match receiver:
        case ast.Name(id=name):
            reading.add_step(Update(name=reading.check_name(receiver, name), op="append", value=value), node)
        case _:
            _write_longer_list(reading, node, receiver, ListOf(items=(value,)))


def _write_extend(reading: Lowering, node: ast.Call, receiver: ast.expr) -> None:
    value = _read_only_argument(reading, node)
    match receiver:
        case ast.Name(id=name):
            reading.add_step(Update(name=reading.check_name(receiver, name), op="add", value=value), node)
        case _:
            _write_longer_list(reading, node, receiver, value)


def _write_longer_list(reading: Lowering, node: ast.Call, receiver: ast.expr, more: Expr) -> None:
    """`d[key].append(v)` and `d.setdefault(key, []).append(v)`: put a longer list under the key."""
    match receiver:
        case ast.Subscript():
            name, key = _read_slot(reading, receiver)
            before: Expr = Index(value=Ref(name=name), at=key)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="setdefault"), args=[at, start], keywords=[]):
            key = reading.lower_expression(at)
            before = Apply(
                function="get",
                args=(Ref(name=reading.check_name(receiver, name)), key, reading.lower_expression(start)),
            )
        case _:
            raise reading.refusal(
                receiver, "a change inside a value", "Give the inner value a name, change it, and put it back."
            )
    longer = Arithmetic(op="+", left=before, right=more)
    reading.add_step(Update(name=name, op="put", key=key, value=longer), node)


def _read_only_argument(reading: Lowering, node: ast.Call) -> Expr:
    if len(node.args) != 1 or node.keywords:
        method = cast("ast.Attribute", node.func).attr
        raise reading.error(
            node, "plan.missing-argument", f"{method!r} takes one value", expected=f"xs.{method}(value)"
        )
    return read_items(reading, node.args)[0]


def _reorder_writer(function: str) -> Callable[[Lowering, ast.Call, ast.expr], None]:
    def write(reading: Lowering, node: ast.Call, receiver: ast.expr) -> None:
        if not isinstance(receiver, ast.Name):
            raise reading.refusal(receiver, "a change inside a value", f"Use `xs = {function}(xs)`.")
        called = ast.Call(ast.Name(function, ast.Load()), [receiver, *node.args], node.keywords)
        reading.add_step(
            Compute(
                name=reading.check_name(receiver, receiver.id),
                value=reading.lower_expression(ast.copy_location(called, node)),
            ),
            node,
        )

    return write


_CHANGE_WRITERS: Mapping[str, Callable[[Lowering, Any, ast.expr], None]] = {
    "append": _write_append,
    "extend": _write_extend,
    "sort": _reorder_writer("sorted"),
    "reverse": _reorder_writer("reversed"),
}


def _read_if(reading: Lowering, node: ast.If, *, last: bool) -> None:
    condition = reading.lower_expression(node.test)
    with reading.collect_steps() as then:
        read_block(reading, node.body, last=last)
    with reading.collect_steps() as otherwise:
        read_block(reading, node.orelse, last=last)
    if then:
        reading.add_step(When(condition=condition, steps=tuple(then), otherwise=tuple(otherwise)), node)
    elif otherwise:  # `if c: pass` with something to do only where c does not hold
        reading.add_step(When(condition=Not(value=condition), steps=tuple(otherwise)), node)


def _read_for(reading: Lowering, node: ast.For) -> None:
    if node.orelse:
        raise reading.refusal(node.orelse[0], "`else` after a loop", "Write the steps after the loop.")
    over = reading.lower_expression(node.iter)
    target = loop_target(reading, node.target)
    with reading.collect_steps() as body:
        target.unpack(reading, node)
        unpacked = len(body)
        read_block(reading, node.body, last=False)
    if len(body) > unpacked:
        reading.add_step(Each(names=target.names, over=over, steps=tuple(body)), node)


_READERS: Mapping[type[ast.expr], NodeReader] = {**EXPRESSION_READERS, **CALL_READERS, **BRANCH_READERS}

# What is read in few levels cannot be too deep: no construct adds more than one level of its own.
_SHALLOW_DEPTH = 24


@dataclass(frozen=True, slots=True)
class ParsedPlan:
    """A plan and, for each path of a step (see `walk`), the place where the step is written."""

    plan: Plan
    places: dict[str, Place]


def parse(source: str, registry: Registry | None = None, *, file: str | None = None) -> ParsedPlan:
    """Read a plan; the first thing that is wrong raises a PlanError with its place.

    With a registry the arguments of tools may be given by position; without one they need their names.

    Example:
        >>> parse('answer(f"{1 + 1} apples")').plan.steps[0].do
        'answer'
    """
    text = PlanSource.from_text(source, file)
    tree = syntax_tree(text)
    reading = Lowering(text, Prepass(tree, source), registry, _READERS)
    goal, body = _read_goal(reading, tree.body)
    try:
        read_block(reading, body, last=True)
        plan = Plan(goal=goal, steps=tuple(reading.steps))
    except ValidationError as error:  # every rule of the IR has its own message above; this is the net below them
        raise PlanError("plan.invalid", error.errors()[0]["msg"], place=Place(file=file)) from None
    except RecursionError:  # called from deep inside another program
        raise too_deep_error(Place(file=file)) from None
    if reading.deepest > _SHALLOW_DEPTH and (number := first_too_deep_step(plan)) is not None:
        raise too_deep_error(reading.places[id(plan.steps[number])])
    return ParsedPlan(plan, {path: reading.places[id(step)] for path, step in walk(plan.steps)})


def _read_goal(reading: Lowering, body: list[ast.stmt]) -> tuple[str, list[ast.stmt]]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str() as goal)) as first, *rest]:
            return reading.check_text(first, goal), rest
        case _:
            return "", body
