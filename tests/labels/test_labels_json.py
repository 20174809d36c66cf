"""Shades cross into JSON and back without loss or gain, and nothing else gets in that way."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st
from label_strategies import labels, shades

from bicameral.labels import (
    NOTHING,
    TRUSTED_USER,
    EitherLabels,
    Label,
    LabelError,
    LabelTree,
    ListLabels,
    RecordLabels,
    Source,
    label_tree_from_json,
    label_tree_to_json,
)
from bicameral.labels._label import MAX_LEVELS, MAX_PARTS

STRANGER = Label({Source("third_party", "read_mail", "[].body", "1")}, {"ada"})
MAIL = ListLabels(TRUSTED_USER, RecordLabels(TRUSTED_USER, {"body": STRANGER, "id": TRUSTED_USER}, STRANGER))


@given(shades())
def test_a_round_trip_gives_the_very_same_shade(shade: LabelTree) -> None:
    written = json.dumps(label_tree_to_json(shade))
    assert label_tree_from_json(json.loads(written)) is shade
    assert json.dumps(label_tree_to_json(label_tree_from_json(json.loads(written)))) == written


@given(shades())
def test_the_order_of_keys_is_of_no_matter(shade: LabelTree) -> None:
    assert label_tree_from_json(json.loads(json.dumps(label_tree_to_json(shade), sort_keys=True))) is shade


@given(labels())
def test_a_label_is_written_once_however_often_it_is_used(label: Label) -> None:
    shade = RecordLabels(label, {f"f{number}": ListLabels(label, label) for number in range(20)}, label)
    assert len(label_tree_to_json(shade)["labels"]) == 1


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 9), st.floats(), st.text(max_size=4), st.just("public")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["labels", "shade", "sources", "readers", "own", "item", "fields", "rest", "places"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=12,
)


@given(JSON)
def test_anything_else_is_refused(written: Any) -> None:
    _refused_or_exact(written)


@given(shades(), st.data())
def test_a_shade_that_was_tampered_with_is_refused_or_says_what_it_says(shade: LabelTree, data: st.DataObject) -> None:
    written = copy.deepcopy(label_tree_to_json(shade))
    for _ in range(data.draw(st.integers(1, 3))):
        _tamper(written, data)
    _refused_or_exact(written)


def _refused_or_exact(written: Any) -> None:
    try:
        found = label_tree_from_json(written)
    except LabelError as refused:
        told, code = str(refused), refused.code
    else:
        told, code = "", "labels.malformed"
        assert json.dumps(label_tree_to_json(found), sort_keys=True) == json.dumps(written, sort_keys=True)
    assert code in ("labels.malformed", "labels.forged")
    assert len(told) < 400


def _tamper(whole: Any, data: st.DataObject) -> None:
    node: Any = whole
    while keys := _keys(node):
        key = data.draw(st.sampled_from(keys))
        inner: Any = node[key]
        if _keys(inner) and data.draw(st.integers(0, 3)):
            node = inner
            continue
        if data.draw(st.booleans()):
            node[key] = data.draw(JSON)
        else:
            del node[key]
        return


def _keys(node: object) -> list[Any]:
    match node:
        case dict():
            return list(cast("dict[str, Any]", node))
        case list():
            return list(range(len(cast("list[Any]", node))))
        case _:
            return []


PLAIN: dict[str, Any] = {"sources": [], "readers": "public"}


def _with(change: Callable[[Any], object]) -> Any:
    written = copy.deepcopy(label_tree_to_json(MAIL))
    change(written)
    return written


FORGERIES: dict[str, Any] = {
    "nothing": None,
    "a text": "public",
    "a label alone": {"sources": [], "readers": "public"},
    "no labels": {"labels": [], "shade": 0},
    "another key": _with(lambda w: w.update(trusted=True)),
    "another key in a label": _with(lambda w: w["labels"][0].update(trusted=True)),
    "another key in a part": _with(lambda w: w["shade"].update(trusted=True)),
    "no readers": _with(lambda w: w["labels"][0].pop("readers")),
    "readers are everyone": _with(lambda w: w["labels"][0].update(readers="everyone")),
    "readers without the user": _with(lambda w: w["labels"][1].update(readers=["ada"])),
    "a reader twice": _with(lambda w: w["labels"][1].update(readers=["ada", "ada", "user"])),
    "a reader that is a number": _with(lambda w: w["labels"][1].update(readers=[1, "user"])),
    "readers out of order": _with(lambda w: w["labels"][1].update(readers=["user", "ada"])),
    "a trust of its own": _with(lambda w: w["labels"][1]["sources"][0].__setitem__(0, "trusted")),
    "no trust": _with(lambda w: w["labels"][1]["sources"][0].pop(0)),
    "a trust that is a list": _with(lambda w: w["labels"][1]["sources"][0].__setitem__(0, ["user"])),
    "a source twice": _with(lambda w: w["labels"][1]["sources"].append(w["labels"][1]["sources"][0])),
    "a label twice": _with(lambda w: w["labels"].append(w["labels"][0])),
    "a label too many": _with(lambda w: w["labels"].append({"sources": [], "readers": "public"})),
    "labels in another order": {
        "labels": [PLAIN, {"sources": [], "readers": ["user"]}],
        "shade": {"own": 1, "item": 0},
    },
    "a number that is none": _with(lambda w: w["shade"].update(own=True)),
    "a number with a fraction": _with(lambda w: w["shade"].update(own=0.0)),
    "a number below": _with(lambda w: w["shade"].update(own=-1)),
    "a number beyond": _with(lambda w: w["shade"].update(own=99)),
    "a huge number": _with(lambda w: w["shade"].update(own=10**5000)),
    "fields in a list": _with(lambda w: w["shade"]["item"].update(fields=[])),
    "a list or record that is neither": {"labels": [{"sources": [], "readers": "public"}], "shade": {"list": 0}},
    "a list or record without a record": {
        "labels": [{"sources": [], "readers": "public"}],
        "shade": {"list": {"own": 0, "item": 0}, "record": 0},
    },
    "a tuple": _with(lambda w: w.update(labels=tuple(w["labels"]))),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_labels_are_refused_with_a_reason(name: str) -> None:
    with pytest.raises(LabelError) as error:
        label_tree_from_json(FORGERIES[name])
    assert error.value.code == "labels.malformed"
    assert len(error.value.message) < 300


def test_a_trusted_word_of_a_quarantined_model_is_refused() -> None:
    written = label_tree_to_json(Label({Source("third_party", "extract", "", "1")}))
    written["labels"][0]["sources"][0][0] = "user"
    with pytest.raises(LabelError) as error:
        label_tree_from_json(written)
    assert error.value.code == "labels.forged"


# Hostile sizes ------------------------------------------------------------------------------------------------------


def _nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    written: Any = 0
    for _ in range(depth):
        written = wrap(written)
    return {"labels": [PLAIN], "shade": written}


WRAPPINGS: dict[str, Callable[[Any], Any]] = {
    "lists": lambda inner: {"own": 0, "item": inner},
    "places": lambda inner: {"own": 0, "places": [inner]},
    "records": lambda inner: {"own": 0, "fields": {}, "rest": inner},
    "fields": lambda inner: {"own": 0, "fields": {"a": inner}, "rest": 0},
    "lists or records": lambda inner: {"list": inner, "record": inner},
    "lists or records of lists": lambda inner: {
        "list": {"own": 0, "item": inner},
        "record": {"own": 0, "fields": {}, "rest": 0},
    },
    "no shades at all": lambda inner: [inner],
    "labels": lambda inner: {"own": inner, "item": 0},
}


@pytest.mark.parametrize("name", WRAPPINGS)
@pytest.mark.parametrize("depth", [MAX_LEVELS + 1, 900, 100_000])
def test_deep_nesting_is_refused_at_once(name: str, depth: int) -> None:
    nested = _nested(depth, WRAPPINGS[name])
    started = time.thread_time()
    with pytest.raises(LabelError):
        label_tree_from_json(nested)
    assert time.thread_time() - started < 2


def test_the_deepest_shade_there_is_comes_back() -> None:
    shade: LabelTree = STRANGER
    for _ in range(MAX_LEVELS):
        shade = EitherLabels(ListLabels(TRUSTED_USER, shade), RecordLabels(NOTHING, {}, NOTHING))
    assert shade.levels == MAX_LEVELS
    assert label_tree_from_json(json.loads(json.dumps(label_tree_to_json(shade)))) is shade


def test_the_widest_shade_there_is_comes_back_and_a_wider_one_is_refused() -> None:
    fields: dict[str, LabelTree] = {f"f{number:05}": TRUSTED_USER for number in range(MAX_PARTS - 2)}
    shade = RecordLabels(NOTHING, fields)
    assert shade.parts == MAX_PARTS
    written = label_tree_to_json(shade)
    assert label_tree_from_json(written) is shade
    written["shade"]["fields"]["more"] = 1
    with pytest.raises(LabelError):
        label_tree_from_json(written)


def test_a_label_with_giant_sets_comes_back() -> None:
    sources = frozenset(Source("third_party", "t", f"[{number}]") for number in range(50_000))
    label = Label(sources, frozenset(f"p{number}" for number in range(200_000)))
    assert label_tree_from_json(json.loads(json.dumps(label_tree_to_json(label)))) is label


def test_a_giant_text_in_an_error_is_cut_short() -> None:
    for written in (
        "x" * 10**7,
        {"labels": [{"sources": [["y" * 10**7, "t", "", ""]], "readers": "public"}], "shade": 0},
    ):
        with pytest.raises(LabelError) as error:
            label_tree_from_json(written)
        assert len(str(error.value)) < 400
