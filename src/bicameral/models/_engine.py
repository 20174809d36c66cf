"""llama.cpp inside this process: one engine a weights file, one request at a time, no way in from outside."""

from __future__ import annotations

import atexit
import os
import secrets
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from bicameral.errors import ModelError, Place
from bicameral.models._adapters import Adapter
from bicameral.models._completion import Completion, completion_body
from bicameral.models._gguf import Vocabulary, read_vocabulary
from bicameral.models._protocol import ModelReply, ModelRequest
from bicameral.models._slots import Slots

if TYPE_CHECKING:
    from xllamacpp import CommonParams, Server

# A stop is seen between batches: small ones cost nothing on a CPU and bound the wait.
_BATCH = 32
# Prompts that are not in use stay here, so alternating between two of them keeps the prefix of both.
_PROMPT_CACHE_MIB = 512


@dataclass(eq=False, slots=True)
class Job:
    """One request on its way through an engine."""

    request: ModelRequest
    context: int
    adapter: Adapter | None = None
    on_text: Callable[[str], object] | None = None
    stopped: threading.Event = field(default_factory=threading.Event)


class Engine:
    """One weights file in memory. Requests from any thread or event loop wait in one queue."""

    def __init__(self, path: Path, threads: int) -> None:
        self.path = path
        self.threads = threads
        self.leases = 0
        self.adapters: list[Adapter] = []
        self._context = 0
        self._slots = Slots(())
        self._server: Server | None = None
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
        self._server = None

    def _answer(self, job: Job) -> ModelReply:
        began = perf_counter()
        if self._vocabulary is None:
            self._vocabulary = read_vocabulary(self.path)
        body = completion_body(job.request, self._vocabulary)
        server = self._loaded(self._vocabulary, job)
        body |= self._slots.place(job.request, job.adapter)
        completion = Completion(job.request, job.on_text, job.stopped)
        if not job.stopped.is_set():
            try:
                server.handle_completions(body, completion.take)
            except RuntimeError as error:
                raise _engine_failed(self.path, error) from error
        return completion.reply(perf_counter() - began)

    def _loaded(self, vocabulary: Vocabulary, job: Job) -> Server:
        context = min(job.context, vocabulary.trained_context or job.context)
        lacks = job.adapter is not None and job.adapter not in self._slots.adapters
        if self._server is None or self._context < context or lacks:
            # The old one goes first: there may be no room for both.
            self._server = None
            slots = Slots(tuple(self.adapters))
            self._server = open_server(self.path, context, self.threads, slots)
            self._context, self._slots = context, slots
        return self._server


def open_server(path: Path, context: int, threads: int, slots: Slots) -> Server:
    """Load weights; when this returns, the server's listening socket has no name that anyone could connect to."""
    from xllamacpp import Server

    for adapter in slots.adapters:
        adapter.check()
    with tempfile.TemporaryDirectory(prefix="bicameral-", ignore_cleanup_errors=True) as folder:
        socket = os.path.join(folder, "engine.sock")
        try:
            return Server(engine_params(path, context, threads, socket, slots))
        except RuntimeError as error:
            raise ModelError(
                "models.load-failed",
                f"the engine could not load these weights with a context of {context} tokens",
                place=Place(file=str(path)),
                fix="Run `bicameral models verify` to check the file, and see that enough memory is free.",
            ) from error


def engine_params(path: Path, context: int, threads: int, socket: str, slots: Slots) -> CommonParams:
    """The set-up of an engine: deterministic, silent and shut to the outside."""
    from xllamacpp import CommonAdapterLoraInfo, CommonParams, ggml_type, llama_flash_attn_type

    params = CommonParams()
    params.model.path = str(path)
    params.n_ctx = context * slots.count
    params.n_batch = params.n_ubatch = _BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_parallel = slots.count
    params.lora_adapters = [CommonAdapterLoraInfo(str(adapter.path), 1.0) for adapter in slots.adapters]
    params.lora_init_without_apply = True
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    # With 16-bit IEEE floats the CPU kernels round differently for one token than for many, so a reply would
    # depend on how much of its prompt was cached; with bfloat16 it does not.
    params.cache_type_k = params.cache_type_v = ggml_type.GGML_TYPE_BF16
    params.flash_attn_type = llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    # The embedded HTTP server cannot be left out. It gets a socket in a folder that only this user can enter and
    # that is removed once the weights are loaded, and a key that nobody is told.
    params.hostnames = ["127.0.0.1" if sys.platform == "win32" else socket]
    params.api_keys = [secrets.token_urlsafe(32)]
    params.n_threads_http = 1
    params.ui = False
    params.endpoint_slots = False
    params.offline = True
    params.verbosity = -1
    return params


def _engine_failed(path: Path, error: Exception) -> ModelError:
    return ModelError(
        "models.engine-failed",
        f"the engine failed: {error}",
        place=Place(file=str(path)),
        fix="Ask again; if it repeats, run `bicameral models verify`.",
    )


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
