"""The agent: say it, see the plan, check it, run it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from bicameral.boundary import Extractor
from bicameral.delta import Compiled, Delta, Mismatch, against_intent
from bicameral.errors import IntentError, Place, PlanError
from bicameral.intent import Echo, Intent
from bicameral.models import Provider, Usage
from bicameral.plans import Finding, Limits, Plan, Report, check, print_plan
from bicameral.runs import Asker, Journal, Observer, Replayed, RunOutcome, replay, run_plan
from bicameral.sessions import Ledger, Listener, ModelCall, Role
from bicameral.tools import Registry, Tool
from bicameral.types import STR

if TYPE_CHECKING:
    from bicameral.config import Config

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with everything that led to it; `source` is the plan as people read it."""

    intent: Intent
    plan: Plan
    report: Report
    mismatches: tuple[Mismatch, ...]
    source: str
    repairs: int
    cached: bool
    seconds: float
    usage: Mapping[Role, Usage]


class Agent:
    """Turns requests into checked plans and runs them. Async first; `agent.sync` has the same methods, blocking.

    Example:
        >>> agent = Agent(tools=[grep, read_lines])
        >>> planned = await agent.plan("Which lines of mail.txt mention invoices?")
        >>> print(planned.source)
        >>> outcome = await agent.run(planned)
    """

    def __init__(
        self,
        tools: Registry | Iterable[Tool] | None = None,
        *,
        config: Config | None = None,
        privileged: Provider | None = None,
        quarantined: Provider | None = None,
        journal: Journal | None = None,
        cache: MutableMapping[str, str] | None = None,
        limits: Limits | None = None,
        now: Callable[[], datetime] = datetime.now,
        listener: Listener | None = None,
    ) -> None:
        from bicameral.config import Config, open_cache, open_models, open_registry

        self.config = config or Config.defaults()
        if tools is None:
            self.registry = open_registry(self.config)
        else:
            self.registry = tools if isinstance(tools, Registry) else Registry(tools)
        if privileged is None or quarantined is None:
            own = open_models(self.config)
            privileged, quarantined = privileged or own.privileged, quarantined or own.quarantined
        self._privileged, self._quarantined = privileged, quarantined
        self._journal = journal
        self._now = now
        self.ledger = Ledger()
        self._listener = listener
        self._limits = limits or self.config.plan_limits
        timeout = self.config.limits.model_timeout
        cache = open_cache(self.config) if cache is None else cache
        self._echo = Echo(privileged, cache=cache, listener=self._heard, timeout=timeout)
        self._delta = Delta(
            privileged,
            limits=self._limits,
            cache=cache,
            listener=self._heard,
            timeout=timeout,
            repairs=self.config.limits.repairs,
        )
        self._extractor = Extractor(quarantined, listener=self._heard, timeout=timeout)

    @classmethod
    def from_config(cls, config: Config | None = None, **options: Any) -> Agent:
        """The agent that `bicameral.toml` describes, with its journal."""
        from bicameral.config import Config, open_journal

        config = config or Config.load()
        return cls(config=config, journal=open_journal(config), **options)

    @property
    def sync(self) -> SyncAgent:
        """The same agent for code that does not await."""
        return SyncAgent(self)

    async def intent(self, request: str, *, deterministic: bool = False, asker: Asker | None = None) -> Intent:
        """What a request means. Open questions go to the asker, once and together; without one they are an error."""
        today = self._now().date()
        intent = await self._echo.intent(request, self.registry, today, deterministic=deterministic)
        if not intent.questions:
            return intent
        if asker is None:
            raise IntentError(
                "intent.questions",
                "the request leaves open: " + " ".join(intent.questions),
                fix="Say it in the request, or run it interactively.",
            )
        reply = str(await asker.ask("\n".join(intent.questions), STR)).strip()
        fuller = f"{intent.request}\n({reply})"
        answered = await self._echo.intent(fuller, self.registry, today, deterministic=deterministic)
        return answered.model_copy(update={"questions": ()})

    async def plan(
        self,
        request: str | Intent,
        *,
        deterministic: bool = False,
        asker: Asker | None = None,
        fresh: bool = False,
        watch: Callable[[str], None] | None = None,
    ) -> Planned:
        """A plan for a request, checked; nothing has been done yet. `watch` sees each statement as it is written."""
        started, before = time.perf_counter(), dict(self.ledger.usage)
        if isinstance(request, Intent):
            intent = request
        else:
            intent = await self.intent(request, deterministic=deterministic, asker=asker)
        compiled = await self._delta.compile(intent, self.registry, fresh=fresh, watch=watch)
        return self._planned(intent, compiled, time.perf_counter() - started, before)

    def check(self, plan: Plan, *, intent: Intent | None = None, places: Mapping[str, Place] | None = None) -> Report:
        """What is wrong with a plan, what it would do, and what it could cost at worst."""
        report = check(plan, self.registry, places=places, limits=self._limits)
        if intent is None or not report.ok:
            return report
        apart = against_intent(plan, intent, self.registry)
        found = (Finding("error" if each.severe else "warning", each.code, each.message) for each in apart)
        return replace(report, findings=(*report.findings, *found))

    async def run(
        self,
        what: Plan | Planned | str,
        *,
        asker: Asker | None = None,
        observer: Observer | None = None,
        deterministic: bool = False,
    ) -> RunOutcome:
        """Run a plan, or plan a request and run it. A plan with errors is refused before anything happens."""
        if isinstance(what, str):
            what = await self.plan(what, deterministic=deterministic, asker=asker)
        plan, intent = (what.plan, what.intent) if isinstance(what, Planned) else (what, None)
        report = check(plan, self.registry, limits=self._limits)
        if not report.ok:
            first = report.errors[0]
            raise PlanError(first.code, f"the plan does not pass the check: {first}")
        return await run_plan(
            plan,
            self.registry,
            journal=self._journal,
            extractor=self._extractor,
            asker=asker,
            observer=observer,
            intent=intent,
        )

    async def replay(self, run: str) -> Replayed:
        """Run a recorded run again with the recorded answers of models and tools."""
        if self._journal is None:
            raise PlanError("journal.none", "this agent has no journal", fix="Give it one, or use Agent.from_config().")
        return await replay(self._journal, run, self.registry)

    async def aclose(self) -> None:
        """Free the models' memory and close the journal."""
        await self._privileged.aclose()
        await self._quarantined.aclose()
        if self._journal is not None:
            self._journal.close()

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _planned(self, intent: Intent, compiled: Compiled, seconds: float, before: Mapping[Role, Usage]) -> Planned:
        return Planned(
            intent,
            compiled.plan,
            self.check(compiled.plan, intent=intent),
            compiled.mismatches,
            print_plan(compiled.plan, self.registry),
            compiled.repairs,
            compiled.cached,
            seconds,
            {role: _less(usage, before.get(role, Usage())) for role, usage in self.ledger.usage.items()},
        )

    def _heard(self, call: ModelCall) -> None:
        self.ledger(call)
        if self._listener is not None:
            self._listener(call)


def _less(usage: Usage, before: Usage) -> Usage:
    return Usage(usage.prompt - before.prompt, usage.cached - before.cached, usage.output - before.output)


class SyncAgent:
    """An agent whose methods block. One event loop runs in a thread of its own, so it works in notebooks too."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def intent(self, request: str, **options: Any) -> Intent:
        return _blocking(self._agent.intent(request, **options))

    def plan(self, request: str | Intent, **options: Any) -> Planned:
        return _blocking(self._agent.plan(request, **options))

    def check(self, plan: Plan, **options: Any) -> Report:
        return self._agent.check(plan, **options)

    def run(self, what: Plan | Planned | str, **options: Any) -> RunOutcome:
        return _blocking(self._agent.run(what, **options))

    def replay(self, run: str) -> Replayed:
        return _blocking(self._agent.replay(run))

    def close(self) -> None:
        _blocking(self._agent.aclose())

    def __enter__(self) -> SyncAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_loop: asyncio.AbstractEventLoop | None = None
_starting = threading.Lock()


def _blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop's thread and wait; Ctrl-C stops the coroutine and waits until it has written that."""
    loop, running = _shared_loop(), list[asyncio.Task[Any]]()

    async def kept() -> T:
        running.extend(task for task in [asyncio.current_task()] if task is not None)
        return await work

    future = asyncio.run_coroutine_threadsafe(kept(), loop)
    try:
        return future.result()
    except KeyboardInterrupt:
        for task in running:
            loop.call_soon_threadsafe(task.cancel)
        with contextlib.suppress(Exception, asyncio.CancelledError):
            future.result(timeout=10)
        raise


def _shared_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _starting:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="bicameral", daemon=True).start()
        return _loop
