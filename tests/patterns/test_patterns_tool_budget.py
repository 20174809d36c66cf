"""V13: what a model is shown stays within the budget, as it is sent; a choice that fails never means all tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from patterns_world import HOSTILE, table

from bicameral.errors import CatalogError
from bicameral.patterns import Answered, GaveUp, from_user, untrusted_value
from bicameral.patterns._outcome import NoteEvent
from bicameral.patterns.integration.tool_call import ToolCalling
from bicameral.patterns.reasoning.react import ReAct
from bicameral.patterns.reliability.tool_budget import ToolBudget, schema_tokens
from bicameral.tools import Origin, Tool, tool
from invariants import holds


def counting_tool(subject: str, about: str = "") -> Tool:
    def count(place: str) -> int:
        return 7

    count.__name__ = f"count_{subject}"
    count.__doc__ = about or f"How many {subject} there are in a place."
    return tool(effect="read", outbound=False, origins=Origin("system"), purpose={"place": "selects"})(count)


SUBJECTS = ("orders", "parcels", "invoices", "refunds", "tickets", "meetings", "rooms", "flights", "trains", "hotels")
TOOLS = tuple(counting_tool(f"{subject}_{number}") for number in range(4) for subject in SUBJECTS)


def budgeted(script: Sequence[Any], task: Any, tools: Sequence[Tool] = TOOLS, **knobs: Any) -> tuple[Any, Any]:
    there = table(script, tools=tools)
    inner = knobs.pop("inner", ToolCalling())
    return there, asyncio.run(ToolBudget(inner, **knobs).run(there.desk, task))


def call(name: str, **arguments: Any) -> str:
    return json.dumps({"call": {"tool": name, "arguments": arguments}})


def offered(request: Any) -> list[str]:
    choices = request.json_schema["properties"]["call"]["anyOf"]
    return [each["properties"]["tool"]["const"] for each in choices if each["properties"]["tool"]["const"] != "none"]


def notes(outcome: Any, what: str) -> list[dict[str, Any]]:
    return [dict(each.facts) for each in outcome.trace if isinstance(each, NoteEvent) and each.what == what]


@holds("V13.1")
def test_tools_in_the_request_that_is_sent_stay_within_max_tools() -> None:
    there, outcome = budgeted([call("count_parcels_2", place="Ghent")], from_user("How many parcels 2?"), max_tools=3)
    assert outcome.value["result"] == 7
    shown = offered(there.privileged.asked[0])
    assert 1 <= len(shown) <= 3
    assert "count_parcels_2" in shown


@holds("V13.1")
def test_a_conversation_is_sent_no_more_tools_than_were_chosen() -> None:
    there, outcome = budgeted(["None."], from_user("How many parcels 2 are there?"), inner=ReAct(), max_tools=2)
    assert isinstance(outcome, Answered)
    assert all(0 < len(request.tools) <= 2 for request in there.privileged.asked)


@holds("V13.2")
def test_schema_tokens_stay_within_both_limits() -> None:
    task = from_user("How many rooms are there?")
    limits: tuple[dict[str, Any], ...] = ({"max_schema_tokens": 150}, {"max_window_share": 0.01, "window": 15_000})
    for knobs in limits:
        there, outcome = budgeted([call("count_rooms_0", place="Ghent")], task, **knobs)
        assert isinstance(outcome, Answered)
        chosen = [each for each in TOOLS if each.name in offered(there.privileged.asked[0])]
        assert 0 < schema_tokens(chosen) <= 150


def test_a_tool_whose_schema_is_too_large_makes_room_for_the_next() -> None:
    huge = counting_tool("rooms", "How many rooms there are. " + "Rooms and rooms. " * 60)
    there, _ = budgeted(
        [call("count_rooms_0", place="x")], from_user("How many rooms?"), (huge, *TOOLS), max_schema_tokens=200
    )
    assert "count_rooms" not in offered(there.privileged.asked[0])


@holds("V13.3")
def test_above_the_hard_limit_no_setting_helps() -> None:
    with pytest.raises(CatalogError, match="max_tools is 41"):
        ToolBudget(ToolCalling(), max_tools=41, hard_limit=40)
    with pytest.raises(CatalogError, match="hard_limit is 41"):
        ToolBudget(ToolCalling(), max_tools=40, hard_limit=41)
    with pytest.raises(CatalogError, match="max_tools is 20"):
        ToolBudget(ToolCalling(), max_tools=20, hard_limit=10)


def test_few_tools_are_all_shown_without_a_choice() -> None:
    there, outcome = budgeted([call("count_orders_0", place="x")], from_user("Xyzzy?"), TOOLS[:3])
    assert len(offered(there.privileged.asked[0])) == 3
    assert notes(outcome, "tools-shown") == [{"count": 3, "of": 3, "tokens": schema_tokens(TOOLS[:3])}]


def test_the_router_sees_names_and_first_lines_and_only_where_words_find_nothing() -> None:
    script = [json.dumps({"value": ["count_hotels_1", "count_hotels_1"]}), call("count_hotels_1", place="Ghent")]
    there, outcome = budgeted(script, from_user("Wo kann man schlafen?"), max_tools=2)
    assert outcome.value["tool"] == "count_hotels_1"
    routed, called = there.privileged.asked
    assert "- count_hotels_1: How many hotels_1 there are in a place." in routed.messages[0].text
    assert '"properties"' not in routed.messages[0].text
    assert routed.json_schema["properties"]["value"]["maxItems"] == 2
    assert offered(called) == ["count_hotels_1"]


@pytest.mark.parametrize("reply", [json.dumps({"value": []}), json.dumps({"value": ["send_all"]}), "all of them"])
def test_a_router_that_fails_does_not_open_all_tools(reply: str) -> None:
    there, outcome = budgeted([reply, reply, call("count_orders_0", place="x")], from_user("Xyzzy?"))
    assert isinstance(outcome, GaveUp)
    assert not any('"call"' in json.dumps(request.json_schema) for request in there.privileged.asked)
    assert not outcome.tool_calls


def test_without_a_router_a_task_that_fits_nothing_fails() -> None:
    _, outcome = budgeted([], from_user("Xyzzy?"), router=None)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.tool-budget"


def test_a_tool_that_was_not_chosen_is_not_called_even_if_the_model_names_it() -> None:
    script = [call("count_orders_0", place="x"), call("count_orders_0", place="x")]
    _, outcome = budgeted(script, from_user("How many parcels 2?"), max_tools=1)
    assert isinstance(outcome, GaveUp)
    assert not outcome.tool_calls


def test_untrusted_words_that_choose_tools_leave_their_label() -> None:
    there = table([], quarantined=[call("count_rooms_0", place="x")], tools=TOOLS)
    task = untrusted_value(f"{HOSTILE} How many rooms?", "mail")
    outcome = asyncio.run(ToolBudget(ToolCalling()).run(there.desk, task))
    assert isinstance(outcome, Answered)
    assert not outcome.label.trusted
    assert not there.privileged.asked


@holds("V13.6")
def test_the_trace_lists_tools_that_were_shown_and_not_used() -> None:
    _, outcome = budgeted([call("count_orders_0", place="x")], from_user("?"), TOOLS[:3])
    assert notes(outcome, "tools-unused") == [{"count": 2, "names": "count_invoices_0, count_parcels_0"}]
