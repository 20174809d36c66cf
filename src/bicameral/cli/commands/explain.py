"""`bicameral explain`: a plan in plain words."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .._exits import NO_PLAN, OK
from .._live import display
from .._opening import bring_weights, given_agent, opened
from .._options import Common, common, planning
from .._proof import proof_json
from .._render import show_finding

if TYPE_CHECKING:
    from bicameral.agent import Checked
    from bicameral.config import Config
    from bicameral.plans import Plan
    from bicameral.tools import Registry


@click.command(short_help="Say in plain words what a plan does, step by step.")
@click.argument("what", metavar="FILE|REQUEST")
@planning
@common
def command(chosen: Common, what: str, deterministic: bool, fresh: bool) -> int:
    """Say in plain words what the plan in a file does, or the plan that would serve a request."""
    config = chosen.config()
    if what == "-" or Path(what).is_file() or _looks_like_a_file(what):
        plan, checked, registry = _from_file(what, config)
    else:
        plan, checked, registry = asyncio.run(_from_request(chosen, config, what, deterministic, fresh))
    return _tell(chosen, plan, checked, registry)


def _looks_like_a_file(what: str) -> bool:
    return " " not in what.strip() and Path(what).suffix in (".json", ".py")


def _from_file(name: str, config: Config) -> tuple[Plan, Checked, Registry]:
    from bicameral.agent import check_plan
    from bicameral.config import open_policy, open_registry

    from .._plan_files import read_plan

    registry = open_registry(config)
    read = read_plan(name, registry)
    policy = open_policy(config, registry)
    return read.plan, check_plan(read.plan, registry, policy, limits=config.plan_limits, places=read.places), registry


async def _from_request(
    chosen: Common, config: Config, request: str, deterministic: bool, fresh: bool
) -> tuple[Plan, Checked, Registry]:
    from bicameral.agent import Checked

    make = given_agent()
    if make is None:
        bring_weights(chosen.out, config, ["privileged"])
    async with opened(config, make) as agent:
        with display(chosen.out) as shown:
            shown.phase("planning")
            planned = await agent.plan(request, deterministic=deterministic, fresh=fresh, watch=shown.statement)
        return planned.plan, Checked(planned.report, planned.proof), agent.registry


def _tell(chosen: Common, plan: Plan, checked: Checked, registry: Registry) -> int:
    from .._explain import explain, summary

    out, report, steps = chosen.out, checked.report, explain(plan, registry, checked.proof)
    if plan.goal:
        out.show(f"Goal: {plan.goal}\n")
    for step in steps:
        indent = "  " * step.depth
        noted = "; ".join(filter(None, (step.effect, step.verdict)))
        out.show(f"{indent}{step.path:<6} {step.words}" + (f"  ({noted})" if noted else ""))
        if step.why:
            out.show(f"{indent}       {step.why}")
    out.show("\n" + " ".join(summary(report)))
    for finding in report.findings:
        show_finding(out, finding)
    out.object(
        {
            "ok": report.ok,
            "goal": plan.goal,
            "steps": [step.to_json() for step in steps],
            "summary": summary(report),
            "report": report.to_json(),
            "proof": proof_json(checked.proof),
        }
    )
    return OK if report.ok else NO_PLAN
