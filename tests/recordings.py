"""Replies of the real models, recorded by request and weights, so that the suite need not compute them each time.

`RecordedEngine` takes the place of the engine behind `LocalProvider`: everything above the engine is the product's own
code, and everything below it is loaded only if a test needs it. There is one file of replies a test module, in
`tests/recorded`. A request is identified by the SHA-256 of all that the engine is given: the prompt as it is written
for it, the constraint, the bounds, the context, the adapter, the weights, and the version of the engine.

| mode | what a request at temperature 0 gets |
|---|---|
| `replay` | its recorded reply; a request without one fails the test, except in tests marked `live` |
| `live` | the engine's reply, which must be the recorded one if there is one |
| `record` | the engine's reply, which is recorded if the test passes |

A reply at another temperature is never recorded. The number of cached tokens depends on what was asked before, and the
seconds on the machine: neither is recorded, and both are 0 in a recorded reply.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from bicameral.errors import ModelError
from bicameral.models import (
    FinishReason,
    ModelReply,
    ModelRequest,
    ModelStore,
    ReplyToken,
    Usage,
    _engine as engines,
    known_weights,
)
from bicameral.models._completion import completion_body
from bicameral.models._engine import EngineJob, EngineServer, InferenceEngine, Slots
from bicameral.models._prompts import MarkerText, Vocabulary, read_vocabulary, render_prompt

Mode = Literal["replay", "live", "record"]

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).with_name("recorded")
_VARIABLE = "RECORDED_REPLIES"
_SHOWN = 60
_DIGITS = 9


class NotRecorded(AssertionError):
    """A test asked for a reply that is not recorded, or that cannot be."""


class DamagedRecording(AssertionError):
    """A file of replies is not as it was written."""


class Recorded(BaseModel):
    """One reply. `asked` and `weights` are for the reader; the key of the reply decides what it answers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    asked: str
    weights: str
    text: str
    finish: FinishReason = "stop"
    prompt: int
    output: int
    pieces: list[int] = []
    """The lengths of the pieces in which it was streamed, if it was."""
    tokens: list[tuple[str, float, float]] = []
    """Each token with its probability and with that of what was overruled, if the request asked for them."""

    def reply(self) -> ModelReply:
        """The reply as the engine gave it."""
        return ModelReply(
            text=self.text,
            finish=self.finish,
            usage=Usage(prompt=self.prompt, output=self.output),
            confidence=tuple(ReplyToken(*token) for token in self.tokens),
        )

    def streamed(self) -> Iterator[str]:
        """The text in the pieces in which it was streamed, or in one."""
        begin = 0
        for length in self.pieces or ([len(self.text)] if self.text else []):
            yield self.text[begin : begin + length]
            begin += length

    def same_as(self, other: Recorded) -> bool:
        """Whether both are the same reply; how it was cut into pieces is not part of it."""
        return self.model_copy(update={"pieces": []}) == other.model_copy(update={"pieces": []})


def _rounded(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")


def recorded_reply(request: ModelRequest, weights: str, reply: ModelReply, pieces: Iterable[int] = ()) -> Recorded:
    """What is kept of a reply."""
    last = request.messages[-1].text if request.messages else ""
    words = " ".join(last.split())
    return Recorded(
        asked=(words if len(words) <= _SHOWN else f"… {words[-_SHOWN:]}").encode("utf-8", "replace").decode(),
        weights=weights,
        text=reply.text,
        finish=reply.finish,
        prompt=reply.usage.prompt,
        output=reply.usage.output,
        pieces=list(pieces),
        tokens=[(token.text, _rounded(token.probability), _rounded(token.overruled)) for token in reply.confidence],
    )


# Keys ---------------------------------------------------------------------------------------------------------------


# Whether a call is required is in the grammar.
_NOT_IN_KEYS = frozenset({"timeout", "adapter", "fixed", "must_call"})


def request_key(job: EngineJob, weights_sha256: str, vocabulary: Vocabulary, engine: str | None = None) -> str:
    """The SHA-256 of everything on which the reply to a request depends, or the error for a request without a reply.

    That is the request itself, and what becomes of it on the way to the engine: the prompt with the markers of its
    turns, and the settings. A JSON Schema keeps the order of its fields, since the reply has them in this order. Left
    out are the timeout, which decides whether there is a reply and not which, and what an engine may keep on disk.
    """
    request = job.request
    everything = {
        "request": {name: value for name, value in asdict(request).items() if name not in _NOT_IN_KEYS},
        "prompt": [
            {"markers": piece.text} if isinstance(piece, MarkerText) else piece
            for piece in render_prompt(request.messages, request.prefill, vocabulary, request.tools)
        ],
        "body": completion_body(request, vocabulary),
        "context": job.context,
        "adapter": None if job.adapter is None else job.adapter.sha256,
        "weights": weights_sha256,
        "engine": engine or engine_version(),
    }
    return hashlib.sha256(json.dumps(everything, separators=(",", ":")).encode("ascii")).hexdigest()


@cache
def _vocabulary(path: Path) -> Vocabulary:
    return read_vocabulary(path)


@cache
def engine_version() -> str:
    return f"xllamacpp {version('xllamacpp')}"


def weights_sha256(path: Path) -> str:
    """The SHA-256 of a weights file. The store has verified those that are its own."""
    found = path.stat()
    return _weights_sha256(path, found.st_size, found.st_mtime_ns)


@cache
def _weights_sha256(path: Path, size: int, changed: int) -> str:
    for weights in known_weights():
        with suppress(ModelError):
            if ModelStore().path(weights) == path:
                return weights.sha256
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def machine() -> str:
    """The kind of CPU and the number of threads: on another kind an engine may round differently."""
    told = ""
    with suppress(OSError):
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
        told = " ".join(re.findall(r"^(?:model name|CPU implementer|CPU part)\s*: (.*)$", first, re.MULTILINE))
    from bicameral.models import engine_threads

    return f"{platform.machine()}, {told or platform.processor() or 'unknown'}, {engine_threads()} threads"


# Files --------------------------------------------------------------------------------------------------------------


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    machine: str
    sha256: str
    replies: dict[str, Recorded]


@dataclass
class Recording:
    """The replies that one test module asks for, by key, and the kind of machine that gave them."""

    replies: dict[str, Recorded] = field(default_factory=dict[str, Recorded])
    machine: str = ""


def read_recording(file: Path) -> Recording:
    """The replies of a file, none if there is no file; one that was changed by hand or cut is refused."""
    try:
        text = file.read_text(encoding="utf-8")
        found = _File.model_validate_json(text)
    except FileNotFoundError:
        return Recording()
    except (ValidationError, UnicodeDecodeError) as error:
        raise DamagedRecording(_damaged(file, str(error).splitlines()[0])) from None
    if found.sha256 != _digest(_lines(found.replies)):
        raise DamagedRecording(_damaged(file, "its replies are not those that were recorded"))
    return Recording(found.replies, found.machine)


def write_recording(file: Path, recording: Recording) -> None:
    """Write replies in the order of their keys, a line each; without any, the file goes."""
    if not recording.replies:
        file.unlink(missing_ok=True)
        return
    lines = _lines(recording.replies)
    head = {"machine": recording.machine, "sha256": _digest(lines)}
    top = "".join(f"{json.dumps(name)}: {json.dumps(value)},\n" for name, value in head.items())
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'{{\n{top}"replies": {{\n{lines}\n}}\n}}\n', encoding="utf-8")


def _lines(replies: Mapping[str, Recorded]) -> str:
    shown = {key: replies[key].model_dump(exclude_defaults=True) for key in sorted(replies)}
    return ",\n".join(
        f"{json.dumps(key)}: {json.dumps(reply, sort_keys=True, ensure_ascii=False)}" for key, reply in shown.items()
    )


def _digest(lines: str) -> str:
    return hashlib.sha256(lines.encode("utf-8")).hexdigest()


def _damaged(file: Path, why: str) -> str:
    return f"{file.name} is damaged: {why}. Delete it, and record its replies again: {_command('')}"


def _command(module: str) -> str:
    return f"`.venv/bin/python -m pytest --record {module}`" if module else "`make recordings`"


# Answers ------------------------------------------------------------------------------------------------------------


@dataclass
class Recorder:
    """Decides for one process where replies come from, and keeps those that are to be recorded."""

    mode: Mode = "replay"
    folder: Path = FOLDER
    vocabulary: Callable[[Path], Vocabulary] = _vocabulary
    module: str = ""
    """The file of the test that runs, from the root of the repository."""
    live: bool = False
    """Whether that test is marked `live`."""
    spool: Path | None = None
    """Where a process that the test starts leaves its answers, complaints and differences."""
    started: bool = False
    """Whether this is such a process."""
    complaints: list[str] = field(default_factory=list[str])
    differences: list[str] = field(default_factory=list[str])
    """Replies that differ from recordings of another kind of machine."""
    asked: dict[str, Recorded] = field(default_factory=dict[str, Recorded])
    """What the running test was answered by an engine, in the mode `record`."""
    _read: dict[str, Recording] = field(default_factory=dict[str, Recording])

    @property
    def replays(self) -> bool:
        return self.mode == "replay" and not self.live

    def begin_test(self, module: str, *, live: bool) -> None:
        self.module, self.live, self.spool = module, live, None
        self.complaints, self.differences, self.asked = [], [], {}

    def file(self, module: str) -> Path:
        return self.folder / f"{Path(module).stem}.json"

    def recording(self, module: str) -> Recording:
        if module not in self._read:
            self._read[module] = read_recording(self.file(module))
        return self._read[module]

    def answer(self, path: Path, job: EngineJob, ask: Callable[[EngineJob], Future[ModelReply]]) -> Future[ModelReply]:
        """The recorded reply, or what `ask` gives."""
        if job.request.temperature > 0:
            if self.replays:
                raise self.refused(
                    "a reply at a temperature above 0 is not recorded. Mark the test `live`, or use temperature 0"
                )
            return ask(job)
        try:
            sha256 = weights_sha256(path)
            vocabulary = read_vocabulary(path, own_template=True) if job.own_template else self.vocabulary(path)
            key = request_key(job, sha256, vocabulary)
        except (OSError, ModelError):
            # The weights or the constraint are unusable; the engine says so, before it loads anything.
            return ask(job)
        recorded = self.recording(self.module).replies.get(key)
        if not self.replays:
            return self._observed(job, ask, key, sha256)
        if recorded is None:
            raise self.refused(_missing(job.request, sha256, self.module))
        return _replayed(recorded, job)

    def refused(self, why: str) -> NotRecorded:
        """The error of a test that may not ask an engine; the test fails even if something catches it."""
        self._complain(why)
        if self.started:
            # A program may try again, or wait; the test that started it has to hear of this now.
            os._exit(3)
        return NotRecorded(why)

    def verify(self) -> None:
        """Raise what went wrong with the replies of this test and of the processes that it started."""
        self._gather()
        if self.complaints:
            raise AssertionError("\n".join(self.complaints))

    def keep(self, *, only: Iterable[str] | None = None) -> None:
        """Add what this test was answered to the file of its module; with `only`, drop all but those keys."""
        recording = self.recording(self.module)
        if only is not None:
            wanted = set(only)
            recording.replies = {key: reply for key, reply in recording.replies.items() if key in wanted}
        if self.asked and recording.machine != machine():
            recording.replies, recording.machine = {}, machine()
        for key, reply in self.asked.items():
            old = recording.replies.get(key)
            kept = not reply.pieces and old is not None and old.same_as(reply)
            recording.replies[key] = old if kept and old is not None else reply
        write_recording(self.file(self.module), recording)

    def _observed(
        self, job: EngineJob, ask: Callable[[EngineJob], Future[ModelReply]], key: str, sha256: str
    ) -> Future[ModelReply]:
        pieces: list[int] = []
        if (told := job.on_text) is not None:

            def on_text(text: str) -> None:
                pieces.append(len(text))
                told(text)

            job.on_text = on_text
        weights = sha256[:8] if job.adapter is None else f"{sha256[:8]} + {job.adapter.sha256[:8]}"

        def note(future: Future[ModelReply]) -> None:
            if future.cancelled() or job.stopped.is_set() or future.exception() is not None:
                return
            reply = recorded_reply(job.request, weights, future.result(), pieces)
            if self.mode == "record":
                self._store(key, reply)
            else:
                self._compare(key, reply)

        future = ask(job)
        future.add_done_callback(note)
        return future

    def _store(self, key: str, reply: Recorded) -> None:
        before = self.asked.get(key)
        if before is not None and not before.same_as(reply):
            self._complain(_difference("the same request got two replies", before, reply))
        if before is None or reply.pieces:
            self.asked[key] = reply
            self._tell("reply", [key, reply.model_dump(mode="json")])

    def _compare(self, key: str, reply: Recorded) -> None:
        recording = self.recording(self.module)
        recorded = recording.replies.get(key)
        if recorded is None or recorded.same_as(reply):
            return
        if recording.machine == machine():
            why = f"the engine's reply is not the recorded one; if it is right, run {_command(self.module)}"
            self._complain(_difference(why, recorded, reply))
        else:
            why = f"{self.module}: other than recorded on {recording.machine}"
            self._differ(_difference(why, recorded, reply))

    def _complain(self, why: str) -> None:
        self.complaints.append(why)
        self._tell("complaint", why)

    def _differ(self, how: str) -> None:
        self.differences.append(how)
        self._tell("difference", how)

    def _tell(self, kind: str, content: Any) -> None:
        if self.started and self.spool is not None:
            with self.spool.open("a", encoding="utf-8") as file:
                file.write(json.dumps([kind, content]) + "\n")

    def _gather(self) -> None:
        if self.started or self.spool is None or not self.spool.exists():
            return
        lines = self.spool.read_text(encoding="utf-8").splitlines()
        self.spool.unlink()
        for kind, content in map(json.loads, lines):
            match kind:
                case "complaint":
                    self._complain(content)
                case "difference":
                    self._differ(content)
                case _:
                    self._store(content[0], Recorded.model_validate(content[1], strict=False))


def _replayed(recorded: Recorded, job: EngineJob) -> Future[ModelReply]:
    if job.on_text is not None:
        for piece in recorded.streamed():
            job.on_text(piece)
    future: Future[ModelReply] = Future()
    future.set_result(recorded.reply())
    return future


def _missing(request: ModelRequest, sha256: str, module: str) -> str:
    last = request.messages[-1].text if request.messages else ""
    return (
        f"no reply of the weights {sha256[:8]} is recorded for this request, which ends with {last[-_SHOWN:]!r}. "
        f"Record it: {_command(module)}"
    )


def _difference(why: str, before: Recorded, after: Recorded) -> str:
    shown = (json.dumps(each.model_dump(exclude={"pieces"}), indent=1, ensure_ascii=False) for each in (before, after))
    old, new = (each.splitlines() for each in shown)
    return "\n".join((why, *difflib.unified_diff(old, new, "recorded", "engine", lineterm="", n=1)))


# The place of the engine --------------------------------------------------------------------------------------------

RECORDER = Recorder()


class RecordedEngine(InferenceEngine):
    """An engine that is asked only for what `RECORDER` does not answer."""

    def submit(self, job: EngineJob) -> Future[ModelReply]:
        return RECORDER.answer(self.path, job, super().submit)


_load = EngineServer.__init__


def _load_if_allowed(self: EngineServer, path: Path, context: int, threads: int, slots: Slots) -> None:
    """Load weights; a test that has to do without them fails instead."""
    if RECORDER.replays:
        raise RECORDER.refused(f"the weights {path.name} were to be loaded. Mark the test `live`")
    _load(self, path, context, threads, slots)


def install() -> None:
    """Put `RecordedEngine` in the place of the engine, for this process."""
    engines.InferenceEngine = RecordedEngine
    EngineServer.__init__ = _load_if_allowed


def recorded_environment(folder: Path) -> dict[str, str]:
    """What a process of a test needs to be answered like the test itself, if it is started by `recorded_program`."""
    RECORDER.spool = folder / "asked.jsonl"
    told = {"mode": RECORDER.mode, "module": RECORDER.module, "live": RECORDER.live, "spool": str(RECORDER.spool)}
    return {_VARIABLE: json.dumps(told)}


def install_from_environment() -> None:
    """The same in a process that a test has started."""
    told = cast("dict[str, Any]", json.loads(os.environ[_VARIABLE]))
    RECORDER.mode, RECORDER.module, RECORDER.live = told["mode"], told["module"], told["live"]
    RECORDER.spool, RECORDER.started = Path(told["spool"]), True
    install()
