"""The key of a call: the same for each attempt, another for each call, and at hand wherever a tool does its work."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from bicameral.errors import ToolError
from bicameral.toolboxes.mail import make_message_id
from bicameral.tools import (
    Folders,
    Tool,
    call_key,
    command_tools,
    confinement_problem,
    derive_call_key,
    parse_manifest,
    tool,
    use_call_key,
)


@given(st.tuples(st.text(), st.text(), st.text()), st.tuples(st.text(), st.text(), st.text()))
def test_two_calls_have_two_keys_whatever_their_names_are(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    assert (derive_call_key(*one) == derive_call_key(*other)) == (one == other)
    assert derive_call_key(*one).isalnum()


async def test_a_tool_finds_its_key_also_in_a_thread_and_nobody_finds_another_ones() -> None:
    @tool(effect="read")
    def sync_key() -> str | None:
        """In a thread."""
        return call_key()

    @tool(effect="read")
    async def async_key() -> str | None:
        """In the loop."""
        await asyncio.sleep(0.01)
        return call_key()

    async def under(each: Tool, key: str) -> object:
        with use_call_key(key):
            return await each.call({})

    found = await asyncio.gather(*(under(each, f"k{n}") for n in range(5) for each in (sync_key, async_key)))
    assert found == [f"k{n}" for n in range(5) for _ in range(2)]
    assert call_key() is None


@pytest.mark.skipif(confinement_problem() is not None, reason="this kernel cannot confine")
async def test_a_command_finds_its_key_in_its_environment(tmp_path: Path) -> None:
    spec = {"name": "it", "argv": ["printenv", "BICAMERAL_CALL_KEY"], "keyed": True, "effect": "write"}
    (printing,) = command_tools(
        parse_manifest({"manifest": 1, "tools": [spec]}), Folders.of(tmp_path, read=[tmp_path], write=[])
    )
    assert (printing.keyed, printing.is_repeatable) == (True, True)
    with use_call_key("k1"):
        assert str(await printing.call({})).strip() == "k1"
    with pytest.raises(ToolError):
        await printing.call({})


def test_a_mail_that_is_sent_again_has_the_same_id() -> None:
    def under(key: str | None) -> str:
        if key is None:
            return make_message_id("example.com")
        with use_call_key(key):
            return make_message_id("example.com")

    assert under("k1") == under("k1") == "<k1@example.com>"
    assert under("k2") != under("k1")
    assert under(None) != under(None)


def test_only_a_tool_that_says_so_is_repeatable() -> None:
    def made(**facts: object) -> Tool:
        @tool(**facts)  # pyright: ignore[reportCallIssue, reportArgumentType, reportUntypedFunctionDecorator]
        def it() -> None:
            """It."""

        return it

    assert not made(effect="send").is_repeatable
    assert made(effect="send", keyed=True).is_repeatable
    assert made(effect="send", idempotent=True).is_repeatable
    assert made(effect="read").is_repeatable
    assert made(effect="send").fingerprint != made(effect="send", keyed=True).fingerprint
    with pytest.raises(ToolError):
        made(effect="send", keyed="yes")
