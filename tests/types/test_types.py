"""Laws of the types: what fits where, and that types and values survive being written down."""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NotRequired, TypedDict, cast

import jsonschema
import pytest
from hypothesis import assume, example, given, settings, strategies as st
from pydantic import BaseModel, Field as ModelField

from bicameral.types import (
    ANY,
    BOOL,
    DATE,
    DATETIME,
    DURATION,
    FLOAT,
    INT,
    MONEY,
    NULL,
    NUMBER,
    STR,
    TIME,
    AnyType,
    DictType,
    Field,
    ListType,
    LiteralType,
    NullType,
    OptionalType,
    RecordType,
    StrType,
    TupleType,
    Type,
    annotation_doc,
    is_assignable,
    join_types,
    mismatch,
    optional_type,
    to_plain,
    type_from_annotation,
    type_from_json,
    type_json_schema,
    type_to_json,
    value_from_json,
    value_to_json,
)
from property_examples import examples

names = st.sampled_from("abcd")


def records(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return st.dictionaries(names, inner, max_size=3).map(
        lambda fields: RecordType(tuple(Field(name, type_) for name, type_ in fields.items()))
    )


def types(*simple: Type) -> st.SearchStrategy[Type]:
    literals = st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, unique=True).map(tuple).map(LiteralType)
    return st.recursive(
        st.sampled_from(simple) | literals,
        lambda inner: (
            inner.map(ListType)
            | inner.map(DictType)
            | inner.map(optional_type)
            | st.lists(inner, max_size=2).map(tuple).map(TupleType)
            | records(inner)
        ),
        max_leaves=5,
    )


IN_JSON = (STR, INT, FLOAT, BOOL, NULL)
KNOWN = (*IN_JSON, StrType("path"), StrType("code"), NUMBER, MONEY, DATE, TIME, DATETIME, DURATION)
known, every, in_json = types(*KNOWN), types(*KNOWN, ANY), types(*IN_JSON)

finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers() | finite | st.text(max_size=3) | st.sampled_from(["x", "y"])
moments = st.dates() | st.times() | st.datetimes() | st.timedeltas()


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = names | st.sampled_from(["$date", "$dict", "$"])
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))


def a_value(draw: st.DrawFn, type_: Type) -> Any:
    """Some value of this type, with every optional field written out."""
    match type_:
        case OptionalType(item=item):
            return draw(st.none()) if draw(st.booleans()) else a_value(draw, item)
        case ListType(item=item):
            return [a_value(draw, item) for _ in range(draw(st.integers(0, 2)))]
        case TupleType(items=items):
            return [a_value(draw, item) for item in items]
        case DictType(value=value):
            return {name: a_value(draw, value) for name in draw(st.sets(names, max_size=2))}
        case RecordType(fields=fields):
            return {field.name: a_value(draw, field.type) for field in fields}
        case LiteralType(values=values):
            return draw(st.sampled_from(values))
        case _:
            return draw(_SIMPLE[type_])


_SIMPLE: dict[Type, st.SearchStrategy[Any]] = {
    STR: st.text(max_size=3),
    StrType("path"): st.text(max_size=3),
    StrType("code"): st.from_regex("[a-z][a-z0-9-]{0,3}", fullmatch=True),
    StrType("currency"): st.sampled_from(["EUR", "USD"]),
    NUMBER: finite,
    INT: st.integers(),
    FLOAT: finite | st.integers(),
    BOOL: st.booleans(),
    NULL: st.none(),
    DATE: st.dates(),
    TIME: st.times(),
    DATETIME: st.datetimes(),
    DURATION: st.timedeltas(),
    ANY: scalars,
}

values_of = st.composite(a_value)


# What fits where


@given(every)
def test_every_type_fits_itself(type_: Type) -> None:
    assert is_assignable(type_, type_)


@settings(max_examples=examples(400))
@given(known, known, known)
def test_what_fits_the_smaller_fits_the_larger(a: Type, b: Type, c: Type) -> None:
    # Without Any, which fits both ways because it is checked only while a plan runs.
    for first, second, third in (
        (a, b, c),
        (a, join_types(a, b) or a, c),
        (a, join_types(a, b) or a, join_types(b, c) or b),
    ):
        if is_assignable(first, second) and is_assignable(second, third):
            assert is_assignable(first, third)


@settings(max_examples=examples(300))
@given(st.data(), known, known)
def test_a_value_of_a_type_is_a_value_of_every_type_it_fits(data: st.DataObject, a: Type, b: Type) -> None:
    wider = join_types(a, b) or a
    value = data.draw(values_of(a))
    assert mismatch(value, a) is None
    assert mismatch(value, wider) is None
    if is_assignable(a, b):
        assert mismatch(value, b) is None


def test_records_have_no_fields_that_nobody_declared() -> None:
    wide, narrow = RecordType((Field("a", INT), Field("b", STR))), RecordType((Field("a", INT),))
    assert not is_assignable(wide, narrow)
    assert mismatch({"a": 1, "b": "x"}, narrow) is not None
    assert is_assignable(narrow, RecordType((Field("a", FLOAT), Field("b", optional_type(STR)))))
    assert is_assignable(wide, DictType(ANY))
    assert not is_assignable(wide, DictType(INT))


@settings(max_examples=examples(400))
@given(every, every)
@example(optional_type(ListType(TupleType(()))), optional_type(TupleType((STR, ANY))))
def test_a_join_is_an_upper_bound_whatever_the_order(a: Type, b: Type) -> None:
    joined, other = join_types(a, b), join_types(b, a)
    assert (joined is None) == (other is None)
    if joined is not None and other is not None:
        assert is_assignable(a, joined)
        assert is_assignable(b, joined)
        assert is_assignable(joined, other)
        assert is_assignable(other, joined)


@given(every)
def test_a_join_with_itself_with_nothing_and_with_anything(type_: Type) -> None:
    assert join_types(type_, type_) == type_
    assert join_types(type_, NULL) == optional_type(type_)
    assert join_types(ANY, type_) == join_types(type_, ANY) == ANY


def test_an_unknown_part_stays_unknown_in_a_join() -> None:
    assert join_types(ListType(ANY), ListType(INT)) == join_types(ListType(INT), ListType(ANY)) == ListType(ANY)
    assert join_types(StrType("path"), StrType("email")) == STR


@given(every)
def test_optional_does_not_nest(type_: Type) -> None:
    once = optional_type(type_)
    assert optional_type(once) == once
    assert isinstance(once, OptionalType | NullType | AnyType)
    assert is_assignable(NULL, once)


# Written down


@given(every)
def test_a_type_comes_back_from_json(type_: Type) -> None:
    assert type_from_json(json.loads(json.dumps(type_to_json(type_)))) == type_


NO_TYPES: list[Any] = [
    "strr",
    5,
    None,
    [],
    {},
    {"list": "strr"},
    {"list": "str", "dict": "str"},
    {"tuple": "str"},
    {"literal": []},
    {"literal": ["a", 1]},
    {"record": []},
    {"record": {"a": 1}},
    {"str": 5},
    {"set": "str"},
]


@pytest.mark.parametrize("written", NO_TYPES)
def test_what_is_no_type_is_a_value_error(written: object) -> None:
    with pytest.raises(ValueError, match="type"):
        type_from_json(written)


def test_a_type_nested_without_end_is_a_value_error() -> None:
    written: Any = "str"
    for _ in range(500):
        written = {"list": written}
    with pytest.raises(ValueError, match="nested"):
        type_from_json(written)


@given(nested(scalars | moments))
def test_a_value_comes_back_from_json(value: Any) -> None:
    assert value_from_json(json.loads(json.dumps(value_to_json(value)))) == value


DAMAGED: list[Any] = [
    {"$date": "soon"},
    {"$date": 5},
    {"$time": "25:00"},
    {"$datetime": None},
    {"$timedelta": "5"},
    {"$timedelta": True},
    {"$timedelta": 10**30},
    {"$dict": 5},
    [{"$dict": []}],
]


@pytest.mark.parametrize("written", DAMAGED)
def test_a_damaged_value_is_a_value_error(written: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        value_from_json(written)


# Values against types


@settings(max_examples=examples(500))
@given(st.data(), in_json, in_json)
def test_the_schema_and_the_type_agree_on_every_value(data: st.DataObject, type_: Type, other: Type) -> None:
    value = data.draw(values_of(other) | values_of(type_) | nested(scalars))
    # JSON knows one kind of number: there 1.0 is an integer, here it is a float.
    assume(not _has_whole_float(value))
    validator: Any = jsonschema.Draft202012Validator(type_json_schema(type_))
    fits: bool = validator.is_valid(value)
    if fits:
        assert mismatch(value, type_) is None
    elif mismatch(value, type_) is None:
        # The one thing a type lets pass and its schema does not: an optional field that is not written out.
        assert _leaves_out_a_field(value, type_)


def _has_whole_float(value: Any) -> bool:
    match value:
        case dict():
            return any(map(_has_whole_float, cast("dict[str, Any]", value).values()))
        case list():
            return any(map(_has_whole_float, cast("list[Any]", value)))
        case _:
            return isinstance(value, float) and value.is_integer()


def _leaves_out_a_field(value: Any, type_: Type) -> bool:
    match type_:
        case RecordType(fields=fields):
            parts = [(value.get(field.name), field.type) for field in fields]
            return len(value) < len(fields) or any(_leaves_out_a_field(*part) for part in parts)
        case OptionalType(item=item):
            return value is not None and _leaves_out_a_field(value, item)
        case ListType(item=item):
            return any(_leaves_out_a_field(each, item) for each in value)
        case TupleType(items=items):
            return any(_leaves_out_a_field(*part) for part in zip(value, items, strict=True))
        case DictType(value=inner):
            return any(_leaves_out_a_field(each, inner) for each in value.values())
        case _:
            return False


def test_a_schema_bounds_free_text_wherever_it_stands() -> None:
    schema = type_json_schema(ListType(RecordType((Field("a", STR, "what it is"),))), max_text=5)
    assert schema["items"]["properties"]["a"] == {"type": "string", "maxLength": 5, "description": "what it is"}


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (True, INT),
        (True, FLOAT),
        (1, BOOL),
        (1.0, INT),
        (math.nan, FLOAT),
        (math.inf, FLOAT),
        ("1", INT),
        (dt.datetime(2025, 1, 1), DATE),
        (dt.date(2025, 1, 1), DATETIME),
        ("2025-01-01", DATE),
        (None, STR),
        ([1], TupleType((INT, INT))),
        ({1: 2}, DictType(INT)),
        ("abc", ListType(STR)),
        (["x"], LiteralType(("x",))),
    ],
)
def test_nothing_is_coerced(value: object, type_: Type) -> None:
    reason = mismatch(value, type_, "the value")
    assert reason is not None
    assert reason.startswith("the value")


def test_a_mismatch_names_the_place_inside() -> None:
    type_ = ListType(RecordType((Field("a", DictType(INT)),)))
    empty: dict[str, int] = {}
    assert mismatch([{"a": empty}, {"a": {"k": "x" * 100}}], type_) == f"value[1].a['k'] is '{'x' * 56}..., not int"
    assert mismatch([empty], type_) == "value[0] lacks the field 'a'"
    undeclared = "value[0] has the field 'b', which {'a': dict[str, int]} does not have"
    assert mismatch([{"a": empty, "b": 1}], type_) == undeclared


def test_a_number_too_large_for_a_float_is_still_a_number() -> None:
    assert mismatch(10**400, FLOAT) is None


# From Python


@dataclass
class Base:
    kind: ClassVar[str] = "base"
    first: int


@dataclass
class Derived(Base):
    second: Annotated[str | None, "the second"] = None


class Loose(TypedDict, total=False):
    a: int


class Mixed(Loose):
    b: NotRequired[str]
    c: bool


class Model(BaseModel):
    x: int = ModelField(description="an x")


@dataclass
class Endless:
    inside: list[Endless]


@pytest.mark.parametrize(
    ("annotation", "type_"),
    [
        (str, STR),
        (None, NULL),
        (Any, ANY),
        (Path, StrType("path")),
        (list[int], ListType(INT)),
        (tuple[int, ...], ListType(INT)),
        (tuple[int, str], TupleType((INT, STR))),
        (dict[str, float], DictType(FLOAT)),
        (int | None, OptionalType(INT)),
        (int | float, FLOAT),
        (int | str, ANY),
        (Literal["a", "b"], LiteralType(("a", "b"))),
        (Annotated[int, "how many"], INT),
        (Annotated[str, StrType("email")], StrType("email")),
        (Derived, RecordType((Field("first", INT), Field("second", OptionalType(STR))))),
        (Mixed, RecordType((Field("a", OptionalType(INT)), Field("b", OptionalType(STR)), Field("c", BOOL)))),
        (Model, RecordType((Field("x", INT),))),
    ],
)
def test_annotations_have_the_type_they_say(annotation: object, type_: Type) -> None:
    assert type_from_annotation(annotation) == type_


def test_the_words_of_an_annotation_are_kept() -> None:
    derived, model = type_from_annotation(Derived), type_from_annotation(Model)
    assert isinstance(derived, RecordType)
    assert isinstance(model, RecordType)
    assert (derived.name, derived.fields[1].doc, model.fields[0].doc) == ("Derived", "the second", "an x")
    assert annotation_doc(Annotated[int, 5, "how many"]) == "how many"
    assert annotation_doc(int) == ""


@pytest.mark.parametrize("annotation", [set[int], dict[int, str], Literal[1], bytes, Endless, 5])
def test_what_has_no_plan_type_is_a_type_error(annotation: object) -> None:
    with pytest.raises(TypeError):
        type_from_annotation(annotation)


def test_answers_become_plain_values() -> None:
    assert to_plain(Derived(1)) == {"first": 1, "second": None}
    assert to_plain((Model(x=1), Path("a/b"), {"b", "a"})) == [{"x": 1}, "a/b", ["a", "b"]]


@pytest.mark.parametrize("value", [math.nan, math.inf, b"x", object(), {1: "a"}, [1j], Derived])
def test_what_no_plan_can_use_is_a_type_error(value: object) -> None:
    with pytest.raises(TypeError):
        to_plain(value)


def test_a_value_nested_without_end_is_a_type_error() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(TypeError, match="nested"):
        to_plain(endless)
