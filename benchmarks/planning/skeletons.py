"""The skeleton of a plan: which tools and functions it calls in which order, and how data flows between them.

What a plan is about is left out: names of variables, texts, numbers, columns, the direction of a comparison. Two plans
with one skeleton differ only in what is put into it, so training on one teaches the other.
"""

from __future__ import annotations

import ast

from bicameral.tools import REFERENCE_KINDS

_KEPT_METHODS = ("append", "total_seconds", "split", "strip", "lower", "upper", "replace", "join", "date", "weekday")


def skeleton_of(plan: str) -> str:
    """The skeleton of a plan in surface syntax, as one line.

    Example:
        >>> skeleton_of('rows = read_csv("a.csv")\\nanswer(len(rows))')
        'v0=read_csv(T); answer(len(v0))'
    """
    walker = _Walker()
    return "; ".join(walker.statement(node) for node in ast.parse(plan).body)


class _Walker:
    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def statement(self, node: ast.stmt) -> str:
        match node:
            case ast.Assign(targets=[ast.Name() as target], value=value):
                made = self.expression(value)
                return f"{self._name(target.id)}={made}"
            case ast.AugAssign(target=ast.Name() as target, value=value):
                return f"{self._name(target.id)}+={self.expression(value)}"
            case ast.For(target=ast.Name() as target, iter=items, body=body):
                over = self.expression(items)
                return f"for {self._name(target.id)} in {over}{{{self._block(body)}}}"
            case ast.If(test=test, body=body, orelse=orelse):
                condition = self.expression(test)
                other = f" else{{{self._block(orelse)}}}" if orelse else ""
                return f"if {condition}{{{self._block(body)}}}{other}"
            case ast.Expr(value=ast.Call(func=ast.Name(id="answer"), args=[value])):
                return f"answer({self._answer(value)})"
            case ast.Expr(value=value):
                return self.expression(value)
            case _:
                return type(node).__name__

    def _block(self, body: list[ast.stmt]) -> str:
        return "; ".join(self.statement(node) for node in body)

    def _answer(self, value: ast.expr) -> str:
        """An answer's wording is a matter of taste: only what flows into it counts."""
        return "T" if isinstance(value, ast.Constant) else self.expression(value)

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, f"v{len(self._names)}")

    def expression(self, node: ast.expr) -> str:
        match node:
            case ast.Constant():
                return "T"
            case ast.Name(id=name):
                return self._names.get(name, name)
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant()]) if name in REFERENCE_KINDS:
                # A name of the world by words is a name like any other.
                return "T"
            case ast.Call(func=ast.Name(id="datetime" | "date" | "timedelta" | "time")):
                parts = [self.expression(each) for each in (*node.args, *(word.value for word in node.keywords))]
                flowing = [part for part in parts if part != "T"]
                return f"day({','.join(flowing)})" if flowing else "T"
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                given = [self.expression(each) for each in args]
                given += [f"{word.arg}:{self.expression(word.value)}" for word in sorted(keywords, key=_word)]
                return f"{name}({','.join(given)})"
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args):
                name = attr if attr in _KEPT_METHODS else "method"
                return f"{self.expression(value)}.{name}({','.join(map(self.expression, args))})"
            case ast.Attribute(value=value):
                return f"{self.expression(value)}.f"
            case ast.Subscript(value=value):
                return f"{self.expression(value)}[]"
            case ast.ListComp(elt=element, generators=[generator]):
                over = self.expression(generator.iter)
                target = generator.target
                name = self._name(target.id) if isinstance(target, ast.Name) else "pair"
                tests = "".join(f" if {self.expression(test)}" for test in generator.ifs)
                return f"[{self.expression(element)} for {name} in {over}{tests}]"
            case ast.Compare(left=left, comparators=comparators):
                return "?".join(self.expression(each) for each in (left, *comparators))
            case ast.BoolOp(values=values):
                return "&".join(self.expression(each) for each in values)
            case ast.BinOp(left=left, op=op, right=right):
                return f"({self.expression(left)}{type(op).__name__}{self.expression(right)})"
            case ast.UnaryOp(operand=operand):
                return f"not {self.expression(operand)}" if isinstance(node.op, ast.Not) else self.expression(operand)
            case ast.JoinedStr(values=values):
                parts = [self.expression(each.value) for each in values if isinstance(each, ast.FormattedValue)]
                return f"f({','.join(parts)})"
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                parts = [self.expression(each) for each in elements]
                return "T" if all(part == "T" for part in parts) else f"[{','.join(parts)}]"
            case ast.Dict(values=values):
                return f"{{{','.join(self.expression(each) for each in values)}}}"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return f"{self.expression(body)} if {self.expression(test)} else {self.expression(orelse)}"
            case ast.Lambda(args=arguments, body=body):
                for each in arguments.args:
                    self._name(each.arg)
                return f"by {self.expression(body)}"
            case _:
                return type(node).__name__


def _word(keyword: ast.keyword) -> str:
    return keyword.arg or ""
