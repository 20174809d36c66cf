"""One form for what can be written in several ways: a small model pays for every target that differs for no reason.

The rules, which `python -m training.delta.check` enforces and the composed plans follow:

- One comparison that selects rows is a call: `filter_rows(rows, column("paid"), "==", False)`.
- Two comparisons that must both hold are one comprehension: `[row for row in rows if … and …]`.
- What is computed only to be answered stands in the answer: `answer(sum([…]))`. Calls of tools have lines of their own.

A plan keeps its other form where the one form would have the structure of a plan that the evaluation keeps unseen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

_SLOT = re.compile(r"<([a-z]+\d*)([,.][a-z]*)?>")
_MASKS = {"<": "ǀ", ">": "ǁ", ",": "ǃ", ".": "ǂ"}
"""Letters that a name in a plan may have, for the marks of slots: `<big2>` is no Python."""
_PLAIN = {mask: mark for mark, mask in _MASKS.items()}
_OPS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_COMPUTED = frozenset({"sum", "len", "mean", "min", "max", "round", "sorted", "unique"})


@dataclass(frozen=True, slots=True)
class _Statement:
    """A line of a plan: its indentation, its text, and the syntax of it if it is a whole statement."""

    indent: str
    text: str
    node: ast.stmt | None

    def part(self, node: ast.expr) -> str:
        found = ast.get_source_segment(self.text, node)
        assert found is not None, self.text
        return found


def canonical_plan(plan: str) -> str:
    """The plan in the one form; slots stay as they are.

    Example:
        >>> canonical_plan("rows = read_csv(\\"a.csv\\")\\ntotal = len(rows)\\nanswer(total)\\n")
        'rows = read_csv("a.csv")\\nanswer(len(rows))\\n'
    """
    lines = _masked(plan).splitlines()
    changed = True
    while changed:
        changed = any(rule(lines) for rule in _RULES)
    return _unmasked("".join(f"{line}\n" for line in lines))


def _masked(plan: str) -> str:
    return _SLOT.sub(lambda match: "".join(_MASKS.get(each, each) for each in match[0]), plan)


def _unmasked(plan: str) -> str:
    return "".join(_PLAIN.get(each, each) for each in plan)


def _statement(line: str) -> _Statement:
    text = line.lstrip()
    try:
        body = ast.parse(text).body
    except SyntaxError:
        # The head of a block, or a day that is not filled in yet.
        body = []
    return _Statement(line[: len(line) - len(text)], text, body[0] if len(body) == 1 else None)


def _uses(lines: list[str], name: str) -> int:
    return sum(len(re.findall(rf"\b{re.escape(name)}\b", line)) for line in lines)


def _single_comparison(lines: list[str]) -> bool:
    for place, line in enumerate(lines):
        made = _statement(line)
        match made.node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.ListComp(
                    elt=ast.Name(id=elt),
                    generators=[
                        ast.comprehension(
                            target=ast.Name(id=row),
                            iter=ast.Name(id=rows),
                            ifs=[
                                ast.Compare(
                                    left=ast.Subscript(value=ast.Name(id=read), slice=column),
                                    ops=[op],
                                    comparators=[value],
                                )
                            ],
                        )
                    ],
                ),
                # The elements of a JSON file may be anything: the grammar calls them `x` and makes no rows of them.
            ) if elt == row == read != "x" and type(op) in _OPS and not _names(value) and _is_column(column):
                call = f'filter_rows({rows}, {made.part(column)}, "{_OPS[type(op)]}", {made.part(value)})'
                lines[place] = f"{made.indent}{name} = {call}"
                return True
            case _:
                continue
    return False


def _names(node: ast.expr) -> set[str]:
    """The variables in an expression, without those of slots and the functions that make values."""
    made = {"date", "datetime", "value", "today", "timedelta", "time"}
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and each.id not in made and not each.id.startswith(_MASKS["<"])
    }


def _is_column(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "column"


@dataclass(frozen=True, slots=True)
class _Selection:
    name: str
    rows: str
    test: str


def _selection(made: _Statement) -> _Selection | None:
    match made.node:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(
                func=ast.Name(id="filter_rows"),
                args=[ast.Name(id=rows), column, ast.Constant(value=str() as op), value],
                keywords=[],
            ),
        ) if op in _OPS.values() and not _names(value) and _is_column(column):
            return _Selection(name, rows, f"row[{made.part(column)}] {op} {made.part(value)}")
        case _:
            return None


def _two_comparisons(lines: list[str]) -> bool:
    for place in range(len(lines) - 1):
        one, other = _statement(lines[place]), _statement(lines[place + 1])
        first, second = _selection(one), _selection(other)
        if first is None or second is None or one.indent != other.indent or second.rows != first.name:
            continue
        if first.name == second.name or _uses(lines, first.name) != 2:
            # The rows of the first comparison are needed once more.
            continue
        tests = f"{first.test} and {second.test}"
        lines[place : place + 2] = [f"{one.indent}{second.name} = [row for row in {first.rows} if {tests}]"]
        return True
    return False


def _computed_for_answer(lines: list[str]) -> bool:
    for place in range(len(lines) - 1):
        one, other = _statement(lines[place]), _statement(lines[place + 1])
        match one.node, other.node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value),
                ast.Expr(value=ast.Call(func=ast.Name(id="answer"), args=[ast.Name(id=said)])),
            ) if name == said and one.indent == other.indent and _uses(lines, name) == 2 and _is_computed(value):
                lines[place : place + 2] = [f"{one.indent}answer({one.part(value)})"]
                return True
            case _:
                continue
    return False


def _is_computed(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Name(id=name), keywords=[]):
            return name in _COMPUTED
        case ast.ListComp(elt=elt):
            return not isinstance(elt, ast.Name)
        case ast.BinOp():
            return True
        case _:
            return False


_RULES: tuple[Callable[[list[str]], bool], ...] = (_single_comparison, _two_comparisons, _computed_for_answer)
