"""Conditional expressions and comprehensions: pure ones stay expressions, those that call tools become steps."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping

from ._expressions import Apply, Choose, Clause, Comprehension, DictOf, Expr, ListOf, Ref
from ._lift import Reader, Reading, Target, loop_target
from ._parse_calls import read_step
from ._plan import Compute, Each, Update, When
from ._survey import is_step

AnyComprehension = ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp


def assign(reading: Reading, name: str, node: ast.expr, at: ast.AST | None = None) -> None:
    """Write the steps of `name = …`, a statement that begins `at` a node."""
    at = at or node
    match node:
        case ast.Call() if is_step(node):
            reading.write(read_step(reading, node, name), at)
        case ast.IfExp() if reading.needs_steps(node.body, node.orelse):
            _write_choice(reading, name, node, at)
        case ast.ListComp() | ast.GeneratorExp() | ast.DictComp() if _loops(reading, node) and name not in _names(node):
            _write_loop(reading, name, node, at)
        case _:
            reading.write(Compute(name=name, value=reading.expression(node)), at)


def _choice(reading: Reading, node: ast.IfExp) -> Expr:
    if reading.needs_steps(node.body, node.orelse):
        name = reading.fresh()
        _write_choice(reading, name, node, node)
        return Ref(name=name)
    condition = reading.expression(node.test)
    return Choose(condition=condition, then=reading.expression(node.body), otherwise=reading.expression(node.orelse))


def _write_choice(reading: Reading, name: str, node: ast.IfExp, at: ast.AST) -> None:
    condition = reading.expression(node.test)
    with reading.block() as then:
        assign(reading, name, node.body)
    with reading.block() as otherwise:
        assign(reading, name, node.orelse)
    reading.write(When(condition=condition, steps=tuple(then), otherwise=tuple(otherwise)), at)


def _comprehension(reading: Reading, node: AnyComprehension) -> Expr:
    if _loops(reading, node):
        name = reading.fresh()
        _write_loop(reading, name, node, node)
        found: Expr = Ref(name=name)
    else:
        found = _pure(reading, node, list(node.generators), ())
    return Apply(function="unique", args=(found,)) if isinstance(node, ast.SetComp) else found


def _loops(reading: Reading, node: AnyComprehension) -> bool:
    """Whether anything but the first list needs steps: those must be made once for each item."""
    first, *others = node.generators
    return reading.needs_steps(*_elements(node), *first.ifs, *others)


def _elements(node: AnyComprehension) -> tuple[ast.expr, ...]:
    return (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)


def _pure(reading: Reading, node: AnyComprehension, rest: list[ast.comprehension], clauses: tuple[Clause, ...]) -> Expr:
    if not rest:
        *key, element = map(reading.expression, _elements(node))
        return Comprehension(key=key[0] if key else None, element=element, clauses=clauses)
    generator = _plain_generator(reading, node, rest[0])
    over = reading.expression(generator.iter)
    target = loop_target(reading, generator.target)
    with reading.scope(target.parts, hidden=target.names):
        conditions = tuple(map(reading.expression, generator.ifs))
        clause = Clause(names=target.names, over=over, conditions=conditions)
        return _pure(reading, node, rest[1:], (*clauses, clause))


def _plain_generator(reading: Reading, node: ast.AST, generator: ast.comprehension) -> ast.comprehension:
    if generator.is_async:
        raise reading.not_in_language(node, "`async`", "Steps that can run at the same time do so by themselves.")
    return generator


def _write_loop(reading: Reading, name: str, node: AnyComprehension, at: ast.AST) -> None:
    empty = DictOf() if isinstance(node, ast.DictComp) else ListOf()
    reading.write(Compute(name=name, value=empty), at)
    _write_clause(reading, name, node, list(node.generators))


def _write_clause(reading: Reading, name: str, node: AnyComprehension, rest: list[ast.comprehension]) -> None:
    if not rest:
        *key, value = map(reading.expression, _elements(node))
        op = "put" if key else "append"
        reading.write(Update(name=name, op=op, key=key[0] if key else None, value=value), node)
        return
    generator = _plain_generator(reading, node, rest[0])
    over = reading.expression(generator.iter)
    target = _own_names(reading, node, loop_target(reading, generator.target))
    with reading.block() as body, reading.scope(target.parts, hidden=target.names):
        _write_conditions(reading, name, node, list(generator.ifs), rest[1:])
    reading.write(Each(names=target.names, over=over, steps=tuple(body)), node)


def _write_conditions(
    reading: Reading, name: str, node: AnyComprehension, conditions: list[ast.expr], rest: list[ast.comprehension]
) -> None:
    if not conditions:
        _write_clause(reading, name, node, rest)
        return
    condition = reading.expression(conditions[0])
    with reading.block() as then:
        _write_conditions(reading, name, node, conditions[1:], rest)
    reading.write(When(condition=condition, steps=tuple(then)), node)


def _own_names(reading: Reading, node: AnyComprehension, target: Target) -> Target:
    """The names of a loop that was a comprehension must not touch equal names outside of it."""
    inside = Counter(_names(node))
    parts = dict(target.parts)
    names: list[str] = []
    for name in target.names:
        if reading.survey.names[name] > inside[name] > 0:
            names.append(reading.fresh())
            parts[name] = Ref(name=names[-1])
        else:
            names.append(name)
    return Target(tuple(names), parts)


def _names(node: ast.AST) -> list[str]:
    return [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]


BRANCHES: Mapping[type[ast.expr], Reader] = {
    ast.IfExp: _choice,
    ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
}
