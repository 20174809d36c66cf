"""Laws of declarations: the proof covers the run, and no value makes a source or sheds one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, strategies as st

from bicameral.errors import ToolError
from bicameral.labels import NOTHING, PUBLIC, Label, LabelTree, ListLabels, RecordLabels, Source, covers, join_trees
from bicameral.tools import Origin, Participants, Tool, tool
from bicameral.types import INT, STR, DictType, Field, ListType, OptionalType, RecordType, Type, optional_type


def made(result: Type, origins: Mapping[str, Origin]) -> Tool:
    async def run(arguments: Mapping[str, Any]) -> object:
        return None

    return Tool("made", "", (), result, "read", run, origins=origins)


_TYPES = st.recursive(
    st.sampled_from([STR, INT, optional_type(STR), ListType(STR)]),
    lambda inner: st.one_of(
        inner.map(ListType),
        inner.map(DictType),
        inner.map(optional_type),
        st.lists(st.tuples(st.sampled_from("abcd"), inner), min_size=1, max_size=4, unique_by=lambda pair: pair[0]).map(
            lambda pairs: RecordType(tuple(Field(name, type_) for name, type_ in pairs))
        ),
    ),
    max_leaves=8,
)


def _values(type_: Type) -> st.SearchStrategy[Any]:
    match type_:
        case ListType(item=item):
            return st.lists(_values(item), max_size=3)
        case DictType(value=value):
            return st.dictionaries(st.sampled_from("abcxy"), _values(value), max_size=3)
        case RecordType(fields=fields):
            return st.fixed_dictionaries({field.name: _values(field.type) for field in fields})
        case _ if type_ == INT:
            return st.integers(0, 9)
        case OptionalType(item=item):
            return st.none() | _values(item)
        case _:
            return st.sampled_from(["ann", "bob", "eve", "sent"])


def _parts(type_: Type, path: str = "") -> list[str]:
    match type_:
        case OptionalType(item=item):
            return _parts(item, path)
        case ListType(item=item):
            return [path, *_parts(item, f"{path}[]")]
        case DictType(value=value):
            return [path, *_parts(value, f"{path}.*" if path else "*")]
        case RecordType(fields=fields):
            return [path, *(p for f in fields for p in _parts(f.type, f"{path}.{f.name}" if path else f.name))]
        case _:
            return [path]


@st.composite
def _declared(draw: st.DrawFn) -> tuple[Tool, Any]:
    """A tool with random sound origins, and a value that it could give."""
    result = draw(_TYPES)
    candidates: dict[str, Origin] = {}
    for part in draw(st.lists(st.sampled_from(_parts(result)), unique=True)):
        readers: Any = draw(
            st.sampled_from(["public", "user"])
            | st.lists(st.sampled_from("abcd"), min_size=1, max_size=2).map(lambda names: Participants(tuple(names)))
        )
        own = draw(st.none() | st.tuples(st.sampled_from("abcd"), st.just("sent")))
        candidates[part] = Origin(draw(st.sampled_from(["user", "system", "third_party"])), readers, own)
    origins: dict[str, Origin] = {}
    for part, origin in candidates.items():
        for attempt in (origin, replace(origin, own_when=None), replace(origin, own_when=None, readers="user")):
            try:
                made(result, {**origins, part: attempt})
            except ToolError:
                continue
            origins[part] = attempt
            break
    return made(result, origins), draw(_values(result))


@given(_declared(), st.booleans())
def test_what_is_known_before_a_run_covers_what_comes_out_of_it(declared: tuple[Tool, Any], own: bool) -> None:
    of, value = declared
    before = of.result_labels(None, "0")
    assert covers(before, of.result_labels(value, "0"))

    def owned(arguments: Mapping[str, Any]) -> bool:
        return own

    trusting = replace(of, owned=owned)
    assert covers(before, trusting.result_labels(value, "0", arguments={}))
    assert covers(trusting.result_labels(None, "0", arguments={}), trusting.result_labels(value, "0", arguments={}))


@given(_declared())
def test_every_source_is_the_tools_own_and_has_a_declared_trust(declared: tuple[Tool, Any]) -> None:
    of, value = declared
    trusts = {origin.trust for origin in of.origins.values()} | {"third_party"}
    trusts |= {"user"} if any(origin.own_when for origin in of.origins.values()) else set()
    for shade in (of.result_labels(None, "7"), of.result_labels(value, "7")):
        assert {(source.tool, source.step) for source in shade.flat.sources} == {("made", "7")}
        assert {source.trust for source in shade.flat.sources} <= trusts


def _shades(draw: st.DrawFn) -> LabelTree:
    strangers, users = Source("third_party", "a"), Source("user", "a")
    pool = [Label({source}, readers) for source in (strangers, users) for readers in (PUBLIC, {"ann"})]
    leaf = st.sampled_from([NOTHING, *pool])
    shape = draw(st.integers(0, 2))
    if shape == 0:
        return draw(leaf)
    item: LabelTree = draw(leaf) if shape == 1 else RecordLabels(draw(leaf), {"a": draw(leaf)}, draw(leaf))
    return ListLabels(draw(leaf), item)


@st.composite
def _covered(draw: st.DrawFn) -> tuple[LabelTree, LabelTree]:
    """A shade and another that it covers."""
    lower = _shades(draw)
    return join_trees(lower, _shades(draw)), lower


@given(_covered(), _covered(), st.booleans())
def test_the_labels_of_a_call_cover_whatever_its_arguments_cover(
    rows: tuple[LabelTree, LabelTree], others: tuple[LabelTree, LabelTree], keep: bool
) -> None:
    @tool(effect="pure", keeps="rows" if keep else None)
    def some(rows: list[Any], other: str) -> list[Any]:
        return rows

    upper = some.call_labels({"rows": rows[0], "other": others[0]}, None, "1")
    lower = some.call_labels({"rows": rows[1], "other": others[1]}, [], "1")
    assert covers(upper, lower)
    assert lower.flat.sources == rows[1].flat.sources | others[1].flat.sources
