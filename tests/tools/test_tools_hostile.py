"""A declaration that cannot be true is refused in few words, however it is made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from bicameral.errors import ToolError
from bicameral.plans.evaluate._bounds import MAX_ALL_TEXT, MAX_BITS, MAX_ITEMS, MAX_TEXT, MAX_VALUE_DEPTH
from bicameral.tools import Argument, Origin, Participants, Registry, Tool
from bicameral.types import (
    STR,
    ListType,
    _values as own,  # pyright: ignore[reportPrivateUsage]
    type_from_json,
)


async def _run(_: Mapping[str, Any]) -> object:
    raise AssertionError("it was called")


def _tool(**facts: Any) -> Tool:
    made: dict[str, Any] = {"name": "t", "doc": "", "arguments": (), "result": STR, "effect": "read", "run": _run}
    return Tool(**(made | facts))


WRONG: dict[str, dict[str, Any]] = {
    "an effect that nobody knows": {"effect": "harmless"},
    "no effect": {"effect": None},
    "a purpose that nobody knows": {"arguments": (Argument("to", STR, purpose="decorates"),)},  # pyright: ignore
    "two arguments of one name": {"arguments": (Argument("to", STR), Argument("to", STR, purpose="selects"))},
    "a word for yes": {"outbound": "no"},
    "a number for no": {"declared": 0},
    "sends and tells nobody": {"effect": "send", "outbound": False},
    "a time without end": {"timeout": float("inf")},
    "a time that is none": {"timeout": float("nan")},
    "no time": {"timeout": 0},
    "a trust that nobody has": {"origins": {"": Origin("god")}},  # pyright: ignore
    "a trust in a list": {"origins": {"": Origin(["user"])}},  # pyright: ignore
    "readers that are none": {"origins": {"": Origin("user", "everyone")}},  # pyright: ignore
    "readers in a list": {"origins": {"": Origin("user", ["eve"])}},  # pyright: ignore
    "readers named by a field that is not there": {"origins": {"": Origin("user", Participants(("x",)))}},
    "a word for an origin": {"origins": {"": "user"}},
    "a part that is no text": {"origins": {1: Origin("user")}},
    "a part that the result does not have": {"origins": {"[].x": Origin("user")}},
    "a part without end": {"origins": {"[]" * 100_000: Origin("user")}},
    "receivers that are no arguments": {"effect": "send", "receivers": ("to",)},
    "a tool that keeps what it never got": {"effect": "pure", "result": ListType(STR), "keeps": "items"},
    "a reader that keeps": {"arguments": (Argument("a", STR),), "result": ListType(STR), "keeps": "a"},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_declaration_that_cannot_be_true_is_refused(name: str) -> None:
    with pytest.raises(ToolError) as caught:
        _tool(**WRONG[name])
    assert caught.value.code.startswith("tools.")
    assert len(str(caught.value)) < 1_500


@pytest.mark.parametrize("name", ["extract", "request", "ask", "endorsed", "unknown", "a b", "", "x'; --", "if"])
def test_no_tool_can_take_the_name_of_what_the_runtime_itself_brings_in(name: str) -> None:
    with pytest.raises(ToolError):
        Registry([_tool(name=name)])


def test_a_declaration_cannot_be_changed_after_it_was_made() -> None:
    origins = {"": Origin("third_party")}
    made = _tool(origins=origins)
    origins[""] = Origin("user")
    assert made.origins[""] == Origin("third_party")
    with pytest.raises(TypeError):
        made.origins[""] = Origin("user")  # pyright: ignore
    with pytest.raises(AttributeError):
        made.outbound = False  # pyright: ignore
    assert not made.result_labels("x", "0").flat.trusted


@pytest.mark.parametrize("kind", ["list", "optional", "dict"])
def test_a_type_nested_without_end_is_refused(kind: str) -> None:
    written: Any = "str"
    for _ in range(900):
        written = {kind: written}
    with pytest.raises(ValueError, match="nested"):
        type_from_json(json.loads(json.dumps(written)))


def test_a_value_has_the_bounds_of_the_language() -> None:
    ours = own.MAX_VALUE_DEPTH, own.MAX_ITEMS, own.MAX_TEXT, own.MAX_ALL_TEXT, own.MAX_BITS
    assert ours == (MAX_VALUE_DEPTH, MAX_ITEMS, MAX_TEXT, MAX_ALL_TEXT, MAX_BITS)
