"""Hypothesis strategies for plans: every kind of step and expression, well formed but not necessarily well typed."""

from __future__ import annotations

from keyword import iskeyword
from typing import Any

from hypothesis import strategies as st

from bicameral.plans._expressions import (
    SURFACE_WORDS,
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
    Reference,
    Shown,
    Slice,
    TupleOf,
)
from bicameral.plans._plan import Answer, Ask, Call, Compute, Each, Extract, Plan, Step, Update, When
from bicameral.plans.evaluate._library import FUNCTIONS
from bicameral.plans.syntax._expression_parser import make_format
from bicameral.plans.syntax._lowering import METHODS_ONLY
from bicameral.tools import REFERENCE_KINDS, Registry
from bicameral.types import type_to_json
from bicameral.types._types import (
    ANY,
    BOOL,
    DATE,
    DATETIME,
    DURATION,
    FLOAT,
    INT,
    NULL,
    STR,
    TIME,
    DictType,
    Field,
    ListType,
    LiteralType,
    RecordType,
    StrType,
    TupleType,
    Type,
    optional_type,
)

TEXT = st.one_of(
    st.text(max_size=8), st.sampled_from(["'", '"', "\\", "{x}", "#", "'\"\\\n{}", "\u202e", "\x00", "😀"])
)

NAMES = st.one_of(
    st.sampled_from(["x", "lines", "mail", "len", "lower", "answer", "_1", "match", "date"]),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True).filter(lambda name: not iskeyword(name)),
)

_WORDS = TEXT.map(str.strip).filter(bool)
REFERENCES = st.builds(Reference, refers=st.sampled_from(REFERENCE_KINDS), words=_WORDS)

CONSTS = st.one_of(
    TEXT,
    st.booleans(),
    st.none(),
    st.integers(-(10**15), 10**15),
    st.floats(allow_nan=False, allow_infinity=False),
).map(lambda value: Const(value=value))
LEAVES = st.one_of(CONSTS, CONSTS, CONSTS, REFERENCES)


def types() -> st.SearchStrategy[Type]:
    """Any type that `extract` or `ask` can want."""
    simple = st.sampled_from([STR, INT, FLOAT, BOOL, DATE, TIME, DATETIME, DURATION, NULL, ANY])
    literal = st.lists(TEXT, min_size=1, max_size=3).map(lambda values: LiteralType(tuple(values)))
    return st.recursive(
        st.one_of(simple, literal, TEXT.map(StrType)),
        lambda inner: st.one_of(
            inner.map(ListType),
            inner.map(DictType),
            inner.map(optional_type),
            st.lists(inner, max_size=3).map(lambda items: TupleType(tuple(items))),
            st.dictionaries(TEXT, inner, max_size=3).map(
                lambda fields: RecordType(tuple(Field(name, type_) for name, type_ in fields.items()))
            ),
        ),
        max_leaves=5,
    )


def _tuple_of(inner: st.SearchStrategy[Any], low: int = 0, high: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(inner, min_size=low, max_size=high).map(tuple)


def _negative(value: Expr) -> Expr:
    is_number = isinstance(value, Const) and isinstance(value.value, int | float)
    return Not(value=value) if is_number else Negative(value=value)


def _arithmetic(op: Any, left: Expr, right: Expr) -> Expr:
    is_text = isinstance(left, Format) or (isinstance(left, Const) and isinstance(left.value, str))
    return Arithmetic(op="+" if is_text else op, left=left, right=right)


@st.composite
def _formats(draw: st.DrawFn, inner: st.SearchStrategy[Expr]) -> Expr:
    shown = st.builds(Shown, value=inner, spec=st.one_of(st.just(""), st.just(".2f"), TEXT))
    parts = draw(st.lists(st.one_of(TEXT, shown), max_size=4))
    return make_format([*parts, draw(shown)])


@st.composite
def _applications(draw: st.DrawFn, inner: st.SearchStrategy[Expr]) -> Expr:
    named = draw(st.dictionaries(NAMES, inner, max_size=2))
    function = draw(st.sampled_from(sorted(FUNCTIONS)))
    # Without a first argument there is nothing before the dot, and a plan has no way to write it.
    fewest = 1 if function in METHODS_ONLY else 0
    return Apply(function=function, args=draw(_tuple_of(inner, fewest)), named=tuple(named.items()))


def _composite(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    maybe = st.none() | inner
    ops = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"])
    clauses = st.builds(Clause, names=_tuple_of(NAMES, 1), over=inner, conditions=_tuple_of(inner, 0, 2))
    return st.one_of(
        st.builds(Get, value=inner, field=NAMES),
        st.builds(Index, value=inner, at=inner),
        st.builds(Slice, value=inner, start=maybe, stop=maybe, step=maybe),
        st.builds(ListOf, items=_tuple_of(inner)),
        st.builds(TupleOf, items=_tuple_of(inner)),
        st.builds(DictOf, entries=_tuple_of(st.tuples(inner, inner))),
        st.builds(_arithmetic, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner, inner),
        st.builds(_negative, inner),
        st.builds(Not, value=inner),
        st.builds(Logic, op=st.sampled_from(["and", "or"]), items=_tuple_of(inner, 2)),
        st.builds(Compare, first=inner, rest=_tuple_of(st.tuples(ops, inner), 1)),
        st.builds(Choose, condition=inner, then=inner, otherwise=inner),
        _applications(inner),
        _formats(inner),
        st.builds(Comprehension, element=inner, key=maybe, clauses=_tuple_of(clauses, 1, 2)),
        st.builds(Lambda, names=_tuple_of(NAMES), body=inner),
    )


def expressions() -> st.SearchStrategy[Expr]:
    """Any expression of a plan."""
    leaves: st.SearchStrategy[Expr] = st.one_of(LEAVES, NAMES.map(lambda name: Ref(name=name)))
    return st.recursive(leaves, _composite, max_leaves=8)


_TOOLS = NAMES.filter(lambda name: name not in SURFACE_WORDS and name not in FUNCTIONS)


@st.composite
def _calls(draw: st.DrawFn, values: st.SearchStrategy[Expr], registry: Registry | None) -> Call:
    name = draw(st.none() | NAMES)
    if registry is None:
        return Call(name=name, tool=draw(_TOOLS), args=draw(st.dictionaries(NAMES, values, max_size=3)))
    tool = draw(st.sampled_from(list(registry)))
    names = [argument.name for argument in tool.arguments]
    given = names if draw(st.booleans()) else draw(st.permutations(names))
    given = given[: draw(st.integers(0, len(given)))]
    return Call(name=name, tool=tool.name, args={argument: draw(values) for argument in given})


def _updates(values: st.SearchStrategy[Expr]) -> st.SearchStrategy[Update]:
    return st.one_of(
        st.builds(Update, name=NAMES, op=st.sampled_from(["append", "add"]), value=values),
        st.builds(Update, name=NAMES, op=st.just("put"), key=values, value=values),
    )


def steps(registry: Registry | None = None) -> st.SearchStrategy[Step]:
    """Any step; with a registry its calls are of the registry's tools."""
    values, wanted = expressions(), types().map(type_to_json)
    simple: st.SearchStrategy[Step] = st.one_of(
        _calls(values, registry),
        st.builds(Extract, name=NAMES, source=values, instruction=values, type=wanted),
        st.builds(Compute, name=NAMES, value=values),
        _updates(values),
        st.builds(Ask, name=NAMES, question=values, type=wanted),
        st.builds(Answer, value=values),
    )
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.builds(Each, names=_tuple_of(NAMES, 1), over=values, steps=_tuple_of(inner, 1, 2)),
            st.builds(When, condition=values, steps=_tuple_of(inner, 1, 2), otherwise=_tuple_of(inner, 0, 2)),
        ),
        max_leaves=4,
    )


def plans(registry: Registry | None = None) -> st.SearchStrategy[Plan]:
    """Any plan of a few steps."""
    return st.builds(Plan, goal=TEXT, steps=_tuple_of(steps(registry), 0, 4))
