"""Hypothesis strategies for expressions that are mostly well typed, and for values of given types."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st

from bicameral.plans import (
    FUNCTIONS,
    Apply,
    Arithmetic,
    Choose,
    Clause,
    Compare,
    Comprehension,
    Const,
    DictOf,
    Expr,
    Format,
    Get,
    Index,
    Lambda,
    ListOf,
    Logic,
    Negative,
    Not,
    Ref,
    Scope,
    Shown,
    Slice,
    TupleOf,
    type_of,
)
from bicameral.plans._expressions import ArithmeticOp, CompareOp
from bicameral.types import (
    BOOL,
    DATE,
    DATETIME,
    DURATION,
    FLOAT,
    INT,
    STR,
    TIME,
    BoolType,
    DateTimeType,
    DateType,
    DictType,
    DurationType,
    Field,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    NullType,
    OptionalType,
    RecordType,
    StrType,
    TimeType,
    TupleType,
    Type,
    optional_type,
)

MAIL = RecordType(
    (
        Field("sender", STR),
        Field("size", INT),
        Field("day", DATE),
        Field("note", optional_type(STR)),
        Field("tags", ListType(STR)),
    ),
    "Mail",
)
VARIABLES: dict[str, Type] = {
    "s": STR,
    "n": INT,
    "f": FLOAT,
    "b": BOOL,
    "day": DATE,
    "at": TIME,
    "moment": DATETIME,
    "span": DURATION,
    "maybe": optional_type(INT),
    "mail": MAIL,
    "mails": ListType(MAIL),
    "words": ListType(STR),
    "numbers": ListType(FLOAT),
    "ints": ListType(INT),
    "days": ListType(DATE),
    "pair": TupleType((STR, INT)),
    "pairs": ListType(TupleType((STR, INT))),
    "counts": DictType(INT),
    "mode": LiteralType(("a", "b")),
    "table": ListType(ListType(INT)),
}
SCOPE = Scope.from_types(VARIABLES)

ARITHMETIC: tuple[ArithmeticOp, ...] = get_args(ArithmeticOp)
COMPARISONS: tuple[CompareOp, ...] = get_args(CompareOp)


def values_of(type_: Type) -> st.SearchStrategy[Any]:
    """Values of a type."""
    match type_:
        case StrType():
            return st.one_of(st.text(max_size=6), st.sampled_from(["12", "3.5", "2026-03-31", "09:30", "a b"]))
        case IntType():
            return st.integers(-1000, 1000)
        case FloatType():
            return st.one_of(st.integers(-1000, 1000), st.floats(-1e6, 1e6))
        case BoolType():
            return st.booleans()
        case DateType():
            return st.dates()
        case TimeType():
            return st.times()
        case DateTimeType():
            return st.datetimes()
        case DurationType():
            return st.timedeltas()
        case NullType():
            return st.none()
        case LiteralType(values=values):
            return st.sampled_from(values)
        case ListType(item=item):
            return st.lists(values_of(item), max_size=3)
        case TupleType(items=items):
            return st.tuples(*map(values_of, items)).map(list)
        case DictType(value=value):
            return st.dictionaries(st.text(max_size=3), values_of(value), max_size=3)
        case OptionalType(item=item):
            return st.one_of(st.none(), values_of(item))
        case RecordType(fields=fields):
            return st.fixed_dictionaries({field.name: values_of(field.type) for field in fields})
        case _:
            return st.none()


CONSTS = st.one_of(
    st.sampled_from(["", "a", "12", "x,y", "sender", "2026-03-31"]),
    st.integers(-3, 12),
    st.sampled_from([0.5, 2.0]),
    st.booleans(),
    st.none(),
).map(lambda value: Const(value=value))


@st.composite
def typed_expressions(draw: st.DrawFn, depth: int = 3, scope: Scope = SCOPE) -> Expr:
    """An expression whose parts are chosen to fit; a few still do not, and the check must say so."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(st.one_of(st.sampled_from(sorted(scope)).map(lambda name: Ref(name=name)), CONSTS))
    inner = typed_expressions(depth - 1, scope)
    match draw(st.integers(0, 15)):
        case 0:
            return ListOf(items=tuple(draw(st.lists(inner, max_size=2))))
        case 1:
            return TupleOf(items=tuple(draw(st.lists(inner, min_size=1, max_size=2))))
        case 2:
            keys = st.sampled_from([Const(value="k"), Const(value="size"), Ref(name="s")])
            return DictOf(entries=tuple(draw(st.lists(st.tuples(keys, inner), max_size=2))))
        case 3:
            return _arithmetic(draw(st.sampled_from(ARITHMETIC)), draw(inner), draw(inner))
        case 4:
            return Compare(first=draw(inner), rest=((draw(st.sampled_from(COMPARISONS)), draw(inner)),))
        case 5:
            return Logic(op=draw(st.sampled_from(["and", "or"])), items=(draw(inner), draw(inner)))
        case 6:
            return Choose(condition=draw(inner), then=draw(inner), otherwise=draw(inner))
        case 7:
            spec = draw(st.sampled_from(["", ".2f", ">5", "d", ",", "%Y"]))
            return Format(parts=("v: ", Shown(value=draw(inner), spec=spec)))
        case 8:
            return _unary(draw(inner), negative=draw(st.booleans()))
        case 9:
            return Get(value=draw(inner), field=draw(st.sampled_from(["size", "note", "day", "year", "k", "days"])))
        case 10:
            return Index(value=draw(inner), at=draw(inner))
        case 11:
            return Slice(value=draw(inner), start=draw(inner), stop=None)
        case 12 | 13:
            return draw(_comprehensions(depth, scope))
        case _:
            return draw(_calls(depth, scope))


def _arithmetic(op: ArithmeticOp, left: Expr, right: Expr) -> Expr:
    text = isinstance(left, Format) or (isinstance(left, Const) and isinstance(left.value, str))
    return Arithmetic(op="+" if text else op, left=left, right=right)


def _unary(value: Expr, *, negative: bool) -> Expr:
    literal = isinstance(value, Const) and isinstance(value.value, int | float)
    return Negative(value=value) if negative and not literal else Not(value=value)


@st.composite
def _comprehensions(draw: st.DrawFn, depth: int, scope: Scope) -> Expr:
    over = draw(typed_expressions(depth - 1, scope))
    names = draw(st.sampled_from([("v",), ("v",), ("k", "v")]))
    item = type_of(over, scope)
    parts: tuple[Any, ...] = (item.item,) if isinstance(item, ListType) and len(names) == 1 else ()
    inside = scope
    for name, part in zip(names, parts or (STR, INT), strict=False):
        inside = inside.bind(name, part)
    conditions = tuple(draw(st.lists(typed_expressions(depth - 1, inside), max_size=1)))
    clause = Clause(names=names, over=over, conditions=conditions)
    return Comprehension(element=draw(typed_expressions(depth - 1, inside)), clauses=(clause,))


@st.composite
def _calls(draw: st.DrawFn, depth: int, scope: Scope) -> Expr:
    function = FUNCTIONS[draw(st.sampled_from(sorted(FUNCTIONS)))]
    signature = draw(st.sampled_from(function.signatures))
    args: list[Expr] = []
    named: list[tuple[str, Expr]] = []
    for parameter in signature.parameters:
        if not parameter.required and draw(st.booleans()):
            continue
        if parameter.lambda_arity:
            item = scope.bind("v", MAIL if draw(st.booleans()) else INT)
            arg: Expr = Lambda(names=("v",), body=draw(typed_expressions(depth - 1, item)))
        else:
            arg = draw(_fitting(parameter.kind, depth, scope))
        if parameter.named_only or len(args) < signature.parameters.index(parameter):
            named.append((parameter.name, arg))
        else:
            args.append(arg)
    return Apply(function=function.name, args=tuple(args), named=tuple(named))


@st.composite
def _fitting(draw: st.DrawFn, kind: Any, depth: int, scope: Scope) -> Expr:
    """An expression of a kind: what is drawn if it fits, else a variable or constant that does."""
    found = draw(typed_expressions(depth - 1, scope))
    if kind.fits(type_of(found, scope)):
        return found
    fitting = [Ref(name=name) for name in sorted(scope) if (v := scope.get(name)) and kind.fits(v.type)]
    return draw(st.sampled_from(fitting)) if fitting else found
