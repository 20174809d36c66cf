"""A connection is a run: its record, its limits, its calls side by side, and its end whatever ends it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from click.testing import CliRunner
from firewall_world import ANA, HOSTILE, MODES, Person, World, code_of, handle_of, make_stand, no, text_of, yes
from mcp import MCPError

from bicameral.cli import main
from bicameral.errors import ConfigError, JournalError, ToolError
from bicameral.firewall import Firewall, FirewallSettings, ServerRules
from bicameral.policy import Policy
from bicameral.tools import Origin, Registry, Tool, tool


@pytest.mark.parametrize("mode", MODES)
async def test_a_session_is_a_run_that_ends_with_its_client(tmp_path: Path, mode: str) -> None:
    stand = make_stand(tmp_path)
    async with stand.client(mode) as client:
        await client.call_tool("mail_read", {"folder": "inbox"})
        await client.call_tool("nothing", {})
    events = stand.events()
    assert [event.kind for event in events] == ["run-started", "step-started", "step-finished", "note", "run-finished"]
    assert events[-1].body["answer"] == {"calls": 2, "failed": 1, "cancelled": 0}
    assert "the MCP client" in events[0].body["request"]
    assert set(events[0].body["tools"]) == {each.name for each in stand.world.tools()}


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_only_looks_leaves_no_record(tmp_path: Path, mode: str) -> None:
    stand = make_stand(tmp_path)
    async with stand.client(mode) as client:
        await client.list_tools()
    assert list(stand.journal.runs()) == []


async def test_the_command_line_shows_the_session(tmp_path: Path) -> None:
    stand = make_stand(tmp_path)
    async with stand.client("auto", no()) as client:
        await client.call_tool("mail_list", {})
        await client.call_tool("mail_send", {"to": ANA, "body": "x"})
    (tmp_path / "bicameral.toml").write_text(f'[journal]\nfile = "{tmp_path / "journal.db"}"\n')
    run = next(iter(stand.journal.runs())).run
    shown = await asyncio.to_thread(
        CliRunner().invoke, main, ["runs", "show", run, "--config", str(tmp_path / "bicameral.toml")]
    )
    listed = await asyncio.to_thread(
        CliRunner().invoke, main, ["runs", "list", "--config", str(tmp_path / "bicameral.toml")]
    )
    assert shown.exit_code == 0, shown.output
    assert "mail_list" in shown.output
    assert "asked about 1, approved 0" in shown.output
    assert run in listed.output


@pytest.mark.parametrize("mode", MODES)
async def test_a_cancelled_call_is_cancelled_and_the_session_goes_on(tmp_path: Path, mode: str) -> None:
    held = asyncio.Event()
    begun = asyncio.Event()

    @tool(effect="read", outbound=False, origins={})
    async def slow_read() -> str:
        """Something slow."""
        begun.set()
        await held.wait()
        return "done"

    stand = make_stand(tmp_path, tools=[*World().tools(), slow_read])
    async with stand.client(mode) as client:
        call = asyncio.create_task(client.call_tool("slow_read", {}))
        await begun.wait()
        (doing,) = stand.sessions[-1].calls
        call.cancel()
        await asyncio.wait({call, doing})
        assert doing.cancelled()
        assert (await client.call_tool("notes_diary", {})).is_error is False
    assert stand.kinds()[-1] == "run-finished"
    assert [event.body.get("noted") for event in stand.events() if event.kind == "note"] == ["call-cancelled"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_that_is_cancelled_while_a_person_is_asked_is_not_made(tmp_path: Path, mode: str) -> None:
    stand = make_stand(tmp_path)
    asked, never = asyncio.Event(), asyncio.Event()

    async def thinking(context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
        asked.set()
        await never.wait()
        return types.ElicitResult(action="accept", content={"approve": True})

    async with stand.client(mode, thinking) as client:  # pyright: ignore[reportArgumentType]
        await client.call_tool("mail_list", {})
        call = asyncio.create_task(client.call_tool("mail_send", {"to": ANA, "body": "x"}))
        await asked.wait()
        call.cancel()
        await asyncio.wait({call})
        never.set()
        assert (await client.call_tool("notes_diary", {})).is_error is False
    assert stand.world.sent == []
    assert stand.kinds()[-1] == "run-finished"


async def test_a_change_that_has_begun_is_finished_when_the_client_goes(tmp_path: Path) -> None:
    stand = make_stand(tmp_path)
    async with stand.client("legacy") as client:
        call = asyncio.create_task(client.call_tool("notes_write", {"name": "a", "text": "b"}))
        await stand.world.began.wait()
        asyncio.get_running_loop().call_soon(stand.world.hold.set)
        call.cancel()
        await asyncio.wait({call})
    assert stand.world.posted == ["b"]
    assert stand.kinds()[-1] == "run-finished"
    assert stand.events()[-1].body["effects"][0]["tool"] == "notes_write"


async def test_a_change_without_a_known_end_stops_the_run_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bicameral.runs import _effect_execution

    monkeypatch.setattr(_effect_execution, "GRACE_SECONDS", 0.01)
    stand = make_stand(tmp_path)
    async with stand.client("legacy") as client:
        call = asyncio.create_task(client.call_tool("notes_write", {"name": "a", "text": "b"}))
        await stand.world.began.wait()
        call.cancel()
        await asyncio.wait({call})
    assert stand.world.posted == []
    assert stand.kinds()[-1] == "run-stopped"
    assert stand.events()[-1].body["in_flight"] == ["1"]


async def test_calls_go_on_side_by_side_and_a_question_waits_for_none_of_them(tmp_path: Path) -> None:
    stand = make_stand(tmp_path)
    async with stand.client("auto", yes()) as client:
        await client.call_tool("mail_read", {"folder": "inbox"})
        writing = asyncio.create_task(client.call_tool("notes_write", {"name": "a", "text": "b"}))
        await stand.world.began.wait()
        mail = handle_of(await client.call_tool("mail_read", {"folder": "inbox"}))
        assert (await client.call_tool("mail_send", {"to": ANA, "body": mail})).is_error is False
        stand.world.hold.set()
        assert (await writing).is_error is False
    assert len(stand.world.sent) == 1


async def test_two_clients_share_neither_labels_nor_results_nor_refusals(tmp_path: Path) -> None:
    stand = make_stand(tmp_path)
    refusing, agreeing = no(), yes()
    async with stand.client("auto", refusing) as one, stand.client("legacy", agreeing) as other:
        await one.call_tool("mail_list", {})
        assert code_of(await one.call_tool("mail_send", {"to": ANA, "body": "x"})) == "run.refused"
        # This client has read nothing, so that its words are still the user's.
        assert (await other.call_tool("mail_send", {"to": ANA, "body": "x"})).is_error is False
        await other.call_tool("mail_list", {})
        assert (await other.call_tool("mail_send", {"to": ANA, "body": "x"})).is_error is False
    assert len(refusing.asked) == len(agreeing.asked) == 1
    assert len({session.id for session in stand.sessions}) == 2


async def test_rates_hold_for_all_clients_together_and_for_one_server(tmp_path: Path) -> None:
    now = [0.0]
    settings = FirewallSettings(servers={"mail": ServerRules(rate="2/min")})
    stand = make_stand(tmp_path, settings, clock=lambda: now[0])
    async with stand.client("auto") as one, stand.client("legacy") as other:
        assert (await one.call_tool("mail_read", {"folder": "a"})).is_error is False
        assert (await other.call_tool("mail_read", {"folder": "a"})).is_error is False
        refused = await one.call_tool("mail_read", {"folder": "a"})
        assert (await one.call_tool("notes_diary", {})).is_error is False
        now[0] = 61.0
        assert (await one.call_tool("mail_read", {"folder": "a"})).is_error is False
    assert code_of(refused) == "rates.exceeded"
    assert len(stand.world.read) == 3


async def test_a_session_takes_no_more_than_it_may(tmp_path: Path) -> None:
    stand = make_stand(tmp_path, FirewallSettings(calls=2))
    async with stand.client("auto") as client:
        results = [await client.call_tool("notes_diary", {}) for _ in range(4)]
    assert [each.is_error for each in results] == [False, False, True, True]
    assert code_of(results[-1]) == "run.cap"


@pytest.mark.parametrize(
    "body",
    [
        "x" * 2_000,
        "$r1_aaaa " * 70,
        [["x"]] * 600,
    ],
    ids=["long", "names", "parts"],
)
async def test_oversized_arguments_are_refused_before_anything_is_done(tmp_path: Path, body: Any) -> None:
    stand = make_stand(tmp_path, FirewallSettings(argument_chars=1_500))
    async with stand.client("auto") as client:
        result = await client.call_tool("web_search", {"query": body})
    assert code_of(result) == "firewall.arguments-too-large"
    assert stand.world.posted == []


async def test_deep_arguments_are_refused(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(60):
        deep = [deep]
    stand = make_stand(tmp_path)
    async with stand.client("auto") as client:
        assert code_of(await client.call_tool("notes_count", {"texts": deep})) == "firewall.arguments-too-large"


async def test_a_few_names_do_not_fill_the_memory(tmp_path: Path) -> None:
    @tool(effect="read", outbound=False, origins={})
    def big_read() -> str:
        """A large text."""
        return "x" * 1_000_000

    stand = make_stand(tmp_path, tools=[*World().tools(), big_read])
    async with stand.client("auto", yes()) as client:
        big = handle_of(await client.call_tool("big_read", {}))
        result = await client.call_tool("notes_count", {"texts": [big] * 30})
    assert code_of(result) == "firewall.arguments-too-large"


@pytest.mark.filterwarnings("ignore:Pydantic serializer")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("arguments", [["a"], "text", 5, True])
async def test_arguments_that_are_no_object_reach_no_tool(tmp_path: Path, mode: str, arguments: Any) -> None:
    stand = make_stand(tmp_path)
    async with stand.client(mode) as client:
        request = types.CallToolRequest.model_construct(
            method="tools/call",
            params=types.CallToolRequestParams.model_construct(name="mail_read", arguments=arguments),
        )
        with pytest.raises(MCPError):
            await client.session.send_request(request, types.CallToolResult)
    assert stand.world.read == []


@pytest.mark.parametrize(
    "arguments", [{"folder": 1}, {"folder": None}, {}, {"folder": "a", "more": "b"}, {"\x1b": "a"}]
)
async def test_arguments_that_the_tool_does_not_take_are_refused(tmp_path: Path, arguments: Any) -> None:
    stand = make_stand(tmp_path)
    async with stand.client("auto") as client:
        result = await client.call_tool("mail_read", arguments)
    assert code_of(result).startswith("tools.")
    assert stand.world.read == []


async def test_what_cannot_be_recorded_is_not_done_and_ends_the_session(tmp_path: Path) -> None:
    stand = make_stand(tmp_path)
    async with stand.client("auto", yes()) as client:
        await client.call_tool("notes_diary", {})

        def full(*_: Any, **__: Any) -> None:
            raise JournalError("journal.unwritable", f"{tmp_path}: the disk is full")

        stand.journal.append_all = full  # pyright: ignore[reportAttributeAccessIssue]
        first = await client.call_tool("mail_send", {"to": ANA, "body": "x"})
        second = await client.call_tool("notes_diary", {})
    assert code_of(first) == "journal.unwritable"
    assert second.is_error
    # Nothing about the machine.
    assert str(tmp_path) not in text_of(first) + text_of(second)
    assert stand.world.sent == []


async def test_a_dead_server_is_an_error_of_that_call_alone(tmp_path: Path) -> None:
    from bicameral.errors import ToolError

    async def dead(arguments: Any) -> object:
        raise ToolError("tools.failed", "the process has ended: IGNORE")

    first = World().tools()[0]
    gone = replace(first, name="gone_read", run=dead)
    stand = make_stand(tmp_path, tools=[*World().tools(), gone])
    async with stand.client("auto") as client:
        result = await client.call_tool("gone_read", {"folder": "x"})
        assert (await client.call_tool("notes_diary", {})).is_error is False
    assert code_of(result) == "tools.failed"
    assert "IGNORE" not in text_of(result)


def test_a_tool_with_a_name_of_the_firewalls_own_is_an_error() -> None:
    def named(name: str) -> Tool:
        return World().tools()[0].with_name(name)

    for name in ("reveal", "extract_value"):
        with pytest.raises(ConfigError) as error:
            Firewall(Registry([named(name)]), Policy())
        assert error.value.code == "firewall.tool-name"


async def test_the_person_is_told_which_client_asks(tmp_path: Path) -> None:
    stand = make_stand(tmp_path)
    info = types.Implementation(name="evil\x1b[2J" + "x" * 100, version="1")
    async with stand.client("auto", Person(lambda message: "decline"), client_info=info) as client:
        await client.call_tool("mail_list", {})
    assert "\x1b" not in stand.events()[0].body["request"]
    assert "evil<001b>" in stand.events()[0].body["request"]


async def test_calls_that_wait_for_the_session_to_begin_count_as_under_way(tmp_path: Path) -> None:
    stand = make_stand(tmp_path, FirewallSettings(calls_at_once=3))
    session = stand.firewall.new_session()
    written = {"name": "a", "text": "b"}
    begun = [session.start_call("notes_write", written, can_ask=False) for _ in range(20)]
    found = await asyncio.gather(*begun, return_exceptions=True)
    assert sum(isinstance(each, ToolError) and each.code == "firewall.busy" for each in found) == 17
    stand.world.hold.set()
    await session.aclose()
    assert len(stand.world.posted) <= 3


async def test_where_nothing_can_be_recorded_not_even_a_first_read_is_made(tmp_path: Path) -> None:
    stand = make_stand(tmp_path)

    def full(*_: Any, **__: Any) -> None:
        raise JournalError("journal.unwritable", "the disk is full")

    stand.journal.append_all = full  # pyright: ignore[reportAttributeAccessIssue]
    async with stand.client("auto") as client:
        for name, arguments in (("mail_read", {"folder": "inbox"}), ("web_search", {"query": "ducks"})):
            result = await client.call_tool(name, arguments)
            assert (code_of(result), "nothing can be recorded" in text_of(result)) == ("journal.unwritable", True)
    assert stand.world.read == stand.world.posted == []


async def test_refused_calls_are_recorded_up_to_a_number_and_counted_beyond(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bicameral.firewall._calls.MOST_REFUSED", 5)
    monkeypatch.setattr("bicameral.firewall._session.MOST_REFUSED", 5)
    stand = make_stand(tmp_path)
    async with stand.client("auto") as client:
        for _ in range(9):
            assert code_of(await client.call_tool("nothing", {})) == "tools.unknown"
    assert stand.kinds().count("note") == 5
    assert stand.events()[-1].body["answer"]["refused"] == 9


async def test_a_list_of_everything_has_the_label_of_what_was_stored_before(tmp_path: Path) -> None:
    stored: dict[str, str] = {"shopping": "bread"}

    @tool(effect="write", outbound=False, purpose={"name": "directs", "text": "carries"}, origins=Origin("system"))
    def box_put(name: str, text: str) -> str:
        """Put a text into the box."""
        stored[name] = text
        return "done"

    @tool(effect="read", outbound=False, origins=Origin("user"))
    def box_all() -> str:
        """All texts in the box."""
        return ", ".join(stored.values())

    @tool(effect="read", outbound=False, origins=Origin("user"), purpose={"name": "selects"})
    def box_get(name: str) -> str:
        """One text in the box."""
        return stored[name]

    box = [replace(each, toolbox="mcp:box") for each in (box_put, box_all, box_get)]
    stand = make_stand(tmp_path, tools=[*World().tools(), *box])
    async with stand.client("auto") as client:
        assert "bread" in text_of(await client.call_tool("box_all", {}))
        mail = handle_of(await client.call_tool("mail_read", {"folder": "inbox"}))
        assert (await client.call_tool("box_put", {"name": "mail", "text": mail})).is_error is False
        for name, arguments in (("box_all", {}), ("box_get", {"name": "mail"})):
            assert HOSTILE[:20] not in text_of(await client.call_tool(name, arguments))
        # What is read by another name is what it was.
        assert "bread" in text_of(await client.call_tool("box_get", {"name": "shopping"}))
