from __future__ import annotations

import pytest

from bicameral.errors import ModelError
from bicameral.models import Message, ModelRequest, Provider, ScriptedProvider, Usage


def ask(text: str, *, prefill: str = "", stop: tuple[str, ...] = (), max_tokens: int = 512) -> ModelRequest:
    return ModelRequest((Message("user", text),), prefill=prefill, stop=stop, max_tokens=max_tokens)


async def test_a_list_is_replied_in_order_and_once() -> None:
    model = ScriptedProvider(["one", "two"], name="script")
    assert [(await model.generate(ask(text))).text for text in "ab"] == ["one", "two"]
    with pytest.raises(ModelError, match="request 3, which ends in 'c'") as raised:
        await model.generate(ask("c"))
    assert raised.value.code == "models.script-exhausted"


async def test_the_first_rule_that_fits_replies_as_often_as_asked() -> None:
    model = ScriptedProvider(
        [("rain", "Wet."), (lambda request: request.max_tokens == 7, lambda request: "Seven."), ("sun", "Dry.")]
    )
    texts = ["sun and rain", "sun", "rain", "sun"]
    assert [(await model.generate(ask(text))).text for text in texts] == ["Wet.", "Dry.", "Wet.", "Dry."]
    assert (await model.generate(ask("snow", max_tokens=7))).text == "Seven."
    with pytest.raises(ModelError, match="snow"):
        await model.generate(ask("snow"))


async def test_a_function_sees_the_whole_request() -> None:
    model = ScriptedProvider(lambda request: request.messages[-1].text.upper())
    assert (await model.generate(ask("loud"))).text == "LOUD"


async def test_what_was_asked_is_recorded() -> None:
    model = ScriptedProvider(["x"])
    request = ask("remember me")
    await model.generate(request)
    assert model.requests == [request]


async def test_a_reply_does_not_repeat_the_prefill_and_ends_before_a_stop_string() -> None:
    model = ScriptedProvider(["x = 1\ny = 2\nz = 3", "1\n2"])
    assert (await model.generate(ask("go", prefill="x = ", stop=("z", "\ny")))).text == "1"
    assert (await model.generate(ask("go", prefill="x = "))).text == "1\n2"


async def test_a_reply_is_cut_at_max_tokens_of_four_characters_each() -> None:
    model = ScriptedProvider(["abcdefghijkl"])
    reply = await model.generate(ask("12345678", max_tokens=2))
    assert (reply.text, reply.finish) == ("abcdefgh", "length")
    assert reply.usage == Usage(prompt=9 // 4, output=2)


async def test_a_stream_is_the_same_text_in_pieces() -> None:
    model = ScriptedProvider(["a\nb\nc"])
    assert [piece async for piece in model.stream(ask("go"))] == ["a\n", "b\n", "c"]


def test_a_scripted_provider_is_a_provider_under_its_own_name() -> None:
    model = ScriptedProvider([], name="fake:1", grammars=False)
    assert isinstance(model, Provider)
    assert (model.name, model.grammars) == ("fake:1", False)


@pytest.mark.parametrize(
    "request_",
    [
        ModelRequest((), json_schema={}, grammar='root ::= "a"'),
        ModelRequest((), max_tokens=0),
        ModelRequest((), temperature=-1),
        ModelRequest((), timeout=0),
        ModelRequest((), stop=("",)),
    ],
)
async def test_a_request_that_no_model_could_answer_is_refused(request_: ModelRequest) -> None:
    with pytest.raises(ModelError) as raised:
        await ScriptedProvider(["x"]).generate(request_)
    assert raised.value.code == "models.bad-request"
    assert raised.value.fix
