"""`bicameral plan`: the plan for a request, checked and not run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._command_agent import fetch_missing_weights, open_agent
from bicameral.cli._displays import open_display
from bicameral.cli._options import CommonOptions, common_options, planning_options, plans_option
from bicameral.cli._output import NO_PLAN, OK, Output, terminal_people
from bicameral.cli._render import (
    planned_json,
    say_budget,
    say_choice,
    say_degraded,
    say_doubts,
    show_bindings,
    show_intent,
    show_report,
)

if TYPE_CHECKING:
    from bicameral.agent import Agent, Planned
    from bicameral.config import Config
    from bicameral.planning import Intent


@click.command(short_help="Write the plan for a request and check it, without running it.")
@click.argument("request", required=False)
@click.option(
    "--intent",
    "intent_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Plan from the intent in this file (JSON, as `bicameral intent --out` writes it) instead of a request.",
)
@click.option("--out", "target", type=click.Path(dir_okay=False, path_type=Path), help="Write the plan to this file.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["python", "json", "tasks"]),
    help="How to write the plan; by default JSON into a .json file and Python otherwise.",
)
@plans_option
@planning_options
@common_options
def command(
    chosen: CommonOptions,
    request: str | None,
    intent_file: Path | None,
    target: Path | None,
    form: str | None,
    deterministic: bool,
    fresh: bool,
    plans: int | None,
) -> int:
    """Write the plan for REQUEST, or for the intent in a file, and check it, without running it.

    The plan goes to standard output (or to --out); intent and findings go to standard error.
    """
    wanted = _request_or_intent(request, intent_file)
    config = chosen.config()
    fetch_missing_weights(chosen.out, config, ["privileged"])
    form = form or ("json" if target is not None and target.suffix == ".json" else "python")
    planned, text, agent = asyncio.run(_make_plan(chosen.out, config, wanted, form, deterministic, fresh, plans))
    out = chosen.out
    show_intent(out, planned.intent)
    if target is not None:
        target.write_text(text, encoding="utf-8")
        out.say(f"written to {target}")
    else:
        out.show(text)
    show_bindings(out, planned.bindings)
    say_doubts(out, planned.doubts)
    show_report(out, planned.report, planned.proof)
    say_choice(out, planned.choice)
    say_degraded(out, planned.degraded)
    say_budget(out, agent, planned.report)
    worst = {"worst": agent.worst_case(planned.report).to_json()} if planned.report.ok else {}
    out.write_json({"ok": planned.report.ok, **planned_json(planned), **worst})
    return OK if planned.report.ok else NO_PLAN


def _request_or_intent(request: str | None, file: Path | None) -> str | Intent:
    if (request is None) == (file is None):
        raise click.UsageError("Give a REQUEST, or a file with --intent, and not both.")
    if file is None:
        return request or ""
    from bicameral.planning import read_intent

    # Whoever names a file here says that its words are theirs, as with a request that they type.
    return read_intent(file)


async def _make_plan(
    out: Output, config: Config, wanted: str | Intent, form: str, deterministic: bool, fresh: bool, plans: int | None
) -> tuple[Planned, str, Agent]:
    """The plan, how it is written in the wanted form, and the agent that would run it."""
    async with open_agent(config) as agent:
        with open_display(out) as shown:
            asker, _ = terminal_people(out, agent.registry, shown.quiet)
            shown.phase("planning")
            # What rules find in an edited intent is added to it here: the file need not have it.
            request = wanted if isinstance(wanted, str) else await agent.complete(wanted, asker=asker)
            planned = await agent.plan(
                request, deterministic=deterministic, fresh=fresh, asker=asker, watch=shown.statement, plans=plans
            )
        return planned, _format_plan(planned, agent, form), agent


def _format_plan(planned: Planned, agent: Agent, form: str) -> str:
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
