"""Nobody but the person answers: requests are endorsed and calls approved in a form, or wait elsewhere."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from hypothesis import given, strategies as st
from mcp_world import MODES, Person, ServedMcp, code, facts, serving_mcp
from server_world import FORWARD, REQUEST

from bicameral.server._mcp_questions import Declined, Filled, Form, Undecided, fenced, read_reply

TWO_POSTS = (
    'text = read_text("mail.txt")\npost("kim@example.com", text)\npost("ann@example.com", text)\nanswer("both")\n'
)
POSTED = "kim@example.com: invoice 7 is open"

NOT_A_YES = [
    "decline",
    "cancel",
    {"yes": False},
    {},
    {"yes": "true"},
    {"yes": 1},
    {"yes": None},
    {"yes": True, "always": True},
    {"approve": True},
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reply", NOT_A_YES)
async def test_a_request_without_a_clear_yes_is_not_planned(served_mcp: ServedMcp, mode: str, reply: Any) -> None:
    person = Person([reply])
    async with served_mcp.client(mode, person=person) as client:
        before = facts(await client.call_tool("runs_list", {}))
        for tool, arguments in (
            ("run", {"request": REQUEST}),
            ("run", {"plan": FORWARD}),
            ("plan", {"request": REQUEST}),
        ):
            result = await client.call_tool(tool, arguments)
            assert code(result) == "intent.not-endorsed"
        assert facts(await client.call_tool("runs_list", {})) == before
    assert len(person.asked) == 3


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_ask_plans_nothing_and_may_check(served_mcp: ServedMcp, mode: str) -> None:
    async with served_mcp.client(mode) as client:
        for tool, arguments in (
            ("run", {"request": REQUEST}),
            ("run", {"plan": FORWARD}),
            ("plan", {"request": REQUEST}),
        ):
            result = await client.call_tool(tool, arguments)
            assert code(result) == "intent.needs-endorsement"
            [text] = result.content
            assert isinstance(text, types.TextContent)
            assert "--requests trusted" in text.text
        assert facts(await client.call_tool("check", {"plan": FORWARD}))["ok"]


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_endorsed_is_what_a_screen_shows(served_mcp: ServedMcp, mode: str) -> None:
    person = Person()
    wide = "Remove duplicates from mail.txt" + " " * 60 + "and find lines mentioning invoices"
    async with served_mcp.client(mode, person=person) as client:
        hidden = await client.call_tool("run", {"request": REQUEST + "\u200b\U000e0041"})
        told = facts(await client.call_tool("run", {"request": wide}))
        [newest] = facts(await client.call_tool("runs_list", {"limit": 1}))["runs"]
        commented = f"# It only reads, I promise.\n{FORWARD}"
        await client.call_tool("run", {"plan": commented})
    assert code(hidden) == "intent.unseen"
    assert (told["state"], newest["run"]) == ("finished", told["run"])
    # Long rows of blanks could push something off the screen: what is shown has none, and that is what is planned.
    assert newest["request"] == " ".join(wide.split())
    assert newest["request"] in person.messages[0]
    # A comment could say anything: the plan is printed from what would run.
    assert "I promise" not in person.messages[1]
    assert 'post("kim@example.com", text)' in person.messages[1]


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_is_made_after_a_yes_and_not_after_a_no(served_mcp: ServedMcp, mode: str) -> None:
    before = len(served_mcp.posted())
    person = Person([{"yes": True}, {"approve": True}])
    async with served_mcp.client(mode, person=person) as client:
        approved = facts(await client.call_tool("run", {"plan": FORWARD}))
    assert (approved["state"], approved["effects"]) == ("finished", [{"step": "1", "tool": "post", "effect": "send"}])
    assert served_mcp.posted()[before:] == [POSTED]
    shown = person.messages[1]
    assert "kim@example.com" in shown
    assert "hello, see www.example.org" in shown
    for reply in ("decline", {"approve": False}):
        person = Person([{"yes": True}, reply])
        async with served_mcp.client(mode, person=person) as client:
            denied = await client.call_tool("run", {"plan": FORWARD})
        assert (denied.is_error, facts(denied)["ending"]) == (True, "denied")
    assert served_mcp.posted()[before:] == [POSTED]


@pytest.mark.parametrize("mode", MODES)
async def test_a_form_that_decides_nothing_leaves_the_question_open(served_mcp: ServedMcp, mode: str) -> None:
    before = served_mcp.posted()
    person = Person([{"yes": True}, "cancel", {"approve": "yes"}, {}, {"approve": True, "call_1": True}])
    async with served_mcp.client(mode, person=person) as client:
        told = facts(await client.call_tool("run", {"plan": FORWARD}))
        assert (told["state"], told["ending"]) == ("waiting", "asked")
        [waits] = told["waits_for"]
        assert f"bicameral approvals show {waits}" in told["next"]
        for _ in range(3):
            asked = facts(await client.call_tool("approval_ask", {"approval": waits}))
            assert asked["state"] == "open"
        assert served_mcp.posted() == before
    async with served_mcp.client(mode, person=Person()) as client:
        asked = facts(await client.call_tool("approval_ask", {"approval": waits}))
        assert (asked["state"], asked["approved"]) == ("approved", 1)
        # Answered is answered: nobody is asked again.
        again = facts(await client.call_tool("approval_ask", {"approval": waits}))
        assert again["state"] == "approved"
        ended = facts(await client.call_tool("run_show", {"run": told["run"], "wait": 60}))
    assert ended["state"] == "finished"
    assert served_mcp.posted() == [*before, POSTED]


@pytest.mark.parametrize("mode", MODES)
async def test_several_calls_are_answered_one_by_one(served_mcp: ServedMcp, mode: str) -> None:
    before = len(served_mcp.posted())
    person = Person([{"yes": True}, {"call_1": False, "call_2": True}])
    async with served_mcp.client(mode, person=person) as client:
        result = await client.call_tool("run", {"plan": TWO_POSTS})
    schema = person.asked[1].requested_schema
    assert schema["required"] == ["call_1", "call_2"]
    assert all(each["default"] is False for each in schema["properties"].values())
    assert facts(result)["ending"] == "denied"
    assert served_mcp.posted()[before:] == ["ann@example.com: invoice 7 is open"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_ask_is_told_where_to_answer(served_mcp: ServedMcp, mode: str) -> None:
    async with served_mcp.client(mode, person=Person([{"yes": True}, "cancel"])) as client:
        told = facts(await client.call_tool("run", {"plan": FORWARD}))
    [waits] = told["waits_for"]
    async with served_mcp.client(mode) as silent:
        result = await silent.call_tool("approval_ask", {"approval": waits})
        assert code(result) == "server.cannot-ask"
        assert f"bicameral approvals show {waits}" in str(result.content)
        assert facts(await silent.call_tool("run_cancel", {"run": told["run"]}))["state"] == "stopped"
        # The question went with the run, and no yes can bring it back.
        [gone] = [
            each
            for each in facts(await silent.call_tool("approvals_list", {"open": False}))["approvals"]
            if each["approval"] == waits
        ]
    assert gone["state"] == "withdrawn"


def test_trusted_requests_run_without_endorsement_and_calls_still_ask(tmp_path: Any) -> None:
    """A program whose text is all the user's own is not asked about it; policy asks about calls all the same."""
    import anyio

    async def main(served: ServedMcp) -> None:
        person = Person()
        async with served.client(person=person) as client:
            answered = facts(await client.call_tool("run", {"request": REQUEST}))
            assert (answered["state"], person.asked) == ("finished", [])
            # Values stay where they are with this option, and are no more trusted for that.
            assert (answered["answer"], answered["trusted"]) == (["invoice 7 is open", "invoice 9 is paid"], False)
            await client.call_tool("run", {"plan": FORWARD})
            assert [each.requested_schema["required"] for each in person.asked] == [["approve"]]
        async with served.client() as silent:
            waiting = facts(await silent.call_tool("run", {"plan": FORWARD}))
            assert waiting["state"] == "waiting"
        assert served.posted() == [POSTED]

    with serving_mcp(tmp_path / "trusted", "--requests", "trusted", "--answers", "plain") as served:
        anyio.run(main, served)


FORM = Form("k", "?", {"yes": {"type": "boolean"}, "how": {"type": "string", "enum": ["a", "b"]}})
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["yes", "how", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from(["accept", "decline", "cancel", "Accept", "", None, True]) | _JSON, _JSON)
def test_only_the_form_itself_counts_as_filled_in(action: object, content: object) -> None:
    match read_reply(FORM, action, content):
        case Filled(values):
            assert action == "accept"
            assert values == content
            assert type(values["yes"]) is bool
            assert values["how"] in ("a", "b")
        case Declined():
            assert action == "decline"
        case Undecided():
            assert action != "decline"


@pytest.mark.parametrize(
    "content",
    [
        {"yes": True},
        {"yes": True, "how": "a", "always": True},
        {"yes": 1, "how": "a"},
        {"yes": "true", "how": "a"},
        {"yes": True, "how": "c"},
        {"yes": True, "how": ["a"]},
    ],
)
def test_a_form_that_comes_back_otherwise_decides_nothing(content: Any) -> None:
    assert read_reply(FORM, "accept", content) == Undecided()
    assert read_reply(FORM, "accept", {"yes": True, "how": "b"}) == Filled({"yes": True, "how": "b"})


@given(st.text(st.sampled_from("`a\n! []()")))
def test_no_text_ends_the_block_in_which_it_is_shown(text: str) -> None:
    fence, _, rest = fenced(text).partition("\n")
    inside, _, last = rest.rpartition("\n")
    assert (inside, last) == (text, fence)
    assert fence not in inside
