"""llama.cpp inside this process: one engine a weights file, one request at a time, no way in from outside."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from bicameral.errors import ModelError, Place
from bicameral.models._adapters import Adapter
from bicameral.models._canonical import Evaluator, Unexpected
from bicameral.models._chatml import PromptTokenizer
from bicameral.models._completion import Completion, completion_body
from bicameral.models._gguf import Vocabulary, read_vocabulary
from bicameral.models._prefix_states import PrefixStates
from bicameral.models._protocol import ModelReply, ModelRequest
from bicameral.models._server import EngineServer
from bicameral.models._slots import Slots


@dataclass(eq=False, slots=True)
class Job:
    """One request on its way through an engine."""

    request: ModelRequest
    context: int
    adapter: Adapter | None = None
    on_text: Callable[[str], object] | None = None
    stopped: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The weights in memory, and what is known of what their slots hold; both end together."""

    server: EngineServer
    context: int
    slots: Slots
    tokenizer: PromptTokenizer
    evaluator: Evaluator


class Engine:
    """One weights file in memory. Requests from any thread or event loop wait in one queue."""

    def __init__(self, path: Path, threads: int) -> None:
        self.path = path
        self.threads = threads
        self.leases = 0
        self.adapters: list[Adapter] = []
        self._loaded: _Loaded | None = None
        self._vocabulary: Vocabulary | None = None
        self._jobs: set[Job] = set()
        self._queue = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bicameral-engine")

    def submit(self, job: Job) -> Future[ModelReply]:
        """Put a request in the queue; setting `job.stopped` ends it within a batch or a token."""
        self._jobs.add(job)
        future = self._queue.submit(self._answer, job)
        future.add_done_callback(lambda _: self._jobs.discard(job))
        return future

    def close(self) -> None:
        """Stop what is running and free the weights."""
        for job in tuple(self._jobs):
            job.stopped.set()
        self._queue.shutdown(wait=True, cancel_futures=True)
        self._unload()

    def _answer(self, job: Job) -> ModelReply:
        began = perf_counter()
        if self._vocabulary is None:
            self._vocabulary = read_vocabulary(self.path)
        body = completion_body(job.request, self._vocabulary)
        loaded = self._load(self._vocabulary, job)
        completion = Completion(job.request, job.on_text, job.stopped)
        reused = 0
        if not job.stopped.is_set():
            prompt = loaded.tokenizer.prompt(job.request)
            place = loaded.slots.place(job.request, job.adapter)
            try:
                reused = loaded.evaluator.run(prompt, body, place, completion.take, job.stopped.is_set)
            except Unexpected:
                # Even in an emptied slot: better no reply than one that might have been another.
                raise ModelError(
                    "models.engine-failed",
                    "the engine reused tokens that it was not to reuse",
                    place=Place(file=str(self.path)),
                    fix="Report this.",
                ) from None
        return completion.reply(perf_counter() - began, reused)

    def _load(self, vocabulary: Vocabulary, job: Job) -> _Loaded:
        context = min(job.context, vocabulary.trained_context or job.context)
        loaded = self._loaded
        lacks = loaded is not None and job.adapter is not None and job.adapter not in loaded.slots.adapters
        if loaded is None or loaded.context < context or lacks:
            # The old one goes first: there may be no room for both.
            self._unload()
            slots = Slots(tuple(self.adapters))
            server = EngineServer(self.path, context, self.threads, slots)
            tokenizer = PromptTokenizer(vocabulary, server.tokenize)
            states = PrefixStates(server.states)
            loaded = _Loaded(
                server, context, slots, tokenizer, Evaluator(server, states, (vocabulary.start, vocabulary.end))
            )
            self._loaded = loaded
        return loaded

    def _unload(self) -> None:
        if self._loaded is not None:
            self._loaded.server.close()
            self._loaded = None


_engines: dict[Path, Engine] = {}
_lock = threading.Lock()


def lease_engine(path: Path, threads: int, adapters: Iterable[Adapter] = ()) -> Engine:
    """The engine of this file, shared by everyone who asks; give it back with `return_engine`."""
    with _lock:
        key = path.resolve()
        if key not in _engines:
            _engines[key] = Engine(key, threads)
        engine = _engines[key]
        engine.leases += 1
        engine.adapters += [adapter for adapter in adapters if adapter not in engine.adapters]
        return engine


def return_engine(engine: Engine) -> None:
    """Give a lease back; the last one frees the weights."""
    with _lock:
        engine.leases -= 1
        if engine.leases:
            return
        _engines.pop(engine.path, None)
    engine.close()


@atexit.register
def _close_all() -> None:  # pyright: ignore[reportUnusedFunction]
    while _engines:
        _engines.popitem()[1].close()
