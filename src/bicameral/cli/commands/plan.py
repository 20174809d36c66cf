"""`bicameral plan`: the plan for a request, checked and not run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._command_agent import fetch_missing_weights, open_agent
from bicameral.cli._displays import open_display
from bicameral.cli._options import CommonOptions, common_options, planning_options, plans_option, quarantine_option
from bicameral.cli._output import NO_PLAN, OK, Output, terminal_people
from bicameral.cli._render import (
    checked_json,
    executor_json,
    planned_json,
    say_budget,
    say_choice,
    say_degraded,
    say_doubts,
    say_quarantine,
    show_bindings,
    show_intent,
    show_plan,
    show_report,
)

if TYPE_CHECKING:
    from bicameral.agent import Agent, Planned
    from bicameral.config import Config
    from bicameral.planning import Intent
    from bicameral.plans import ExportError, Plan
    from bicameral.tools import Registry


@click.command(short_help="Write the plan for a request and check it, without running it.")
@click.argument("request", required=False)
@click.option(
    "--intent",
    "intent_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Plan from the intent in this file (JSON, as `bicameral intent --out` writes it) instead of a request.",
)
@click.option(
    "--from",
    "plan_file",
    metavar="FILE",
    help="Take the plan in this file (Python, JSON or tasks) and write it in another form; no model is asked.",
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
@quarantine_option
@common_options
def command(
    chosen: CommonOptions,
    request: str | None,
    intent_file: Path | None,
    plan_file: str | None,
    target: Path | None,
    form: str | None,
    deterministic: bool,
    fresh: bool,
    plans: int | None,
) -> int:
    """Write the plan for REQUEST, or for the intent in a file, and check it, without running it.

    The plan goes to standard output (or to --out); intent and findings go to standard error. A list of tasks is
    written only if it means the same plan: where it has no words for a step, each such step is named with the reason,
    and nothing is written.
    """
    if plan_file is not None:
        if request is not None or intent_file is not None:
            raise click.UsageError("Give a REQUEST, or a file with --intent or --from, and only one of them.")
        return _convert_file(chosen, plan_file, target, form)
    wanted = _request_or_intent(request, intent_file)
    config = chosen.config()
    fetch_missing_weights(chosen.out, config, ["privileged"])
    form = _form_for(form, target)
    planned, text, agent = asyncio.run(_make_plan(chosen.out, config, wanted, form, deterministic, fresh, plans))
    out = chosen.out
    show_intent(out, planned.intent)
    gaps = _write_plan(out, text, target, planned.source)
    show_bindings(out, planned.bindings)
    say_doubts(out, planned.doubts)
    show_report(out, planned.report, planned.proof)
    say_choice(out, planned.choice)
    say_degraded(out, planned.degraded)
    say_budget(out, agent, planned.report)
    say_quarantine(out, agent, planned.report)
    worst = {"worst": agent.worst_case(planned.report).to_json()} if planned.report.ok else {}
    ok = planned.report.ok and not gaps
    out.write_json({"ok": ok, **planned_json(planned), **worst, **gaps, **executor_json(agent)})
    return OK if ok else NO_PLAN


def _form_for(form: str | None, target: Path | None) -> str:
    return form or ("json" if target is not None and target.suffix == ".json" else "python")


def _write_plan(out: Output, text: str | ExportError, target: Path | None, source: str) -> dict[str, Any]:
    """Write the plan; or say why a list of tasks cannot be it, and show it in Python syntax, so that it is not lost."""
    if not isinstance(text, str):
        out.say(str(text))
        for gap in text.gaps:
            out.say(f"  {gap}")
        show_plan(out, source)
        return {"error": text.to_json()}
    if target is not None:
        target.write_text(text, encoding="utf-8")
        out.say(f"written to {target}")
    else:
        out.show(text)
    return {}


def _convert_file(chosen: CommonOptions, name: str, target: Path | None, form: str | None) -> int:
    """Write the plan of a file in another form, with what the check says of it."""
    from bicameral.cli.commands.check import load_checked
    from bicameral.plans import drop_bindings, print_plan

    out = chosen.out
    read, checked, registry = load_checked(chosen.config(), name)
    # As it stands in the file: what its words were bound to holds for now, and not for the file.
    plan = drop_bindings(read.plan)
    for note in read.notes:
        out.say(f"  note: {note}")
    source = print_plan(plan, registry)
    gaps = _write_plan(out, _format_plan(plan, source, registry, _form_for(form, target)), target, source)
    show_report(out, checked.report, checked.proof, briefly=True)
    ok = checked.report.ok and not gaps
    out.write_json({"ok": ok, "plan": plan.model_dump(mode="json"), **checked_json(checked), **gaps})
    return OK if ok else NO_PLAN


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
) -> tuple[Planned, str | ExportError, Agent]:
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
        return planned, _format_plan(planned.plan, planned.source, agent.registry, form), agent


def _format_plan(plan: Plan, source: str, registry: Registry, form: str) -> str | ExportError:
    """The plan in this form; the error if a list of tasks cannot say it."""
    import json

    from bicameral.plans import ExportError, export_tasks

    def indented(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=2) + "\n"

    match form:
        case "json":
            return indented(plan.model_dump(mode="json"))
        case "tasks":
            try:
                return indented(export_tasks(plan, registry))
            except ExportError as error:
                return error
        case _:
            return source
