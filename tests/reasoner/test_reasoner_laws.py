"""Laws of what crosses: nothing is told whose label was not read, no text is told, and no label changes on its way."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, strategies as st

from bicameral.boundary import HandleContent
from bicameral.labels import NOTHING, Label, LabelTree, ListLabels, RecordLabels, Source
from bicameral.patterns._reasoner_view import tree_of_round
from bicameral.patterns.reasoner import view_result
from bicameral.runs import StartState
from bicameral.types import BOOL, DATE, FLOAT, INT, STR, Field, ListType, OptionalType, RecordType, StrType, Type

NAMES = ("a", "b", "c", "d")
_LEAVES: list[tuple[Type, st.SearchStrategy[Any]]] = [
    (BOOL, st.booleans()),
    (INT, st.integers()),
    (FLOAT, st.floats(allow_nan=False, allow_infinity=False)),
    (DATE, st.dates()),
    (STR, st.text()),
    (StrType("url"), st.from_regex(r"https://[a-z]{1,8}\.example", fullmatch=True)),
    (OptionalType(STR), st.none() | st.text()),
    (OptionalType(INT), st.none() | st.integers(0, 9)),
]


_SOURCES = st.builds(
    Source,
    st.sampled_from(["user", "system", "third_party"]),
    st.sampled_from(["read_mail", "search"]),
    st.sampled_from(["", "[].body"]),
    st.sampled_from(["", "0", "2/then/0", "round1/0"]),
)


def shades() -> st.SearchStrategy[LabelTree]:
    """Any shade of a few parts."""
    labels = st.builds(Label, st.frozensets(_SOURCES, max_size=3), st.frozensets(st.sampled_from(["ada", "bob"])))

    def larger(inner: st.SearchStrategy[LabelTree]) -> st.SearchStrategy[LabelTree]:
        fields = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
        return st.builds(ListLabels, labels, inner) | st.builds(RecordLabels, labels, fields, inner)

    return st.recursive(labels, larger, max_leaves=6)


def _label(name: str) -> Label:
    return Label({Source("third_party", "stranger", name, "0")}, {"user"})


@st.composite
def records(draw: st.DrawFn) -> tuple[RecordType, list[dict[str, Any]], dict[str, Label]]:
    """A record type, two records of it, and a label for each field."""
    leaves = [draw(st.sampled_from(_LEAVES)) for _ in NAMES]
    type_ = RecordType(tuple(Field(name, leaf) for name, (leaf, _) in zip(NAMES, leaves, strict=True)))
    pair = [{name: draw(values) for name, (_, values) in zip(NAMES, leaves, strict=True)} for _ in range(2)]
    return type_, pair, {name: _label(name) for name in NAMES}


@given(records(), st.booleans())
def test_nothing_is_told_whose_label_was_not_read(
    found: tuple[RecordType, list[dict[str, Any]], dict[str, Label]], listed: bool
) -> None:
    """Whoever changes only what was not read changes nothing that was told."""
    type_, (one, other), labels = found
    shade: LabelTree = RecordLabels(NOTHING, labels)
    whole: Type = type_
    if listed:
        shade, whole = ListLabels(NOTHING, shade), ListType(type_)
    first = view_result(HandleContent([one] if listed else one, whole, shade))
    parts = {source.part for source in first.label.sources}
    changed = {name: one[name] if name in parts else other[name] for name in NAMES}
    again = view_result(HandleContent([changed] if listed else changed, whole, shade))
    assert again == first


@given(st.text(min_size=1), st.text())
def test_no_text_is_told_and_not_even_how_long_it_is(text: str, other: str) -> None:
    assert view_result(HandleContent(text, STR, _label("a"))) == view_result(HandleContent(other, STR, _label("a")))
    assert view_result(HandleContent(text, STR, _label("a"))).label is NOTHING


@given(st.lists(st.booleans(), max_size=40))
def test_how_many_there_are_is_read_of_the_list(items: list[bool]) -> None:
    seen = view_result(HandleContent(items, ListType(BOOL), ListLabels(_label("own"), _label("item"))))
    assert str(len(items)) in seen.text
    assert _label("own").sources <= seen.label.sources
    assert not items or _label("item").sources <= seen.label.sources


@given(
    st.recursive(
        st.integers() | st.text() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    ).filter(lambda value: type(value) is not int)
)
def test_what_is_not_of_its_type_is_told_by_its_label_whatever_it_is(value: Any) -> None:
    seen = view_result(HandleContent(value, INT, _label("a")))
    assert seen.label is _label("a")
    texts = [part for part in json.dumps(value, ensure_ascii=False).split('"') if len(part) > 6]
    assert not any(part in seen.text for part in texts)


@given(shades(), st.integers(1, 99))
def test_a_label_changes_its_steps_alone_on_the_way_to_the_next_round(shade: LabelTree, number: int) -> None:
    after = tree_of_round(shade, number)
    assert after.flat.readers == shade.flat.readers
    assert after.flat.trusted == shade.flat.trusted
    pairs = {(source.trust, source.tool, source.part) for source in shade.flat.sources}
    assert {(source.trust, source.tool, source.part) for source in after.flat.sources} == pairs
    assert tree_of_round(after, number + 1) is after, "a source says of which round it is once and for all"


@given(shades(), st.integers())
def test_what_a_round_begins_with_is_recorded_without_loss(shade: LabelTree, value: int) -> None:
    start = StartState({"x": HandleContent(value, INT, shade)}, {":a": shade}, shade.flat)
    again = StartState.from_json(json.loads(json.dumps(start.to_json())))
    assert again == start
    assert again.variables["x"].label_tree is shade
