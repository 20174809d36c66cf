"""Types of operators and of library calls, and advice on what to write instead.

Advice is for people and small models alike, so it shows the corrected text where it can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bicameral import types as t
from bicameral.errors import nearest_name
from bicameral.plans import _type_rules as tr
from bicameral.plans._expressions import Apply, Const, Expr, Get, Index, Lambda, Ref
from bicameral.plans.check._scope import Scope
from bicameral.plans.evaluate._closures import bind_arguments
from bicameral.plans.evaluate._library import FUNCTIONS
from bicameral.tools import Registry

if TYPE_CHECKING:
    from bicameral.plans.check._inference import Inference


_CONTENT_FIELDS = frozenset({"body", "content", "contents", "text", "lines", "rows", "data", "items", "html"})
_MAX_FIELDS = 12


def excerpt(expr: Expr) -> str:
    """An expression short enough for a message, or `x` for a longer one."""
    match expr:
        case Ref(name=name):
            return name
        case Get(value=value, field=field):
            return f"{excerpt(value)}.{field}"
        case Index(value=value, at=at):
            return f"{excerpt(value)}[{excerpt(at)}]"
        case Const(value=value):
            text = repr(value)
            return text if len(text) <= 30 else text[:26] + "…'"
        case Apply(function=function):
            return f"{function}(…)"
        case _:
            return "x"


def type_text(type_: t.Type) -> str:
    """The name of a type; a literal text is just text."""
    match type_:
        case t.LiteralType():
            return "str"
        case t.ListType(item=t.LiteralType()):
            return "list[str]"
        case t.RecordType(name="", fields=fields) if len(fields) > 4:
            return "dict"
        case _:
            return str(type_)


def a_type(type_: t.Type) -> str:
    name = type_text(type_)
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


_TEXT_READERS: dict[type[t.Type], str] = {
    t.IntType: "int",
    t.FloatType: "float",
    t.DateType: "date",
    t.DateTimeType: "datetime",
    t.TimeType: "time",
}
"""The library function that makes a value of a type of a text."""
_SCALARS = (t.BoolType, t.IntType, t.FloatType, t.DateType, t.TimeType, t.DateTimeType)


def conversion(expr: Expr, given: t.Type, wanted: t.Type, argument: str = "") -> str | None:
    """Advice how to convert what is given to what is wanted (for an argument of this name), if there is any."""
    x = excerpt(expr)
    match given, wanted:
        case (t.RecordType() as record, _) if (field := record.get(argument)) and t.is_assignable(field, wanted):
            return f"Use {x}.{argument}."
        case (t.OptionalType(), _):
            return f"Test it first: `if {x} is not None:`."
        case (t.StrType() | t.LiteralType(), _) if reader := _TEXT_READERS.get(type(wanted)):
            return f"Use {reader}({x})."
        case (t.DateTimeType(), t.DateType()):
            return f"Use {x}.date()."
        case (t.DateType(), t.DateTimeType()):
            return f"Use datetime({x}) or combine({x}, time)."
        case (t.StrType() | t.LiteralType(), t.ListType(item=t.StrType())):
            return f"Use [{x}]." if isinstance(expr, Const) else f"Use {x}.splitlines() for its lines, or [{x}]."
        case (t.ListType(item=t.StrType() | t.LiteralType()), t.StrType()):
            return f'Use "\\n".join({x}).'
        case (t.ListType() | t.TupleType(), t.StrType()):
            return f'Use "\\n".join([str(item) for item in {x}]).'
        case (t.RecordType() as record, _) if fitting := _fitting_field(record, wanted):
            return f"Use {x}.{fitting}."
        case (t.FloatType(), t.IntType()):
            return f"Use round({x}) or int({x})."
        case (_, t.StrType()) if isinstance(given, _SCALARS):
            return f"Use str({x})."
        case (t.RecordType() | t.DictType(), t.StrType()):
            return f'Write its fields into a text: f"{{{x}.field}}".'
        case (_, t.ListType(item=item)) if t.is_assignable(given, item):
            return f"Use [{x}]."
        case (t.ListType(item=item), _) if t.is_assignable(item, wanted):
            return f"Use one item, {x}[0], or a loop: `for item in {x}:`."
        case _:
            return None


def _fitting_field(record: t.RecordType, wanted: t.Type) -> str | None:
    """The only field that fits, preferring one of exactly the wanted type (a path for a path)."""
    exact = [field.name for field in record.fields if field.type == wanted]
    fitting = exact or [field.name for field in record.fields if t.is_assignable(field.type, wanted)]
    return fitting[0] if len(fitting) == 1 else None


def field_list(record: t.RecordType) -> str:
    names = record.names
    return ", ".join(names[:_MAX_FIELDS]) + (", …" if len(names) > _MAX_FIELDS else "")


def reader_hint(record: t.RecordType, field: str, x: str, registry: Registry | None) -> str | None:
    """Advice to call a tool such as `read_text(f.path)` where a plan reads the content of a record that has a path."""
    if registry is None or field not in _CONTENT_FIELDS:
        return None
    for tool in registry:
        needed = [argument for argument in tool.arguments if argument.required]
        if tool.effect == "read" and len(needed) == 1 and tool.name.startswith("read"):
            source = record.get(needed[0].name)
            if source is not None and t.is_assignable(source, needed[0].type):
                return f"Use {tool.name}({x}.{needed[0].name})."
    return None


TypedExpr = tuple[Any, t.Type]
"""An expression and its type."""

_FAMILIES: dict[type[t.Type], str] = {
    t.IntType: "int",
    t.BoolType: "int",
    t.FloatType: "float",
    t.StrType: "text",
    t.LiteralType: "text",
    t.ListType: "list",
    t.TupleType: "list",
    t.DateType: "date",
    t.DateTimeType: "datetime",
    t.TimeType: "time",
    t.DurationType: "duration",
    t.DictType: "dict",
    t.RecordType: "dict",
    t.NullType: "none",
}

_CLOSED_OPERATORS = {"+", "-", "*", "//", "%"}
_NUMBER_FAMILIES = {"int", "float"}

_ARITHMETIC_RESULTS: dict[tuple[str, str, str], t.Type] = {
    **{("int", op, "int"): t.INT for op in _CLOSED_OPERATORS},
    **{(left, op, right): t.FLOAT for op in _CLOSED_OPERATORS for left, right in (("int", "float"), ("float", "int"))},
    **{("float", op, "float"): t.FLOAT for op in _CLOSED_OPERATORS},
    **{(left, "/", right): t.FLOAT for left in _NUMBER_FAMILIES for right in _NUMBER_FAMILIES},
    ("text", "+", "text"): t.STR,
    ("text", "*", "int"): t.STR,
    ("int", "*", "text"): t.STR,
    ("date", "-", "date"): t.DURATION,
    ("datetime", "-", "datetime"): t.DURATION,
    ("date", "+", "duration"): t.DATE,
    ("date", "-", "duration"): t.DATE,
    ("duration", "+", "date"): t.DATE,
    ("datetime", "+", "duration"): t.DATETIME,
    ("datetime", "-", "duration"): t.DATETIME,
    ("duration", "+", "datetime"): t.DATETIME,
    ("duration", "+", "duration"): t.DURATION,
    ("duration", "-", "duration"): t.DURATION,
    ("duration", "%", "duration"): t.DURATION,
    ("duration", "/", "duration"): t.FLOAT,
    ("duration", "//", "duration"): t.INT,
    ("duration", "//", "int"): t.DURATION,
    **{("duration", op, number): t.DURATION for op in ("*", "/") for number in _NUMBER_FAMILIES},
    **{(number, "*", "duration"): t.DURATION for number in _NUMBER_FAMILIES},
}


def infer_arithmetic(inference: Inference, op: str, left: TypedExpr, right: TypedExpr) -> t.Type:
    """The type of `left op right`."""
    first, second = left[1], right[1]
    if tr.BOTTOM in (first, second):
        return tr.BOTTOM
    if isinstance(first, t.AnyType) or isinstance(second, t.AnyType):
        return t.ANY
    families = _FAMILIES.get(type(first), "other"), _FAMILIES.get(type(second), "other")
    found = _ARITHMETIC_RESULTS.get((families[0], op, families[1]))
    if found is not None:
        return found
    if op == "+" and families == ("list", "list"):
        return _list_sum_type(inference, left, right)
    if op == "*" and families in (("list", "int"), ("int", "list")):
        return t.ListType(tr.item_type(first if families[0] == "list" else second))
    return inference.wrong_type(
        f"{type_text(first)} {op} {type_text(second)} has no meaning: `{excerpt(left[0])} {op} {excerpt(right[0])}`",
        fix=_arithmetic_fix(op, left, right, families),
    )


def _list_sum_type(inference: Inference, left: TypedExpr, right: TypedExpr) -> t.Type:
    """The type of `a + b` of two lists. Their items must have a type in common, as what is appended to a list must."""
    first, second = tr.item_type(left[1]), tr.item_type(right[1])
    found = tr.merge(first, second)
    if found is None:
        a, b = excerpt(left[0]), excerpt(right[0])
        fix = f"Use {a} + [str(item) for item in {b}]." if isinstance(first, t.StrType | t.LiteralType) else None
        inference.wrong_type(
            f"{type_text(left[1])} + {type_text(right[1])} has items of different types: `{a} + {b}`", fix=fix
        )
    return t.ListType(t.ANY if found is None else found)


def _arithmetic_fix(op: str, left: TypedExpr, right: TypedExpr, families: tuple[str, str]) -> str | None:
    a, b = excerpt(left[0]), excerpt(right[0])
    match op, families:
        case "+", ("text", "list") | ("list", "text"):
            return f"Use {a} + [{b}]." if families[0] == "list" else f'Use "\\n".join({b}).'
        case "+", ("text", _) | (_, "text"):
            return f"Use {a} + str({b})." if families[0] == "text" else f"Use str({a}) + {b}, or int({b}) for a number."
        case "%", ("text", _):
            return "Use an f-string."
        case "-", ("list", "list"):
            return f"Use [x for x in {a} if x not in {b}]."
        case "+", ("list", _):
            return f"Use {a} + [{b}]."
        case _, ("date" | "datetime", "int"):
            return f"Use {a} {op} timedelta(days={b})."
        case _, ("date", "datetime"):
            return f"Use {b}.date()."
        case _, ("datetime", "date"):
            return f"Use {a}.date()."
        case _, ("time", _) | (_, "time"):
            return "Make datetimes first: combine(date, time)."
        case _, ("text", "int" | "float") | ("int" | "float", "text"):
            return f"Use float({a if families[0] == 'text' else b})."
        case _:
            return None


def check_comparison(inference: Inference, op: str, left: TypedExpr, right: TypedExpr) -> None:
    """Report what is wrong with `left op right`; the type of the result is always bool."""
    match op:
        case "==" | "!=":
            return
        case "in" | "not in":
            _check_membership(inference, left, right)
        case _:
            _check_order(inference, op, left, right)


def _check_membership(inference: Inference, left: TypedExpr, right: TypedExpr) -> None:
    container = inference.require_not_none(*right)
    match container:
        case t.AnyType() | t.ListType() | t.TupleType() | t.DictType() | t.RecordType():
            return
        case t.StrType() | t.LiteralType():
            inference.require_text(*left, f"what is looked for in the text `{excerpt(right[0])}`")
        case _:
            inference.add_error("plan.not-a-list", f"nothing can be `in` {a_type(container)}", fix="Use == to compare.")


def _check_order(inference: Inference, op: str, left: TypedExpr, right: TypedExpr) -> None:
    first, second = inference.require_not_none(*left), inference.require_not_none(*right)
    if isinstance(first, t.AnyType) or isinstance(second, t.AnyType):
        return
    families = _FAMILIES.get(type(first), "other"), _FAMILIES.get(type(second), "other")
    if {*families} <= _NUMBER_FAMILIES:
        return
    if families[0] == families[1] and tr.is_orderable(tr.merge(first, second)):
        return
    inference.wrong_type(
        f"{type_text(first)} and {type_text(second)} cannot be compared: `{excerpt(left[0])} {op} {excerpt(right[0])}`",
        fix=_comparison_fix(left, right, families),
    )


def _comparison_fix(left: TypedExpr, right: TypedExpr, families: tuple[str, str]) -> str | None:
    match families:
        case ("text", _):
            return conversion(left[0], left[1], right[1])
        case (_, "text"):
            return conversion(right[0], right[1], left[1])
        case ("datetime", "date"):
            return f"Use {excerpt(left[0])}.date()."
        case ("date", "datetime"):
            return f"Use {excerpt(right[0])}.date()."
        case ("list", "int" | "float"):
            return f"Use len({excerpt(left[0])})."
        case ("duration", "int" | "float"):
            return f"Use {excerpt(left[0])}.days or {excerpt(left[0])}.total_seconds()."
        case _:
            return None


SignatureMatch = tuple[tr.Signature, tuple[tr.Parameter, ...]]


def infer_call(inference: Inference, expr: Apply, scope: Scope) -> t.Type:
    """The type of a call, by the first signature that its arguments fit."""
    function = FUNCTIONS.get(expr.function)
    given = [*expr.args, *(value for _, value in expr.named)]
    arguments = [(arg, t.ANY if isinstance(arg, Lambda) else inference.infer(arg, scope)) for arg in given]
    if function is None:
        return inference.add_error(
            "plan.unknown-function",
            f"there is no function {expr.function!r}",
            nearest=nearest_name(expr.function, FUNCTIONS),
        )
    shapes = [(s, bound) for s in function.signatures if (bound := bind_arguments(s, expr)) is not None]
    if not shapes:
        return _bad_call_finding(inference, function, expr)
    fitting = [fit for fit in shapes if _is_match(fit, arguments)]
    if not fitting:
        present = [(arg, type_.item if isinstance(type_, t.OptionalType) else type_) for arg, type_ in arguments]
        fitting = [fit for fit in shapes if _is_match(fit, present)]
        if not fitting:
            return _misfit_finding(inference, function, shapes, arguments)
        _warn_about_none(inference, fitting[0], arguments)
        arguments = present
    # With an argument of unknown type the call may mean any of the signatures.
    ways = fitting if any(isinstance(type_, t.AnyType) for _, type_ in arguments) else fitting[:1]
    results = [_infer_result(inference, fit, arguments, scope) for fit in ways]
    return results[0] if len(set(results)) == 1 else t.ANY


def _is_match(fit: SignatureMatch, arguments: list[TypedExpr]) -> bool:
    return all(p.lambda_arity or p.kind.fits(type_) for p, (_, type_) in zip(fit[1], arguments, strict=True))


def _warn_about_none(inference: Inference, fit: SignatureMatch, arguments: list[TypedExpr]) -> None:
    for parameter, (arg, type_) in zip(fit[1], arguments, strict=True):
        if not parameter.kind.fits(type_):
            inference.require_not_none(arg, type_)


def _infer_result(inference: Inference, fit: SignatureMatch, arguments: list[TypedExpr], scope: Scope) -> t.Type:
    signature, bound = fit
    if not callable(signature.result):
        return signature.result
    types: dict[str, t.Type] = {}
    rest: list[t.Type] = []
    constants: dict[str, object] = {}
    lambdas: dict[str, Lambda] = {}
    for parameter, (arg, type_) in zip(bound, arguments, strict=True):
        if parameter.variadic:
            rest.append(type_)
        elif isinstance(arg, Lambda):
            lambdas[parameter.name] = arg
        else:
            types[parameter.name] = type_
            if isinstance(arg, Const):
                constants[parameter.name] = arg.value

    def returns(name: str, items: tuple[t.Type, ...]) -> t.Type | None:
        function = lambdas.get(name)
        if function is None:
            return None
        inner = scope
        for bound_name, item in zip(function.names, items, strict=True):
            inner = inner.bind(bound_name, item)
        return inference.infer(function.body, inner)

    def report(code: str, message: str, fix: str) -> None:
        inference.add_finding("warning" if code == "plan.none-value" else "error", code, message, fix=fix)

    return signature.result(tr.CallTypes(types, tuple(rest), constants, returns, report))


def _bad_call_finding(inference: Inference, function: tr.LibraryFunction, expr: Apply) -> t.Type:
    known = {parameter.name for s in function.signatures for parameter in s.parameters if not parameter.variadic}
    for name, _ in expr.named:
        if name not in known:
            return inference.add_error(
                "plan.unknown-argument",
                f"{function.name}() has no argument {name!r}",
                nearest=nearest_name(name, known),
                expected=function.usage,
            )
    given = len(expr.args) + len(expr.named)
    fewest = min(sum(p.required for p in s.parameters) for s in function.signatures)
    code = "plan.missing-argument" if given < fewest else "plan.unknown-argument"
    return inference.add_error(code, f"{function.name}() is not called like this", expected=function.usage)


def _misfit_finding(
    inference: Inference, function: tr.LibraryFunction, shapes: list[SignatureMatch], arguments: list[TypedExpr]
) -> t.Type:
    _, bound = max(shapes, key=lambda fit: _count_fitting_arguments(fit, arguments))
    for parameter, (arg, type_) in zip(bound, arguments, strict=True):
        if not parameter.lambda_arity and not parameter.kind.fits(type_):
            x = excerpt(arg)
            return inference.wrong_type(
                f"{function.name}() needs {parameter.kind.title} for {parameter.name!r}; `{x}` is {a_type(type_)}",
                fix=_argument_fix(parameter, arg, type_),
            )
    return inference.wrong_type(f"{function.name}() is not called like this", expected=function.usage)


def _count_fitting_arguments(fit: SignatureMatch, arguments: list[TypedExpr]) -> int:
    """How many arguments fit before the first that does not."""
    for number, (parameter, (_, type_)) in enumerate(zip(fit[1], arguments, strict=True)):
        if not parameter.lambda_arity and not parameter.kind.fits(type_):
            return number
    return len(arguments)


def _argument_fix(parameter: tr.Parameter, arg: Any, type_: t.Type) -> str | None:
    x, kind = excerpt(arg), parameter.kind
    if isinstance(type_, t.ListType) and isinstance(type_.item, t.OptionalType):
        return f"Leave out what is None: [x for x in {x} if x is not None]."
    if kind.orderable:
        return "Say by what to order: key=lambda x: x.field."
    if kind is tr.TEXTS:
        return (
            f"Use [str(x) for x in {x}]."
            if isinstance(type_, t.ListType)
            else conversion(arg, type_, t.ListType(t.STR))
        )
    wanted = _KIND_EXAMPLES.get(kind.title)
    return None if wanted is None else conversion(arg, type_, wanted)


_KIND_EXAMPLES: dict[str, t.Type] = {
    "str": t.STR,
    "int": t.INT,
    "number": t.FLOAT,
    "list": t.ListType(t.STR),
    "date": t.DATE,
    "time": t.TIME,
    "datetime": t.DATETIME,
    "date or datetime": t.DATE,
}
