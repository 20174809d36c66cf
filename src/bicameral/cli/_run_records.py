"""Recorded and submitted runs: finding them, their states and events as text and JSON, watching, exit codes.

A run is in the journal of this machine, or was submitted to workers. With SQLite both share one journal; with
PostgreSQL the journal of submitted runs is in that database. If nothing was submitted, `bicameral.durable` and its
packages are not loaded.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicameral.cli._output import EXIT_CODES, FAILED, OK, Output
from bicameral.cli._plain_values import answer_text, local_time_text
from bicameral.cli._render import effects_before_text, effects_done_text
from bicameral.display import to_plain_json
from bicameral.errors import BicameralError, DurableError, JournalError
from bicameral.postgres import masked_address

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.durable import Runs, RunView
    from bicameral.runs import Event, Journal, RunSummary


_MAX_GIST = 100
RUN_ENDS = ("run-finished", "run-failed", "run-stopped", "reason-ended")
NO_WORKER = "no worker is there: `bicameral worker` starts one"


def event_json(event: Event) -> dict[str, Any]:
    from bicameral.runs import public_event

    body = public_event(event).body
    return {"number": event.number, "at": event.at, "kind": event.kind, "step": event.step, "body": body}


def event_line(event: Event, *, full: bool = False) -> str:
    """An event on a line with the gist of its facts; in full, with all of them.

    The end of a run has a line before it for each doubt about its answer and its effects.
    """
    clock = datetime.fromtimestamp(event.at).strftime("%H:%M:%S")
    head = f"{clock}  {event.kind:<13} {event.step:<8}"
    doubts: list[dict[str, Any]] = event.body.get("doubts", []) if event.kind in RUN_ENDS else []
    if full:
        return f"{head}\n{json.dumps(event_json(event)['body'], ensure_ascii=False, indent=2)}"
    before = "".join(f"{clock}  doubt: {doubt['text']}\n" for doubt in doubts)
    return before + f"{head} {_event_gist(event)}".rstrip()


def _event_gist(event: Event) -> str:
    body: dict[str, Any] = event.body
    match event.kind:
        case "run-started" | "reason-started":
            named = f" (plan {body['plan_id']})" if body.get("plan_id") else ""
            named += f" (pattern {body['pattern']})" if body.get("pattern") else ""
            text = str(body.get("request", "")) + named
        case "model-called" if body.get("open_reason"):
            text = f"{body.get('model', '')}, sees more than one typed sub-task: {body['open_reason']}"
        case "model-called" if "asked" in body:
            text = f"{body['asked']}: {body.get('model') or body.get('error', {}).get('code', '')} ({body['chamber']})"
        case "note" if "noted" in body:
            facts = ", ".join(f"{name} {value}" for name, value in body.items() if name not in ("noted", "at"))
            text = f"{body['noted']}: {facts}" if facts else str(body["noted"])
        case "note":
            text = ", ".join(f"{name} {value}" for name, value in body.items() if isinstance(value, str | int | float))
        case "step-started" | "call-waits" | "call-denied" | "lookup-started":
            called = body.get("what") or body.get("tool", "")
            text = f"{called} {json.dumps(body.get('arguments', {}), ensure_ascii=False)}"
        case "step-finished":
            text = _alert_count_text(body) + _verdicts_text(body) + json.dumps(body.get("result"), ensure_ascii=False)
        case "lookup-ended" if "error" in body:
            text = f"{body.get('tool', '')}: {body['error'].get('message', '')} [{body['error'].get('code', '')}]"
        case "lookup-ended":
            text = f"{body.get('tool', '')}: {json.dumps(body.get('result'), ensure_ascii=False)}"
        case "step-failed" | "run-failed":
            error: dict[str, Any] = body.get("error", {})
            text = (
                f"{_alert_count_text(body)}{_verdicts_text(body)}{error.get('message', '')} [{error.get('code', '')}]"
            )
        case "file-change":
            text = ", ".join(str(each.get("path", "")) for each in body.get("changes", []))
        case "run-finished":
            text = json.dumps(body.get("answer"), ensure_ascii=False)
        case "approval":
            text = f"asked about {len(body.get('calls', []))}, approved {len(body.get('approved', []))}"
        case "reason-planned":
            text = f"round {body.get('round')} (run {body.get('run')})"
        case "reason-round":
            told = body.get("failed") or "told: " + ("; ".join(body.get("told", [])) or "nothing")
            text = f"round {body.get('round')} (run {body.get('run')}) {told}"
        case "reason-ended":
            taken: dict[str, Any] = body.get("taken", {})
            text = f"{taken.get('rounds')} rounds, {taken.get('tokens')} tokens, {body.get('bound') or ''}"
        case "run-stopped":
            text = f"in flight: {', '.join(body.get('in_flight', [])) or 'nothing'}"
        case "run-resumed":
            text = f"attempt {body.get('attempt', '')}"
        case "run-waits":
            text = "for a person"
        case "run-erased":
            text = str(body.get("why", ""))
        case _:
            text = str(body.get("model", ""))
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= _MAX_GIST else one_line[: _MAX_GIST - 1] + "…"


def _alert_count_text(body: dict[str, Any]) -> str:
    """The number of alerts of a step, to be put before its result."""
    alerts: list[Any] = body.get("alerts", [])
    return f"({len(alerts)} alert{'' if len(alerts) == 1 else 's'}) " if alerts else ""


def _verdicts_text(body: dict[str, Any]) -> str:
    """What the validators said of a value, to be put before it."""
    said = (f"{each.get('validator', '')}: {each.get('said', '')}" for each in body.get("verdicts", []))
    return f"({', '.join(said)}) " if body.get("verdicts") else ""


_FOLDER_DATABASE = ".bicameral/durable.db"
"""A database that came with a folder. It is used only if the configuration names it: its content is not trusted."""


def has_submitted_runs(config: Config) -> bool:
    """Whether there may be submitted runs: a PostgreSQL is configured, or the SQLite file exists."""
    return is_postgres(config) or Path(config.durable_database.removeprefix("sqlite:///")).exists()


def is_postgres(config: Config) -> bool:
    """Whether submitted runs and their journal are in a PostgreSQL."""
    address = config.durable_database
    return "://" in address and not address.startswith("sqlite:")


def _unused_database_hint(config: Config) -> str:
    """How to use a database in the folder that is not configured; empty if there is none."""
    if config.durable.database is not None or not (config.base / _FOLDER_DATABASE).exists():
        return ""
    setting = f'database = "{_FOLDER_DATABASE}"'
    return f" If {_FOLDER_DATABASE} here is yours, name it: {setting} under [durable] in bicameral.toml."


@asynccontextmanager
async def open_submitted_runs(config: Config, *, make: bool = False) -> AsyncGenerator[Runs]:
    """The runs of the configured database; with `make` it is created if it does not exist."""
    from bicameral.durable import Runs

    if not make and not has_submitted_runs(config):
        hint = _unused_database_hint(config)
        raise DurableError(
            "durable.no-runs",
            f"no run was submitted yet: there is no {masked_address(config.durable_database)}",
            fix="`bicameral submit` submits one; --folder and --config say where to look." + hint,
        )
    async with await Runs.open(config) as runs:
        yield runs


def current_user() -> str:
    """The name of the user of this machine, for the record of an answer."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody at the command line"


def run_answer(view: RunView) -> Any:
    from bicameral.types import value_from_json

    return None if view.answer is None else value_from_json(view.answer)


def run_json(view: RunView) -> dict[str, Any]:
    """A submitted run as JSON; the answer as in `bicameral run --json`."""
    return view.to_json() | {"answer": to_plain_json(run_answer(view))}


def run_state_text(view: RunView) -> str:
    """The state of a run on a line, and what to do about it."""
    why = f": {view.why}" if view.why else ""
    match view.state:
        case "queued" if view.not_before is not None:
            return f"queued until {local_time_text(view.not_before)}{why}"
        case "running" if view.worker:
            return f"running at {view.worker}"
        case "waiting":
            asked = ", ".join(view.waits_for)
            return f"waiting for an answer: bicameral approvals show {asked}" if asked else "waiting for an answer"
        case state:
            return f"{state}{why}"


def show_run_view(out: Output, view: RunView) -> None:
    """Show the answer of a run, or how it ended, or its state."""
    tools = [str(effect.get("tool", "")) for effect in view.effects]
    for doubt in view.doubts:
        out.say(f"doubt: {doubt['text']}", style="yellow")
    match view.state:
        case "finished":
            done = effects_done_text(tools)
            took = f" in {view.seconds:.1f} s" if view.seconds is not None else ""
            out.say(f"done{took}{f': {done}' if done else ''} (run {view.run})", style="dim")
            if view.answer is not None or not done:
                out.show(answer_text(run_answer(view), out.width))
            for citation in view.citations:
                out.say(f"source: {citation['where']}: “{citation['quote']}”", style="dim")
        case "failed":
            out.say(f"error: {view.why or 'it failed'}", style="red")
            out.say(f"  {effects_before_text(tools)} (run {view.run})")
        case "stopped":
            out.say(f"stopped: {view.why or 'it was cancelled'} (run {view.run})", style="yellow")
            out.say(f"  {effects_before_text(tools)}")
        case _:
            out.say(f"run {view.run} is {run_state_text(view)}", style="yellow")


def run_exit_code(view: RunView) -> int:
    """The exit code for a run that was waited for."""
    if view.ending is None:
        return OK
    # Not 130: the run was stopped, and the command that waited for it was not.
    return FAILED if view.ending == "stopped" else EXIT_CODES[view.ending]


async def is_without_workers(runs: Runs) -> bool:
    """Whether no worker is alive."""
    return not any(worker.alive for worker in await runs.workers())


async def warn_without_workers(out: Output, runs: Runs) -> bool:
    """Say so if no worker is alive to take a run; returns whether that is so."""
    idle = await is_without_workers(runs)
    if idle:
        out.say(NO_WORKER, style="yellow")
    return idle


_VIEW_PAGE = 1000
_UNKNOWN_RUN_CODES = ("journal.unknown-run", "journal.no-runs", "durable.unknown-run", "durable.no-runs")


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run by its full id; its journal, unless it has not begun; its state, if it was submitted."""

    run: str
    journal: Journal | None
    view: RunView | None

    def recorded_journal(self) -> Journal:
        """The journal; `durable.not-ended` for a run that has not begun."""
        if self.journal is None:
            state = self.view.state if self.view else "unknown"
            raise DurableError(
                "durable.not-ended",
                f"the run {self.run} is {state}: nothing of it is recorded yet",
                fix=f"`bicameral runs watch {self.run}` shows how it goes on.",
            )
        return self.journal

    def ended_journal(self) -> Journal:
        """The journal of a run that has ended; `durable.not-ended` for one that a worker may still change."""
        if self.view is not None and not self.view.has_ended:
            raise DurableError(
                "durable.not-ended",
                f"the run {self.run} is {self.view.state}",
                fix=f"Let it end, or stop it: `bicameral runs cancel {self.run}`.",
            )
        return self.recorded_journal()


class RunRecords:
    """All runs of a configuration. `trouble` is why submitted runs cannot be reached, if they cannot."""

    def __init__(self, journal: Journal, runs: Runs | None, trouble: BicameralError | None) -> None:
        self.journal, self.runs, self.trouble = journal, runs, trouble

    @property
    def journals(self) -> list[Journal]:
        if self.runs is None or self.runs.database.sqlite:
            return [self.journal]
        return [self.journal, self.runs.run_journal]

    async def views(self, limit: int) -> list[RunView]:
        """The newest submitted runs, page by page."""
        found: list[RunView] = []
        while self.runs is not None and len(found) < limit:
            before = found[-1].run if found else None
            page = await self.runs.list(limit=min(limit - len(found), _VIEW_PAGE), before=before)
            found += page
            if len(page) < _VIEW_PAGE:
                break
        return found

    async def summaries(self, limit: int) -> list[RunSummary]:
        """The newest runs of all journals."""
        found = [each for one in self.journals for each in await asyncio.to_thread(list, one.runs(limit))]
        return sorted(found, key=lambda each: each.started, reverse=True)[:limit]

    async def find(self, run: str) -> FoundRun:
        """A run by its id, a unique beginning of it, or `last`, among recorded and submitted runs."""
        if run == "last":
            run = await self._last_run()
        elif self.runs is not None:
            run = await expand_short_id(self.runs, run)
        names, problem = _match_journals(self.journals, run)
        view = None
        try:
            view = None if self.runs is None else await self.runs.get(next(iter(names), run))
        except DurableError as error:
            problem = _better_error(problem, error)
        if view is not None:
            names.setdefault(view.run, None)
        return _single_match(run, names, view, self.trouble or problem)

    async def _last_run(self) -> str:
        found = [(each.started, each.run) for each in await self.summaries(1)]
        found += [(each.created.timestamp(), each.run) for each in await self.views(1)]
        if not found:
            raise JournalError("journal.no-runs", f"{self.journal.path} holds no run yet")
        return max(found)[1]


_SHORT_ID = re.compile(r"[0-9a-f]{6}")
_USUAL_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6,}")
_MAX_SEARCHED = 10_000


def short_run_id(run: str) -> str:
    """The end of an id, which is enough to name the run; the id itself if it is no usual one."""
    return run[-6:] if _USUAL_ID.fullmatch(run) else run


async def expand_short_id(runs: Runs, run: str) -> str:
    """The id of the submitted run with this short id; anything else as it is."""
    if not _SHORT_ID.fullmatch(run):
        return run
    found = [view.run for view in await runs.list(limit=_VIEW_PAGE) if short_run_id(view.run) == run]
    return found[0] if len(found) == 1 else run


def _match_journals(journals: Sequence[Journal], run: str) -> tuple[dict[str, Journal | None], BicameralError | None]:
    """The runs that an id or its beginning names, with their journals, and the best error of the other journals."""
    names: dict[str, Journal | None] = {}
    problem: BicameralError | None = None
    for journal in journals:
        try:
            names[journal.find(run)] = journal
        except JournalError as error:
            problem = _better_error(problem, error)
    if not names and _SHORT_ID.fullmatch(run):
        names |= {
            each.run: journal
            for journal in journals
            for each in journal.runs(_MAX_SEARCHED)
            if short_run_id(each.run) == run
        }
    return names, problem


def _better_error(before: BicameralError | None, error: BicameralError) -> BicameralError:
    """Of two errors for an unknown run, the one that suggests a name."""
    if error.code not in _UNKNOWN_RUN_CODES:
        raise error
    return error if before is None or (error.nearest and not before.nearest) else before


def _single_match(
    run: str, names: dict[str, Journal | None], view: RunView | None, problem: BicameralError | None
) -> FoundRun:
    if len(names) > 1:
        several = f"{run!r} begins several runs: {', '.join(names)}"
        raise JournalError("journal.ambiguous-run", several, fix="Give more of the id.")
    for name, journal in names.items():
        return FoundRun(name, journal, view)
    raise problem or JournalError("journal.unknown-run", f"there is no run {run!r}")


@asynccontextmanager
async def open_records(config: Config) -> AsyncGenerator[RunRecords]:
    """All runs of a configuration. If submitted ones cannot be reached, the others are still there."""
    from bicameral.config import open_journal

    async with AsyncExitStack() as stack:
        journal = stack.enter_context(open_journal(config))
        runs, trouble = None, None
        if has_submitted_runs(config):
            try:
                runs = await stack.enter_async_context(open_submitted_runs(config))
            except DurableError as error:
                trouble = error
        yield RunRecords(journal, runs, trouble)


@contextmanager
def open_journals(config: Config) -> Generator[list[Journal]]:
    """The journal of this machine, and that of submitted runs if it is another one."""
    from bicameral.config import open_journal
    from bicameral.runs import open_journal_at

    with ExitStack() as stack:
        journals = [stack.enter_context(open_journal(config))]
        if is_postgres(config):
            journals.append(stack.enter_context(open_journal_at(config.durable_database)))
        yield journals


def find_recorded_run(known: Sequence[Journal], run: str) -> tuple[Journal, str]:
    """The journal that has a run, and its full id, from a unique beginning of it or `last`."""
    if run == "last":
        newest = [(each.started, number, each.run) for number, one in enumerate(known) for each in one.runs(limit=1)]
        if newest:
            _, number, name = max(newest)
            return known[number], name
    names, problem = _match_journals(known, run)
    found = _single_match(run, names, None, problem)
    return found.recorded_journal(), found.run


SHORT_PAUSE, LONG_PAUSE = 0.1, 0.5


class RunWatcher:
    """Writes the events of a run to standard error, or as JSON lines. `quiet`: only its state."""

    def __init__(self, out: Output, *, quiet: bool = False) -> None:
        self._out, self._quiet = out, quiet
        self._after = -1
        self._state = ""

    async def watch_submitted(self, runs: Runs, run: str, user: str | None, *, until_asked: bool = False) -> RunView:
        """Watch a submitted run until it has ended or, with `until_asked`, waits for a person."""
        pause = SHORT_PAUSE
        while True:
            # The state is read before the events, so the end is never shown before the events that led to it.
            view = await runs.get(run, user)
            heard = self._show_events(await asyncio.to_thread(runs.run_journal.events_after, view.run, self._after))
            self._show_state(view)
            if view.has_ended or (until_asked and view.state == "waiting"):
                return view
            pause = SHORT_PAUSE if heard else min(LONG_PAUSE, pause * 1.3)
            await asyncio.sleep(pause)

    async def watch_recorded(self, journal: Journal, run: str) -> Event:
        """Watch a run that was not submitted until its journal has its end; returns that event."""
        while True:
            events = await asyncio.to_thread(journal.events_after, run, self._after)
            self._show_events(events)
            if events and (last := events[-1]).kind in ("run-finished", "run-failed", "run-stopped", "run-erased"):
                return last
            await asyncio.sleep(LONG_PAUSE)

    def _show_events(self, events: list[Event]) -> bool:
        for event in events:
            self._after = event.number
            if self._out.as_json and not self._quiet:
                self._out.write_json({"event": event_json(event)})
            elif not self._out.as_json and not self._quiet:
                self._out.say(event_line(event))
        return bool(events)

    def _show_state(self, view: RunView) -> None:
        if not view.has_ended and not self._out.as_json and (text := run_state_text(view)) != self._state:
            self._state = text
            self._out.say(text, style="yellow" if view.state == "waiting" else "dim")
