"""`bicameral check`: what is wrong with a plan file."""

from __future__ import annotations

import click

from .._exits import NO_PLAN, OK
from .._options import Common, common
from .._render import effects_text, show_finding


@click.command(short_help="Check a plan file.")
@click.argument("file")
@common
def command(chosen: Common, file: str) -> int:
    """Check the plan in FILE: JSON, Python syntax, or a list of tasks; `-` reads standard input."""
    from bicameral.config import open_registry
    from bicameral.plans import check

    from .._plan_files import read_plan

    out, config = chosen.out, chosen.config()
    registry = open_registry(config)
    read = read_plan(file, registry)
    report = check(read.plan, registry, places=read.places, limits=config.plan_limits)
    for note in read.notes:
        out.say(f"  note: {note}")
    for finding in report.findings:
        show_finding(out, finding)
    if report.ok:
        out.show(f"ok: {len(read.plan.steps)} steps; {effects_text(report)}")
    else:
        out.show(f"{len(report.errors)} error{'' if len(report.errors) == 1 else 's'}")
    out.object({**report.to_json(), "notes": list(read.notes), "plan": read.plan.model_dump(mode="json")})
    return OK if report.ok else NO_PLAN
