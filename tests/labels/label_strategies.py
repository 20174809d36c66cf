"""Hypothesis strategies for labels and shades: few sources and readers, so that they often meet."""

from __future__ import annotations

from hypothesis import strategies as st

from bicameral.labels import PUBLIC, EitherLabels, Label, LabelTree, ListLabels, Readers, RecordLabels, Source

SOURCES = st.builds(
    Source,
    st.sampled_from(["user", "system", "third_party"]),
    st.sampled_from(["read_mail", "search", "request", "endorsed"]),
    st.sampled_from(["", "[].body", "id"]),
    st.sampled_from(["0", "2/then/0"]),
)
NAMES = st.sampled_from(["ada", "bob", "eve@example.com", "4711"])


def readers() -> st.SearchStrategy[Readers]:
    return st.one_of(st.just(PUBLIC), st.frozensets(NAMES, max_size=3))


def labels() -> st.SearchStrategy[Label]:
    return st.builds(Label, st.frozensets(SOURCES, max_size=3), readers())


def _placed(own: Label, places: list[LabelTree]) -> ListLabels:
    return ListLabels(own, places=places)


def _lists(inner: st.SearchStrategy[LabelTree]) -> st.SearchStrategy[ListLabels]:
    places = st.lists(inner, max_size=3)
    return st.one_of(st.builds(ListLabels, labels(), inner), st.builds(_placed, labels(), places))


def _records(inner: st.SearchStrategy[LabelTree]) -> st.SearchStrategy[RecordLabels]:
    fields = st.dictionaries(st.sampled_from(["a", "b", "own", "item", "ä\U0001f600"]), inner, max_size=3)
    return st.builds(RecordLabels, labels(), fields, inner)


def shades() -> st.SearchStrategy[LabelTree]:
    """Any shade of a few parts."""
    return st.recursive(
        labels(),
        lambda inner: st.one_of(
            _lists(inner), _records(inner), st.builds(EitherLabels, _lists(inner), _records(inner))
        ),
        max_leaves=6,
    )
