"""Binding of cells: comparisons, sums and orders of table cells are rewritten to be made in the kind of their column.

A plan is written as if a cell were what it says: `row["paid"] == False`, `sum([row["amount"] for row in rows])`. The
value of a cell is its text as it stands in the file, so that answers, group names and files that are written keep it.
Where a plan computes with a cell, this pass puts a library function around it that reads the text in the notation of
the column, which the type of the cell carries (`types.CellType`). The types follow a cell through variables, loops,
comprehensions and tools that keep rows.

Nothing is guessed. A column that can be read in two ways is not computed with, amounts in several currencies are not
added, and a comparison that cannot match anything is an error that names the column and its kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bicameral import types as t
from bicameral.columns import Amount, ColumnKind, describe_kind, kind_of_notation, parse_number, parse_yes_no
from bicameral.errors import BindError, Place
from bicameral.plans import _expressions as ir, _plan as ps
from bicameral.plans.check._cell_calls import (
    cell_call,
    cell_comparison,
    refuse_written_calls,
    unbind_cells,
    written_calls,
)
from bicameral.plans.check._checker import StepChecker
from bicameral.plans.check._scope import Scope
from bicameral.plans.evaluate._closures import bind_arguments
from bicameral.plans.evaluate._library import FUNCTIONS
from bicameral.plans.evaluate._library_cells import CELL_COMPARISONS, is_readable, notation_type, wanted_value
from bicameral.plans.evaluate._library_scalars import DATE_FIELDS_BY_TYPE
from bicameral.plans.evaluate._values import spec_problem
from bicameral.tools import Registry

_FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NUMBERS: tuple[ColumnKind, ...] = ("number", "money")
_COMPARABLE_TYPES: dict[ColumnKind, tuple[type[t.Type], ...]] = {
    "yes/no": (t.BoolType,),
    "date": (t.DateType, t.DateTimeType),
    "number": (t.IntType, t.FloatType),
    "money": (t.IntType, t.FloatType),
}
_TEXT_TYPES = (t.StrType, t.LiteralType)
_NEVER_TEXT = (t.BoolType, t.IntType, t.FloatType, t.DateType, t.DateTimeType)
_CONVERSIONS = {"int": _NUMBERS, "float": _NUMBERS, "date": ("date",), "datetime": ("date",), "parse_date": ("date",)}
"""Functions that also take text, which would read a cell without the notation of its column."""
_NO_CONSTANT = object()


def bind_cells(plan: ps.Plan, registry: Registry, scope: Mapping[str, t.Type] | None = None) -> ps.Plan:
    """The plan with its comparisons, sums and orders of cells made in the kind of their column.

    Args:
        plan: The plan, with its columns bound.
        registry: The real tools, which know the tables that are there.
        scope: The types of the variables before its first step.

    Raises:
        BindError: A comparison cannot match anything, a column cannot be computed with, or the plan calls a function
            that only binding writes in a way that binding does not.
    """
    if next(written_calls(plan), None) is not None:
        # Whoever writes such a call chooses the notation, and it is shown as a plain comparison. So none is taken over:
        # they are undone and made anew from the table that is there.
        plan = unbind_cells(plan)
        refuse_written_calls(plan)
    tools = (registry.get(step.tool) for _, step in ps.walk(plan.steps) if isinstance(step, ps.Call))
    if not scope and not any(tool is not None and tool.refine is not None for tool in tools):
        # Without a table nothing has columns, and most plans need no second look at their types.
        return plan
    checker = StepChecker(registry)
    checker.expression_types = {}
    checker.check_block(plan.steps, Scope.from_types(scope or {}))
    steps = _CellBinder(registry, checker.expression_types).bind_steps(plan.steps, "")
    return plan if steps == plan.steps else plan.model_copy(update={"steps": steps})


class _CellBinder:
    """Rewrites the expressions of one plan, whose types are known by the identity of each expression."""

    def __init__(self, registry: Registry, types: Mapping[int, t.Type]) -> None:
        self._registry = registry
        self._types = types
        self._path = ""

    # -- steps

    def bind_steps(self, steps: tuple[Any, ...], at: str) -> tuple[Any, ...]:
        return tuple(self._bind_step(step, f"{at}{number}") for number, step in enumerate(steps))

    def _bind_step(self, step: Any, path: str) -> Any:
        self._path = path
        match step:
            case ps.Each(over=over, steps=steps):
                over = self._visit(over)
                return step.model_copy(update={"over": over, "steps": self.bind_steps(steps, f"{path}/")})
            case ps.When(condition=condition, steps=steps, otherwise=otherwise):
                changed = {
                    "condition": self._truth(condition),
                    "steps": self.bind_steps(steps, f"{path}/then/"),
                    "otherwise": self.bind_steps(otherwise, f"{path}/else/"),
                }
                return step.model_copy(update=changed)
            case ps.Update(op="add", value=value) if (cell := self._cell(value)) is not None:
                # What the variable holds decides whether a number is added or a text appended.
                is_text = isinstance(self._types.get(id(step)), (*_TEXT_TYPES, t.ListType))
                return step if is_text else step.model_copy(update={"value": self._value(value, cell)})
            case ps.Call(args=args):
                return step.model_copy(
                    update={"args": {name: self._argument(step.tool, name, each) for name, each in args.items()}}
                )
            case _:
                return ir.map_children(step, self._visit)

    def _argument(self, tool: str, name: str, expr: Any) -> Any:
        """An argument of a tool: a cell is read where the tool takes a number, a date or a truth value."""
        found, cell = self._registry.get(tool), self._cell(expr)
        argument = None if found is None else found.argument(name)
        if cell is None or argument is None or not cell.notation:
            return self._visit(expr)
        wanted = t.without_optional(argument.type)
        fits = isinstance(wanted, _COMPARABLE_TYPES[kind_of_notation(cell.notation)])
        return self._value(expr, cell) if fits else self._visit(expr)

    # -- expressions

    def _cell(self, expr: Any) -> t.CellType | None:
        """The column of which an expression is a cell."""
        type_ = self._types.get(id(expr))
        return type_ if isinstance(type_, t.CellType) else None

    def _cells(self, expr: Any) -> t.CellType | None:
        """The column of which an expression is a list of cells."""
        type_ = self._types.get(id(expr))
        return type_.item if isinstance(type_, t.ListType) and isinstance(type_.item, t.CellType) else None

    def _visit(self, expr: Any) -> Any:
        match expr:
            case ir.Compare():
                return self._compare(expr)
            case ir.Not(value=value):
                return expr.model_copy(update={"value": self._truth(value)})
            case ir.Choose(condition=condition, then=then, otherwise=otherwise):
                branches = {"then": self._visit(then), "otherwise": self._visit(otherwise)}
                return expr.model_copy(update={"condition": self._truth(condition), **branches})
            case ir.Comprehension(element=element, key=key, clauses=clauses):
                changed = {
                    "element": self._visit(element),
                    "key": None if key is None else self._visit(key),
                    "clauses": tuple(map(self._clause, clauses)),
                }
                return expr.model_copy(update=changed)
            case ir.Arithmetic():
                return self._arithmetic(expr)
            case ir.Negative(value=value) if (cell := self._cell(value)) is not None:
                return expr.model_copy(update={"value": self._value(value, cell)})
            case ir.Get(value=value, field=field) if (cell := self._cell(value)) is not None:
                fields = DATE_FIELDS_BY_TYPE.get(type(notation_type(cell.notation)), ())
                return expr.model_copy(update={"value": self._value(value, cell)}) if field in fields else expr
            case ir.Format(parts=parts):
                return expr.model_copy(update={"parts": tuple(map(self._format_part, parts))})
            case ir.Apply():
                return self._call(expr)
            case _:
                return ir.map_children(expr, self._visit)

    def _clause(self, clause: ir.Clause) -> ir.Clause:
        conditions = tuple(map(self._truth, clause.conditions))
        return clause.model_copy(update={"over": self._visit(clause.over), "conditions": conditions})

    def _truth(self, expr: Any) -> Any:
        """A condition: a cell of a yes/no column holds if it says yes, and not if it is not empty."""
        cell = self._cell(expr)
        if cell is not None and cell.notation and kind_of_notation(cell.notation) == "yes/no":
            return self._matches(expr, "==", ir.Const(value=True), cell)
        match expr:
            case ir.Logic(items=items):
                return expr.model_copy(update={"items": tuple(map(self._truth, items))})
            case _:
                return self._visit(expr)

    def _format_part(self, part: Any) -> Any:
        cell = None if isinstance(part, str) else self._cell(part.value)
        if isinstance(part, str) or cell is None or not part.spec or spec_problem(part.spec, t.STR) is None:
            return part if isinstance(part, str) else part.model_copy(update={"value": self._visit(part.value)})
        return part.model_copy(update={"value": self._value(part.value, cell)})

    def _arithmetic(self, expr: ir.Arithmetic) -> Any:
        sides = {"left": expr.left, "right": expr.right}
        changed: dict[str, Any] = {}
        for name, other in (("left", expr.right), ("right", expr.left)):
            cell = self._cell(sides[name])
            # Beside a text `+` joins texts.
            joins = expr.op == "+" and isinstance(self._types.get(id(other)), _TEXT_TYPES)
            changed[name] = self._visit(sides[name]) if cell is None or joins else self._value(sides[name], cell)
        return expr.model_copy(update=changed)

    def _read(self, expr: Any) -> Any:
        """An expression that is read if it is a cell."""
        cell = self._cell(expr)
        return self._visit(expr) if cell is None else self._value(expr, cell)

    def _value(self, expr: Any, cell: t.CellType) -> Any:
        """A cell as the value that it says."""
        self._require_one_reading(cell)
        return cell_call("cell_value", self._visit(expr), cell)

    # -- calls

    def _call(self, expr: ir.Apply) -> Any:
        args: tuple[Any, ...] = (*expr.args, *(value for _, value in expr.named))
        match expr.function:
            case "sum" | "mean" | "any" | "all" if args and (cell := self._cells(args[0])) is not None:
                allowed = (*_NUMBERS, "yes/no") if expr.function in ("sum", "mean") else ("yes/no",)
                return self._fold(expr, cell, allowed)
            case "min" | "max" | "sorted":
                return self._order(expr)
            case "bool" if len(args) == 1:
                return expr.model_copy(update={"args": tuple(map(self._truth, args)), "named": ()})
            case function if function in _CONVERSIONS and len(args) == 1:
                return self._conversion(expr, args[0], _CONVERSIONS[function])
            case _:
                return self._plain_call(expr, args)

    def _conversion(self, expr: ir.Apply, argument: Any, kinds: tuple[str, ...]) -> Any:
        cell = self._cell(argument)
        if cell is None:
            return ir.map_children(expr, self._visit)
        self._require_one_reading(cell)
        if kind_of_notation(cell.notation) not in kinds:
            return ir.map_children(expr, self._visit)
        name = "date" if expr.function == "parse_date" else expr.function
        return ir.Apply(function=name, args=(self._value(argument, cell),))

    def _fold(self, expr: ir.Apply, cell: t.CellType, allowed: tuple[str, ...]) -> Any:
        self._require_one_reading(cell)
        kind = kind_of_notation(cell.notation)
        if kind not in allowed:
            if expr.function in ("any", "all"):
                return ir.map_children(expr, self._visit)
            raise self._error(cell, "its cells cannot be added")
        changed = ir.map_children(expr, self._visit)
        first, *rest = changed.args or (changed.named[0][1],)
        named = changed.named if changed.args else changed.named[1:]
        return changed.model_copy(update={"args": (cell_call("cell_values", first, cell), *rest), "named": named})

    def _order(self, expr: ir.Apply) -> Any:
        named = dict(expr.named)
        key = named.get("key")
        reverse = named.get("reverse")
        descends = expr.function == "max" or (isinstance(reverse, ir.Const) and reverse.value is True)
        # A cell that cannot be read comes last, and is neither the smallest nor the largest.
        last = ir.Const(value=not descends)
        if isinstance(key, ir.Lambda):
            changed = {name: self._visit(each) for name, each in expr.named if name != "key"}
            changed["key"] = key.model_copy(update={"body": self._order_key(key.body, last)})
            args, names = tuple(map(self._visit, expr.args)), [name for name, _ in expr.named]
            return expr.model_copy(update={"args": args, "named": tuple((name, changed[name]) for name in names)})
        if len(expr.args) > 1 and expr.function != "sorted":
            return expr.model_copy(update={"args": tuple(map(self._read, expr.args))})
        cell = self._cells(expr.args[0]) if expr.args and key is None else None
        if cell is None:
            return ir.map_children(expr, self._visit)
        self._require_one_reading(cell)
        by = ir.Lambda(names=("cell",), body=cell_call("cell_order", ir.Ref(name="cell"), cell, last))
        changed = ir.map_children(expr, self._visit)
        return changed.model_copy(update={"named": (*changed.named, ("key", by))})

    def _order_key(self, body: Any, last: ir.Const) -> Any:
        if isinstance(body, ir.TupleOf | ir.ListOf):
            return body.model_copy(update={"items": tuple(self._order_key(each, last) for each in body.items)})
        cell = self._cell(body)
        if cell is None:
            return self._visit(body)
        self._require_one_reading(cell)
        return cell_call("cell_order", self._visit(body), cell, last)

    def _plain_call(self, expr: ir.Apply, args: tuple[Any, ...]) -> Any:
        """A call: a cell is read where the function takes what it says, and takes no text."""
        function = FUNCTIONS.get(expr.function)
        signatures = () if function is None else function.signatures
        shapes = [bound for each in signatures if (bound := bind_arguments(each, expr)) is not None]
        changed: list[Any] = []
        for number, argument in enumerate(args):
            cell, kinds = self._cell(argument), [bound[number].kind for bound in shapes]
            reads = cell is not None and cell.notation and not any(kind.fits(t.STR) for kind in kinds)
            if cell is not None and reads and any(kind.fits(notation_type(cell.notation)) for kind in kinds):
                changed.append(self._value(argument, cell))
            else:
                changed.append(self._visit(argument))
        count = len(expr.args)
        named = tuple((name, each) for (name, _), each in zip(expr.named, changed[count:], strict=True))
        return expr.model_copy(update={"args": tuple(changed[:count]), "named": named})

    # -- comparisons

    def _compare(self, expr: ir.Compare) -> Any:
        operands = (expr.first, *(operand for _, operand in expr.rest))
        pairs = [self._pair(left, op, right) for left, (op, right) in zip(operands[:-1], expr.rest, strict=True)]
        if all(pair is None for pair in pairs):
            return ir.map_children(expr, self._visit)
        plain = zip(operands[:-1], expr.rest, pairs, strict=True)
        items = tuple(
            ir.Compare(first=self._visit(left), rest=((op, self._visit(right)),)) if pair is None else pair
            for left, (op, right), pair in plain
        )
        return items[0] if len(items) == 1 else ir.Logic(op="and", items=items)

    def _pair(self, left: Any, op: str, right: Any) -> Any:
        """One comparison in the kind of the column on one of its sides; None if it is made as it is."""
        cell, other = self._cell(left), self._cell(right)
        if op in ("in", "not in"):
            return None if cell is None else self._membership(left, op, right)
        if op not in CELL_COMPARISONS:
            return None
        if cell is None and other is not None:
            return self._pair(right, _FLIPPED[op], left)
        if cell is None:
            return self._native_pair(left, op, right) or self._native_pair(right, _FLIPPED[op], left)
        if isinstance(right, ir.Const) and right.value is None:
            return None
        type_ = self._types.get(id(right), t.ANY)
        is_text = isinstance(type_, _TEXT_TYPES)
        if not cell.notation and op in ("==", "!=") and (is_text or isinstance(type_, t.AnyType)):
            # It can be searched for a text as it is written.
            return None
        constant = _constant(right)
        if other is not None:
            return self._cell_pair(left, op, right, cell, other)
        if constant is not _NO_CONSTANT:
            return self._constant_pair(left, op, right, cell, constant)
        self._require_one_reading(cell)
        fits = _COMPARABLE_TYPES[kind_of_notation(cell.notation)]
        if not is_text and not isinstance(t.without_optional(type_), (*fits, t.AnyType)):
            raise self._error(cell, f"a value of type {type_} cannot be compared with it")
        return self._matches(left, op, right, cell)

    def _constant_pair(self, left: Any, op: str, right: Any, cell: t.CellType, constant: object) -> Any:
        if not cell.notation:
            self._require_one_reading(cell)
        wanted = wanted_value(constant, cell.notation)
        if not is_readable(wanted):
            written = isinstance(constant, str) and op in ("==", "!=")
            if written and (cell.others is None or constant in cell.others):
                return None
            raise self._error(cell, f"{_short_repr(constant)} cannot be compared with it")
        if isinstance(wanted, Amount):
            if wanted.unit and wanted.unit not in cell.units:
                raise self._error(cell, f"{_short_repr(constant)} cannot be compared with it")
            if wanted.unit:
                return self._matches(left, op, right, cell)
        self._require_one_reading(cell)
        return self._matches(left, op, right, cell)

    def _cell_pair(self, left: Any, op: str, right: Any, cell: t.CellType, other: t.CellType) -> Any:
        """A comparison of two cells, each read in the notation of its own column."""
        self._require_one_reading(cell)
        self._require_one_reading(other)
        kinds = {kind_of_notation(cell.notation), kind_of_notation(other.notation)}
        if len(kinds) > 1 and not kinds <= set(_NUMBERS):
            raise self._error(cell, f"{_name(other)} is {_describe(other)}, and they cannot be compared")
        if set(cell.units) != set(other.units) and cell.units and other.units:
            raise self._error(cell, f"{_name(other)} is {_describe(other)}, and they cannot be compared")
        read = cell_call("cell_value", self._visit(right), other, ir.Const(value=None))
        return cell_comparison(self._visit(left), op, read, cell)

    def _matches(self, left: Any, op: str, right: Any, cell: t.CellType) -> Any:
        return cell_comparison(self._visit(left), op, self._visit(right), cell)

    def _membership(self, left: Any, op: str, right: Any) -> Any:
        """`cell in [a, b]` as one comparison for each item, if the items are written in the plan."""
        if not isinstance(right, ir.ListOf | ir.TupleOf) or not right.items:
            return None
        tests = [
            self._pair(left, "==", item) or ir.Compare(first=self._visit(left), rest=(("==", self._visit(item)),))
            for item in right.items
        ]
        found = tests[0] if len(tests) == 1 else ir.Logic(op="or", items=tuple(tests))
        return ir.Not(value=found) if op == "not in" else found

    def _native_pair(self, left: Any, op: str, right: Any) -> Any:
        """A comparison of a column whose cells are compared as they are; an error if its type rules out a match."""
        column, type_ = self._table_column(left), self._types.get(id(left))
        if column is None or op not in ("==", "!="):
            return None
        constant = _constant(right)
        other = self._types.get(id(right))
        kind: ColumnKind
        match type_, constant:
            case t.BoolType(), str():
                kind, value = "yes/no", parse_yes_no(constant)
            case ((t.IntType() | t.FloatType()), str()):
                kind, value = "number", parse_number(constant)
            case t.StrType(), _ if isinstance(other, _NEVER_TEXT):
                kind, value = "text", None
            case _:
                return None
        if value is None:
            shown = f"a {other}" if constant is _NO_CONSTANT else _short_repr(constant)
            raise _bind_error(self._path, column, *describe_kind(kind), f"{shown} cannot be compared with it")
        return ir.Compare(first=self._visit(left), rest=((op, ir.Const(value=value)),))  # type: ignore[arg-type]

    def _table_column(self, expr: Any) -> str | None:
        """The column that an expression takes a cell of, if it is one of a table: records of tools have names."""
        match expr:
            case ir.Index(value=row, at=ir.Const(value=str() as name)) | ir.Get(value=row, field=name):
                record = self._types.get(id(row))
                return name if isinstance(record, t.RecordType) and not record.name else None
            case _:
                return None

    # -- errors

    def _require_one_reading(self, cell: t.CellType) -> None:
        if not cell.notation:
            reason = f"ambiguous: it can be read as {' or as '.join(cell.readings)}"
            fix = "Write its cells in one notation that can be read in one way only."
            raise _bind_error(self._path, cell.column, reason, describe_kind("ambiguous")[1], fix=fix)
        if len(cell.units) > 1:
            fix = "Filter by the currency first, or compare with an amount that names one, such as '50 EUR'."
            raise _bind_error(self._path, cell.column, _describe(cell), "amounts in one currency", fix=fix)

    def _error(self, cell: t.CellType, what: str) -> BindError:
        fitting = describe_kind(kind_of_notation(cell.notation))[1]
        return _bind_error(self._path, cell.column, _describe(cell), fitting, what)


def _constant(expr: Any) -> object:
    """The value of a literal, of a reference that was bound, or of a date that is written in the plan."""
    match expr:
        case ir.Const(value=value):
            return value
        case ir.Negative(value=ir.Const(value=int() | float() as value)):
            return -value
        case ir.Reference(bound=ir.BoundTo(value=value)):
            return value
        case _:
            return _NO_CONSTANT


def _describe(cell: t.CellType) -> str:
    kind = kind_of_notation(cell.notation)
    if kind == "money" and cell.units:
        return f"money ({', '.join(cell.units)})"
    return describe_kind(kind)[0]


def _name(cell: t.CellType) -> str:
    return f"the column {cell.column[:60]!r}"


def _short_repr(value: object) -> str:
    return repr(value)[:80]


def _bind_error(path: str, column: str, kind: str, expected: str, what: str = "", fix: str | None = None) -> BindError:
    return BindError(
        "bind.column-kind",
        f"the column {column[:60]!r} is {kind}" + (f"; {what}" if what else ""),
        place=Place(step=path),
        expected=expected,
        fix=fix or "Compare it with a value of its kind.",
    )
