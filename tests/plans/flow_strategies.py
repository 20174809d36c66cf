"""Values with labels: what two runs of one plan see that differ in what strangers wrote.

Everything is drawn by a `pick` that chooses one of a few things: Hypothesis's, where examples are to be made small, or
a random one where many are needed fast.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from flow_plans import KINDS, NAMES, exprs
from hypothesis import strategies as st
from typed_plans import VARIABLES, typed_expressions

from bicameral.labels import (
    NOTHING,
    PUBLIC,
    Label,
    LabelTree,
    ListLabels,
    RecordLabels,
    Source,
    as_list,
    as_record,
    join_trees,
)
from bicameral.plans import Compute, Expr, free_names, parse
from bicameral.tools import Registry
from bicameral.types import (
    BOOL,
    INT,
    STR,
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
    OptionalType,
    RecordType,
    StrType,
    TimeType,
    TupleType,
    Type,
)

Pick = Callable[[Sequence[Any]], Any]

TWO_LABELS = (Label({Source("system", "bank")}), Label({Source("third_party", "mail", "body", "0")}, {"ada"}))
"""One that is trusted and one that is not."""

_SOURCES = (Source("third_party", "mail", "body", "0"), Source("system", "bank"), Source("user", "request"))
_READERS = (PUBLIC, frozenset({"ada"}), frozenset({"ada", "bob"}))
# Every value comes from somewhere: NOTHING is the label of items that are not there.
MANY_LABELS = tuple(Label({one, other}, readers) for one in _SOURCES for other in _SOURCES for readers in _READERS)


def shade_for(type_: Type, labels: Sequence[Label], pick: Pick) -> LabelTree:
    """A shade that a value of this type can have."""
    own: Label = pick(labels)
    if pick((True, False)):
        return own
    match type_:
        case ListType(item=item):
            return ListLabels(own, shade_for(item, labels, pick))
        case TupleType(items=items):
            return ListLabels(own, places=[shade_for(item, labels, pick) for item in items])
        case RecordType(fields=fields):
            known = {field.name: shade_for(field.type, labels, pick) for field in fields}
            return RecordLabels(own, known, pick(labels))
        case DictType(value=value):
            return RecordLabels(own, {}, shade_for(value, labels, pick))
        case _:
            return own


def value_for(type_: Type, pick: Pick) -> Any:
    """A value of a type, one of so few that they often meet."""
    match type_:
        case ListType(item=item):
            return [value_for(item, pick) for _ in range(pick(range(4)))]
        case TupleType(items=items):
            return [value_for(item, pick) for item in items]
        case RecordType(fields=fields):
            return {field.name: value_for(field.type, pick) for field in fields}
        case DictType(value=value):
            return {key: value_for(value, pick) for key in "abk" if pick((True, False))}
        case OptionalType(item=item):
            return pick((None, value_for(item, pick)))
        case LiteralType(values=values):
            return pick(values)
        case _:
            return pick(_SCALARS[type(type_)])


_SCALARS: dict[type[Type], Sequence[Any]] = {
    StrType: ("a", "b", "k", "", "12"),
    IntType: range(4),
    FloatType: (0.5, 2, -1.0),
    BoolType: (True, False),
    DateType: (dt.date(2026, 1, 1), dt.date(2026, 3, 31)),
    TimeType: (dt.time(9, 30), dt.time(12)),
    DateTimeType: (dt.datetime(2026, 1, 1, 9), dt.datetime(2026, 3, 31, 12)),
    DurationType: (dt.timedelta(days=1), dt.timedelta(hours=2)),
}


@dataclass(frozen=True)
class Seen:
    """A value in two runs, and the shade that both have: it differs only where a stranger wrote it."""

    shade: LabelTree
    one: Any
    other: Any


def seen(type_: Type, pick: Pick) -> Seen:
    shade = shade_for(type_, TWO_LABELS, pick)
    return Seen(shade, *_twice(type_, shade, pick))


def _twice(type_: Type, shade: LabelTree, pick: Pick) -> tuple[Any, Any]:
    match shade, type_:
        case ListLabels(), ListType(item=item) if shade.own.trusted:
            pairs = [_twice(item, shade.item, pick) for _ in range(pick(range(4)))]
            return [one for one, _ in pairs], [other for _, other in pairs]
        case ListLabels(), TupleType(items=items):
            pairs = [_twice(item, shade.place(at), pick) for at, item in enumerate(items)]
            return [one for one, _ in pairs], [other for _, other in pairs]
        case RecordLabels(), RecordType(fields=fields):
            found = {field.name: _twice(field.type, shade.field(field.name), pick) for field in fields}
            return {name: one for name, (one, _) in found.items()}, {name: two for name, (_, two) in found.items()}
        case RecordLabels(), DictType(value=value):
            found = {key: _twice(value, shade.rest, pick) for key in "abk" if pick((True, False))}
            kept = [key for key in found if shade.own.trusted or pick((True, False))]
            return {key: one for key, (one, _) in found.items()}, {key: found[key][1] for key in kept}
        case Label(trusted=True), _:
            one = value_for(type_, pick)
            return one, one
        case _:
            return value_for(type_, pick), value_for(type_, pick)


@dataclass(frozen=True)
class Covered:
    """A shade, one that covers it, and a value that has it."""

    lower: LabelTree
    upper: LabelTree
    value: Any


def covered(type_: Type, pick: Pick) -> Covered:
    lower = shade_for(type_, MANY_LABELS, pick)
    more = NOTHING if pick((True, False)) else shade_for(type_, MANY_LABELS, pick)
    return Covered(lower, join_trees(lower, more), value_for(type_, pick))


# Expressions --------------------------------------------------------------------------------------------------------

_MAIL = RecordType((Field("id", STR), Field("sender", STR), Field("size", INT), Field("tags", ListType(STR))))
_TYPES: dict[str, Type] = {
    "num": INT,
    "text": STR,
    "bool": BOOL,
    "nums": ListType(INT),
    "texts": ListType(STR),
    "mail": _MAIL,
    "mails": ListType(_MAIL),
    "counts": DictType(INT),
}
TYPES: dict[str, Type] = {name: _TYPES[kind] for kind, names in NAMES.items() for name in names}
"""The types of the variables of random plans."""


def written(text: str) -> Expr:
    """The expression that a plan writes so, over the variables of random plans."""
    lines = [f"{name} = ask('?')" for name in TYPES]
    step = parse("\n".join([*lines, f"it = {text}", "answer(it)"]), Registry()).plan.steps[len(TYPES)]
    assert isinstance(step, Compute)
    return step.value


SMALL: tuple[str, ...] = tuple(
    line.strip()
    for line in """
    a + b ; -a ; a * b - 1 ; not s ; not ms ; s or t ; xs or ys ; m and s ; ms and ns ; a and b and s
    xs and xs[1:] ; xs or xs + ys ; xs and xs * a ; d and dict(d) ; s and s[a:] ; (xs and ys)[1:] + xs
    (d or e)["k"] ; (d and e)["k"] ; (xs and m).id ; (m.tags or ws)[0] ; (ms and [m])[0].id
    s == t ; m == None ; xs != None ; a < b ; a < b < len(xs) ; m != first(ms) ; xs == ys ; [s] == [t]
    {"k": s} != {"k": t} ; m.tags == ws ; s in d ; s in ws ; s not in t
    s if p else t ; xs if a else ys ; m if s else first(ms, m) ; (m if s else None).id
    f"{s}{a}" ; f"{ms}" ; s + t ; s[a:] ; s[0]
    xs[0] ; xs[-1] ; xs[a] ; xs[a:] ; xs[:b] ; xs[::2] ; ms[0].id ; ms[-1].sender ; ms[a].tags
    m.id ; m.tags ; m.tags[0] ; m.get("id") ; m["size"] ; d["k"] ; d[s] ; {"a": a, "b": b}[s] ; [s, t][a] ; (s, a)[0]
    [s, t] ; [xs, ys][1] ; {"x": s, "y": a}.x ; {s: a, t: b} ; {s: a, "k": b}.k ; {"k": a, s: b} ; {"k": xs, "a": ys}[s]
    xs + ys ; xs * a ; [a] * b ; ms + [m] ; (ms + [m])[0].id
    len(xs) ; len(d) ; len(s) ; bool(xs) ; bool(a) ; any(xs) ; all(xs) ; any(ws) ; all(ms) ; any([p])
    sum(xs) ; sum(xs, a) ; mean(xs) ; abs(a) ; round(a / 3, b) ; int(s) ; float(s) ; str(m) ; str(xs)
    s.upper() ; s.split(t) ; ",".join(ws) ; s.join(ws) ; s.replace(t, "x") ; s.find(t) ; s.startswith(t) ; s.zfill(a)
    ws.count(s) ; ws.index(s) ; contains(d, s) ; contains(ws, s) ; contains(s, t)
    list(xs) ; list(d) ; tuple(xs) ; set(ws) ; unique(ws) ; len(unique(xs)) ; reversed(xs) ; reversed(ms)[0].id ; list()
    range(a) ; range(a, b) ; enumerate(xs) ; enumerate(ws, a) ; [i for i, x in enumerate(xs)] ; enumerate(xs)[0][1]
    zip(xs, ws) ; [x for x, w in zip(xs, ws)] ; [w for x, w in zip(xs, ws)] ; zip(ws, xs, ms) ; zip(xs, ys)[0][0]
    flatten([xs, ys]) ; flatten([m.tags for m in ms]) ; flatten([[x] * x for x in xs]) ; len(flatten([xs, ys]))
    first(xs) ; first(xs, a) ; last(ws, s) ; first(ms).id ; last(ms, m).id ; first([s], t)
    d.get(s) ; d.get("k") ; d.get(s, a) ; d.get("k", a) ; d.get("k", 0) ; {"k": s}.get(t, "x") ; {s: t}.get("k", "x")
    d.keys() ; d.values() ; d.items() ; dict() ; dict(d) ; dict(m) ; dict([(s, a)]) ; dict(d.items())
    dict([(s, a), (t, b)]) ; dict([("k", a), ("k", b)])["k"] ; dict(zip(ws, xs)) ; dict([[w, 1] for w in ws])
    sorted(xs) ; sorted(ws, reverse=p) ; sorted(ms, key=lambda v: v.size)
    [v.id for v in sorted(ms, key=lambda v: v.sender)] ; sorted(ms, key=lambda v: v.size)[0].id
    sorted(xs, key=lambda v: v * a) ; sorted(d)
    max(xs) ; max(xs, default=a) ; min(ms, key=lambda v: v.size).id ; max(ms, key=lambda v: v.sender).size ; max(a, b)
    min(ws, default=s) ; max(xs, default=0) ; min(ms, key=lambda v: v.size, default=m).id ; max(s, t)
    count_by(ws) ; count_by(xs) ; count_by(ms, "sender") ; count_by(ms, lambda v: v.size)
    count_by(xs, lambda v: v > a)
    group_by(ms, "sender") ; group_by(ms, lambda v: v.size) ; group_by(xs, lambda v: v + a) ; group_by(ms, "id")
    group_by(ms, "sender").get("a", ms) ; len(group_by(xs, lambda v: s)) ; group_by(xs, lambda v: "k")["k"][0]
    [x for x in xs] ; [x for x in xs if x > a] ; [v for v in ms if v.size] ; [v.id for v in ms if s == v.sender]
    [x + y for x in xs for y in ys] ; [x for x in xs for y in ys if y] ; [s for x in xs] ; len([s for x in xs if x])
    {w: 1 for w in ws} ; {v.sender: v.size for v in ms} ; {v.sender: v.id for v in ms if v.size} ; {"k": x for x in xs}
    {v.id: v.size for v in ms}["a"] ; {w: a for w in ws if w == s}["k"] ; [k for k in d] ; [v for k, v in d.items()]
    [d[k] for k in d] ; [k for k, v in d.items() if v] ; [x for x in range(a)] ; [[y for y in ys if y > x] for x in xs]
    """.replace("\n", " ; ").split(" ; ")
    if line.strip()
)
"""One of everything, small."""


@st.composite
def _expressions(draw: st.DrawFn) -> tuple[Expr, dict[str, Type]]:
    """An expression and the types of its variables: one of many kinds that often fails, or one that seldom does."""
    if draw(st.integers(0, 3)) == 0:
        expr, types = draw(typed_expressions()), VARIABLES
    else:
        expr, types = draw(exprs(draw(st.sampled_from(KINDS)), draw(st.integers(1, 3)))), TYPES
    return expr, {name: types[name] for name in sorted(free_names(expr) & types.keys())}


@st.composite
def expressions_seen(draw: st.DrawFn) -> tuple[Expr, dict[str, Seen]]:
    """An expression and its variables as two runs see them."""
    expr, types = draw(_expressions())
    return expr, {name: seen(type_, lambda of: draw(st.sampled_from(of))) for name, type_ in types.items()}


@st.composite
def expressions_covered(draw: st.DrawFn) -> tuple[Expr, dict[str, Covered]]:
    """An expression and its variables, each with two shades of which one covers the other."""
    expr, types = draw(_expressions())
    return expr, {name: covered(type_, lambda of: draw(st.sampled_from(of))) for name, type_ in types.items()}


# What differs -------------------------------------------------------------------------------------------------------


def differs(shade: LabelTree, one: Any, other: Any, at: str = "value") -> str | None:
    """Where two runs differ in what the labels say no stranger had a hand in; None if nowhere."""
    if shade.flat.trusted:
        return None if one == other else f"{at}: {one!r} and {other!r}"
    if isinstance(shade, Label):
        return None
    if shade.own.trusted and (_kind(one) != _kind(other) or (_kind(one) == "scalar" and one != other)):
        return f"{at}: {one!r} and {other!r}"
    if _kind(one) != _kind(other):
        return None
    match _kind(one):
        case "list":
            return _list_differs(shade, one, other, at)
        case "dict":
            return _record_differs(shade, one, other, at)
        case _:
            return None


def _kind(value: object) -> str:
    return "list" if isinstance(value, list | tuple) else "dict" if isinstance(value, dict) else "scalar"


def _list_differs(shade: LabelTree, one: Any, other: Any, at: str) -> str | None:
    part = as_list(shade)
    if part is None or not part.own.trusted:
        return None
    if len(one) != len(other):
        return f"the length of {at}: {one!r} and {other!r}"
    pairs = enumerate(zip(cast("list[Any]", one), cast("list[Any]", other), strict=True))
    return next(filter(None, (differs(part.place(i), a, b, f"{at}[{i}]") for i, (a, b) in pairs)), None)


def _record_differs(shade: LabelTree, one: Any, other: Any, at: str) -> str | None:
    part = as_record(shade)
    if part is None:
        return None
    if part.own.trusted and list(one) != list(other):
        return f"the keys of {at}: {one!r} and {other!r}"
    found = (differs(part.field(k), one[k], other[k], f"{at}[{k!r}]") for k in one if k in other)
    return next(filter(None, found), None)
