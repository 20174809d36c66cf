"""Type inference for expressions.

Every mistake becomes a finding; what could not be typed is Any, so that one mistake is reported once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bicameral import types as t
from bicameral.errors import nearest_name
from bicameral.plans import _expressions as ir
from bicameral.plans._plan import MAX_DEPTH
from bicameral.plans._type_rules import item_types, limit_size, merge, merge_all
from bicameral.plans.check import _operation_types as ops
from bicameral.plans.check._operation_types import a_type, conversion, excerpt
from bicameral.plans.check._report import Finding, Severity
from bicameral.plans.check._scope import Scope
from bicameral.plans.evaluate._library import FUNCTIONS, dict_value_type
from bicameral.plans.evaluate._library_scalars import DATE_FIELDS_BY_TYPE
from bicameral.plans.evaluate._values import spec_problem
from bicameral.tools import ReferenceKind, Registry

_COMPOSITE_NODES = (ir.ListOf, ir.TupleOf, ir.DictOf, ir.Arithmetic, ir.Apply, ir.Comprehension, ir.Choose, ir.Logic)
"""The expressions whose type can be larger than the types of their parts."""

REFERENCE_TYPES: dict[ReferenceKind, t.Type] = {
    "file": t.StrType("path"),
    "folder": t.StrType("path"),
    "column": t.STR,
    "value": t.ANY,
    "person": t.StrType("email"),
    "event": t.StrType("id"),
    "mail": t.StrType("id"),
}
"""The type of what a reference is bound to."""


@dataclass(frozen=True, slots=True)
class ReferenceSite:
    """An open reference at a step, and what is known of its candidates.

    `names` are the columns of the rows that a column is looked for in, and `days`, `amounts`, `numbers` and `texts`
    those of them that are known to hold days, money, numbers without a unit, or texts of no other kind; `column` is the
    column whose cells are compared; `tool` is the tool that gets it as an argument.
    """

    path: str
    refers: ReferenceKind
    words: str
    names: tuple[str, ...] | None = None
    column: str | None = None
    tool: str | None = None
    days: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


def _is_number_field(cell: t.Type) -> bool:
    if isinstance(cell, t.CellType):
        return cell.notation.startswith("number") and not cell.units
    return isinstance(cell, t.IntType | t.FloatType)


def compared_column(expr: Any) -> str | None:
    """The column that an expression takes a cell of: `row["category"]`."""
    match expr:
        case ir.Index(at=ir.Const(value=str() as name)) | ir.Get(field=name):
            return name
        case ir.Apply(function="lower" | "strip" | "casefold", args=(inner, *_)):
            return compared_column(inner)
        case _:
            return None


class Inference:
    """Infers the types of expressions in a scope and collects what is wrong with them."""

    def __init__(self, registry: Registry | None = None) -> None:
        self.registry = registry
        self.path = ""
        self.findings: list[Finding] = []
        self.names_read: set[str] = set()
        self.reference_sites: dict[ReferenceSite, None] = {}
        """The open references that were met, in order, with what is known of their candidates."""
        self.expression_types: dict[int, t.Type] | None = None
        """If it is a dict, it gets the type of each expression, by identity, as it was inferred last."""
        self._depth = 0

    def add_finding(self, severity: Severity, code: str, message: str, **more: Any) -> None:
        finding = Finding(severity, code, message, self.path, **more)
        # A loop is checked several times: the same finding is reported once.
        if finding not in self.findings[-20:]:
            self.findings.append(finding)

    def add_error(self, code: str, message: str, **more: Any) -> t.Type:
        """Report an error; Any stands for the type that could not be found."""
        self.add_finding("error", code, message, **more)
        return t.ANY

    def wrong_type(self, message: str, **more: Any) -> t.Type:
        return self.add_error("plan.wrong-type", message, **more)

    def infer(self, expr: Any, scope: Scope) -> t.Type:
        """The type of an expression; problems go to `findings`."""
        if self._depth > MAX_DEPTH:
            return self.add_error("plan.too-deep", "the expression is nested too deep", fix="Give its parts names.")
        self._depth += 1
        try:
            found = self._infer_node(expr, scope)
            found = limit_size(found) if isinstance(expr, _COMPOSITE_NODES) else found
            if self.expression_types is not None:
                self.expression_types[id(expr)] = found
            return found
        finally:
            self._depth -= 1

    def infer_not_none(self, expr: Any, scope: Scope) -> t.Type:
        """The type of an expression where None will not do; that it may be None is a warning."""
        return self.require_not_none(expr, self.infer(expr, scope))

    def require_not_none(self, expr: Any, type_: t.Type) -> t.Type:
        if not isinstance(type_, t.OptionalType):
            return type_
        x = excerpt(expr)
        fix = f"Test `if {x} is not None:` first."
        self.add_finding("warning", "plan.none-value", f"`{x}` may be None here", fix=fix)
        return type_.item

    def require_text(self, expr: Any, type_: t.Type, what: str) -> None:
        if not isinstance(self.require_not_none(expr, type_), t.AnyType | t.StrType | t.LiteralType):
            self.wrong_type(f"{what} must be text, not {a_type(type_)}", fix=conversion(expr, type_, t.STR))

    def iteration_type(self, expr: Any, type_: t.Type) -> t.Type:
        """The type of the items that a `for` over this expression gives."""
        type_, x = self.require_not_none(expr, type_), excerpt(expr)
        match type_:
            case t.AnyType():
                return type_
            case t.ListType() | t.TupleType() | t.DictType() | t.RecordType():
                return merge_all(item_types(type_)) or t.ANY
            case t.StrType() | t.LiteralType():
                fix = f"Use {x}.splitlines() for its lines or {x}.split() for its words."
                return self.add_error("plan.not-a-list", f"`{x}` is text, not a list", fix=fix)
            case _:
                return self.add_error("plan.not-a-list", f"`{x}` is {a_type(type_)}, not a list")

    def bind_loop_names(self, names: tuple[str, ...], item: t.Type, scope: Scope) -> Scope:
        """The scope in which the names of a `for` have an item's value or its parts."""
        if len(names) == 1:
            return scope.bind(names[0], item)
        for name, part in zip(names, self._unpacked_types(names, item), strict=True):
            scope = scope.bind(name, part)
        return scope

    def _unpacked_types(self, names: tuple[str, ...], item: t.Type) -> tuple[t.Type, ...]:
        match item:
            case t.TupleType(items=parts) if len(parts) == len(names):
                return parts
            case t.ListType(item=part):
                return (part,) * len(names)
            case t.AnyType():
                pass
            case t.TupleType(items=parts):
                self.wrong_type(f"each item has {len(parts)} parts, but there are {len(names)} names")
            case t.StrType() | t.LiteralType():
                self.wrong_type(f"{', '.join(names)}: each item is one text", fix="Go over `d.items()` for pairs.")
            case _:
                fix = f"Use one name: `for {names[0]} in`."
                self.wrong_type(f"each item is one {ops.type_text(item)}", fix=fix)
        return (t.ANY,) * len(names)

    def _infer_node(self, expr: Any, scope: Scope) -> t.Type:
        # By the word and not by the class: isinstance is slow for pydantic models.
        match expr.kind:
            case "const":
                return _const_type(expr.value)
            case "ref":
                return self._infer_ref(expr.name, scope)
            case "reference":
                self.add_reference(expr)
                return REFERENCE_TYPES[expr.refers]
            case "get":
                type_ = self._field_type(excerpt(expr.value), self.infer_not_none(expr.value, scope), expr.field)
                return scope.narrowed_type(expr, type_)
            case "index":
                value, at = self.infer_not_none(expr.value, scope), self.infer_not_none(expr.at, scope)
                self.add_column_references(expr.at, value)
                return scope.narrowed_type(expr, self._index_type(expr, value, at))
            case "slice":
                return self._infer_slice(expr, scope)
            case "list":
                return t.ListType(merge_all([self.infer(item, scope) for item in expr.items]) or t.ANY)
            case "tuple":
                return t.TupleType(tuple(self.infer(item, scope) for item in expr.items))
            case "dict":
                return self._infer_dict(expr, scope)
            case "arithmetic":
                left, right = self.infer_not_none(expr.left, scope), self.infer_not_none(expr.right, scope)
                return ops.infer_arithmetic(self, expr.op, (expr.left, left), (expr.right, right))
            case "negative":
                return self._negative_type(self.infer_not_none(expr.value, scope))
            case "not":
                self.infer(expr.value, scope)
                return t.BOOL
            case "logic":
                return self._infer_logic(expr, scope)
            case "compare":
                return self._infer_compare(expr, scope)
            case "choose":
                self.infer(expr.condition, scope)
                then = self.infer(expr.then, scope.narrow(expr.condition, holds=True))
                return merge(then, self.infer(expr.otherwise, scope.narrow(expr.condition, holds=False))) or t.ANY
            case "format":
                return self._infer_format(expr, scope)
            case "comprehension":
                return self._infer_comprehension(expr, scope)
            case "apply":
                return ops.infer_call(self, expr, scope)
            case _:
                expected = "as in sorted(xs, key=lambda x: x.name)"
                return self.wrong_type("a lambda stands only as an argument", expected=expected)

    def add_reference(self, expr: Any, **known: Any) -> None:
        """Note an open reference; it is noted again where more is known of it."""
        if isinstance(expr, ir.Reference) and expr.bound is None:
            self.reference_sites[ReferenceSite(self.path, expr.refers, expr.words, **known)] = None

    def add_column_references(self, expr: Any, row: t.Type | None) -> None:
        """Note the column, or the columns of a list, that an expression names in a row of this type."""
        if not isinstance(row, t.RecordType):
            return
        cells = {field.name: field.type for field in row.fields if isinstance(field.type, t.CellType)}
        days = tuple(name for name, cell in cells.items() if cell.notation.startswith("date"))
        amounts = tuple(name for name, cell in cells.items() if cell.units and cell.units != ("%",))
        numbers = tuple(field.name for field in row.fields if _is_number_field(field.type))
        texts = tuple(field.name for field in row.fields if isinstance(field.type, t.StrType))
        for each in expr.items if isinstance(expr, ir.ListOf) else (expr,):
            if isinstance(each, ir.Reference) and each.refers == "column":
                kinds = {"days": days, "amounts": amounts, "numbers": numbers, "texts": texts}
                self.add_reference(each, names=row.names, **kinds)

    def _infer_ref(self, name: str, scope: Scope) -> t.Type:
        self.names_read.add(name)
        variable = scope.get(name)
        if variable is None and name in FUNCTIONS:
            message = f"`{name}` is a function, not a value"
            return self.add_error("plan.unknown-name", message, fix=f"Call it: {name}(…).")
        if variable is None:
            message = f"there is no variable `{name}`"
            return self.add_error("plan.unknown-name", message, nearest=nearest_name(name, scope))
        if variable.maybe_unbound:
            fix = f"Give it a value before the `if` or `for`: `{name} = None`."
            return self.add_error("plan.maybe-unbound", f"`{name}` may have no value here", fix=fix)
        if variable.void_of is not None:
            message = f"`{name}` has no value: {variable.void_of}() gives nothing back"
            return self.wrong_type(message, fix=f"Call {variable.void_of}(…) without `{name} =`.")
        return variable.type

    def _field_type(self, x: str, value: t.Type, field: str) -> t.Type:
        match value:
            case t.AnyType():
                return value
            case t.DictType(value=inner):
                return inner
            case t.RecordType():
                return self._record_field_type(x, value, field)
            case t.ListType() | t.TupleType():
                message = f"`{x}` is a list; it has no field '{field}'"
                fix = f"Loop: `for item in {x}:` and use item.{field}, or take {x}[0].{field}."
            case _:
                known = DATE_FIELDS_BY_TYPE.get(type(value), ())
                if field in known:
                    return t.INT
                message = f"`{x}` is {a_type(value)}; it has no field '{field}'"
                fix = f"Fields: {', '.join(known)}." if known else None
                fix = f"Write {x}.{field}()." if field in FUNCTIONS else fix
        return self.add_error("plan.unknown-field", message, fix=fix)

    def _record_field_type(self, x: str, record: t.RecordType, field: str) -> t.Type:
        if (found := record.get(field)) is not None:
            return found
        fix = f"Fields: {ops.field_list(record)}." if record.fields else "It has no fields yet."
        if reader := ops.reader_hint(record, field, x, self.registry):
            fix += f" {reader}"
        message = f"`{x}` is {a_type(record) if record.name else 'a dict'}; it has no field '{field}'"
        return self.add_error("plan.unknown-field", message, nearest=nearest_name(field, record.names), fix=fix)

    def _index_type(self, expr: ir.Index, value: t.Type, at: t.Type) -> t.Type:
        x = excerpt(expr.value)
        constant = expr.at.value if isinstance(expr.at, ir.Const) else None
        match value:
            case t.AnyType():
                return value
            case t.DictType() | t.RecordType():
                self.require_text(expr.at, at, f"a key of `{x}`")
                if isinstance(value, t.RecordType) and isinstance(constant, str):
                    return self._record_field_type(x, value, constant)
                return dict_value_type(value)
            case t.ListType() | t.TupleType() | t.StrType() | t.LiteralType():
                if not isinstance(at, t.AnyType | t.IntType | t.BoolType):
                    fix = conversion(expr.at, at, t.INT) or f"Use a number: {x}[0]."
                    return self.wrong_type(f"a position in `{x}` is an int, not {a_type(at)}", fix=fix)
                if isinstance(value, t.TupleType):
                    return self._tuple_part_type(x, value.items, constant)
                return value.item if isinstance(value, t.ListType) else t.STR
            case _:
                return self.add_error("plan.not-a-list", f"`{x}` is {a_type(value)}; it has no items")

    def _tuple_part_type(self, x: str, parts: tuple[t.Type, ...], at: object) -> t.Type:
        if not isinstance(at, int):
            return merge_all(parts) or t.ANY
        if -len(parts) <= at < len(parts):
            return parts[at]
        return self.wrong_type(f"`{x}` has {len(parts)} parts; there is no [{at}]")

    def _infer_slice(self, expr: ir.Slice, scope: Scope) -> t.Type:
        value = self.infer_not_none(expr.value, scope)
        for bound in (expr.start, expr.stop, expr.step):
            if bound is not None:
                type_ = self.infer(bound, scope)
                inner = type_.item if isinstance(type_, t.OptionalType) else type_
                if not isinstance(inner, t.AnyType | t.IntType | t.BoolType | t.NullType):
                    fix = conversion(bound, type_, t.INT)
                    self.wrong_type(f"a position in a slice is an int, not {a_type(type_)}", fix=fix)
        match value:
            case t.StrType() | t.LiteralType():
                return t.STR
            case t.TupleType(items=items):
                return t.ListType(merge_all(items) or t.ANY)
            case t.AnyType() | t.ListType():
                return value
            case _:
                message = f"`{excerpt(expr.value)}` is {a_type(value)}; it cannot be sliced"
                return self.add_error("plan.not-a-list", message)

    def _infer_dict(self, expr: ir.DictOf, scope: Scope) -> t.Type:
        fields: dict[str, t.Type] = {}
        for number, (key, value) in enumerate(expr.entries, 1):
            type_ = self.infer(value, scope)
            if isinstance(key, ir.Const) and isinstance(key.value, str):
                fields[key.value] = type_
                continue
            # With one computed key no field is known for sure.
            self.require_text(key, self.infer(key, scope), "a key of a dict")
            types = [*fields.values(), type_]
            for later_key, later_value in expr.entries[number:]:
                self.require_text(later_key, self.infer(later_key, scope), "a key of a dict")
                types.append(self.infer(later_value, scope))
            return t.DictType(merge_all(types) or t.ANY)
        return t.RecordType(tuple(t.Field(name, type_) for name, type_ in fields.items()))

    def _negative_type(self, type_: t.Type) -> t.Type:
        match type_:
            case t.IntType() | t.BoolType():
                return t.INT
            case t.FloatType() | t.DurationType() | t.AnyType():
                return type_
            case _:
                fix = "For the other order use sorted(xs, reverse=True)." if isinstance(type_, t.StrType) else None
                return self.wrong_type(f"{a_type(type_)} has no negative", fix=fix)

    def _infer_logic(self, expr: ir.Logic, scope: Scope) -> t.Type:
        types: list[t.Type] = []
        *most, last = expr.items
        for item in most:
            type_ = self.infer(item, scope)
            # What `or` passes on is not None.
            types.append(type_.item if expr.op == "or" and isinstance(type_, t.OptionalType) else type_)
            scope = scope.narrow(item, holds=expr.op == "and")
        if expr.op == "or":
            types = [type_ for type_ in types if not isinstance(type_, t.NullType)]
        return merge_all([*types, self.infer(last, scope)]) or t.ANY

    def _infer_compare(self, expr: ir.Compare, scope: Scope) -> t.Type:
        left = (expr.first, self.infer(expr.first, scope))
        for comparison, operand in expr.rest:
            right = (operand, self.infer(operand, scope))
            ops.check_comparison(self, comparison, left, right)
            for cell, other in ((left[0], operand), (operand, left[0])):
                if column := compared_column(other):
                    self.add_reference(cell, column=column)
            left = right
        return t.BOOL

    def _infer_format(self, expr: ir.Format, scope: Scope) -> t.Type:
        for part in expr.parts:
            if isinstance(part, str):
                continue
            type_ = self.infer(part.value, scope)
            if part.spec:
                type_ = self.require_not_none(part.value, type_)
            if problem := spec_problem(part.spec, type_):
                self.wrong_type(f"the format {part.spec[:40]!r} does not fit {a_type(type_)}: {problem}")
        return t.STR

    def _infer_comprehension(self, expr: ir.Comprehension, scope: Scope) -> t.Type:
        for clause in expr.clauses:
            item = self.iteration_type(clause.over, self.infer(clause.over, scope))
            scope = self.bind_loop_names(clause.names, item, scope)
            for condition in clause.conditions:
                self.infer(condition, scope)
                scope = scope.narrow(condition, holds=True)
        if expr.key is None:
            return t.ListType(self.infer(expr.element, scope))
        self.require_text(expr.key, self.infer(expr.key, scope), "a key of a dict")
        return t.DictType(self.infer(expr.element, scope))


def _const_type(value: object) -> t.Type:
    match value:
        case str():
            return t.LiteralType((value,))
        case bool():
            return t.BOOL
        case int():
            return t.INT
        case float():
            return t.FLOAT
        case _:
            return t.NULL


def type_of(expr: Any, scope: Scope, findings: list[Finding] | None = None) -> t.Type:
    """The type of an expression in a scope; what is wrong with it is added to `findings`.

    Example:
        >>> type_of(Get(value=Ref(name="day"), field="year"), Scope.from_types({"day": DATE}))
        IntType()
    """
    inference = Inference()
    found = inference.infer(expr, scope)
    if findings is not None:
        findings.extend(inference.findings)
    return found
