"""The local provider against the real 0.5B weights."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bicameral.errors import ModelError
from bicameral.models import LocalProvider, Message, ModelReply, ModelRequest, Provider
from bicameral.models._evaluator import BLOCK

pytestmark = pytest.mark.model

COLOURS = (Message("user", "Name a colour."),)


def ask(text: str, *, max_tokens: int = 8, **more: Any) -> ModelRequest:
    return ModelRequest((Message("user", text),), max_tokens=max_tokens, **more)


ENDLESS = ask("Count from 1 to 1000.", prefill="1, 2, 3, ", max_tokens=4000)
ENDLESS_WITHIN_TWO_SECONDS = replace(ENDLESS, timeout=2)


async def code_of(model: LocalProvider, request: ModelRequest) -> tuple[str, str]:
    with pytest.raises(ModelError) as raised:
        await model.generate(request)
    assert raised.value.fix
    return raised.value.code, raised.value.message


@pytest.mark.live
async def test_it_replies_and_counts_tokens(small_model: LocalProvider) -> None:
    reply = await small_model.generate(ask("What is the capital of France? One word."))
    assert isinstance(small_model, Provider)
    assert small_model.name == "local:qwen2.5-coder-0.5b@1d961463"
    assert "Paris" in reply.text
    assert reply.finish == "stop"
    assert reply.usage.prompt > 10
    assert reply.usage.output >= 2
    assert reply.seconds > 0


async def test_a_prefill_is_continued_and_not_repeated(small_model: LocalProvider) -> None:
    reply = await small_model.generate(ask("Count from one to six.", prefill="1, 2, 3, ", max_tokens=4))
    assert reply.text.startswith("4")
    assert reply.finish == "length"


async def test_it_stops_before_a_stop_string(small_model: LocalProvider) -> None:
    reply = await small_model.generate(ask("Count from one to six.", prefill="1, 2, 3, ", stop=(", 6",)))
    assert reply.text == "4, 5"
    assert reply.finish == "stop"


@pytest.mark.only_live
async def test_a_stream_is_the_same_text_in_pieces(small_model: LocalProvider) -> None:
    request = ask("Count from one to six.", prefill="1, 2, 3, ")
    pieces = [piece async for piece in small_model.stream(request)]
    assert len(pieces) > 1
    assert "".join(pieces) == (await small_model.generate(request)).text


async def test_a_json_schema_shapes_the_reply(small_model: LocalProvider) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["violet", "ochre"]}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    reply = await small_model.generate(ModelRequest(COLOURS, json_schema=schema, max_tokens=16))
    assert json.loads(reply.text)["colour"] in ("violet", "ochre")
    assert reply.finish == "stop"


async def test_json_is_written_on_one_line_so_that_white_space_cannot_go_on_for_ever(
    small_model: LocalProvider,
) -> None:
    schema = {
        "type": "object",
        "properties": {"list": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "maxItems": 3}},
        "required": ["list"],
        "additionalProperties": False,
    }
    asked = ask("Write JSON with many blank lines and deep indentation.")
    reply = await small_model.generate(replace(asked, json_schema=schema, max_tokens=96))
    assert reply.text == json.dumps(json.loads(reply.text))


@pytest.mark.live
@pytest.mark.parametrize(
    "grammar", ['root ::= "violet" | "ochre"', '%llguidance {}\nstart: "violet" | "ochre"'], ids=["gbnf", "lark"]
)
async def test_a_grammar_shapes_the_reply(small_model: LocalProvider, grammar: str) -> None:
    reply = await small_model.generate(ModelRequest(COLOURS, grammar=grammar, max_tokens=16))
    assert reply.text in ("violet", "ochre")


@pytest.mark.live
@pytest.mark.parametrize(
    ("constraint", "reason"),
    [
        ({"grammar": "%llguidance {}\nstart: nowhere"}, 'unknown name: "nowhere"'),
        ({"grammar": "%llguidance {}\nstart: /[a-/"}, "unclosed character class"),
        ({"grammar": "root ::= nowhere"}, "Undefined rule identifier 'nowhere'"),
        ({"grammar": 'roof ::= "a"'}, "no rule `root`"),
        ({"json_schema": {"type": "objekt"}}, "Invalid type: objekt"),
        ({"json_schema": {"$ref": "#/nowhere"}}, "'/nowhere' does not exist"),
    ],
)
async def test_a_broken_constraint_is_an_error_and_never_a_free_reply(
    small_model: LocalProvider, capfd: pytest.CaptureFixture[str], constraint: dict[str, Any], reason: str
) -> None:
    code, message = await code_of(small_model, ModelRequest(COLOURS, **constraint))
    assert code == "models.bad-grammar"
    assert reason in message
    assert capfd.readouterr() == ("", "")


@pytest.mark.live
async def test_a_prompt_that_does_not_fit_is_refused_with_its_length(small_model: LocalProvider) -> None:
    code, message = await code_of(small_model, ask("a b c d " * 3000))
    assert code == "models.prompt-too-long"
    assert "12009 tokens" in message


@pytest.mark.only_live
async def test_alternating_conversations_keep_both_system_messages(small_model: LocalProvider) -> None:
    first = "Rules: answer with one short word, in lower case, without a full stop at the end. " * 4
    second = "You fill in the blank and say nothing else at all, whatever the text asks of you. " * 4

    async def asked(setup: str, text: str) -> ModelReply:
        messages = (Message("system", setup), Message("user", text))
        return await small_model.generate(ModelRequest(messages, max_tokens=1))

    await asked(first, "one")
    await asked(second, "two")
    for setup, text in ((first, "three"), (second, "four")):
        usage = (await asked(setup, text)).usage
        assert usage.cached >= 64
        assert usage.prompt - usage.cached < 2 * BLOCK


@pytest.mark.only_live
async def test_a_reply_does_not_depend_on_what_was_cached(small_model: LocalProvider) -> None:
    question = "Write a Python function that adds two numbers."
    setup = Message("system", "You write short programs. " * 5)

    def ask(text: str, **more: Any) -> ModelRequest:
        return ModelRequest((setup, Message("user", text)), confidence=True, **more)

    request = ask(question, max_tokens=12)
    cold = await small_model.generate(request)
    warm = await small_model.generate(request)
    assert warm.usage.cached > cold.usage.cached == 0
    await small_model.generate(ask("Write a Python function that", max_tokens=1))
    partly = await small_model.generate(request)
    assert partly.usage.cached == BLOCK
    assert (cold.text, cold.confidence) == (warm.text, warm.confidence) == (partly.text, partly.confidence)
    half = "".join(token.text for token in cold.confidence[:6])
    continued = await small_model.generate(ask(question, prefill=half, max_tokens=6))
    # The reply was still there: of its own beginning only the last token was evaluated again.
    assert continued.usage.cached == continued.usage.prompt - 1
    assert (half + continued.text, continued.confidence) == (cold.text, cold.confidence[6:])


@pytest.mark.only_live
async def test_the_seed_decides_at_a_temperature(small_model: LocalProvider) -> None:
    text = "Tell me a secret, as a pirate would. " * 4
    replies = [
        await small_model.generate(ask(text, temperature=1.5, seed=seed, confidence=True)) for seed in (1, 1, 2, 3, 4)
    ]
    # The first prompt was evaluated in full and the second in part, and every probability is the same.
    assert replies[0].usage.cached < replies[1].usage.cached == BLOCK
    assert (replies[0].text, replies[0].confidence) == (replies[1].text, replies[1].confidence)
    assert len({reply.text for reply in replies}) > 1


@pytest.mark.live
async def test_a_timeout_stops_the_engine_too(small_model: LocalProvider) -> None:
    began = time.monotonic()
    code, message = await code_of(small_model, ENDLESS_WITHIN_TWO_SECONDS)
    assert code == "models.timeout"
    assert "2 s" in message
    await small_model.generate(ask("Count from 1 to 1000.", max_tokens=1))
    assert time.monotonic() - began < 20


@pytest.mark.live
async def test_a_cancelled_request_stops_the_engine_even_while_it_reads_the_prompt(
    small_model: LocalProvider,
) -> None:
    reading = asyncio.create_task(small_model.generate(ask("mumble " * 3000, max_tokens=4000)))
    await asyncio.sleep(0.5)
    began = time.monotonic()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert time.monotonic() - began < 5
    await small_model.generate(ask("Hi.", max_tokens=1))
    assert time.monotonic() - began < 30


@pytest.mark.only_live
async def test_leaving_a_stream_stops_the_engine(small_model: LocalProvider) -> None:
    async with aclosing(small_model.stream(ENDLESS)) as stream:
        async for _ in stream:
            break
    await asyncio.wait_for(small_model.generate(ask("Hi.", max_tokens=1)), 20)


@pytest.mark.only_live
def test_threads_with_loops_of_their_own_share_one_queue(small_model: LocalProvider) -> None:
    replies: dict[str, str] = {}

    def on_a_loop_of_its_own(word: str) -> None:
        request = ModelRequest(COLOURS, grammar=f'root ::= "{word}"')
        replies[word] = asyncio.run(small_model.generate(request)).text

    threads = [threading.Thread(target=on_a_loop_of_its_own, args=(word,)) for word in ("mauve", "teal", "buff")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == {"mauve": "mauve", "teal": "teal", "buff": "buff"}


@pytest.mark.only_live
async def test_the_event_loop_stays_free_while_the_model_writes(small_model: LocalProvider) -> None:
    writing = asyncio.create_task(small_model.generate(ask("Count to nine.", max_tokens=10)))
    turns = 0
    while not writing.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert turns > 20


@pytest.mark.live
async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    model = LocalProvider(tmp_path / "gone.gguf", name="local:gone")
    code, message = await code_of(model, ask("Hi."))
    assert code == "models.file-missing"
    assert "gone.gguf" in message
    await model.aclose()


@pytest.mark.live
@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 no weights here", b"GGUF\x03\x00\x00\x00", b"GGUF" + b"\xff" * 400]
)
async def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.gguf"
    path.write_bytes(content)
    model = LocalProvider(path, name="local:odd")
    code, _ = await code_of(model, ask("Hi."))
    assert code == "models.not-gguf"
    await model.aclose()
