"""`bicameral check`: what is wrong with a plan file."""

from __future__ import annotations

import click

from .._exits import NO_PLAN, OK
from .._options import Common, common
from .._proof import proof_json, show_verdicts
from .._render import effects_text, show_finding


@click.command(short_help="Check a plan file.")
@click.argument("file")
@common
def command(chosen: Common, file: str) -> int:
    """Check the plan in FILE: JSON, Python syntax, or a list of tasks; `-` reads standard input.

    Says of each call what policy will say of it: proved, conditional (you may be asked), or refused.
    """
    from bicameral.agent import check_plan
    from bicameral.config import open_policy, open_registry

    from .._plan_files import read_plan

    out, config = chosen.out, chosen.config()
    registry = open_registry(config)
    read = read_plan(file, registry)
    policy = open_policy(config, registry)
    checked = check_plan(read.plan, registry, policy, limits=config.plan_limits, places=read.places)
    report = checked.report
    for note in read.notes:
        out.say(f"  note: {note}")
    for finding in report.findings:
        show_finding(out, finding)
    if report.ok:
        out.show(f"ok: {len(read.plan.steps)} steps; {effects_text(report)}")
    else:
        out.show(f"{len(report.errors)} error{'' if len(report.errors) == 1 else 's'}")
    show_verdicts(out, checked.proof)
    facts = {"proof": proof_json(checked.proof), "notes": list(read.notes), "plan": read.plan.model_dump(mode="json")}
    out.object({**report.to_json(), **facts})
    return OK if report.ok else NO_PLAN
