"""`bicameral run`: from a sentence, or from a plan file, to an answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from .._asking import TerminalAsker, confirmed
from .._exits import FAILED, INTERRUPTED, NO_PLAN, OK
from .._live import Display, display
from .._opening import MakeAgent, bring_weights, given_agent, opened
from .._options import Common, common, planning
from .._render import (
    effects_text,
    outcome_json,
    planned_json,
    show_intent,
    show_outcome,
    show_plan,
    show_report,
)

if TYPE_CHECKING:
    from bicameral.agent import Agent, Planned
    from bicameral.config import Config
    from bicameral.plans import Plan, Report
    from bicameral.runs import RunOutcome


@dataclass(frozen=True)
class Wishes:
    """How a run was asked for."""

    deterministic: bool = False
    fresh: bool = False
    dry_run: bool = False
    yes: bool = False


@click.command(short_help="Do what a request asks for: plan it, check it, run it.")
@click.argument("request", required=False)
@click.option("--plan", "plan_file", metavar="FILE", help="Run this plan file instead of planning a request.")
@click.option("--dry-run", is_flag=True, help="Plan and check, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before sending or changing something for good.")
@planning
@common
def command(
    chosen: Common,
    request: str | None,
    plan_file: str | None,
    deterministic: bool,
    fresh: bool,
    dry_run: bool,
    yes: bool,
) -> int:
    """Do what REQUEST asks for: write a plan, check it, run it, and print the answer.

    The answer goes to standard output; intent, plan, findings and progress go to standard error. At a terminal you
    are asked before anything is sent or changed for good.
    """
    if (request is None) == (plan_file is None):
        raise click.UsageError("Give a request, or a plan file with --plan.")
    config, wishes = chosen.config(), Wishes(deterministic, fresh, dry_run, yes)
    sitting = Sitting(chosen, config, wishes, given_agent())
    if plan_file is not None:
        return asyncio.run(sitting.run_file(plan_file))
    sitting.prepare()
    return asyncio.run(sitting.run_request(request or ""))


class Sitting:
    """One run at the command line, from what was asked to the exit code."""

    def __init__(self, chosen: Common, config: Config, wishes: Wishes, make: MakeAgent | None) -> None:
        self._out, self._config, self._wishes, self._make = chosen.out, config, wishes, make

    def prepare(self) -> None:
        """Fetch what planning needs, before anything else is shown."""
        if self._make is None:
            bring_weights(self._out, self._config, ["privileged"])

    async def run_request(self, request: str) -> int:
        async with opened(self._config, self._make) as agent:
            with display(self._out) as shown:
                planned = await self.plan(agent, request, shown)
            return (await self.carry_out(agent, planned, planned.report, planned_json(planned)))[0]

    async def run_file(self, name: str) -> int:
        from bicameral.plans import print_plan

        from .._plan_files import read_plan

        async with opened(self._config, self._make) as agent:
            file = read_plan(name, agent.registry)
            report = agent.check(file.plan, places=file.places)
            show_plan(self._out, print_plan(file.plan, agent.registry))
            show_report(self._out, report)
            facts = {"plan": file.plan.model_dump(mode="json"), "report": report.to_json()}
            return (await self.carry_out(agent, file.plan, report, facts))[0]

    async def plan(self, agent: Agent, request: str, shown: Display) -> Planned:
        """The plan, written before the person's eyes and then shown as a whole."""
        asker = TerminalAsker(self._out, shown.quiet) if self._out.interactive else None
        shown.phase("planning")
        planned = await agent.plan(
            request,
            deterministic=self._wishes.deterministic,
            fresh=self._wishes.fresh,
            asker=asker,
            watch=shown.statement,
        )
        shown.close()
        show_intent(self._out, planned.intent)
        show_plan(self._out, planned.source)
        show_report(self._out, planned.report)
        return planned

    async def carry_out(
        self, agent: Agent, what: Plan | Planned, report: Report, facts: dict[str, Any]
    ) -> tuple[int, RunOutcome | None]:
        """Run a plan that was shown, unless it may not run, should not, or the person says no."""
        if not report.ok:
            self._out.object({"ok": False, **facts})
            return NO_PLAN, None
        if self._wishes.dry_run:
            self._out.say("nothing was run (--dry-run)")
            self._out.object({"ok": True, "dry_run": True, **facts})
            return OK, None
        if not await self._may(report):
            self._out.say("not run")
            return FAILED, None
        await self._bring_quarantined(what)
        with display(self._out) as shown:
            shown.phase("running")
            asker = TerminalAsker(self._out, shown.quiet) if self._out.interactive else None
            outcome = await agent.run(what, asker=asker, observer=shown.step)
        show_outcome(self._out, outcome)
        self._out.object(outcome_json(outcome) | facts)
        return _code(outcome), outcome

    async def _may(self, report: Report) -> bool:
        """Ask once, where someone is there, before what cannot be taken back. The request itself is the authority."""
        grave = any(use.effect in ("send", "irreversible") for use in report.effects)
        if self._wishes.yes or not grave or not self._out.interactive:
            return True
        return await confirmed(self._out, f"This plan {effects_text(report)}. Run it?")

    async def _bring_quarantined(self, what: Plan | Planned) -> None:
        from bicameral.plans import Extract, Plan, walk

        plan = what if isinstance(what, Plan) else what.plan
        if self._make is None and any(isinstance(step, Extract) for _, step in walk(plan.steps)):
            bring_weights(self._out, self._config, ["quarantined"])


def _code(outcome: RunOutcome) -> int:
    from bicameral.runs import Failed, Finished

    from .._exits import QUESTIONS

    match outcome:
        case Finished():
            return OK
        case Failed(error=error):
            return QUESTIONS if error.code == "run.needs-answer" else FAILED
        case _:
            return INTERRUPTED
