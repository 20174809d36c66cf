"""`bicameral runs watch`, `cancel` and `resume`: runs that have not ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from .._completing import complete_runs
from .._durable import nobody_works, run_code, run_facts, show_run, state_text, submitted_runs
from .._exits import FAILED, OK
from .._live import display
from .._opening import bring_weights, given_agent, opened
from .._options import Common, common
from .._records import Found, records
from .._render import outcome_json, show_outcome
from .._stopping import until_terminated
from .._watching import Watch

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.durable import Runs, RunView
    from bicameral.runs import Event, RunOutcome

_PATIENCE = 15.0
"""Seconds that a worker is given to stop a run before this stops waiting for it."""


@click.command("watch")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option("--user", help="Only if it is a run of this user.")
@common
def watch(chosen: Common, run: str, user: str | None) -> int:
    """What happens in RUN, as it happens, until it has ended; then its answer.

    Ctrl-C ends the watching and not the run. The exit code says how the run ended. With --json each event is an
    object on a line of its own, and the last line is how the run ended.

    \b
    bicameral runs watch last
    """
    return asyncio.run(until_terminated(_watch(chosen, run, user)))


async def _watch(chosen: Common, run: str, user: str | None) -> int:
    out = chosen.out
    async with records(chosen.config()) as known:
        found = await known.find(run)
        if known.runs is None or found.view is None:
            last = await Watch(out).recorded(found.recorded(), found.run)
            return _told(chosen, last)
        if not found.view.ended and await nobody_works(known.runs):
            out.say("no worker is there: `bicameral worker` starts one", style="yellow")
        ended = await Watch(out).submitted(known.runs, found.run, user)
    show_run(out, ended)
    out.object({"ok": ended.state == "finished", **run_facts(ended)})
    return run_code(ended)


def _told(chosen: Common, last: Event) -> int:
    """How a run ended that was not submitted; its last event has been shown."""
    state = last.kind.removeprefix("run-")
    chosen.out.object({"ok": state == "finished", "run": last.run, "state": state})
    return OK if state == "finished" else FAILED


@click.command("cancel")
@click.argument("run", shell_complete=complete_runs)
@click.option("--user", help="Only if it is a run of this user.")
@common
def cancel(chosen: Common, run: str, user: str | None) -> int:
    """Stop a submitted RUN: an effect that has begun comes to its end, and nothing else is begun.

    A run that has ended already stays as it is, and the exit code is 1. A run that was not submitted is stopped where
    it runs, with Ctrl-C.

    \b
    bicameral runs cancel 20260301-1a2b
    """
    before, view = asyncio.run(_cancelled(chosen, run, user))
    out = chosen.out
    if before == "stopped":
        out.show(f"{view.run}: was stopped already")
    elif view.state == "stopped":
        out.show(f"{view.run}: stopped")
    else:
        ended = f"has {view.state} already" if view.ended else "will stop; it is still under way"
        out.show(f"{view.run}: {ended}")
    stopped = view.state == "stopped" or not view.ended
    out.object({"ok": stopped, **run_facts(view)})
    return OK if stopped else FAILED


async def _cancelled(chosen: Common, run: str, user: str | None) -> tuple[str, RunView]:
    async with submitted_runs(chosen.config()) as runs:
        before = await runs.get(run, user)
        if not before.ended:
            await runs.cancel(before.run, user)
        return before.state, await runs.wait(before.run, user, timeout=_PATIENCE)


@click.command("resume")
@click.argument("run", default="last", shell_complete=complete_runs)
@common
def resume(chosen: Common, run: str) -> int:
    """Go on with RUN where its record ends: what was done is not done again.

    A run of `bicameral run` whose process died, or that was interrupted, is gone on with here; a process that still
    works on it can do nothing more. A submitted run is a worker's: one that waits to be tried again, because a worker
    had other tools or policies (run.other-code), is tried at once.

    \b
    bicameral runs resume last
    """
    return asyncio.run(until_terminated(_resume(chosen, chosen.config(), run)))


async def _resume(chosen: Common, config: Config, run: str) -> int:
    async with records(config) as known:
        found = await known.find(run)
        if found.view is not None and known.runs is not None:
            return await _tried_again(chosen, known.runs, found.view)
        outcome = await _gone_on(chosen, config, found)
    from .run import code_of

    show_outcome(chosen.out, outcome)
    chosen.out.object(outcome_json(outcome))
    return code_of(outcome)


async def _tried_again(chosen: Common, runs: Runs, view: RunView) -> int:
    out = chosen.out
    view = await runs.resume(view.run)
    out.show(f"{view.run}: {state_text(view)}")
    if not view.ended and await nobody_works(runs):
        out.say("no worker is there: `bicameral worker` starts one", style="yellow")
    out.object({"ok": not view.ended, **run_facts(view)})
    return OK if not view.ended else FAILED


async def _gone_on(chosen: Common, config: Config, found: Found) -> RunOutcome:
    from bicameral.runs import resume_plan

    from .._approving import TerminalApprover
    from .._asking import TerminalAsker

    out, make = chosen.out, given_agent()
    journal = found.recorded()
    if make is None and _extracts(journal.events(found.run)):
        bring_weights(out, config, ["quarantined"])
    async with opened(config, make) as agent:
        with display(out) as shown:
            shown.phase("going on")
            return await resume_plan(
                journal,
                found.run,
                agent.registry,
                policy=agent.policy,
                extractor=agent.executor,
                asker=TerminalAsker(out, shown.quiet) if out.interactive else None,
                approver=TerminalApprover(out, agent.registry, shown.quiet) if out.interactive else None,
                observer=shown.step,
            )


def _extracts(events: list[Event]) -> bool:
    """Whether the plan of a run asks the quarantined model anything."""
    from bicameral.plans import Extract, load_plan, walk

    plan = events[0].body.get("plan")
    return bool(plan) and any(isinstance(step, Extract) for _, step in walk(load_plan(str(plan)).steps))
