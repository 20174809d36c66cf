"""`bicameral runs`: list, show, replay, watch, cancel, resume, verify, erase and prune recorded runs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._command_agent import fetch_missing_weights, open_agent, run_until_terminated
from bicameral.cli._displays import open_display
from bicameral.cli._options import CommonOptions, DefaultGroup, PeriodType, common_options, complete_runs
from bicameral.cli._output import FAILED, OK, Output, terminal_people
from bicameral.cli._plain_values import UNLIMITED, age_text, answer_text, render_table
from bicameral.cli._render import outcome_json, recorded_usage_json, recorded_usage_text, say_doubts, show_outcome
from bicameral.cli._run_records import (
    RUN_ENDS,
    FoundRun,
    RunRecords,
    RunWatcher,
    event_json,
    event_line,
    expand_short_id,
    open_records,
    open_submitted_runs,
    run_exit_code,
    run_json,
    run_state_text,
    short_run_id,
    show_run_view,
    warn_without_workers,
)
from bicameral.display import make_visible, shorten, to_plain_json
from bicameral.errors import DurableError, RunError

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.durable import Runs, RunView
    from bicameral.runs import Erasure, Event, Replayed, RunOutcome, RunSummary


_CANCEL_SECONDS = 15.0
"""Seconds to wait for a worker to stop a run."""


@click.command("watch")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option("--user", help="Only if it is a run of this user.")
@common_options
def watch(chosen: CommonOptions, run: str, user: str | None) -> int:
    """What happens in RUN, as it happens, until it has ended; then its answer.

    Ctrl-C ends the watching and not the run. The exit code says how the run ended. With --json each event is an
    object on a line of its own, and the last line is how the run ended.

    \b
    bicameral runs watch last
    """
    return asyncio.run(run_until_terminated(_watch(chosen, run, user)))


async def _watch(chosen: CommonOptions, run: str, user: str | None) -> int:
    out = chosen.out
    async with open_records(chosen.config()) as known:
        found = await known.find(run)
        if known.runs is None or found.view is None:
            last = await RunWatcher(out).watch_recorded(found.recorded_journal(), found.run)
            return _show_end(chosen, last)
        if not found.view.has_ended:
            await warn_without_workers(out, known.runs)
        ended = await RunWatcher(out).watch_submitted(known.runs, found.run, user)
    show_run_view(out, ended)
    out.write_json({"ok": ended.state == "finished", **run_json(ended)})
    return run_exit_code(ended)


def _show_end(chosen: CommonOptions, last: Event) -> int:
    """Write how a run ended that was not submitted; its last event was shown already."""
    state = last.kind.removeprefix("run-")
    doubts: list[Any] = last.body.get("doubts", [])
    chosen.out.write_json({"ok": state == "finished", "run": last.run, "state": state, "doubts": doubts})
    return OK if state == "finished" else FAILED


@click.command("cancel")
@click.argument("run", shell_complete=complete_runs)
@click.option("--user", help="Only if it is a run of this user.")
@common_options
def cancel(chosen: CommonOptions, run: str, user: str | None) -> int:
    """Stop a submitted RUN: an effect that has begun comes to its end, and nothing else is begun.

    A run that has ended already stays as it is, and the exit code is 1. A run that was not submitted is stopped where
    it runs, with Ctrl-C.

    \b
    bicameral runs cancel 20260301-1a2b
    """
    before, view = asyncio.run(_cancel(chosen, run, user))
    out = chosen.out
    if before == "stopped":
        out.show(f"{view.run}: was stopped already")
    elif view.state == "stopped":
        out.show(f"{view.run}: stopped")
    else:
        ended = f"has {view.state} already" if view.has_ended else "will stop; it is still under way"
        out.show(f"{view.run}: {ended}")
    stopped = view.state == "stopped" or not view.has_ended
    out.write_json({"ok": stopped, **run_json(view)})
    return OK if stopped else FAILED


async def _cancel(chosen: CommonOptions, run: str, user: str | None) -> tuple[str, RunView]:
    async with open_submitted_runs(chosen.config()) as runs:
        before = await runs.get(await expand_short_id(runs, run), user)
        if not before.has_ended:
            await runs.cancel(before.run, user)
        return before.state, await runs.wait(before.run, user, timeout=_CANCEL_SECONDS)


@click.command("resume")
@click.argument("run", default="last", shell_complete=complete_runs)
@common_options
def resume(chosen: CommonOptions, run: str) -> int:
    """Go on with RUN where its record ends: what was done is not done again.

    A run of `bicameral run` whose process died, or that was interrupted, is gone on with here; a process that still
    works on it can do nothing more. A submitted run is a worker's: one that waits to be tried again, because a worker
    had other tools or policies (run.other-code), is tried at once.

    \b
    bicameral runs resume last
    """
    return asyncio.run(run_until_terminated(_resume(chosen, chosen.config(), run)))


async def _resume(chosen: CommonOptions, config: Config, run: str) -> int:
    async with open_records(config) as known:
        found = await known.find(run)
        if found.view is not None and known.runs is not None:
            return await _retry_submitted(chosen, known.runs, found.view)
        outcome = await _resume_here(chosen, config, found)
    from bicameral.cli.commands.run import outcome_exit_code

    show_outcome(chosen.out, outcome)
    chosen.out.write_json(outcome_json(outcome))
    return outcome_exit_code(outcome)


async def _retry_submitted(chosen: CommonOptions, runs: Runs, view: RunView) -> int:
    out = chosen.out
    view = await runs.resume(view.run)
    out.show(f"{view.run}: {run_state_text(view)}")
    if not view.has_ended:
        await warn_without_workers(out, runs)
    out.write_json({"ok": not view.has_ended, **run_json(view)})
    return OK if not view.has_ended else FAILED


async def _resume_here(chosen: CommonOptions, config: Config, found: FoundRun) -> RunOutcome:
    from bicameral.patterns.kernel import has_pattern, resume_pattern_work
    from bicameral.runs import resume_plan

    out = chosen.out
    journal = found.recorded_journal()
    events = journal.events(found.run)
    if events[-1].kind in RUN_ENDS:
        out.say("the run has ended; this is its outcome", style="dim")
    elif has_pattern(events):
        fetch_missing_weights(out, config, ["privileged", "quarantined"])
    elif _has_extracts(events):
        fetch_missing_weights(out, config, ["quarantined"])
    async with open_agent(config) as agent:
        with open_display(out) as shown:
            shown.phase("going on")
            request = str(events[0].body.get("request", ""))
            asker, approver = terminal_people(out, agent.registry, shown.quiet, request)
            if has_pattern(events):
                runtime = agent.runtime(asker=asker, approver=approver, observer=shown.step)
                with agent.spending():
                    return await resume_pattern_work(journal, found.run, runtime)
            return await resume_plan(
                journal,
                found.run,
                agent.registry,
                policy=agent.policy,
                extractor=agent.executor,
                asker=asker,
                approver=approver,
                observer=shown.step,
            )


def _has_extracts(events: list[Event]) -> bool:
    """Whether the plan of a run has extractions, which need the quarantined model."""
    from bicameral.plans import Extract, load_plan, walk

    plan = events[0].body.get("plan")
    return bool(plan) and any(
        isinstance(step, Extract) for _, step in walk(load_plan(str(plan), keep_bindings=True).steps)
    )


_PRUNE_PAGE = 500


@click.command("verify")
@click.argument("run", required=False, shell_complete=complete_runs)
@common_options
def verify(chosen: CommonOptions, run: str | None) -> int:
    """Hold the record of RUN, or of all runs, against its seals. The exit code is 1 if something was changed.

    \b
    bicameral runs verify
    """
    journals, breaks = asyncio.run(_verify(chosen, run))
    for line in breaks:
        chosen.out.show(line)
    chosen.out.say(f"{', '.join(journals)}: " + ("as it was written" if not breaks else f"{len(breaks)} to look at"))
    chosen.out.write_json({"ok": not breaks, "journals": journals, "breaks": breaks})
    return FAILED if breaks else OK


async def _verify(chosen: CommonOptions, run: str | None) -> tuple[list[str], list[str]]:
    async with open_records(chosen.config()) as known:
        if known.trouble is not None:
            raise known.trouble
        if run is None:
            journals = known.journals
            breaks = [line for each in journals for line in await asyncio.to_thread(each.verify)]
        else:
            found = await known.find(run)
            journals = [found.recorded_journal()]
            breaks = await asyncio.to_thread(journals[0].verify, found.run)
        return [str(each.path) for each in journals], breaks


@click.command("erase")
@click.argument("run", shell_complete=complete_runs)
@click.option("--why", default="asked for", show_default=True, help="What the mark in the record says.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common_options
def erase(chosen: CommonOptions, run: str, why: str, yes: bool) -> int:
    """Take away for good what RUN holds: request, plan, arguments, results, answer, and what it asked.

    What stays is that there was a run, when its events were, and that it was erased: the chain can still be verified.
    A submitted run must have ended.

    \b
    bicameral runs erase 20260301-1a2b
    """
    return asyncio.run(_erase(chosen, run, why, yes))


async def _erase(chosen: CommonOptions, run: str, why: str, yes: bool) -> int:
    async with open_records(chosen.config()) as known:
        found = await known.find(run)
        if found.view is not None and not found.view.has_ended:
            found.ended_journal()
        if not await _confirm_erasure(chosen.out, f"Erase all that the run {found.run} holds, for good?", yes):
            return FAILED
        gone = None if found.journal is None else await asyncio.to_thread(found.journal.erase, found.run, why)
        if found.view is not None and known.runs is not None:
            await known.runs.forget(found.run)
    chosen.out.show(f"{found.run}: erased")
    _say_scrubbed(chosen.out, gone)
    chosen.out.write_json({"ok": True, "run": found.run, **_erased_facts(gone)})
    return OK


@click.command("prune")
@click.option("--older-than", type=PeriodType(), required=True, help="Runs that ended so long ago: 90d, 12w.")
@click.option("--unfinished", is_flag=True, help="Also runs without an end, whose process died long ago.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common_options
def prune(chosen: CommonOptions, older_than: float, unfinished: bool, yes: bool) -> int:
    """Erase all runs that ended long ago, as `erase` does.

    \b
    bicameral runs prune --older-than 90d --yes
    """
    return asyncio.run(_prune_all(chosen, older_than, unfinished, yes))


async def _prune_all(chosen: CommonOptions, older_than: float, unfinished: bool, yes: bool) -> int:
    async with open_records(chosen.config()) as known:
        if known.trouble is not None:
            raise known.trouble
        if unfinished:
            await _require_all_ended(known)
        when = (datetime.now(UTC) - timedelta(seconds=older_than)).astimezone()
        what = "all runs that ended" if not unfinished else "all runs whose last event was"
        if not await _confirm_erasure(
            chosen.out, f"Erase for good what {what} before {when:%Y-%m-%d %H:%M} hold?", yes
        ):
            return FAILED
        gone = [await asyncio.to_thread(each.prune, older_than, unfinished=unfinished) for each in known.journals]
        forgotten = [] if known.runs is None else await _forget_ended(known.runs, when)
    runs = list(dict.fromkeys([*(run for each in gone for run in each.runs), *forgotten]))
    chosen.out.show(f"{len(runs)} run{'' if len(runs) == 1 else 's'} erased")
    for each in gone:
        _say_scrubbed(chosen.out, each)
    facts = {name: sum(getattr(each, name) for each in gone) for name in ("events", "values")}
    chosen.out.write_json({"ok": True, "runs": runs, **facts, "scrubbed": all(each.scrubbed for each in gone)})
    return OK


async def _require_all_ended(known: RunRecords) -> None:
    """Refuse if a submitted run has not ended: one may wait for months, and needs its journal to continue."""
    counts = {} if known.runs is None else await known.runs.counts()
    still = sum(number for state, number in counts.items() if state in ("queued", "running", "waiting"))
    if still:
        raise DurableError(
            "durable.not-ended",
            f"{still} submitted run{' has' if still == 1 else 's have'} not ended, and --unfinished could erase them",
            fix="Let them end or cancel them, or leave --unfinished away.",
        )


async def _forget_ended(runs: Runs, when: datetime) -> list[str]:
    """Forget the submitted runs that ended before then; returns their ids."""
    old: list[str] = []
    before: str | datetime = when
    while page := await runs.list(limit=_PRUNE_PAGE, before=before):
        before = page[-1].run
        old += [view.run for view in page if view.has_ended and view.updated < when]
    for run in old:
        await runs.forget(run)
    return old


async def _confirm_erasure(out: Output, question: str, yes: bool) -> bool:
    if yes:
        return True
    if not out.is_interactive:
        raise RunError("run.needs-answer", f"nobody is there to be asked: {question}", fix="--yes says yes.")
    from bicameral.cli._prompts import confirm_yes

    if await confirm_yes(question):
        return True
    out.say("nothing was erased")
    return False


def _say_scrubbed(out: Output, gone: Erasure | None) -> None:
    if gone is not None and not gone.scrubbed:
        out.say(
            "another process has the journal open, so that its file may still hold traces: erase once more later",
            style="yellow",
        )


def _erased_facts(gone: Erasure | None) -> dict[str, object]:
    if gone is None:
        return {"events": 0, "values": 0, "scrubbed": True}
    return {"events": gone.events, "values": gone.values, "scrubbed": gone.scrubbed}


_RUN_STATES = ("queued", "running", "waiting", "finished", "failed", "stopped", "unfinished", "erased")
_MAX_RUNS = 10_000


@click.group(short_help="What was run, and running it again from its record.", cls=DefaultGroup)
def command() -> None:
    """What was run, and running it again from its record. Without a subcommand: the list."""


for each in (watch, cancel, resume, erase, prune, verify):
    command.add_command(each)


@command.command("list")
@click.option("--limit", type=click.IntRange(1, _MAX_RUNS), default=20, show_default=True, help="The newest so many.")
@click.option("--state", type=click.Choice(_RUN_STATES), help="Only those that stand so.")
@common_options
def list_runs(chosen: CommonOptions, limit: int = 20, state: str | None = None) -> dict[str, Any]:
    """The newest runs, submitted or not: `queued` and `waiting` are submitted ones."""
    rows = asyncio.run(_list_rows(chosen, limit if state is None else _MAX_RUNS))
    rows = [row for row in rows if state in (None, row["status"])][:limit]
    chosen.out.show(
        _runs_table(rows, chosen.out.width) if rows else "no runs yet" if state is None else f"no run is {state}"
    )
    return {"runs": [to_plain_json(row) for row in rows]}


def _runs_table(rows: list[dict[str, object]], width: int) -> str:
    """The runs for a person: how long ago, how it ended, and what was asked for; at a terminal with their short ids."""
    now = datetime.now()
    terminal = width < UNLIMITED
    shown: list[dict[str, object]] = []
    for row in rows:
        run, started, request = str(row["run"]), row["started"], make_visible(str(row["request"] or "(a plan)"))
        age = age_text((now - started).total_seconds()) if isinstance(started, datetime) else ""
        shown.append(
            {
                "run": short_run_id(run) if terminal else run,
                "age": age,
                "outcome": row["status"],
                "request": shorten(request, max(width - _ROW_WIDTH, _MIN_REQUEST)) if terminal else request,
            }
        )
    return render_table(shown, width)


_ROW_WIDTH = 30
"""Columns that the short id, the age and the outcome take, with the blanks between them."""
_MIN_REQUEST = 24


async def _list_rows(chosen: CommonOptions, limit: int) -> list[dict[str, object]]:
    async with open_records(chosen.config()) as known:
        views = {view.run: view for view in await known.views(limit)}
        recorded = await known.summaries(limit)
    if known.trouble is not None:
        chosen.out.say(f"submitted runs are not shown: {known.trouble}", style="yellow")
    rows = [_recorded_row(each, views.pop(each.run, None)) for each in recorded] + [
        _queued_row(view) for view in views.values()
    ]
    return sorted(rows, key=lambda row: str(row["started"]), reverse=True)[:limit]


def _recorded_row(run: RunSummary, view: RunView | None) -> dict[str, object]:
    return {
        "run": run.run,
        "started": datetime.fromtimestamp(run.started).replace(microsecond=0),
        "status": view.state if view is not None and run.status == "unfinished" else run.status,
        "seconds": round(run.seconds, 2) if run.seconds is not None else None,
        "request": run.request,
    }


def _queued_row(view: RunView) -> dict[str, object]:
    """The row of a submitted run that has no journal entries yet."""
    return {
        "run": view.run,
        "started": view.created.astimezone().replace(microsecond=0, tzinfo=None),
        "status": view.state,
        "seconds": None,
        "request": view.request,
    }


@command.command("show")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option("--full", is_flag=True, help="Every event with all its facts.")
@common_options
def show_recorded_run(chosen: CommonOptions, run: str, full: bool) -> dict[str, Any]:
    """What happened in RUN (its id, the beginning of it, or `last`), and how it stands if it was submitted."""
    run, events, view = asyncio.run(_load_run(chosen, run))
    out = chosen.out
    for event in events:
        out.show(event_line(event, full=full))
    usage = recorded_usage_json(events)
    if text := recorded_usage_text(usage):
        out.show(text)
    if view is not None and not view.has_ended:
        out.show(f"{view.run}: {run_state_text(view)}")
    submitted = {} if view is None else {"submitted": run_json(view)}
    doubts = [doubt for event in events[-1:] for doubt in event.body.get("doubts", [])]
    facts = {"run": run, "doubts": doubts, "events": [event_json(event) for event in events]}
    return {**facts, **usage, **submitted}


async def _load_run(chosen: CommonOptions, run: str) -> tuple[str, list[Event], RunView | None]:
    async with open_records(chosen.config()) as known:
        found = await known.find(run)
        return found.run, found.journal.events(found.run, erased=True) if found.journal else [], found.view


@command.command("replay")
@click.argument("run", default="last", shell_complete=complete_runs)
@common_options
def replay_run(chosen: CommonOptions, run: str) -> int:
    """Run RUN again with its recorded answers of models and tools; nothing is touched."""
    replayed, out = asyncio.run(_replay(chosen.config(), run)), chosen.out
    if replayed.identical:
        say_doubts(out, replayed.outcome.doubts)
        out.say(f"run {replayed.run}: identical")
        out.show(answer_text(replayed.answer, out.width))
    else:
        out.say(f"run {replayed.run}: the replay differs from the record")
        for difference in replayed.differences:
            out.show(f"  {difference}")
    doubts = [doubt.to_json() for doubt in replayed.outcome.doubts]
    facts: dict[str, Any] = {"run": replayed.run, "differences": list(replayed.differences), "doubts": doubts}
    out.write_json({"ok": replayed.identical, **facts, "answer": to_plain_json(replayed.answer)})
    return OK if replayed.identical else FAILED


async def _replay(config: Config, run: str) -> Replayed:
    from bicameral.config import open_policy, open_registry
    from bicameral.patterns.kernel import replay_run

    registry = open_registry(config)
    async with open_records(config) as known:
        found = await known.find(run)
        journal = found.ended_journal()
        return await replay_run(journal, found.run, registry, open_policy(config, registry))
