"""`bicameral plan`: the plan for a request, checked and not run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._asking import TerminalAsker
from .._costs import say_budget, say_degraded
from .._exits import NO_PLAN, OK
from .._live import display
from .._opening import MakeAgent, bring_weights, given_agent, opened
from .._options import Common, common, planning
from .._output import Output
from .._render import planned_json, show_intent, show_report

if TYPE_CHECKING:
    from bicameral.agent import Agent, Planned
    from bicameral.config import Config


@click.command(short_help="Write the plan for a request and check it, without running it.")
@click.argument("request")
@click.option("--out", "target", type=click.Path(dir_okay=False, path_type=Path), help="Write the plan to this file.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["python", "json", "tasks"]),
    help="How to write the plan; by default JSON into a .json file and Python otherwise.",
)
@planning
@common
def command(
    chosen: Common, request: str, target: Path | None, form: str | None, deterministic: bool, fresh: bool
) -> int:
    """Write the plan for REQUEST and check it, without running it.

    The plan goes to standard output (or to --out); intent and findings go to standard error.
    """
    config, make = chosen.config(), given_agent()
    if make is None:
        bring_weights(chosen.out, config, ["privileged"])
    form = form or ("json" if target is not None and target.suffix == ".json" else "python")
    planned, text, agent = asyncio.run(_plan(chosen.out, config, make, request, form, deterministic, fresh))
    out = chosen.out
    show_intent(out, planned.intent)
    if target is not None:
        target.write_text(text, encoding="utf-8")
        out.say(f"written to {target}")
    else:
        out.show(text)
    show_report(out, planned.report, planned.proof)
    say_degraded(out, planned.degraded)
    say_budget(out, agent, planned.report)
    worst = {"worst": agent.worst(planned.report).to_json()} if planned.report.ok else {}
    out.object({"ok": planned.report.ok, **planned_json(planned), **worst})
    return OK if planned.report.ok else NO_PLAN


async def _plan(
    out: Output, config: Config, make: MakeAgent | None, request: str, form: str, deterministic: bool, fresh: bool
) -> tuple[Planned, str, Agent]:
    """The plan, how it is written in the wanted form, and the agent that would run it."""
    async with opened(config, make) as agent:
        with display(out) as shown:
            asker = TerminalAsker(out, shown.quiet) if out.interactive else None
            shown.phase("planning")
            planned = await agent.plan(
                request, deterministic=deterministic, fresh=fresh, asker=asker, watch=shown.statement
            )
        return planned, _written(planned, agent, form), agent


def _written(planned: Planned, agent: Agent, form: str) -> str:
    import json

    from bicameral.plans import export_tasks

    def indented(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=2) + "\n"

    match form:
        case "json":
            return indented(planned.plan.model_dump(mode="json"))
        case "tasks":
            return indented(export_tasks(planned.plan, agent.registry))
        case _:
            return planned.source
