"""`bicameral submit`: hand a run to the workers."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from bicameral.cli._command_agent import open_agent, run_until_terminated
from bicameral.cli._options import CommonOptions, MomentType, PeriodType, common_options
from bicameral.cli._output import NO_PLAN, OK, terminal_people
from bicameral.cli._render import checked_json, say_doubts, show_bindings, show_plan, show_report
from bicameral.cli._run_records import (
    RunWatcher,
    is_without_workers,
    open_submitted_runs,
    run_exit_code,
    run_json,
    run_state_text,
    show_run_view,
    warn_without_workers,
)
from bicameral.cli.commands.patterns import complete_pattern

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.durable import Runs, RunView, Submission
    from bicameral.patterns.kernel import TextPattern
    from bicameral.plans import Plan


@click.command(short_help="Hand a request or a plan to the workers, now or for later.")
@click.argument("request", required=False)
@click.option("--plan", "plan_file", metavar="FILE", help="Submit this plan file instead of a request.")
@click.option("--pattern", metavar="ID", shell_complete=complete_pattern, help="A pattern works on the request.")
@click.option("--knob", "knobs", multiple=True, metavar="NAME=VALUE", help="Set a knob of the pattern.")
@click.option("--at", type=MomentType(), help="Not before: 2026-03-01T09:00, 2026-03-01, or 09:00.")
@click.option("--in", "delay", type=PeriodType(), help="Not before so much time is over: 45s, 2h30m, 3d.")
@click.option("--priority", type=click.IntRange(1, 9), default=5, show_default=True, help="1 is taken first, 9 last.")
@click.option("--key", help="The same key of the same user always means the same run: safe to submit twice.")
@click.option("--user", default="local", show_default=True, help="Whose run it is.")
@click.option("--answer-within", type=PeriodType(), help="How long its questions wait for an answer; then it is no.")
@click.option("--deterministic", is_flag=True, help="Plan from the request as it stands, without Echo.")
@click.option("--wait", is_flag=True, help="Wait until it has ended, or waits for a person; print the answer.")
@common_options
def command(
    chosen: CommonOptions,
    request: str | None,
    plan_file: str | None,
    pattern: str | None,
    knobs: tuple[str, ...],
    at: datetime | None,
    delay: float | None,
    priority: int,
    key: str | None,
    user: str,
    answer_within: float | None,
    deterministic: bool,
    wait: bool,
) -> int:
    """Hand REQUEST, or a plan, to the workers. When this returns the run is kept, and whatever dies, it is done.

    With --pattern the request is worked on by a pattern of the catalogue that takes nothing else, and not by a plan.

    The id of the run goes to standard output. A plan is checked first; a request is planned by the worker. A call that
    policy does not allow on its own waits for `bicameral approvals`. With --wait, Ctrl-C leaves the run going.

    \b
    bicameral submit "Find duplicate invoices in mail.txt" --wait
    bicameral submit "Which of the three is cheapest?" --pattern R5 --knob max_calls=6
    bicameral submit --plan report.py --at 2026-03-01T06:00 --key march-report
    """
    if (request is None) == (plan_file is None):
        raise click.UsageError("Give a request, or a plan file with --plan.")
    if at is not None and delay is not None:
        raise click.UsageError("Give --at or --in, not both.")
    if request is None and (pattern is not None or knobs):
        raise click.UsageError("A pattern works on a request: give one.")
    if knobs and pattern is None:
        raise click.UsageError("Give the pattern of the knobs with --pattern.")
    from bicameral.durable import Submission

    submission = Submission(
        request=request,
        strategy=None if pattern is None else _chosen_pattern(pattern, knobs),
        user=user,
        priority=priority,
        not_before=datetime.now(UTC) + timedelta(seconds=delay) if delay is not None else at,
        deterministic=deterministic,
        answer_within=answer_within,
        key=key,
    )
    return asyncio.run(run_until_terminated(_submit(chosen, chosen.config(), submission, plan_file, wait)))


def _chosen_pattern(id: str, knobs: tuple[str, ...]) -> TextPattern:
    from bicameral.catalog import catalog
    from bicameral.patterns import parse_pattern_knobs, text_pattern

    id = catalog().pattern(id).id
    return text_pattern(id, parse_pattern_knobs(id, knobs))


async def _submit(
    chosen: CommonOptions, config: Config, submission: Submission, plan_file: str | None, wait: bool
) -> int:
    goal = submission.request or ""
    if plan_file is not None:
        if (plan := await _load_checked_plan(chosen, config, plan_file)) is None:
            return NO_PLAN
        submission, goal = replace(submission, plan=plan), plan.goal
    async with open_submitted_runs(config, make=True) as runs:
        view = await runs.submit(submission)
        if submission.key is not None and view.request != goal:
            raise click.UsageError(f"The key {submission.key!r} was used for another run: {view.run}. Use a new key.")
        if wait:
            return await _wait_for_end(chosen, runs, view)
        chosen.out.say(f"run {view.run} is {run_state_text(view)}")
        idle = await (is_without_workers(runs) if view.has_ended else warn_without_workers(chosen.out, runs))
    chosen.out.show(view.run)
    chosen.out.write_json({"ok": True, **run_json(view), "workers": not idle})
    return OK


async def _load_checked_plan(chosen: CommonOptions, config: Config, name: str) -> Plan | None:
    """The plan of a file; None, with its report shown, if it does not pass the check that a worker would make too."""
    from bicameral.binding import binding_doubts
    from bicameral.cli.commands.check import read_plan
    from bicameral.plans import print_plan

    async with open_agent(config) as agent:
        file = read_plan(name, agent.registry)
        asker, _ = terminal_people(chosen.out, agent.registry, nullcontext)
        # Here, where the person is: what a word means is asked now and not when the run has begun.
        bound = await agent.bind(file.plan, asker=asker)
        show_bindings(chosen.out, bound.bindings)
        bound.require()
        doubts = binding_doubts(bound.bindings)
        say_doubts(chosen.out, doubts)
        checked = agent.check(bound.plan, places=bound.moved_places(file.places))
        if checked.ok:
            # Checked as it is bound now. The worker binds it anew, since the world may change before it runs.
            return file.plan
        show_plan(chosen.out, print_plan(bound.shown_plan(file.plan), agent.registry))
        show_report(chosen.out, checked.report, checked.proof, briefly=True)
        chosen.out.write_json({"ok": False, **checked_json(checked)})
        return None


async def _wait_for_end(chosen: CommonOptions, runs: Runs, view: RunView) -> int:
    out = chosen.out
    out.say(f"run {view.run}; Ctrl-C leaves it going")
    await warn_without_workers(out, runs)
    ended = await RunWatcher(out, quiet=out.as_json).watch_submitted(runs, view.run, view.user, until_asked=True)
    show_run_view(out, ended)
    out.write_json({"ok": ended.state == "finished", **run_json(ended)})
    return run_exit_code(ended)
