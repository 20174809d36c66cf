"""How sure a model was, from what llama.cpp reports."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.models import LocalProvider, Message, ModelRequest, ReplyToken
from bicameral.models._completion import Completion, read_token_confidence

ASKED = ModelRequest((Message("user", "Say it."),), confidence=True)


def entry(text: str, own: float, *others: float) -> dict[str, Any]:
    top = [{"id": i, "token": "?", "bytes": [63], "logprob": math.log(each)} for i, each in enumerate([own, *others])]
    return {"id": 0, "token": text, "bytes": list(text.encode()), "logprob": math.log(own), "top_logprobs": top}


def test_a_free_choice_has_its_own_probability() -> None:
    assert list(read_token_confidence([entry("a", 0.5, 0.25)], ASKED)) == [ReplyToken("a", pytest.approx(0.5), 0.0)]  # pyright: ignore[reportArgumentType]


def test_what_was_likelier_and_not_written_was_forbidden() -> None:
    [token] = read_token_confidence([entry("a", 0.2, 0.6, 0.1)], ASKED)
    assert token.overruled == pytest.approx(0.6)
    assert token.probability == pytest.approx(0.5)


def test_above_temperature_0_nothing_is_known_of_what_was_forbidden() -> None:
    warm = ModelRequest(ASKED.messages, confidence=True, temperature=1.0)
    [token] = read_token_confidence([entry("a", 0.2, 0.6)], warm)
    assert (token.probability, token.overruled) == (pytest.approx(0.2), 0.0)


def test_the_end_of_the_text_is_no_token() -> None:
    assert list(read_token_confidence([entry("", 0.001, 0.9)], ASKED)) == []


@given(st.lists(st.floats(1e-9, 1), min_size=1, max_size=10))
def test_a_probability_stays_one(weights: list[float]) -> None:
    shares = [weight / sum(weights) for weight in weights]
    [token] = read_token_confidence([entry("a", shares[0], *shares[1:])], ASKED)
    assert 0 <= token.probability <= 1
    assert 0 <= token.overruled <= 1


def chunk(text: str, logprobs: Any, finish: str | None = None) -> dict[str, Any]:
    usage = {"usage": {"prompt_tokens": 1, "completion_tokens": 1}} if finish else {}
    return {"choices": [{"text": text, "logprobs": logprobs, "finish_reason": finish}]} | usage


def test_a_reply_has_its_tokens_only_if_they_were_asked_for() -> None:
    for request, expected in ((ASKED, ["a", "b"]), (ModelRequest(ASKED.messages), [])):
        completion = Completion(request, None, threading.Event())
        completion.take(chunk("a", {"content": [entry("a", 0.5)]}))
        completion.take(chunk("b", {"content": [entry("b", 0.5)]}))
        completion.take(chunk("", None, "stop"))
        assert [token.text for token in completion.reply(0.0, 0).confidence] == expected


@pytest.mark.model
async def test_to_be_asked_how_sure_it_is_changes_nothing_a_model_writes(small_model: LocalProvider) -> None:
    grammar = '%llguidance {}\nstart: "x = " ("aa" | "bb" | "cat") "\\n"'
    asked = ModelRequest((Message("user", "Set x to cat."),), grammar=grammar, max_tokens=12)
    plain = await small_model.generate(asked)
    told = await small_model.generate(replace(asked, confidence=True))
    assert told.text == plain.text
    assert plain.confidence == ()
    assert "".join(token.text for token in told.confidence) == told.text
    assert all(0 <= token.probability <= 1 for token in told.confidence)
