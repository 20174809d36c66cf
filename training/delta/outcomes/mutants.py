"""Wrong plans made from a right one: a condition left out, a branch always taken, the other end of an order.

A world in which such a plan does the same as the right one cannot tell them apart.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .contents import MARKER


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong plan, and what is wrong with it: `condition`, `border`, `branch`, `order`, `slice` or `extreme`."""

    fault: str
    plan: str

    @property
    def must_differ(self) -> bool:
        """Whether a case is dropped if no world tells it from the right plan; a border may be out of reach."""
        return self.fault != "border"


def mutants(plan: str) -> Iterator[Mutant]:
    """The wrong plans that a plan is easily mistaken for, each with one fault."""
    tree = ast.parse(plan)
    seen = {ast.unparse(tree)}
    for number, node in enumerate(ast.walk(tree)):
        for fault, change in _changes(node):
            changed = copy.deepcopy(tree)
            target = next(each for place, each in enumerate(ast.walk(changed)) if place == number)
            change(target, changed)
            text = ast.unparse(ast.fix_missing_locations(changed))
            if text not in seen:
                seen.add(text)
                yield Mutant(fault, text + "\n")


Change = Callable[[ast.AST, ast.Module], None]


def _changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    match node:
        case ast.comprehension(ifs=[ast.BoolOp(values=values)]):
            yield "condition", _without_conditions
            for number in range(len(values)):
                yield "condition", lambda target, _, number=number: _without_part(target, number)
        case ast.comprehension(ifs=[_, *_]):
            yield "condition", _without_conditions
        case ast.Compare(ops=[ast.Gt() | ast.GtE() | ast.Lt() | ast.LtE()]):
            yield "border", _other_border
        case ast.Call(func=ast.Name(id="filter_rows"), args=[_, _, ast.Constant(value=">" | ">=" | "<" | "<="), *_]):
            yield "condition", _instead_of_call
            yield "border", _other_border
        case ast.Call(func=ast.Name(id="filter_rows" | "grep"), args=[_, _, *_]):
            yield "condition", _instead_of_call
        case ast.If():
            yield "branch", lambda target, _: _marked(target, "body")
            yield "branch", lambda target, _: _marked(target, "orelse")
        case ast.Call(func=ast.Name(id="sort_rows" | "sort_lines")):
            yield "order", _turned_round
        case ast.Subscript(slice=ast.Slice()):
            yield "slice", _instead_of_slice
        case ast.Call(func=ast.Name(id="max" | "min")):
            yield "extreme", _other_extreme
        case _:
            return


def _without_conditions(target: ast.AST, _: ast.Module) -> None:
    assert isinstance(target, ast.comprehension)
    target.ifs = []


def _without_part(target: ast.AST, number: int) -> None:
    assert isinstance(target, ast.comprehension)
    test = target.ifs[0]
    assert isinstance(test, ast.BoolOp)
    left = [each for place, each in enumerate(test.values) if place != number]
    target.ifs = [left[0] if len(left) == 1 else ast.BoolOp(test.op, left)]


_BORDERS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
}


def _other_border(target: ast.AST, _: ast.Module) -> None:
    match target:
        case ast.Compare():
            target.ops = [_BORDERS[type(target.ops[0])]()]
        case ast.Call(args=[_, _, ast.Constant(value=str() as op), *_]):
            target.args[2] = ast.Constant(op[0] if op.endswith("=") else f"{op}=")
        case _:
            raise TypeError(type(target).__name__)


def _instead_of_call(target: ast.AST, tree: ast.Module) -> None:
    """The rows instead of the call that selects from them."""
    assert isinstance(target, ast.Call)
    _replace(tree, target, target.args[0])


def _instead_of_slice(target: ast.AST, tree: ast.Module) -> None:
    assert isinstance(target, ast.Subscript)
    _replace(tree, target, target.value)


def _turned_round(target: ast.AST, _: ast.Module) -> None:
    assert isinstance(target, ast.Call)
    assert isinstance(target.func, ast.Name)
    name = "descending" if target.func.id == "sort_rows" else "reverse"
    known = [each for each in target.keywords if each.arg == name]
    target.keywords = [each for each in target.keywords if each.arg != name]
    if not any(isinstance(each.value, ast.Constant) and each.value.value for each in known):
        target.keywords.append(ast.keyword(name, ast.Constant(True)))


def _other_extreme(target: ast.AST, _: ast.Module) -> None:
    assert isinstance(target, ast.Call)
    assert isinstance(target.func, ast.Name)
    target.func.id = "min" if target.func.id == "max" else "max"


def _marked(target: ast.AST, part: str) -> None:
    """A branch that only answers with a word of its own: if that changes nothing, the branch was not taken.

    To leave the condition out would not do: "nothing was found" and an empty list are the same outcome.
    """
    said = ast.Expr(ast.Call(ast.Name("answer", ast.Load()), [ast.Constant(MARKER)], []))
    setattr(target, part, [said])


class _Replacement(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.expr) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else self.generic_visit(node)


def _replace(tree: ast.Module, old: ast.AST, new: ast.expr) -> None:
    _Replacement(old, new).visit(tree)
