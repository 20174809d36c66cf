"""Runs wherever they are recorded: in the journal of this machine, and with those that were submitted.

Where they are, how they stand in words and as JSON, what happened in them event by event, watching one while others
work on it, and exit codes. With SQLite both share one journal; with PostgreSQL what was submitted is recorded there.
Where nothing was submitted, nothing of that is loaded.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicameral.cli._options import local_time_text
from bicameral.cli._output import FAILED, NEEDS_A_PERSON, OK, QUESTIONS, Output
from bicameral.cli._values import answer_text, to_plain_json
from bicameral.errors import BicameralError, DurableError, JournalError

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.durable import Runs, RunView
    from bicameral.runs import Event, Journal, RunSummary


_MAX_GIST = 100


def event_json(event: Event) -> dict[str, Any]:
    return {"number": event.number, "at": event.at, "kind": event.kind, "step": event.step, "body": event.body}


def event_line(event: Event, *, full: bool = False) -> str:
    """When, what and where, with the gist of the facts; in full, with all of them."""
    clock = datetime.fromtimestamp(event.at).strftime("%H:%M:%S")
    what = f"{clock}  {event.kind:<13} {event.step:<8}"
    if full:
        return f"{what}\n{json.dumps(event.body, ensure_ascii=False, indent=2)}"
    return f"{what} {_event_gist(event)}".rstrip()


def _event_gist(event: Event) -> str:
    body: dict[str, Any] = event.body
    match event.kind:
        case "run-started" | "reason-started":
            text = str(body.get("request", ""))
        case "step-started" | "call-waits" | "call-denied":
            text = f"{body.get('what', '')} {json.dumps(body.get('arguments', {}), ensure_ascii=False)}"
        case "step-finished":
            text = _alert_count_text(body) + json.dumps(body.get("result"), ensure_ascii=False)
        case "step-failed" | "run-failed":
            error: dict[str, Any] = body.get("error", {})
            text = f"{_alert_count_text(body)}{error.get('message', '')} [{error.get('code', '')}]"
        case "run-finished":
            text = json.dumps(body.get("answer"), ensure_ascii=False)
        case "approval":
            text = f"asked about {len(body.get('calls', []))}, approved {len(body.get('approved', []))}"
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
    """How many alerts there were at a step, in front of what it gave."""
    alerts: list[Any] = body.get("alerts", [])
    return f"({len(alerts)} alert{'' if len(alerts) == 1 else 's'}) " if alerts else ""


_FOLDER_DATABASE = ".bicameral/durable.db"
"""The file that a folder may bring along, and that is used only if the configuration names it."""


def has_submitted_runs(config: Config) -> bool:
    """Whether anything can have been submitted: a PostgreSQL is named, or the SQLite file exists."""
    return is_postgres(config) or Path(config.durable_database.removeprefix("sqlite:///")).exists()


def is_postgres(config: Config) -> bool:
    """Whether submitted runs are kept, and recorded, elsewhere than in files of this machine."""
    address = config.durable_database
    return "://" in address and not address.startswith("sqlite:")


def masked_address(config: Config) -> str:
    """The database without its password."""
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:…@", config.durable_database)


def _unused_database_hint(config: Config) -> str:
    """What to do about a database that lies in the folder and is not named."""
    if config.durable.database is not None or not (config.base / _FOLDER_DATABASE).exists():
        return ""
    return f' If {_FOLDER_DATABASE} here is yours, name it: database = "{_FOLDER_DATABASE}" under [durable] in bicameral.toml.'


@asynccontextmanager
async def open_submitted_runs(config: Config, *, make: bool = False) -> AsyncGenerator[Runs]:
    """The runs of the configured database. Whoever only looks does not make one."""
    from bicameral.durable import Runs

    if not make and not has_submitted_runs(config):
        hint = _unused_database_hint(config)
        raise DurableError(
            "durable.no-runs",
            f"no run was submitted yet: there is no {masked_address(config)}",
            fix="`bicameral submit` submits one; --folder and --config say where to look." + hint,
        )
    async with await Runs.open(config) as runs:
        yield runs


def current_user() -> str:
    """Who answers: the user of this machine."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody at the command line"


def run_answer(view: RunView) -> Any:
    from bicameral.types import value_from_json

    return None if view.answer is None else value_from_json(view.answer)


def run_json(view: RunView) -> dict[str, Any]:
    """A submitted run for a program; the answer as `bicameral run --json` gives it."""
    return view.to_json() | {"answer": to_plain_json(run_answer(view))}


def run_state_text(view: RunView) -> str:
    """How a run stands, in a line, and what to do about it."""
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
    """How a run ended, with the answer on standard output; or how it stands."""
    match view.state:
        case "finished":
            done = _view_effects_text(view)
            took = f" in {view.seconds:.1f} s" if view.seconds is not None else ""
            out.say(f"done{took}{f': {done}' if done else ''} (run {view.run})", style="dim")
            if view.answer is not None or not done:
                out.show(answer_text(run_answer(view), out.width))
        case "failed":
            out.say(f"error: {view.why or 'it failed'}", style="red")
            out.say(f"  {_view_before_text(view)} (run {view.run})")
        case "stopped":
            out.say(f"stopped: {view.why or 'it was cancelled'} (run {view.run})", style="yellow")
            out.say(f"  {_view_before_text(view)}")
        case _:
            out.say(f"run {view.run} is {run_state_text(view)}", style="yellow")


def _view_effects_text(view: RunView) -> str:
    from collections import Counter

    counted = Counter(str(effect.get("tool", "")) for effect in view.effects)
    return ", ".join(f"{tool}" + (f" × {times}" if times > 1 else "") for tool, times in counted.items())


def _view_before_text(view: RunView) -> str:
    return f"done before that: {_view_effects_text(view)}" if view.effects else "nothing had been changed"


def run_exit_code(view: RunView) -> int:
    """What the exit code says of a run that somebody waited for."""
    match view.state:
        case "finished":
            return OK
        case "waiting":
            return QUESTIONS
        case "failed" if view.error is not None and view.error.get("code") in NEEDS_A_PERSON:
            return QUESTIONS
        case "failed" | "stopped":
            return FAILED
        case _:
            return OK


async def is_without_workers(runs: Runs) -> bool:
    """Whether no worker is there that would take a run."""
    return not any(worker.alive for worker in await runs.workers())


_VIEW_PAGE = 1000
_UNKNOWN_RUN_CODES = ("journal.unknown-run", "journal.no-runs", "durable.unknown-run", "durable.no-runs")


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run by its full id: the journal that has it, unless it has not begun, and how it stands if it was submitted."""

    run: str
    journal: Journal | None
    view: RunView | None

    def recorded_journal(self) -> Journal:
        """The journal; a run that has not begun has none."""
        if self.journal is None:
            state = self.view.state if self.view else "unknown"
            raise DurableError(
                "durable.not-ended",
                f"the run {self.run} is {state}: nothing of it is recorded yet",
                fix=f"`bicameral runs watch {self.run}` shows how it goes on.",
            )
        return self.journal

    def ended_journal(self) -> Journal:
        """The journal of a run that nobody works on any more."""
        if self.view is not None and not self.view.has_ended:
            raise DurableError(
                "durable.not-ended",
                f"the run {self.run} is {self.view.state}",
                fix=f"Let it end, or stop it: `bicameral runs cancel {self.run}`.",
            )
        return self.recorded_journal()


class RunRecords:
    """All runs that a configuration knows. `trouble` says why those that were submitted are not among them."""

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
        found = [each for journal in self.journals for each in await asyncio.to_thread(_newest_runs, journal, limit)]
        return sorted(found, key=lambda each: each.started, reverse=True)[:limit]

    async def find(self, run: str) -> FoundRun:
        """A run by its id, the beginning of it, or `last`."""
        if run == "last":
            run = await self._last_run()
        problem: BicameralError | None = None
        names: dict[str, Journal | None] = {}
        for journal in self.journals:
            try:
                names[journal.find(run)] = journal
            except JournalError as error:
                problem = self._better_error(problem, error)
        view = None
        try:
            view = None if self.runs is None else await self.runs.get(next(iter(names), run))
        except DurableError as error:
            problem = self._better_error(problem, error)
        if view is not None:
            names.setdefault(view.run, None)
        return self._single_match(run, names, view, problem)

    def _single_match(
        self, run: str, names: dict[str, Journal | None], view: RunView | None, problem: BicameralError | None
    ) -> FoundRun:
        if len(names) > 1:
            raise ambiguous_run_error(run, names)
        for name, journal in names.items():
            return FoundRun(name, journal, view)
        raise self.trouble or problem or JournalError("journal.unknown-run", f"there is no run {run!r}")

    def _better_error(self, before: BicameralError | None, error: BicameralError) -> BicameralError:
        """Of several that do not know a run, the one that knows a name like it."""
        if error.code not in _UNKNOWN_RUN_CODES:
            raise error
        return error if before is None or (error.nearest and not before.nearest) else before

    async def _last_run(self) -> str:
        found = [(each.started, each.run) for each in await self.summaries(1)]
        found += [(each.created.timestamp(), each.run) for each in await self.views(1)]
        if not found:
            raise JournalError("journal.no-runs", f"{self.journal.path} holds no run yet")
        return max(found)[1]


def _newest_runs(journal: Journal, limit: int) -> list[RunSummary]:
    return list(journal.runs(limit))


@asynccontextmanager
async def open_records(config: Config) -> AsyncGenerator[RunRecords]:
    """All runs of a configuration. If submitted ones cannot be reached, the others still can."""
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
    """The journal of this machine, and the one of submitted runs where that is another."""
    from bicameral.config import open_journal
    from bicameral.runs import open_journal_at

    with ExitStack() as stack:
        found = [stack.enter_context(open_journal(config))]
        if is_postgres(config):
            found.append(stack.enter_context(open_journal_at(config.durable_database)))
        yield found


def find_recorded_run(known: Sequence[Journal], run: str) -> tuple[Journal, str]:
    """The journal that has a run, and its full id, from the beginning of it or `last`."""
    if run == "last":
        newest = [(each.started, number, each.run) for number, one in enumerate(known) for each in one.runs(limit=1)]
        if newest:
            _, number, name = max(newest)
            return known[number], name
    problem: JournalError | None = None
    found: dict[str, Journal] = {}
    for journal in known:
        try:
            found[journal.find(run)] = journal
        except JournalError as error:
            if error.code not in _UNKNOWN_RUN_CODES:
                raise
            problem = error if problem is None or (error.nearest and not problem.nearest) else problem
    if len(found) > 1:
        raise ambiguous_run_error(run, found)
    for name, journal in found.items():
        return journal, name
    raise problem or JournalError("journal.unknown-run", f"there is no run {run!r}")


def ambiguous_run_error(run: str, names: Iterable[str]) -> JournalError:
    return JournalError(
        "journal.ambiguous-run", f"{run!r} begins several runs: {', '.join(names)}", fix="Give more of the id."
    )


SHORT_PAUSE, LONG_PAUSE = 0.1, 0.5


class RunWatcher:
    """Tells what happens on standard error, or as one JSON object a line. `quiet`: only how the run stands."""

    def __init__(self, out: Output, *, quiet: bool = False) -> None:
        self._out, self._quiet = out, quiet
        self._after = -1
        self._state = ""

    async def watch_submitted(self, runs: Runs, run: str, user: str | None, *, until_asked: bool = False) -> RunView:
        """Until a submitted run has ended; or, with `until_asked`, waits for a person."""
        pause = SHORT_PAUSE
        while True:
            # First how it stands, then what happened: an end is never told before what led to it.
            view = await runs.get(run, user)
            heard = self._show_events(await asyncio.to_thread(runs.run_journal.events_after, view.run, self._after))
            self._show_state(view)
            if view.has_ended or (until_asked and view.state == "waiting"):
                return view
            pause = SHORT_PAUSE if heard else min(LONG_PAUSE, pause * 1.3)
            await asyncio.sleep(pause)

    async def watch_recorded(self, journal: Journal, run: str) -> Event:
        """Until the record of a run that was not submitted has an end; the event that is it."""
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
