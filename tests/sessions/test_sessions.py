"""A session asks one model in one role, remembers nothing, and tells what it cost."""

from __future__ import annotations

import pytest

from bicameral.errors import ModelError
from bicameral.limits import Ledger, ModelCall
from bicameral.models import Message, ModelRequest, ScriptedProvider, Usage
from bicameral.sessions import Quarantined, Session

SETUP = (Message("system", "You are terse."), Message("user", "hi"), Message("assistant", "hi"))


async def test_every_question_comes_after_the_same_setup_and_nothing_is_remembered() -> None:
    provider = ScriptedProvider(["one", "two"])
    session = Session("delta", provider, SETUP)
    assert [(await session.ask(text)).text for text in ("first", "second")] == ["one", "two"]
    assert [request.messages for request in provider.requests] == [
        (*SETUP, Message("user", "first")),
        (*SETUP, Message("user", "second")),
    ]


async def test_bounds_and_constraints_go_with_the_question() -> None:
    provider = ScriptedProvider(["{}", "x"])
    session = Session("echo", provider, (), max_tokens=7, timeout=3.0)
    await session.ask("a", json_schema={"type": "object"}, stop=("\n",))
    await session.ask("b", grammar='start: "x"', prefill="y", max_tokens=99)
    assert provider.requests == [
        ModelRequest((Message("user", "a"),), json_schema={"type": "object"}, stop=("\n",), max_tokens=7, timeout=3.0),
        ModelRequest((Message("user", "b"),), grammar='start: "x"', prefill="y", max_tokens=99, timeout=3.0),
    ]


async def test_no_tokens_at_all_is_a_bad_request_and_not_the_default() -> None:
    with pytest.raises(ModelError) as caught:
        await Session("echo", ScriptedProvider(["x"]), ()).ask("a", max_tokens=0)
    assert caught.value.code == "models.bad-request"


async def test_a_listener_hears_every_call_with_what_was_asked_and_answered() -> None:
    calls: list[ModelCall] = []
    provider = Quarantined(ScriptedProvider(["four"], name="m"))
    session = Session("quarantined", provider, (), listener=calls.append)
    reply = await session.ask("2 + 2?")
    (call,) = calls
    assert (call.role, call.model, call.reply) == ("quarantined", "m", reply)
    assert call.request.messages == (Message("user", "2 + 2?"),)
    assert call.seconds >= 0


async def test_a_ledger_counts_calls_and_tokens_by_role() -> None:
    ledger = Ledger()
    provider = ScriptedProvider(lambda request: "12345678")
    for role in ("echo", "delta", "delta"):
        await Session(role, provider, (), listener=ledger.add_reply).ask("abcdefgh")
    assert ledger.calls == {"echo": 1, "delta": 2}
    assert ledger.usage["delta"] == Usage(prompt=4, output=4)
    assert ledger.tokens == 12


async def test_a_model_that_fails_is_not_counted_as_a_reply() -> None:
    ledger = Ledger()
    with pytest.raises(ModelError):
        await Session("echo", ScriptedProvider([]), (), listener=ledger.add_reply).ask("a")
    assert ledger.calls == {}
