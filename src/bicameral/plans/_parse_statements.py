"""From Python's statements to the steps of a plan."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ._expressions import Apply, Arithmetic, Const, Expr, Index, ListOf, Not, Ref
from ._lift import Reading, loop_target, target_parts
from ._parse_branches import assign
from ._parse_calls import bind, read_step
from ._parse_expressions import items, operator
from ._plan import Answer, Compute, Each, Update, When
from ._survey import is_step

_REFUSED: Mapping[type[ast.stmt], tuple[str, str | None]] = {
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


def read_block(reading: Reading, nodes: Sequence[ast.stmt], *, last: bool) -> None:
    """Write the steps of some statements; `last` says that nothing comes after them."""
    for number, node in enumerate(nodes):
        reading.enter(node)
        _statement(reading, node, last=last and number == len(nodes) - 1)
        reading.depth -= 1


def _statement(reading: Reading, node: ast.stmt, *, last: bool) -> None:
    match node:
        case ast.Assign(targets=targets, value=value):
            _assign(reading, node, targets, value)
        case ast.AnnAssign(target=target, value=value):
            if value is not None:  # the annotation is for the reader; the check finds the type by itself
                _assign(reading, node, [target], value)
        case ast.AugAssign():
            _augmented(reading, node)
        case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
            pass
        case ast.Expr(value=value):
            _bare(reading, node, value, last=last)
        case ast.Return(value=value):
            answer = Const(value=None) if value is None else reading.expression(value)
            reading.write(Answer(value=answer), node)
        case ast.If():
            _when(reading, node, last=last)
        case ast.For():
            _each(reading, node)
        case ast.Import(names=names):
            raise _no_import(reading, node, names[0].name)
        case ast.ImportFrom(module=module):
            raise _no_import(reading, node, module or "")
        case _:
            what, fix = _REFUSED.get(type(node), (f"{type(node).__name__!r}", None))
            raise reading.not_in_language(node, what, fix)


def _no_import(reading: Reading, node: ast.AST, module: str) -> Exception:
    dates = module.split(".")[0] in ("datetime", "dateutil", "time")
    fix = "Remove it; the date functions are built in." if dates else "Remove it; use the tools and functions you have."
    return reading.not_in_language(node, "`import`", fix)


def _assign(reading: Reading, node: ast.stmt, targets: Sequence[ast.expr], value: ast.expr) -> None:
    match targets:
        case [ast.Name(id=name), *others]:
            assign(reading, reading.name(targets[0], name), value, node)
            whole: Expr = Ref(name=name)
        case [ast.Subscript() as target]:
            _put(reading, node, target, reading.expression(value))
            return
        case _:
            others, fresh = targets, reading.fresh()
            assign(reading, fresh, value, node)
            whole = Ref(name=fresh)
    for target in others:
        _bind(reading, node, target, whole)


def _bind(reading: Reading, node: ast.stmt, target: ast.expr, whole: Expr) -> None:
    match target:
        case ast.Subscript():
            _put(reading, node, target, whole)
        case ast.Attribute():
            raise reading.not_in_language(
                target, "an assignment to a field", "Records do not change; make a dict: `d[key] = value`."
            )
        case _:
            for name, part in target_parts(reading, target, whole).items():
                reading.write(Compute(name=name, value=part), node)


def _put(reading: Reading, node: ast.stmt, target: ast.Subscript, value: Expr) -> None:
    name, key = _slot(reading, target)
    reading.write(Update(name=name, op="put", key=key, value=value), node)


def _slot(reading: Reading, target: ast.Subscript) -> tuple[str, Expr]:
    """The variable and the key of `d[key]`, where it is the target of a change."""
    if not isinstance(target.value, ast.Name) or isinstance(target.slice, ast.Slice):
        raise reading.not_in_language(
            target, "a change inside a value", "Give the inner value a name, change it, and put it back."
        )
    return reading.name(target, target.value.id), reading.expression(target.slice)


def _augmented(reading: Reading, node: ast.AugAssign) -> None:
    op = operator(reading, node, node.op)
    match node.target:
        case ast.Name(id=name):
            value = reading.expression(node.value)
            if op == "+":
                reading.write(Update(name=reading.name(node, name), op="add", value=value), node)
            else:
                changed = Arithmetic(op=op, left=Ref(name=reading.name(node, name)), right=value)
                reading.write(Compute(name=name, value=changed), node)
        case ast.Subscript() as target:
            name, key = _slot(reading, target)
            before = Index(value=Ref(name=name), at=key)
            changed = Arithmetic(op=op, left=before, right=reading.expression(node.value))
            reading.write(Update(name=name, op="put", key=key, value=changed), node)
        case target:
            raise reading.not_in_language(
                target, "an assignment to a field", "Records do not change; make a dict: `d[key] = value`."
            )


def _bare(reading: Reading, node: ast.stmt, value: ast.expr, *, last: bool) -> None:
    match value:
        case ast.Call(func=ast.Name(id="answer")):
            given = bind(reading, value, ("value",), required=1)["value"]
            reading.write(Answer(value=reading.expression(given)), node)
        case ast.Call(func=ast.Name(id="print")):
            if not last:
                raise reading.not_in_language(node, "`print` before its end", "Use `answer(value)` once, at the end.")
            given = bind(reading, value, ("value",), required=1)["value"]
            reading.write(Answer(value=reading.expression(given)), node)
        case ast.Call() if is_step(value):
            reading.write(read_step(reading, value, None, wanted=False), node)
        case ast.Call(func=ast.Attribute(value=receiver, attr=method)) if method in _CHANGES:
            _CHANGES[method](reading, value, receiver)
        case _:
            raise reading.error(
                node,
                "plan.no-effect",
                "this value is not used",
                fix="Give it a name (`x = …`), or `answer(…)` it.",
            )


def _append(reading: Reading, node: ast.Call, receiver: ast.expr) -> None:
    value = _only_argument(reading, node)
    match receiver:
        case ast.Name(id=name):
            reading.write(Update(name=reading.name(receiver, name), op="append", value=value), node)
        case _:
            _grow(reading, node, receiver, ListOf(items=(value,)))


def _extend(reading: Reading, node: ast.Call, receiver: ast.expr) -> None:
    value = _only_argument(reading, node)
    match receiver:
        case ast.Name(id=name):
            reading.write(Update(name=reading.name(receiver, name), op="add", value=value), node)
        case _:
            _grow(reading, node, receiver, value)


def _grow(reading: Reading, node: ast.Call, receiver: ast.expr, more: Expr) -> None:
    """`d[key].append(v)` and `d.setdefault(key, []).append(v)`: put a longer list under the key."""
    match receiver:
        case ast.Subscript():
            name, key = _slot(reading, receiver)
            before: Expr = Index(value=Ref(name=name), at=key)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="setdefault"), args=[at, start], keywords=[]):
            key = reading.expression(at)
            before = Apply(
                function="get", args=(Ref(name=reading.name(receiver, name)), key, reading.expression(start))
            )
        case _:
            raise reading.not_in_language(
                receiver, "a change inside a value", "Give the inner value a name, change it, and put it back."
            )
    longer = Arithmetic(op="+", left=before, right=more)
    reading.write(Update(name=name, op="put", key=key, value=longer), node)


def _only_argument(reading: Reading, node: ast.Call) -> Expr:
    if len(node.args) != 1 or node.keywords:
        method = cast("ast.Attribute", node.func).attr
        raise reading.error(
            node, "plan.missing-argument", f"{method!r} takes one value", expected=f"xs.{method}(value)"
        )
    return items(reading, node.args)[0]


def _reorder(function: str) -> Callable[[Reading, ast.Call, ast.expr], None]:
    def write(reading: Reading, node: ast.Call, receiver: ast.expr) -> None:
        if not isinstance(receiver, ast.Name):
            raise reading.not_in_language(receiver, "a change inside a value", f"Use `xs = {function}(xs)`.")
        called = ast.Call(ast.Name(function, ast.Load()), [receiver, *node.args], node.keywords)
        reading.write(
            Compute(
                name=reading.name(receiver, receiver.id), value=reading.expression(ast.copy_location(called, node))
            ),
            node,
        )

    return write


_CHANGES: Mapping[str, Callable[[Reading, Any, ast.expr], None]] = {
    "append": _append,
    "extend": _extend,
    "sort": _reorder("sorted"),
    "reverse": _reorder("reversed"),
}


def _when(reading: Reading, node: ast.If, *, last: bool) -> None:
    condition = reading.expression(node.test)
    with reading.block() as then:
        read_block(reading, node.body, last=last)
    with reading.block() as otherwise:
        read_block(reading, node.orelse, last=last)
    if then:
        reading.write(When(condition=condition, steps=tuple(then), otherwise=tuple(otherwise)), node)
    elif otherwise:  # `if c: pass` with something to do only where c does not hold
        reading.write(When(condition=Not(value=condition), steps=tuple(otherwise)), node)


def _each(reading: Reading, node: ast.For) -> None:
    if node.orelse:
        raise reading.not_in_language(node.orelse[0], "`else` after a loop", "Write the steps after the loop.")
    over = reading.expression(node.iter)
    target = loop_target(reading, node.target)
    with reading.block() as body:
        target.unpack(reading, node)
        unpacked = len(body)
        read_block(reading, node.body, last=False)
    if len(body) > unpacked:
        reading.write(Each(names=target.names, over=over, steps=tuple(body)), node)
