"""The laws of tokens and limits, and of whoever does not read what he asked for."""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.errors import ServerError
from bicameral.server import TokenFile, new_token
from bicameral.server._context import ConcurrencyLimiter, HttpError, RateLimiter, json_bytes, response_for
from bicameral.server._guard import GuardedResponse, SlowReader


@given(st.text(max_size=80))
def test_no_text_but_the_token_itself_is_the_token(text: str) -> None:
    token, held = new_token("ana")
    tokens = TokenFile(None, [token])
    assert tokens.find_holder(held) == token
    assert (tokens.find_holder(text) is None) == (text != held)
    for near in (held[:-1], held + "0", held[::-1], token.hash, f" {held}"):
        assert tokens.find_holder(near) is None


@given(st.text(max_size=70) | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,70}\n?", fullmatch=True))
def test_a_user_is_a_name_or_nobody(user: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tokens = TokenFile(Path(folder) / "deep" / "tokens.json")
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", user):
            _, held = tokens.add(user)
            assert TokenFile(tokens.file).find_holder(held) is not None
            return
        with pytest.raises(ServerError, match=r"server\.bad-user"):
            tokens.add(user)
        assert tokens.all_tokens() == ()


@given(a_minute=st.integers(1, 2000), gaps=st.lists(st.floats(0, 10), min_size=1, max_size=300))
def test_nobody_gets_more_than_his_rate_and_a_burst(a_minute: int, gaps: list[float]) -> None:
    now = 0.0
    rate = RateLimiter(a_minute, clock=lambda: now)
    passed = 0
    for gap in gaps:
        now += gap
        try:
            rate.count_request("ana")
            passed += 1
        except HttpError as refused:
            wait = int(refused.headers["Retry-After"])
            assert wait >= 1
    assert passed <= max(1, a_minute / 4) + now * a_minute / 60 + 1
    now += 61
    rate.count_request("ana")


@given(st.integers(1, 5), st.integers(0, 10))
def test_places_are_bounded_and_come_free(each: int, wanted: int) -> None:
    from contextlib import ExitStack

    places = ConcurrencyLimiter(each, 429, "server.too-many-watches", "too many")
    with ExitStack() as stack:
        for number in range(wanted):
            if number < each:
                stack.enter_context(places.slot("ana"))
            else:
                with pytest.raises(HttpError):
                    stack.enter_context(places.slot("ana"))
        stack.enter_context(places.slot("ben"))
    assert places.in_use == 0


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner), max_leaves=8))
def test_every_answer_can_be_written(value: Any) -> None:
    assert json_bytes(value).decode()
    assert json_bytes({"half": "\ud800"}) == b'{"half":"?"}'


def test_a_mistake_of_ours_says_nothing_but_where_to_look(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise KeyError("the prompt with a secret")
    except KeyError as error:
        answer = response_for(error)
    assert answer.status_code == 500
    assert b"server.internal" in answer.body
    assert b"prompt" not in answer.body
    assert "prompt" not in caplog.text
    assert "KeyError" in caplog.text


async def test_whoever_does_not_read_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bicameral.server._guard.READ_SECONDS", 0.05)

    async def never(_: Any) -> None:
        await asyncio.sleep(60)

    answering = GuardedResponse({"type": "http", "method": "GET"}, never, None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(SlowReader):
        await answering.send({"type": "http.response.body", "body": b"x"})


def test_the_page_names_the_numbers_that_the_code_has() -> None:
    from bicameral.server._guard import BODY_SECONDS, READ_SECONDS
    from bicameral.server._serve import STOP_SECONDS
    from bicameral.server._slow_heads import HEAD_SECONDS

    page = " ".join((Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8").split())
    assert (
        f"takes longer than {HEAD_SECONDS:g} seconds to arrive, a body that takes longer than {BODY_SECONDS:g}" in page
    )
    assert f"reads nothing for {READ_SECONDS:g} are disconnected" in page
    assert STOP_SECONDS == 10
    assert "gives answers in progress ten seconds" in page
