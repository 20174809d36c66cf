"""The local provider, which runs a GGUF model in this process, and the number of threads of its engine."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bicameral.errors import ConfigError, ModelError, nearest_name
from bicameral.models._progress import ModelProgress, ProgressListener, current_listener
from bicameral.models._protocol import (
    Chamber,
    ModelReply,
    ModelRequest,
    ReplyChunk,
    TextChunk,
    check_request,
    reply_chunks,
    stream_texts,
)
from bicameral.models._tool_calls import answer_filter, constrain_to_step, parse_step
from bicameral.models._weights import Adapter

if TYPE_CHECKING:
    from bicameral.models._engine import EngineJob, InferenceEngine
    from bicameral.models._prefix_states import KeptPrefixes


class LocalProvider:
    """Asks a GGUF model through the embedded llama.cpp; nothing is loaded before the first request.

    Providers of the same weights file share one engine, with the threads of the first. Equal requests get equal
    replies on one machine, at any temperature with the same seed, whatever was asked before and however much of the
    prompt was cached. Another kind of CPU, another number of threads or another engine may round differently.

    Args:
        path: The weights file.
        name: Identifies model and weights exactly; cache keys contain it.
        context: Tokens of prompt and reply together, at most those that the model was trained with.
        threads: Threads of the engine; by default `engine_threads()`.
        adapters: The adapters that requests may name, by job.
        chamber: The side that it serves; None if it may serve either.
        prefixes: Where it keeps what it has read of fixed messages, for later processes.
        own_template: Whether turns are written as the chat template of the weights says, and not in ChatML.

    Example:
        >>> weights = find_weights("0.5b")
        >>> model = LocalProvider(ModelStore().ensure(weights), name=f"local:{weights.id}@{weights.sha256[:8]}")
        >>> reply = await model.generate(ModelRequest((Message("user", "Say hi."),)))
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        context: int = 8192,
        threads: int | None = None,
        adapters: Mapping[str, Adapter] | None = None,
        chamber: Chamber | None = None,
        prefixes: KeptPrefixes | None = None,
        own_template: bool = False,
    ) -> None:
        if context < 1 or (threads is not None and threads < 1):
            raise ModelError("models.bad-setting", "context and threads must be 1 or more")
        self.name: Final = name
        self.grammars: Final = True
        self.chamber: Final[Chamber | None] = chamber
        self._path = path
        self._context = context
        self._threads = threads
        self._adapters = dict(adapters or {})
        self._prefixes = prefixes
        self._own_template = own_template
        self._engine: InferenceEngine | None = None

    @property
    def adapters(self) -> Mapping[str, str]:
        return {job: adapter.sha256 for job, adapter in self._adapters.items()}

    async def generate(self, request: ModelRequest) -> ModelReply:
        """The reply; a timeout or a cancellation stops the engine too."""
        return await self._run_job(request, self._make_job(request))

    def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        """The reply's text as it is written; leaving the loop early stops the engine."""
        return stream_texts(self.chunks(request))

    async def chunks(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """Like `stream`, with the call, the usage and the end. A call is one chunk and never text."""
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        job = self._make_job(request)

        def on_text(text: str) -> None:
            try:
                loop.call_soon_threadsafe(pieces.put_nowait, text)
            except RuntimeError:
                # The loop is closed, so nobody reads the stream any more.
                job.stopped.set()

        job.on_text = on_text
        answer = asyncio.ensure_future(self._run_job(request, job))
        # None ends the loop below, also when the job fails: `await answer` then raises.
        answer.add_done_callback(lambda _: pieces.put_nowait(None))
        answer_text, text_sent = answer_filter(request), False
        try:
            while (piece := await pieces.get()) is not None:
                if text := answer_text(piece):
                    text_sent = True
                    yield TextChunk(text)
            for chunk in reply_chunks(await answer, text_sent=text_sent):
                yield chunk
        finally:
            # Cancelling sets `job.stopped`; waiting for it keeps the job from outliving its stream.
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)

    async def aclose(self) -> None:
        """Return the engine; the last provider of a weights file frees its memory. May be used again."""
        if self._engine is not None:
            from bicameral.models._engine import return_engine

            engine, self._engine = self._engine, None
            await asyncio.to_thread(return_engine, engine)

    def _make_job(self, request: ModelRequest) -> EngineJob:
        from bicameral.models._engine import EngineJob

        check_request(request)
        job = EngineJob(constrain_to_step(request), self._context, self._find_adapter(request))
        job.own_template = self._own_template
        listener = current_listener()
        if listener is not None:
            kept = self._prefixes is not None and self._prefixes.most_bytes > 0
            threads = self._threads or engine_threads()
            told = partial(replace, model=self.name, kept=kept, threads=threads)
            job.on_progress = _in_loop(lambda each: listener(told(each)), asyncio.get_running_loop())
        return job

    async def _run_job(self, request: ModelRequest, job: EngineJob) -> ModelReply:
        try:
            # The time-out includes waiting in the engine's queue and loading the weights.
            async with asyncio.timeout(job.request.timeout):
                reply = await asyncio.wrap_future(self._lease_engine().submit(job))
                return replace(parse_step(request, reply, self.name), model=self.name)
        except TimeoutError:
            raise ModelError(
                "models.timeout",
                f"{self.name} did not finish within {job.request.timeout:g} s",
                fix="Allow more time, ask for fewer tokens, or shorten the prompt.",
            ) from None
        finally:
            # The engine runs in another thread and cannot be cancelled; it looks at this event.
            job.stopped.set()

    def _find_adapter(self, request: ModelRequest) -> Adapter | None:
        if request.adapter is None:
            return None
        if request.adapter not in self._adapters:
            raise ModelError(
                "models.unknown-adapter",
                f"{self.name} has no adapter for {request.adapter!r}",
                expected=f"one of {', '.join(self._adapters) or 'none'}",
                nearest=nearest_name(request.adapter, self._adapters),
            )
        return self._adapters[request.adapter]

    def _lease_engine(self) -> InferenceEngine:
        if self._engine is None:
            from bicameral.models._engine import lease_engine

            adapters = tuple(self._adapters.values())
            self._engine = lease_engine(self._path, self._threads or engine_threads(), adapters, self._prefixes)
        return self._engine


def _in_loop(listener: ProgressListener, loop: asyncio.AbstractEventLoop) -> ProgressListener:
    """Call a listener in the loop of whoever asks: the engine has a thread of its own."""

    def call(progress: ModelProgress) -> None:
        with suppress(Exception):
            listener(progress)

    def tell(progress: ModelProgress) -> None:
        # The loop may be closed while the engine is still stopping.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(call, progress)

    return tell


_MAX_THREADS = 8


def engine_threads() -> int:
    """The number of threads for an engine: `$BICAMERAL_THREADS`, else the usable cores, at most eight."""
    if chosen := os.environ.get("BICAMERAL_THREADS"):
        if chosen.isdecimal() and 1 <= int(chosen) <= 512:
            return int(chosen)
        raise ConfigError(
            "config.threads",
            f"BICAMERAL_THREADS is {chosen!r}",
            expected="a number of threads, 1 or more",
            fix="Unset it to use the cores that are there.",
        )
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    # A container may see every core of its host and have CPU time for two; more threads than that only wait.
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        cores = min(cores, int(quota) // int(period))
    return max(1, min(_MAX_THREADS, cores))
