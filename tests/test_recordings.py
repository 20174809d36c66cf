"""Recorded replies: found by all that decides them and by nothing else, and never taken for more than they are."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from bicameral.errors import ModelError
from bicameral.models import Adapter, LocalProvider, Message, ModelReply, ModelRequest, ReplyToken, ToolSchema, Usage
from bicameral.models._engine import EngineJob, EngineServer, Slots
from bicameral.models._prompts import Vocabulary
from recordings import (
    FOLDER,
    RECORDER,
    ROOT,
    DamagedRecording,
    Mode,
    NotRecorded,
    Recorded,
    Recorder,
    Recording,
    machine,
    read_recording,
    recorded_reply,
    request_key,
    write_recording,
)

MODULE = "tests/rooms/test_rooms.py"
ASKED = ModelRequest((Message("system", "You help."), Message("user", "Say hi.")), max_tokens=12)
FIELDS = {"a": {"type": "string"}, "b": {"type": "string"}}
SCHEMA = {"type": "object", "properties": FIELDS}
CHATML = Vocabulary(start=1, end=2, control=frozenset({"<|im_start|>", "<|im_end|>"}), trained_context=0)
REPLY = ModelReply("Hi there!", usage=Usage(prompt=21, cached=7, output=4), seconds=1.5, model="local:any")


class FakeEngine:
    """Replies as it is told to, in pieces, and counts how often it is asked."""

    def __init__(self, *replies: ModelReply) -> None:
        self._replies = list(replies)
        self.asked = 0

    def submit(self, job: EngineJob) -> Future[ModelReply]:
        reply = self._replies[min(self.asked, len(self._replies) - 1)]
        self.asked += 1
        for piece in (reply.text[:3], reply.text[3:]):
            if job.on_text is not None:
                job.on_text(piece)
        future: Future[ModelReply] = Future()
        future.set_result(reply)
        return future


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights.gguf"
    path.write_bytes(b"some weights")
    return path


def job(request: ModelRequest = ASKED, *, context: int = 8192, adapter: Adapter | None = None) -> EngineJob:
    return EngineJob(request, context, adapter)


def chatml(path: Path) -> Vocabulary:
    """A vocabulary for weights that have none."""
    del path
    return CHATML


def recorder(folder: Path, mode: Mode, *, live: bool = False) -> Recorder:
    made = Recorder(mode, folder, chatml)
    made.begin_test(MODULE, live=live)
    return made


def record(folder: Path, weights: Path, *jobs: EngineJob, reply: ModelReply = REPLY) -> None:
    """Record one reply to each of these requests."""
    at = recorder(folder, "record")
    for each in jobs or (job(),):
        at.answer(weights, each, FakeEngine(reply).submit).result()
    at.verify()
    at.keep()


def replay(folder: Path, weights: Path, asked: EngineJob) -> ModelReply:
    return recorder(folder, "replay").answer(weights, asked, FakeEngine().submit).result()


# What is found


def test_a_recorded_reply_is_given_without_the_engine(tmp_path: Path, weights: Path) -> None:
    record(tmp_path, weights)
    assert replay(tmp_path, weights, job()) == ModelReply("Hi there!", usage=Usage(prompt=21, output=4))


def test_a_reply_comes_with_its_finish_and_its_tokens(tmp_path: Path, weights: Path) -> None:
    sure = (ReplyToken("Hi", 0.25, 0.5), ReplyToken(' "ä"\n', 1.0))
    record(tmp_path, weights, reply=replace(REPLY, text='Hi "ä"\n', finish="length", confidence=sure))
    found = replay(tmp_path, weights, job())
    assert (found.text, found.finish, found.confidence) == ('Hi "ä"\n', "length", sure)


def test_a_stream_has_the_pieces_that_it_had(tmp_path: Path, weights: Path) -> None:
    asked, told = job(), list[str]()
    asked.on_text = told.append
    record(tmp_path, weights, asked)
    again = job()
    again.on_text = told.append
    replay(tmp_path, weights, again)
    assert told == ["Hi ", "there!", "Hi ", "there!"]
    once, told = Recorded(asked="", weights="", text="whole", prompt=1, output=1), []
    assert list(once.streamed()) == ["whole"]


@pytest.mark.parametrize(
    "changed",
    [
        job(replace(ASKED, messages=(Message("system", "You help."), Message("user", "Say ho.")))),
        job(replace(ASKED, messages=(Message("user", "You help."), Message("user", "Say hi.")))),
        job(replace(ASKED, prefill="Hi")),
        job(replace(ASKED, json_schema={"type": "string"})),
        job(replace(ASKED, grammar='root ::= "hi"')),
        job(replace(ASKED, stop=("!",))),
        job(replace(ASKED, max_tokens=13)),
        job(replace(ASKED, seed=1)),
        job(replace(ASKED, model="large")),
        job(replace(ASKED, tools=(ToolSchema("wave", "Wave.", {"type": "object"}),))),
        job(replace(ASKED, confidence=True)),
        job(context=4096),
        job(adapter=Adapter(Path("one.gguf"), "1" * 64)),
    ],
)
def test_a_changed_request_is_a_miss(tmp_path: Path, weights: Path, changed: EngineJob) -> None:
    record(tmp_path, weights)
    with pytest.raises(NotRecorded):
        replay(tmp_path, weights, changed)


def test_every_field_of_a_request_on_which_its_reply_depends_is_part_of_the_key() -> None:
    assert set(ModelRequest.__dataclass_fields__) == {
        *(
            "messages",
            "prefill",
            "json_schema",
            "grammar",
            "stop",
            "max_tokens",
            "seed",
            "model",
            "tools",
            "confidence",
        ),
        *("temperature", "timeout", "adapter", "fixed", "must_call"),
    }
    for same in (replace(ASKED, timeout=3), replace(ASKED, fixed=1)):
        assert request_key(job(same), "a", CHATML) == request_key(job(), "a", CHATML)


def test_another_order_of_fields_another_engine_or_another_prompt_is_another_key() -> None:
    turned = {**SCHEMA, "properties": dict(reversed(FIELDS.items()))}
    keys = {
        request_key(job(replace(ASKED, json_schema=SCHEMA)), "a", CHATML),
        request_key(job(replace(ASKED, json_schema=turned)), "a", CHATML),
        request_key(job(replace(ASKED, json_schema=turned)), "a", CHATML, "another engine"),
        request_key(job(replace(ASKED, json_schema=turned)), "b", CHATML),
        request_key(job(replace(ASKED, json_schema=turned)), "a", replace(CHATML, end=3)),
    }
    assert len(keys) == 5


def test_changed_weights_are_a_miss(tmp_path: Path, weights: Path) -> None:
    record(tmp_path, weights)
    weights.write_bytes(b"other weights")
    with pytest.raises(NotRecorded):
        replay(tmp_path, weights, job())


def test_weights_of_another_name_with_the_same_content_are_the_same(tmp_path: Path, weights: Path) -> None:
    record(tmp_path, weights)
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(weights.read_bytes())
    assert replay(tmp_path, copy, job()).text == "Hi there!"


# What is not recorded


def test_a_reply_at_a_temperature_is_never_recorded(tmp_path: Path, weights: Path) -> None:
    warm, engine = job(replace(ASKED, temperature=0.1)), FakeEngine(REPLY)
    at = recorder(tmp_path, "record")
    assert at.answer(weights, warm, engine.submit).result() == REPLY
    at.keep()
    assert not at.file(MODULE).exists()
    with pytest.raises(NotRecorded, match="temperature above 0"):
        replay(tmp_path, weights, warm)
    assert recorder(tmp_path, "replay", live=True).answer(weights, warm, engine.submit).result() == REPLY


def test_a_reply_that_was_stopped_or_failed_is_not_recorded(tmp_path: Path, weights: Path) -> None:
    stopped, failed = job(), Future[ModelReply]()
    stopped.stopped.set()
    failed.set_exception(ValueError("no"))
    at = recorder(tmp_path, "record")
    at.answer(weights, stopped, FakeEngine(REPLY).submit)
    at.answer(weights, job(), lambda _: failed)
    assert at.asked == {}


def test_a_request_that_gets_two_replies_is_refused(tmp_path: Path, weights: Path) -> None:
    at, engine = recorder(tmp_path, "record"), FakeEngine(REPLY, replace(REPLY, text="Ho!"))
    at.answer(weights, job(), engine.submit)
    at.answer(weights, job(), engine.submit)
    with pytest.raises(AssertionError, match="two replies"):
        at.verify()


# Misses and differences


def test_a_miss_names_the_command_that_records_it_and_fails_the_test_even_if_it_is_caught(
    tmp_path: Path, weights: Path
) -> None:
    at, engine = recorder(tmp_path, "replay"), FakeEngine(REPLY)
    with pytest.raises(NotRecorded, match="Say hi") as raised:
        at.answer(weights, job(), engine.submit)
    assert f"`.venv/bin/python -m pytest --record {MODULE}`" in str(raised.value)
    assert engine.asked == 0
    with pytest.raises(AssertionError, match="Say hi"):
        at.verify()
    at.begin_test(MODULE, live=False)
    at.verify()


def test_a_test_that_is_live_asks_the_engine(tmp_path: Path, weights: Path) -> None:
    engine = FakeEngine(REPLY)
    at = recorder(tmp_path, "replay", live=True)
    assert at.answer(weights, job(), engine.submit).result() == REPLY
    assert (engine.asked, list(tmp_path.glob("*.json"))) == (1, [])
    at.verify()


def test_a_live_reply_that_differs_from_the_recorded_one_fails_with_both(tmp_path: Path, weights: Path) -> None:
    record(tmp_path, weights)
    for other in (replace(REPLY, text="Ho!"), replace(REPLY, finish="length"), replace(REPLY, usage=Usage(21, 0, 5))):
        at = recorder(tmp_path, "live")
        at.answer(weights, job(), FakeEngine(other).submit)
        with pytest.raises(AssertionError, match=r"not the recorded one.*--record tests/rooms[^$]*\n- [^$]*\n\+ "):
            at.verify()
    at = recorder(tmp_path, "live")
    at.answer(weights, job(), FakeEngine(replace(REPLY, seconds=9.0, usage=Usage(21, 0, 4))).submit)
    at.verify()


def test_another_kind_of_machine_may_reply_differently_which_is_told(tmp_path: Path, weights: Path) -> None:
    record(tmp_path, weights)
    file = tmp_path / "test_rooms.json"
    write_recording(file, Recording(read_recording(file).replies, "a machine of another kind"))
    at = recorder(tmp_path, "live")
    at.answer(weights, job(), FakeEngine(replace(REPLY, text="Ho!")).submit)
    at.verify()
    assert len(at.differences) == 1
    assert "a machine of another kind" in at.differences[0]


def test_what_is_no_longer_asked_for_is_dropped_from_a_whole_recording(tmp_path: Path, weights: Path) -> None:
    more = job(replace(ASKED, max_tokens=99))
    record(tmp_path, weights, job(), more)
    at = recorder(tmp_path, "record")
    at.keep(only=[])
    assert not at.file(MODULE).exists()
    record(tmp_path, weights, job(), more)
    at = recorder(tmp_path, "record")
    at.answer(weights, more, FakeEngine(REPLY).submit)
    at.keep()
    assert len(read_recording(at.file(MODULE)).replies) == 2
    at.keep(only=at.asked)
    assert len(read_recording(at.file(MODULE)).replies) == 1


def test_a_process_of_a_test_tells_the_test_what_it_was_answered(tmp_path: Path, weights: Path) -> None:
    child = recorder(tmp_path, "record")
    child.spool, child.started = tmp_path / "spool.jsonl", True
    child.answer(weights, job(), FakeEngine(REPLY).submit)
    child.answer(weights, job(), FakeEngine(replace(REPLY, text="Ho!")).submit)
    at = recorder(tmp_path, "record")
    at.spool = child.spool
    with pytest.raises(AssertionError, match="two replies"):
        at.verify()
    assert at.asked == child.asked != {}


# Files


def test_a_file_is_the_same_whatever_the_order_of_the_requests(tmp_path: Path, weights: Path) -> None:
    jobs = [job(replace(ASKED, max_tokens=bound)) for bound in range(1, 9)]
    record(tmp_path, weights, *jobs)
    first = (tmp_path / "test_rooms.json").read_bytes()
    (tmp_path / "test_rooms.json").unlink()
    record(tmp_path, weights, *reversed(jobs))
    assert (tmp_path / "test_rooms.json").read_bytes() == first
    content = json.loads(first)
    assert list(content["replies"]) == sorted(content["replies"])
    assert content["machine"] == machine()
    assert str(tmp_path).encode() not in first


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Hi there!", "Hi here!"),
        ('"output": 4', '"output": "4"'),
        ('"output": 4', '"output": 4, "more": 1'),
        ('"text"', '"texts"'),
        ('"replies"', '"reply"'),
        ('": {"asked"', '0": {"asked"'),
        ("\n}\n", ""),
    ],
)
def test_a_damaged_recording_is_refused_and_named(tmp_path: Path, weights: Path, old: str, new: str) -> None:
    record(tmp_path, weights)
    file = tmp_path / "test_rooms.json"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DamagedRecording, match=r"test_rooms\.json is damaged") as raised:
        replay(tmp_path, weights, job())
    assert "make recordings" in str(raised.value)


def test_a_recording_that_is_no_text_is_refused_and_named(tmp_path: Path) -> None:
    file = tmp_path / "odd.json"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(DamagedRecording, match=r"odd\.json is damaged"):
        read_recording(file)


def test_every_recording_is_whole_and_belongs_to_a_module() -> None:
    modules = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    files = sorted(FOLDER.iterdir())
    assert files
    for file in files:
        assert read_recording(file).replies
        assert file.stem in modules, f"{file.name} belongs to no module: delete it"
        assert not re.search(r"/(tmp|root|home)/", file.read_text(encoding="utf-8")), file.name


def test_the_request_that_is_shown_is_short_and_can_be_written(tmp_path: Path) -> None:
    long = ModelRequest((Message("user", "word " * 100 + "half \ud83d"),))
    kept = recorded_reply(long, "0" * 8, REPLY)
    assert len(kept.asked) < 70
    write_recording(tmp_path / "one.json", Recording({"key": kept}, "machine"))
    assert read_recording(tmp_path / "one.json").replies == {"key": kept}
    assert recorded_reply(ModelRequest(()), "", REPLY).asked == ""


# In this process


def test_a_test_that_is_not_live_cannot_load_weights(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RECORDER, "mode", "replay")
    monkeypatch.setattr(RECORDER, "vocabulary", chatml)
    model = LocalProvider(weights, name="local:any")
    with pytest.raises(NotRecorded, match=r"--record tests/test_recordings\.py"):
        asyncio.run(model.generate(ASKED))
    assert len(RECORDER.complaints) == 1
    with pytest.raises(NotRecorded, match="Mark the test `live`"):
        EngineServer(weights, 256, 1, Slots(()))
    RECORDER.complaints.clear()


def test_a_request_that_cannot_be_asked_is_refused_by_the_engine_itself(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RECORDER, "mode", "replay")
    with pytest.raises(ModelError) as raised:
        asyncio.run(LocalProvider(weights, name="local:any").generate(ASKED))
    assert raised.value.code == "models.not-gguf"
    with pytest.raises(ModelError) as raised:
        asyncio.run(LocalProvider(weights.with_name("gone"), name="local:any").generate(ASKED))
    assert raised.value.code == "models.file-missing"
