"""Random plans that always check: loops, branches, aliases, additions, reads, writes, and things that fail."""

from __future__ import annotations

from typing import Literal

from hypothesis import strategies as st

from bicameral.plans import (
    Answer,
    Apply,
    Arithmetic,
    Call,
    Compare,
    Compute,
    Const,
    DictOf,
    Each,
    Expr,
    Index,
    ListOf,
    Plan,
    Ref,
    Slice,
    Step,
    Update,
    When,
)

NUMBERS = ("a", "b", "c")
LISTS = ("xs", "ys")
NESTED = "zs"
COUNTS = "d"
CELLS = ("left", "right")
COMPARISONS: list[Literal["<", "==", ">="]] = ["<", "==", ">="]

names = st.sampled_from(NUMBERS)
lists = st.sampled_from(LISTS)
cells = st.sampled_from(CELLS).map(lambda cell: Const(value=cell))
small = st.integers(-3, 9).map(lambda number: Const(value=number))
refs = names.map(lambda name: Ref(name=name))


def _modulo(left: Expr, right: Expr) -> Expr:
    return Arithmetic(op="%", left=Arithmetic(op="+", left=left, right=right), right=Const(value=101))


def _length(name: str) -> Expr:
    return Apply(function="len", args=(Ref(name=name),))


def _quotient(left: Expr, right: Expr) -> Expr:
    return Arithmetic(op="//", left=left, right=right)


numbers: st.SearchStrategy[Expr] = st.one_of(
    small, refs, st.builds(_modulo, refs, small), st.builds(_modulo, refs, refs), lists.map(_length)
)
sometimes_no_number = st.builds(_quotient, numbers, refs)
number_lists: st.SearchStrategy[Expr] = st.one_of(
    lists.map(lambda name: Ref(name=name)),
    st.lists(numbers, max_size=3).map(lambda items: ListOf(items=tuple(items))),
    lists.map(lambda name: Slice(value=Ref(name=name), stop=Const(value=3))),
    st.just(Index(value=Ref(name=NESTED), at=Const(value=0))),
)
keys = numbers.map(lambda number: Apply(function="str", args=(number,)))


@st.composite
def _conditions(draw: st.DrawFn) -> Expr:
    op = draw(st.sampled_from(COMPARISONS))
    return Compare(first=draw(numbers), rest=((op, draw(numbers)),))


conditions = _conditions()
appends, adds, puts = st.just("append"), st.just("add"), st.just("put")


def _call(tool: str, named: bool, **args: st.SearchStrategy[Expr]) -> st.SearchStrategy[Step]:
    return st.builds(Call, name=names if named else st.none(), tool=st.just(tool), args=st.fixed_dictionaries({**args}))


simple: st.SearchStrategy[Step] = st.one_of(
    st.builds(Compute, name=names, value=numbers),
    st.builds(Compute, name=lists, value=number_lists),
    number_lists.map(lambda value: Compute(name=NESTED, value=ListOf(items=(value, value)))),
    st.builds(Update, name=lists, op=appends, value=numbers),
    st.builds(Update, name=lists, op=adds, value=number_lists),
    number_lists.map(lambda value: Update(name=NESTED, op="append", value=value)),
    st.builds(Update, name=names, op=adds, value=numbers),
    st.builds(Update, name=st.just(COUNTS), op=puts, key=keys, value=numbers),
    _call("peek", True, cell=cells),
    _call("double", True, number=numbers),
    _call("poke", False, cell=cells, value=numbers),
)
risky: st.SearchStrategy[Step] = st.one_of(
    st.builds(Compute, name=names, value=sometimes_no_number),
    _call("picky", True, number=numbers),
    st.builds(Update, name=names, op=adds, value=sometimes_no_number),
)
EVERYTHING = DictOf(entries=tuple((Const(value=name), Ref(name=name)) for name in (*NUMBERS, *LISTS, NESTED, COUNTS)))


def _blocks(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[tuple[Step, ...]]:
    return st.lists(inner, min_size=1, max_size=4).map(tuple)


def _compound(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    loops = st.builds(Each, names=st.tuples(names), over=number_lists, steps=_blocks(inner))
    otherwise = st.lists(inner, max_size=2).map(tuple)
    branches = st.builds(When, condition=conditions, steps=_blocks(inner), otherwise=otherwise)
    return st.one_of(inner, loops, branches)


early_answers: st.SearchStrategy[Step] = conditions.map(
    lambda condition: When(condition=condition, steps=(Answer(value=EVERYTHING),))
)
steps: st.SearchStrategy[Step] = st.recursive(
    st.one_of(simple, simple, simple, risky, early_answers), _compound, max_leaves=8
)
START: tuple[Step, ...] = (
    *(Compute(name=name, value=Const(value=number)) for number, name in enumerate(NUMBERS)),
    *(Compute(name=name, value=ListOf(items=(Const(value=1), Const(value=2)))) for name in LISTS),
    Compute(name=NESTED, value=ListOf(items=(Ref(name="xs"),))),
    Compute(name=COUNTS, value=DictOf()),
)
plans: st.SearchStrategy[Plan] = st.lists(steps, min_size=1, max_size=10).map(
    lambda body: Plan(goal="anything", steps=(*START, *body, Answer(value=EVERYTHING)))
)
