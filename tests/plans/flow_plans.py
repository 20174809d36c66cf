"""Random plans that hold labels apart: records with parts of different origin, filters, orders, groups, loops.

Expressions are well typed by construction and seldom fail, so that nearly every plan comes to its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from hypothesis import strategies as st

from bicameral.plans import (
    Answer,
    Apply,
    Arithmetic,
    Ask,
    Call,
    Choose,
    Clause,
    Compare,
    Comprehension,
    Compute,
    Const,
    DictOf,
    Each,
    Expr,
    Extract,
    Format,
    Get,
    Index,
    Lambda,
    ListOf,
    Logic,
    Not,
    Plan,
    Ref,
    Shown,
    Slice,
    Step,
    TupleOf,
    Update,
    When,
)

Kind = Literal["num", "text", "bool", "nums", "texts", "mail", "mails", "counts"]
Names = dict[str, tuple[str, ...]]

NAMES: Names = {
    "num": ("a", "b"),
    "text": ("s", "t"),
    "bool": ("p",),
    "nums": ("xs", "ys"),
    "texts": ("ws",),
    "mail": ("m",),
    "mails": ("ms", "ns"),
    "counts": ("d", "e"),
}
ITEMS: dict[str, Kind] = {"nums": "num", "texts": "text", "mails": "mail", "counts": "text"}
TEXTS = ("", "k", "ada", "a b")
FIELDS: dict[str, tuple[str, ...]] = {"num": ("size",), "text": ("id", "sender"), "texts": ("tags",)}


def _apply(function: str, *args: Expr, **named: Expr) -> Expr:
    return Apply(function=function, args=args, named=tuple(named.items()))


def _const(value: Any) -> Expr:
    return Const(value=value)


@st.composite
def exprs(draw: st.DrawFn, kind: Kind, depth: int = 3, names: Names = NAMES) -> Expr:
    """An expression of a kind."""
    leaves: list[Expr] = [Ref(name=name) for name in names[kind]]
    leaves += [Get(value=Ref(name=name), field=field) for field in FIELDS.get(kind, ()) for name in names["mail"]]
    if kind == "num":
        leaves += map(_const, (0, 1, 2))
    elif kind == "text":
        leaves += map(_const, TEXTS)
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(leaves))

    def sub(inner: Kind, *, bound: tuple[str, Kind] | None = None) -> Expr:
        known = names if bound is None else {**names, bound[1]: (bound[0],)}
        return draw(exprs(inner, depth - 1, known))

    makers: list[Callable[[], Expr]] = [
        lambda: Choose(condition=sub("bool"), then=sub(kind), otherwise=sub(kind)),
        lambda: Logic(op=draw(st.sampled_from(["and", "or"])), items=(sub(kind), sub(kind))),
        lambda: Index(value=ListOf(items=(sub(kind), sub(kind))), at=_const(draw(st.integers(-2, 1)))),
        lambda: Index(value=TupleOf(items=(sub(kind), sub("num"))), at=_const(0)),
        lambda: Get(value=DictOf(entries=((_const("x"), sub(kind)), (_const("y"), sub("text")))), field="x"),
        lambda: _apply("get", DictOf(entries=((sub("text"), sub(kind)),)), sub("text"), sub(kind)),
        lambda: _apply("first", ListOf(items=(sub(kind),)), sub(kind)),
        *(maker for many, item in ITEMS.items() if item == kind and many != "counts" for maker in _items(many, sub)),
        *_MAKERS[kind](draw, sub),
    ]
    return draw(st.sampled_from(makers))()


Sub = Callable[..., Expr]
Makers = Callable[[st.DrawFn, Sub], list[Callable[[], Expr]]]


def _items(many: Any, sub: Sub) -> list[Callable[[], Expr]]:
    """Ways to take an item out of a list that is never empty."""

    def whole() -> Expr:
        return Arithmetic(op="+", left=sub(many), right=ListOf(items=(sub(ITEMS[many]),)))

    def unpacked(at: int) -> Expr:
        pairs = Comprehension(
            element=Ref(name="uv"[at]), clauses=(Clause(names=("u", "v"), over=_apply("zip", whole(), whole())),)
        )
        return Index(value=pairs, at=_const(0))

    return [
        lambda: Index(value=whole(), at=_const(0)),
        lambda: Index(value=whole(), at=_const(-1)),
        lambda: Index(value=whole(), at=Arithmetic(op="%", left=sub("num"), right=_const(1))),
        lambda: unpacked(0),
        lambda: unpacked(1),
        lambda: _apply("last", whole()),
    ]


def _lambda(sub: Sub, item: Kind, result: Kind) -> Expr:
    return Lambda(names=("v",), body=sub(result, bound=("v", item)))


def _filter(draw: st.DrawFn, sub: Sub, many: Kind, element: Kind) -> Expr:
    item = ITEMS[many]
    conditions = (sub("bool", bound=("v", item)),) if draw(st.booleans()) else ()
    clause = Clause(names=("v",), over=sub(many), conditions=conditions)
    return Comprehension(element=sub(element, bound=("v", item)), clauses=(clause,))


def _numbered(sub: Sub, many: Kind, element: Kind) -> Expr:
    clause = Clause(names=("i", "v"), over=_apply("enumerate", sub(many)))
    return Comprehension(element=sub(element, bound=("v", ITEMS[many])), clauses=(clause,))


def _many(kind: Kind) -> Makers:
    item = ITEMS[kind]

    def makers(draw: st.DrawFn, sub: Sub) -> list[Callable[[], Expr]]:
        def source() -> Kind:
            return draw(st.sampled_from(["nums", "texts", "mails", "counts"]))

        def key() -> Expr:
            return _lambda(sub, item, draw(st.sampled_from(["num", "text"])))

        def grouped() -> Expr:
            return _apply("group_by", sub(kind), key())

        return [
            lambda: ListOf(items=(sub(item), sub(item))),
            lambda: _filter(draw, sub, kind, item),
            lambda: _filter(draw, sub, source(), item),
            lambda: _numbered(sub, source(), item),
            lambda: _apply("sorted", sub(kind), key=key(), reverse=sub("bool")),
            lambda: Slice(value=sub(kind), stop=sub("num")),
            lambda: Slice(value=sub(kind), start=_const(1)),
            lambda: _apply("reversed", sub(kind)),
            lambda: _apply("unique", sub(kind)),
            lambda: _apply("list", sub(kind)),
            lambda: Arithmetic(op="+", left=sub(kind), right=sub(kind)),
            lambda: Arithmetic(op="*", left=sub(kind), right=_const(2)),
            lambda: _apply("flatten", ListOf(items=(sub(kind), sub(kind)))),
            lambda: _apply("flatten", _apply("values", grouped())),
            lambda: _apply("get", grouped(), sub("text"), sub(kind)),
            lambda: Comprehension(
                element=sub(item, bound=("v", item)),
                clauses=(Clause(names=("u", "v"), over=_apply("zip", sub(source()), sub(kind))),),
            ),
        ]

    return makers


def _numbers(draw: st.DrawFn, sub: Sub) -> list[Callable[[], Expr]]:
    return [
        lambda: Arithmetic(op=draw(st.sampled_from(["+", "-"])), left=sub("num"), right=sub("num")),
        lambda: _apply("len", sub(draw(st.sampled_from(["nums", "texts", "mails", "counts", "text"])))),
        lambda: _apply("sum", sub("nums")),
        lambda: _apply(draw(st.sampled_from(["max", "min"])), sub("nums"), default=sub("num")),
        lambda: _apply(draw(st.sampled_from(["max", "min"])), sub("num"), sub("num")),
        lambda: _apply(draw(st.sampled_from(["first", "last"])), sub("nums"), sub("num")),
        lambda: _apply("get", sub("counts"), sub("text"), sub("num")),
        lambda: _apply("get", sub("counts"), _const("k"), _const(0)),
        lambda: _apply("count", sub("texts"), sub("text")),
        lambda: Get(value=sub("mail"), field="size"),
        lambda: _apply("int", sub("bool")),
    ]


def _texts(draw: st.DrawFn, sub: Sub) -> list[Callable[[], Expr]]:
    return [
        lambda: Get(value=sub("mail"), field=draw(st.sampled_from(["id", "sender"]))),
        lambda: Format(parts=("x", Shown(value=sub(draw(st.sampled_from(["num", "text", "mail", "mails"])))))),
        lambda: _apply("upper", sub("text")),
        lambda: _apply("str", sub(draw(st.sampled_from(["num", "nums", "counts", "mail"])))),
        lambda: _apply("join", sub("text"), sub("texts")),
        lambda: _apply("first", sub("texts"), sub("text")),
        lambda: _apply("max", sub("texts"), default=sub("text")),
        lambda: Slice(value=sub("text"), stop=sub("num")),
    ]


def _truths(draw: st.DrawFn, sub: Sub) -> list[Callable[[], Expr]]:
    ops: list[Literal["<", "==", ">="]] = ["<", "==", ">="]
    return [
        lambda: Compare(first=sub("num"), rest=((draw(st.sampled_from(ops)), sub("num")),)),
        lambda: Compare(first=sub("text"), rest=(("in", sub(draw(st.sampled_from(["texts", "counts", "text"])))),)),
        lambda: Compare(first=sub(draw(st.sampled_from(["mail", "nums"]))), rest=(("==", _const(None)),)),
        lambda: Compare(first=sub("mail"), rest=(("!=", sub("mail")),)),
        lambda: Not(value=sub(draw(st.sampled_from(["nums", "mails", "counts", "text", "num", "bool"])))),
        lambda: _apply("bool", sub(draw(st.sampled_from(["nums", "mails", "counts", "text", "num"])))),
        lambda: _apply(draw(st.sampled_from(["any", "all"])), sub(draw(st.sampled_from(["nums", "texts", "mails"])))),
        lambda: _apply("contains", sub(draw(st.sampled_from(["texts", "counts"]))), sub("text")),
    ]


def _mails(draw: st.DrawFn, sub: Sub) -> list[Callable[[], Expr]]:
    def extreme() -> Expr:
        return _apply("max", sub("mails"), key=_lambda(sub, "mail", "num"), default=sub("mail"))

    return [
        lambda: _apply(draw(st.sampled_from(["first", "last"])), sub("mails"), sub("mail")),
        extreme,
        lambda: DictOf(
            entries=(
                (_const("id"), sub("text")),
                (_const("sender"), sub("text")),
                (_const("size"), sub("num")),
                (_const("tags"), sub("texts")),
            )
        ),
        lambda: _apply("dict", sub("mail")),
    ]


def _counts(draw: st.DrawFn, sub: Sub) -> list[Callable[[], Expr]]:
    def made(many: Kind) -> Expr:
        item = ITEMS[many]
        clause = Clause(names=("v",), over=sub(many), conditions=(sub("bool", bound=("v", item)),))
        key, element = sub("text", bound=("v", item)), sub("num", bound=("v", item))
        return Comprehension(element=element, key=key, clauses=(clause,))

    def source() -> Kind:
        return draw(st.sampled_from(["nums", "texts", "mails", "counts"]))

    return [
        lambda: _apply("count_by", sub("texts")),
        lambda: _apply("count_by", sub("mails"), _const("sender")),
        lambda: _apply("count_by", sub("nums"), _lambda(sub, "num", "num")),
        lambda: made(source()),
        lambda: DictOf(entries=((_const("k"), sub("num")), (sub("text"), sub("num")))),
        lambda: _apply("dict", _apply("items", sub("counts"))),
        lambda: _apply("dict", ListOf(items=(TupleOf(items=(sub("text"), sub("num"))),))),
        lambda: _apply("dict"),
    ]


_MAKERS: dict[str, Makers] = {
    "num": _numbers,
    "text": _texts,
    "bool": _truths,
    "nums": _many("nums"),
    "texts": _many("texts"),
    "mail": _mails,
    "mails": _many("mails"),
    "counts": _counts,
}
KINDS: tuple[Kind, ...] = ("num", "text", "bool", "nums", "texts", "mail", "mails", "counts")


# Steps --------------------------------------------------------------------------------------------------------------


def _name(kind: Kind) -> st.SearchStrategy[str]:
    return st.sampled_from(NAMES[kind])


@st.composite
def _simple(draw: st.DrawFn, depth: int) -> Step:
    def sub(kind: Kind) -> Expr:
        return draw(exprs(kind, depth))

    kind = draw(st.sampled_from(KINDS))
    match draw(st.integers(0, 14)):
        case 0:
            return Update(name=draw(_name("nums")), op="append", value=sub("num"))
        case 1:
            return Update(name=draw(_name("mails")), op="append", value=sub("mail"))
        case 2:
            return Update(name=draw(_name("counts")), op="put", key=sub("text"), value=sub("num"))
        case 3:
            added: Kind = draw(st.sampled_from(["num", "text", "nums", "texts"]))
            return Update(name=draw(_name(added)), op="add", value=sub(added))
        case 4:
            return Call(name=draw(_name("mails")), tool="inbox", args={"query": sub("text")})
        case 5:
            return Call(name=draw(_name("text")), tool="fetch", args={"url": sub("text")})
        case 6:
            return Call(name=draw(_name("num")), tool="balance", args={"account": sub("text")})
        case 7:
            return Call(name=None, tool="send", args={"to": sub("text"), "body": sub("text")})
        case 8:
            return Call(name=None, tool="pay", args={"to": sub("text"), "amount": sub("num")})
        case 9:
            asked: Kind = draw(st.sampled_from(["num", "text"]))
            type_ = "int" if asked == "num" else "str"
            if draw(st.booleans()):
                return Ask(name=draw(_name(asked)), question=sub("text"), type=type_)
            return Extract(name=draw(_name(asked)), source=sub("mails"), instruction=sub("text"), type=type_)
        case 10:
            return Call(name=draw(_name("mails")), tool="newest", args={"mails": sub("mails"), "count": sub("num")})
        case 11:
            files = draw(st.sampled_from([sub("texts"), ListOf(), ListOf(items=(sub("text"),))]))
            return Call(name=None, tool="share", args={"files": files, "to": sub("text")})
        case _:
            return Compute(name=draw(_name(kind)), value=sub(kind))


def _blocks(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[tuple[Step, ...]]:
    return st.lists(inner, min_size=1, max_size=3).map(tuple)


@st.composite
def _each(draw: st.DrawFn, inner: st.SearchStrategy[Step], depth: int) -> Step:
    many: Kind = draw(st.sampled_from(["nums", "texts", "mails", "counts"]))
    over, item = draw(exprs(many, depth)), draw(_name(ITEMS[many]))
    steps = draw(_blocks(inner))
    if draw(st.booleans()):
        return Each(names=(item,), over=over, steps=steps)
    return Each(names=("a", item if item != "a" else "b"), over=_apply("enumerate", over), steps=steps)


@st.composite
def _when(draw: st.DrawFn, inner: st.SearchStrategy[Step], depth: int) -> Step:
    otherwise = draw(st.lists(inner, max_size=2))
    return When(condition=draw(exprs("bool", depth)), steps=draw(_blocks(inner)), otherwise=tuple(otherwise))


EVERYTHING = DictOf(entries=tuple((_const(name), Ref(name=name)) for names in NAMES.values() for name in names))
BEGIN: tuple[Step, ...] = (
    Call(name="ms", tool="inbox", args={"query": _const("")}),
    Call(name="ns", tool="inbox", args={"query": _const("old")}),
    Call(name="t", tool="fetch", args={"url": _const("page")}),
    Call(name="b", tool="balance", args={"account": _const("4711")}),
    Compute(name="a", value=_const(1)),
    Compute(name="s", value=_const("ada")),
    Compute(name="p", value=_const(True)),
    Compute(name="xs", value=ListOf(items=(_const(1), _const(2)))),
    Compute(name="ys", value=Comprehension(element=Get(value=Ref(name="v"), field="size"), clauses=(
        Clause(names=("v",), over=Ref(name="ms")),
    ))),
    Compute(name="ws", value=ListOf(items=(_const("k"), Ref(name="s")))),
    Compute(name="m", value=_apply("first", Ref(name="ms"), DictOf(entries=(
        (_const("id"), _const("0")), (_const("sender"), _const("me")), (_const("size"), _const(0)),
        (_const("tags"), ListOf())))) ),
    Compute(name="d", value=DictOf(entries=((_const("k"), _const(1)),))),
    Compute(name="e", value=_apply("dict")),
)  # fmt: skip


def steps(depth: int = 2) -> st.SearchStrategy[Step]:
    early = exprs("bool", depth).map(lambda condition: When(condition=condition, steps=(Answer(value=_const(0)),)))
    simple = _simple(depth)
    return st.recursive(
        st.one_of(simple, simple, simple, simple, early),
        lambda inner: st.one_of(_each(inner, depth), _when(inner, depth)),
        max_leaves=5,
    )


def plans(depth: int = 2) -> st.SearchStrategy[Plan]:
    """A plan that begins by reading, does a few things, and answers with everything it knows."""
    return st.lists(steps(depth), min_size=1, max_size=5).map(
        lambda found: Plan(steps=(*BEGIN, *found, Answer(value=EVERYTHING)))
    )
