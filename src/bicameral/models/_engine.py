"""The llama.cpp engine inside this process: one per weights file, one request at a time, with a private socket.

`InferenceEngine` queues jobs and is shared by all providers of a file. `EngineServer` is llama.cpp's server: its
configuration, its private socket, and the few calls that only the socket offers. `Slots` assigns a slot to each
adapter, so that no prefix is evaluated twice.
"""

from __future__ import annotations

import atexit
import http.client
import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bicameral.errors import ModelError, Place
from bicameral.models._completion import Completion, completion_body
from bicameral.models._evaluator import BLOCK, Evaluator, SlotPlacement, TakePiece, UnexpectedReuse
from bicameral.models._prefix_states import KeptPrefixes, PrefixFolder, PrefixStates
from bicameral.models._progress import LOADING, READING, WRITING, ModelProgress, ModelStage, ProgressListener
from bicameral.models._prompts import PromptTokenizer, Vocabulary, read_vocabulary
from bicameral.models._protocol import ModelReply, ModelRequest
from bicameral.models._weights import Adapter

if TYPE_CHECKING:
    from xllamacpp import CommonParams, Server


# Bounds the wait for an engine that hangs.
_HTTP_TIMEOUT_SECONDS = 120
_SOCKET_NAME = "engine.sock"
_EVALUATION = f"bf16 keys and values, flash attention, blocks of {BLOCK}"
"""The settings of `engine_params` on which an evaluated prefix depends; it changes with them."""


class Slots:
    """Assigns requests to slots.

    Each adapter has a slot of its own, because what was evaluated with one adapter cannot be reused with another.
    Requests without an adapter share the first slot: the engine clears the memory of every slot when it starts, and
    restoring a saved prefix takes milliseconds.
    """

    def __init__(self, adapters: tuple[Adapter, ...]) -> None:
        self.adapters = adapters
        self.count = 1 + len(adapters)

    def place(self, adapter: Adapter | None) -> SlotPlacement:
        """The slot that a request with this adapter, or without one, runs in."""
        if not self.adapters:
            return SlotPlacement(0, "", {"id_slot": 0})
        scales = [{"id": number, "scale": float(known == adapter)} for number, known in enumerate(self.adapters)]
        slot = 0 if adapter is None else 1 + self.adapters.index(adapter)
        return SlotPlacement(slot, "" if adapter is None else adapter.sha256, {"id_slot": slot, "lora": scales})


class EngineServer:
    """One loaded weights file.

    Tokenizing and the state of a slot are available over HTTP only, so the socket stays open while the weights are
    loaded. It lies in a folder that only this user can enter, and every call needs a key that never leaves this
    process.
    """

    def __init__(self, path: Path, context: int, threads: int, slots: Slots) -> None:
        from xllamacpp import Server

        for adapter in slots.adapters:
            adapter.check()
        self._path = path
        # `mkdtemp` makes it accessible to this user only. A `TemporaryDirectory` would be removed at exit before the
        # engine is closed; `close` removes this one.
        self._folder = Path(tempfile.mkdtemp(prefix="bicameral-"))
        self._key = secrets.token_urlsafe(32)
        self.states = self._folder / "states"
        self.states.mkdir(mode=0o700)
        params = engine_params(path, context, threads, slots, self._folder, self._key)
        try:
            self._server: Server | None = Server(params)
        except RuntimeError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise ModelError(
                "models.load-failed",
                f"the engine could not load these weights with a context of {context} tokens",
                place=Place(file=str(path)),
                fix="Run `bicameral models verify` to check the file, and see that enough memory is free.",
            ) from error
        # The constructor returns before the server's loop runs, and a loop that starts after the order to end never
        # ends: `close` would wait for ever. A request through its queue returns only once the loop runs.
        self.erase(0)

    def close(self) -> None:
        """Free the weights, and remove the socket and every saved state."""
        self._server = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def complete(self, body: dict[str, Any], take: TakePiece) -> None:
        """Stream one completion to `take`, which ends it by returning True."""
        assert self._server is not None
        try:
            self._server.handle_completions(body, take)
        except RuntimeError as error:
            raise self._engine_failure(error) from error

    def tokenize(self, pieces: list[str], separator: int) -> list[tuple[int, ...]]:
        """The tokens of each piece; `separator` is a control token, which no piece can contain."""
        content = [part for piece in pieces for part in (piece, separator)]
        tokenized: list[tuple[int, ...]] = []
        current: list[int] = []
        for token in self._post("/tokenize", {"content": content})["tokens"]:
            if token == separator:
                tokenized.append(tuple(current))
                current = []
            else:
                current.append(token)
        return tokenized

    def tokenize_markers(self, text: str) -> tuple[int, ...]:
        """The tokens of a template's own text, control tokens among them."""
        body = {"content": text, "add_special": False, "parse_special": True}
        return tuple(self._post("/tokenize", body)["tokens"])

    def erase(self, slot: int) -> None:
        """Empty a slot."""
        self._post(f"/slots/{slot}?action=erase", {})

    def save(self, slot: int, name: str) -> int:
        """Write a slot's state to a file of this name in `states`; return its number of bytes."""
        return int(self._post(f"/slots/{slot}?action=save", {"filename": name})["n_written"])

    def restore(self, slot: int, name: str) -> int:
        """Read a slot's state back; return its number of tokens. The engine aborts on a damaged file: check it."""
        return int(self._post(f"/slots/{slot}?action=restore", {"filename": name})["n_restored"])

    def _post(self, target: str, body: dict[str, Any]) -> dict[str, Any]:
        # A new connection for each call: the only HTTP thread would block on an idle one.
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json", "Connection": "close"}
        connection = http.client.HTTPConnection("engine", timeout=_HTTP_TIMEOUT_SECONDS)
        try:
            connection.sock = self._connect()
            connection.request("POST", target, json.dumps(body), headers)
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._engine_failure(error) from error
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise self._engine_failure(answer.get("error", {}).get("message", f"status {response.status}"))
        return answer

    def _connect(self) -> socket.socket:
        if sys.platform == "win32":
            assert self._server is not None
            address = urlsplit(self._server.listening_address)
            return socket.create_connection(("127.0.0.1", address.port or 0), _HTTP_TIMEOUT_SECONDS)
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_HTTP_TIMEOUT_SECONDS)
        connection.connect(str(self._folder / _SOCKET_NAME))
        return connection

    def _engine_failure(self, reason: object) -> ModelError:
        return ModelError(
            "models.engine-failed",
            f"the engine failed: {reason}",
            place=Place(file=str(self._path)),
            fix="Ask again; if it repeats, run `bicameral models verify`.",
        )


def engine_params(path: Path, context: int, threads: int, slots: Slots, folder: Path, key: str) -> CommonParams:
    """The configuration of an engine: deterministic, silent, and reachable only through its private socket."""
    from xllamacpp import CommonAdapterLoraInfo, CommonParams, ggml_type, llama_flash_attn_type

    params = CommonParams()
    params.model.path = str(path)
    params.n_ctx = context * slots.count
    # A request to stop is seen between batches: small batches cost little on a CPU and bound the wait.
    params.n_batch = params.n_ubatch = BLOCK
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_parallel = slots.count
    params.lora_adapters = [CommonAdapterLoraInfo(str(adapter.path), 1.0) for adapter in slots.adapters]
    params.lora_init_without_apply = True
    # Neither changes a reply, and both take longer than they save: an evaluation for nothing, and a trial load that
    # measures the memory of devices.
    params.warmup = False
    params.fit_params = False  # pyright: ignore[reportAttributeAccessIssue]
    params.cache_type_k = params.cache_type_v = ggml_type.GGML_TYPE_BF16
    params.flash_attn_type = llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    # `_evaluator` alone decides what is reused. Everything by which the engine would keep, move or cut evaluated tokens
    # on its own is off, and slots share no cells, so that the place of a token depends on its own slot only.
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.n_cache_reuse = 0
    params.n_ctx_checkpoints = 0
    params.slot_prompt_similarity = 0.0
    params.ctx_shift = False
    params.kv_unified = False
    params.slot_save_path = os.path.join(folder, "states", "")
    # The embedded HTTP server cannot be switched off, so it gets a socket in a private folder and a key.
    params.hostnames = ["127.0.0.1" if sys.platform == "win32" else os.path.join(folder, _SOCKET_NAME)]
    params.api_keys = [key]
    params.n_threads_http = 1
    params.ui = False
    # The engine would run the template of the weights, which is a stranger's program without limits, when it starts.
    params.chat_template = "chatml"  # pyright: ignore[reportAttributeAccessIssue]
    params.use_jinja = False  # pyright: ignore[reportAttributeAccessIssue]
    params.endpoint_slots = False
    params.offline = True
    params.verbosity = -1
    return params


@dataclass(eq=False, slots=True)
class EngineJob:
    """One request to an engine; setting `stopped` ends it."""

    request: ModelRequest
    context: int
    adapter: Adapter | None = None
    on_text: Callable[[str], object] | None = None
    on_progress: ProgressListener | None = None
    stopped: threading.Event = field(default_factory=threading.Event)
    own_template: bool = False
    """Whether turns are marked by the template of the weights, and not by ChatML."""


class _JobProgress:
    """Tells the listener of a job what the engine does; texts go to whoever hears them."""

    def __init__(self, job: EngineJob, began: float) -> None:
        self._job = job
        self._began = began
        self._reused: int | None = None
        self._written = 0
        self.total = 0

    def tell(self, stage: ModelStage, done: int = 0) -> None:
        if self._job.on_progress is not None:
            named = self._job.request.adapter or ""
            seconds = perf_counter() - self._began
            self._job.on_progress(ModelProgress(stage, named, done, self.total, self._reused or 0, seconds))

    def read(self, done: int) -> None:
        """Tokens of the prompt are evaluated; the first number is what was reused."""
        self._reused = done if self._reused is None else self._reused
        self.tell(READING, done)

    def write(self, text: str) -> None:
        """A piece of the reply."""
        self._written += 1
        self.tell(WRITING, self._written)
        if self._job.on_text is not None:
            self._job.on_text(text)


@dataclass(frozen=True, slots=True)
class _LoadedModel:
    """The loaded weights and the known content of their slots, which are only valid together."""

    server: EngineServer
    context: int
    slots: Slots
    evaluator: Evaluator
    tokenizers: dict[bool, PromptTokenizer] = field(default_factory=dict[bool, PromptTokenizer])
    """By whether turns are marked by the template of the weights."""

    def tokenizer(self, vocabulary: Vocabulary) -> PromptTokenizer:
        own = vocabulary.template is not None
        if own not in self.tokenizers:
            server = self.server
            self.tokenizers[own] = PromptTokenizer(vocabulary, server.tokenize, server.tokenize_markers)
        return self.tokenizers[own]


class InferenceEngine:
    """One weights file in memory. Requests from any thread or event loop share one queue."""

    def __init__(self, path: Path, threads: int) -> None:
        self.path = path
        self.threads = threads
        self.leases = 0
        self.adapters: list[Adapter] = []
        self.prefixes: PrefixFolder | None = None
        self._loaded: _LoadedModel | None = None
        self._vocabularies: dict[bool, Vocabulary] = {}
        self._jobs: set[EngineJob] = set()
        # One worker: the engine, its slots and their records are used by this thread only and need no lock.
        self._queue = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bicameral-engine")

    def submit(self, job: EngineJob) -> Future[ModelReply]:
        """Queue a request; setting `job.stopped` ends it within a batch or a token."""
        self._jobs.add(job)
        future = self._queue.submit(self._run_job, job)
        future.add_done_callback(lambda _: self._jobs.discard(job))
        return future

    def close(self) -> None:
        """Stop all jobs and free the weights."""
        for job in tuple(self._jobs):
            job.stopped.set()
        self._queue.shutdown(wait=True, cancel_futures=True)
        self._unload()

    def _run_job(self, job: EngineJob) -> ModelReply:
        began = perf_counter()
        if job.own_template not in self._vocabularies:
            self._vocabularies[job.own_template] = read_vocabulary(self.path, own_template=job.own_template)
        vocabulary = self._vocabularies[job.own_template]
        body = completion_body(job.request, vocabulary)
        progress = _JobProgress(job, began)
        loaded = self._load(vocabulary, job, progress)
        completion = Completion(job.request, progress.write, job.stopped, vocabulary.tripwire)
        reused = 0
        if not job.stopped.is_set():
            prompt = loaded.tokenizer(vocabulary).prompt(job.request)
            progress.total = len(prompt.tokens)
            place = loaded.slots.place(job.adapter)
            stopped = job.stopped.is_set
            try:
                reused = loaded.evaluator.complete(prompt, body, place, completion.take, stopped, progress.read)
            except UnexpectedReuse:
                # The retry in an erased slot failed, too. No reply is better than one that is not reproducible.
                raise ModelError(
                    "models.engine-failed",
                    "the engine reused tokens that it was not to reuse",
                    place=Place(file=str(self.path)),
                    fix="Report this.",
                ) from None
        return completion.reply(perf_counter() - began, reused)

    def _load(self, vocabulary: Vocabulary, job: EngineJob, progress: _JobProgress) -> _LoadedModel:
        context = min(job.context, vocabulary.trained_context or job.context)
        loaded = self._loaded
        lacks_adapter = loaded is not None and job.adapter is not None and job.adapter not in loaded.slots.adapters
        if loaded is None or loaded.context < context or lacks_adapter:
            progress.tell(LOADING)
            # The old engine is freed first: there may not be enough memory for both.
            self._unload()
            slots = Slots(tuple(self.adapters))
            server = EngineServer(self.path, context, self.threads, slots)
            states = PrefixStates(server.states, kept=self.prefixes)
            # Both ways of marking turns have the same two tokens, if the weights have ChatML's.
            loaded = _LoadedModel(server, context, slots, Evaluator(server, states, (vocabulary.start, vocabulary.end)))
            self._loaded = loaded
        return loaded

    def _unload(self) -> None:
        if self._loaded is not None:
            self._loaded.server.close()
            self._loaded = None


_engines: dict[Path, InferenceEngine] = {}
# Protects `_engines`, and the leases and adapters of each engine: providers may be used in several threads.
_engines_lock = threading.Lock()


def lease_engine(
    path: Path, threads: int, adapters: Iterable[Adapter] = (), prefixes: KeptPrefixes | None = None
) -> InferenceEngine:
    """The engine of this file, shared by all callers; return it with `return_engine`."""
    with _engines_lock:
        key = path.resolve()
        if key not in _engines:
            _engines[key] = InferenceEngine(key, threads)
        engine = _engines[key]
        engine.leases += 1
        engine.adapters += [adapter for adapter in adapters if adapter not in engine.adapters]
        if prefixes is not None and engine.prefixes is None:
            engine.prefixes = prefixes.folder_for((_EVALUATION, f"{engine.threads} threads"))
        return engine


def return_engine(engine: InferenceEngine) -> None:
    """Return a lease; the last one frees the weights."""
    with _engines_lock:
        engine.leases -= 1
        if engine.leases:
            return
        _engines.pop(engine.path, None)
    # Outside of the lock: closing waits for the job that is running.
    engine.close()


@atexit.register
def _close_engines() -> None:  # pyright: ignore[reportUnusedFunction]
    while _engines:
        _engines.popitem()[1].close()
