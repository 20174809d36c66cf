"""The local provider: a GGUF model that runs in this process, and how many threads its engine gets."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bicameral.errors import ConfigError, ModelError, nearest_name
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


class LocalProvider:
    """Asks a GGUF model through the embedded llama.cpp; nothing is loaded before the first request.

    Providers of the same weights file share one engine; its threads are those of the first. Equal requests get equal
    replies on one machine, at any temperature with the same seed, whatever was asked before and however much of the
    prompt was cached; another kind of CPU, another number of threads or another engine may round differently.

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
    ) -> None:
        if context < 1 or (threads is not None and threads < 1):
            raise ModelError("models.bad-setting", "context and threads must be 1 or more")
        self._path = path
        self._name = name
        self._context = context
        self._threads = threads
        self._adapters = dict(adapters or {})
        self._chamber: Chamber | None = chamber
        self._engine: InferenceEngine | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def grammars(self) -> bool:
        return True

    @property
    def chamber(self) -> Chamber | None:
        return self._chamber

    @property
    def adapters(self) -> Mapping[str, str]:
        return {job: adapter.sha256 for job, adapter in self._adapters.items()}

    async def generate(self, request: ModelRequest) -> ModelReply:
        """The reply; a timeout or a cancellation stops the engine too."""
        from bicameral.models._engine import EngineJob

        check_request(request)
        return await self._run_job(
            request, EngineJob(constrain_to_step(request), self._context, self._find_adapter(request))
        )

    def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        """The reply's text as it is written; leaving the loop early stops the engine."""
        return stream_texts(self.chunks(request))

    async def chunks(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """The same with the call, what it cost, and the end. A call comes whole and not as text."""
        from bicameral.models._engine import EngineJob

        check_request(request)
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        job = EngineJob(constrain_to_step(request), self._context, self._find_adapter(request))

        def on_text(text: str) -> None:
            try:
                loop.call_soon_threadsafe(pieces.put_nowait, text)
            except RuntimeError:  # the loop is closed: nobody listens any more
                job.stopped.set()

        job.on_text = on_text
        answer = asyncio.ensure_future(self._run_job(request, job))
        answer.add_done_callback(lambda _: pieces.put_nowait(None))
        more, told = answer_filter(request), False
        try:
            while (piece := await pieces.get()) is not None:
                if text := more(piece):
                    told = True
                    yield TextChunk(text)
            for chunk in reply_chunks(await answer, told=told):
                yield chunk
        finally:
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)

    async def aclose(self) -> None:
        """Give the engine back; the last provider of a weights file frees its memory. May be used again."""
        if self._engine is not None:
            from bicameral.models._engine import return_engine

            engine, self._engine = self._engine, None
            await asyncio.to_thread(return_engine, engine)

    async def _run_job(self, request: ModelRequest, job: EngineJob) -> ModelReply:
        try:
            async with asyncio.timeout(job.request.timeout):
                reply = await asyncio.wrap_future(self._lease_engine().submit(job))
                return replace(parse_step(request, reply, self._name), model=self._name)
        except TimeoutError:
            raise ModelError(
                "models.timeout",
                f"{self._name} did not finish within {job.request.timeout:g} s",
                fix="Allow more time, ask for fewer tokens, or shorten the prompt.",
            ) from None
        finally:
            job.stopped.set()

    def _find_adapter(self, request: ModelRequest) -> Adapter | None:
        if request.adapter is None:
            return None
        if request.adapter not in self._adapters:
            raise ModelError(
                "models.unknown-adapter",
                f"{self._name} has no adapter for {request.adapter!r}",
                expected=f"one of {', '.join(self._adapters) or 'none'}",
                nearest=nearest_name(request.adapter, self._adapters),
            )
        return self._adapters[request.adapter]

    def _lease_engine(self) -> InferenceEngine:
        if self._engine is None:
            from bicameral.models._engine import lease_engine

            adapters = tuple(self._adapters.values())
            self._engine = lease_engine(self._path, self._threads or engine_threads(), adapters)
        return self._engine


_MAX_THREADS = 8


def engine_threads() -> int:
    """`$BICAMERAL_THREADS`, else the cores that this program may use, at most eight."""
    if chosen := os.environ.get("BICAMERAL_THREADS"):
        if chosen.isdecimal() and 1 <= int(chosen) <= 512:
            return int(chosen)
        raise ConfigError(
            "config.threads",
            f"BICAMERAL_THREADS is {chosen!r}",
            expected="a number of threads, 1 or more",
            fix="Unset it to use the cores that are there.",
        )
    return max(1, min(_MAX_THREADS, _usable_cores()))


def _usable_cores() -> int:
    affine = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    quota = _container_cores()
    return affine if quota is None else min(affine, quota)


def _container_cores() -> int | None:
    # A container may show every core of its host and be allowed the time of two; more threads only wait.
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):
        return None
