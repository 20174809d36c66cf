"""Stacks out of Python: mappings, whatever has `architecture()`, and several of them together."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from bicameral.catalog.lint import lint
from bicameral.catalog.stacks import Stack, stack_of
from bicameral.errors import CatalogError


class Told:
    """Something that says what it is made of."""

    def __init__(self, **described: Any) -> None:
        self._described = described

    def architecture(self) -> Any:
        return self._described


class Broken:
    def architecture(self) -> Any:
        raise RuntimeError("no idea")


class Odd:
    def architecture(self) -> Any:
        return ["V9"]


def wrong(what: object) -> CatalogError:
    with pytest.raises(CatalogError) as caught:
        stack_of(what)
    return caught.value


def test_a_mapping_is_a_stack() -> None:
    stack = stack_of({"name": "One", "patterns": ["V9", {"R4": {"max_steps": 8}}]})
    assert isinstance(stack, Stack)
    assert stack.name == "One"
    assert stack.whole.patterns == {"V9", "R4"}
    assert stack_of({"patterns": ("V9", "V14")}, name="Two").name == "Two"


def test_an_object_tells_its_architecture() -> None:
    assert stack_of(Told(name="T", patterns=["V9"])).whole.patterns == {"V9"}


def test_several_are_put_together() -> None:
    stack = stack_of(
        [
            Told(name="ReAct", patterns=[{"R4": {"max_steps": 8}}], facts={"calls_independent": False}),
            Told(name="Bounds", patterns=["V9"]),
            {"patterns": ["V14"], "agents": {"a": {"patterns": ["K1"]}}},
            {"agents": {"b": {"patterns": ["K9"]}}},
        ]
    )
    assert stack.name == "ReAct + Bounds"
    assert stack.whole.patterns == {"R4", "V9", "V14"}
    assert [agent.name for agent in stack.agents] == ["a", "b"]
    assert stack.whole.facts == {"calls_independent": False}


def test_two_agents_of_one_name_are_refused() -> None:
    agent = {"agents": {"a": {"patterns": ["V9"]}}}
    assert wrong([agent, agent]).code == "stack.duplicate-agent"


def test_what_is_said_in_two_ways_is_refused() -> None:
    assert wrong([{"facts": {"production": True}}, {"facts": {"production": False}}]).code == "stack.contradiction"
    assert wrong([{"model": "a"}, {"model": "b"}]).code == "stack.contradiction"
    same = {"patterns": ["V9"], "facts": {"production": True}, "model": "a"}
    assert stack_of([same, same]).whole.facts == {"production": True}


@pytest.mark.parametrize("what", [3, "V9", None, object(), Told, Broken(), Odd(), [Told(patterns=["V9"]), 3]])
def test_what_does_not_say_what_it_is_made_of_is_refused(what: object) -> None:
    error = wrong(what)
    assert error.code == "stack.not-described"


def test_places_in_an_object_are_paths() -> None:
    error = wrong({"patterns": ["V9"], "agents": {"a": {"patterns": ["R44"]}}})
    assert error.place is not None
    assert error.place.argument == "agents.a.patterns[0]"
    assert wrong({"patterns": ["V9"], 3: "x"}).code == "stack.bad-value"
    (finding, *_) = lint(stack_of({"patterns": ["V9", "R13"]})).of_severity("error")
    assert finding.place.argument == finding.path


def test_days_may_be_days() -> None:
    waivers = [{"rule": "LAW1", "until": date(2027, 3, 1)}, {"rule": "LAW1", "until": datetime(2027, 3, 1, 12)}]
    stack = stack_of({"patterns": ["V9"], "waivers": waivers})
    assert [waiver.until for waiver in stack.waivers] == [date(2027, 3, 1)] * 2


def test_patterns_of_ones_own_have_rules_of_their_own() -> None:
    described = {
        "patterns": ["RANK", "K1", "V14"],
        "define": {
            "RANK": {
                "needs": ["FETCH"],
                "needs_one_of": ["V15", "R17"],
                "not_with": ["K1"],
                "loops": True,
                "why": "it ranks",
            },
            "FETCH": {"name": "Fetcher"},
        },
    }
    errors = {finding.rule: finding for finding in lint(stack_of(described)).of_severity("error")}
    assert {"REQ-RANK", "ONE-RANK", "NOT-RANK-K1"} <= {*errors}
    assert errors["REQ-RANK"].reason == "it ranks"
    assert "LOOP-RANK" in errors["LAW1"].also
