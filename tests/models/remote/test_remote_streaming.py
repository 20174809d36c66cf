"""Plans of remote models arrive line by line, and nothing that a reply will not have is ever told."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, strategies as st
from remote_world import DONE, USAGE, Loopback, ask, piece, remote, streamed

from bicameral import Agent, Finished, ScriptedProvider
from bicameral.agent import StatementWritten
from bicameral.config import Config
from bicameral.models import ModelProgress, Usage, watch_model
from bicameral.models.remote._translation import StreamShaper, shape_text
from bicameral.tools import tool

PIECES = ("```py", "thon\nfirst = do", "uble(2)\nanswer(fi", "rst)\n``", "`\nThat is all.")


@tool(effect="pure")
def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


def agent(server: Loopback) -> Agent:
    quarantined = ScriptedProvider([], grammars=False)
    return Agent(
        [double], config=Config.defaults(), privileged=remote(server, key=None), quarantined=quarantined, cache={}
    )


async def test_a_plan_is_told_line_by_line_while_it_is_written() -> None:
    written = [piece({"content": text}) for text in PIECES]
    async with Loopback(streamed(*written, piece({}, "stop"), USAGE, DONE)) as server, agent(server) as made:
        events = [event async for event in made.stream("Double 2", deterministic=True)]
        assert server.seen[0].body["stream"] is True
    lines = [event.text for event in events if isinstance(event, StatementWritten)]
    assert lines == ["first = double(2)", "answer(first)"]
    assert isinstance(events[-1], Finished)
    assert events[-1].answer == 4


async def test_the_first_line_comes_before_the_reply_is_complete_and_leaving_closes_the_connection() -> None:
    never = streamed(piece({"content": "first = double(2)\nanswer("}), piece({"content": "first)\n"}), pause=60)
    async with Loopback(never) as server, agent(server) as made:
        events = made.stream("Double 2", deterministic=True)
        async with asyncio.timeout(30):
            assert await anext(events) == StatementWritten("first = double(2)")
            await events.aclose()
            await server.left.wait()


async def test_the_progress_of_a_reply_is_told_in_tokens_and_a_broken_listener_changes_nothing() -> None:
    written = [piece({"content": text}) for text in ("twelve chars", "and twelve more")]
    told: list[ModelProgress] = []

    def listen(progress: ModelProgress) -> None:
        told.append(progress)
        raise ValueError("broken")

    async with Loopback(streamed(*written, piece({}, "stop"), USAGE, DONE)) as server:
        model = remote(server)
        with watch_model(listen):
            assert "".join([text async for text in model.stream(ask())]) == "twelve charsand twelve more"
        await model.aclose()
    assert {(each.stage, each.model) for each in told} == {("writing", model.name)}
    assert sorted({each.done for each in told}) == [3, 6]


async def test_a_stop_string_in_pieces_is_never_told() -> None:
    written = [piece({"content": text}) for text in ("a``", "b", "``", "`c")]
    async with Loopback(streamed(*written, piece({}, "stop"), USAGE, DONE)) as server:
        model = remote(server)
        texts = [text async for text in model.stream(ask(stop=("```",)))]
        await model.aclose()
    assert "".join(texts) == "a``b"
    assert len(texts) > 1


PARTS = st.lists(st.text("`ab\n", max_size=4), max_size=12)


@given(PARTS, st.sampled_from(["", "```a\n", "ab"]), st.sampled_from([(), ("```",), ("`a", "b\n")]))
def test_what_is_told_early_is_a_beginning_of_the_reply(parts: list[str], prefill: str, stop: tuple[str, ...]) -> None:
    request = ask(prefill=prefill, stop=stop)
    shaper = StreamShaper(request)
    told = "".join(map(shaper.feed, parts))
    whole = shape_text("".join(parts), request, "stop", "m", Usage())
    assert whole.startswith(told)
    assert told == shaper.sent


@pytest.mark.parametrize("schema", [{"type": "object"}])
def test_a_reply_with_a_schema_is_told_only_when_it_was_checked(schema: dict[str, str]) -> None:
    shaper = StreamShaper(ask(json_schema=schema))
    assert shaper.feed('{"a": ') == shaper.sent == ""
