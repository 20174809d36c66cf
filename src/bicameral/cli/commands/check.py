"""`bicameral check`: read a plan from a file, whichever of its forms it is in, and say what is wrong with it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._options import CommonOptions, common_options
from bicameral.cli._output import NO_PLAN, OK
from bicameral.cli._render import checked_json, effects_text, show_bindings, show_finding, show_verdicts
from bicameral.errors import Place, PlanError

if TYPE_CHECKING:
    from bicameral.agent import Checked
    from bicameral.binding import Binding, PlanBinding
    from bicameral.config import Config
    from bicameral.plans import Plan
    from bicameral.tools import Registry


_MAX_PLAN_BYTES = 4_000_000


@dataclass(frozen=True)
class PlanFile:
    """A plan, where its steps stand in the file, and what was noted while it was read."""

    plan: Plan
    places: Mapping[str, Place] = field(default_factory=dict[str, Place])
    notes: tuple[str, ...] = ()
    bindings: tuple[Binding, ...] = ()
    is_task_list: bool = False


def read_plan(name: str, registry: Registry, *, piped: bool = False) -> PlanFile:
    """A plan in the surface syntax, as JSON, or as a list of tasks.

    Args:
        name: The file; `-` is standard input.
        registry: The tools.
        piped: Whether tasks read the standard input; without, a plan from a list of tasks asks for a file instead.
    """
    from bicameral.plans import import_tasks, load_plan, parse

    text = _read_text(name)
    if not text.lstrip().startswith("{"):
        parsed = parse(text, registry, file=name)
        return PlanFile(parsed.plan, parsed.places)
    content = _parse_json(text)
    if "tasks" in content:
        imported = import_tasks(content, registry, piped=piped)
        return PlanFile(imported.plan, notes=tuple(imported.notes), is_task_list=True)
    return PlanFile(load_plan(text, file=name))


def load_checked(config: Config, name: str) -> tuple[PlanFile, Checked, Registry]:
    """A plan file, its check against the tools and policies of a configuration, and these tools."""
    from bicameral.agent import assumed_start
    from bicameral.config import open_policy, open_registry
    from bicameral.runs import check_plan

    registry = open_registry(config)
    read = read_plan(name, registry, piped=True)
    bound = _bind_by_rules(read.plan, registry)
    read = replace(read, plan=bound.plan, bindings=bound.bindings, places=bound.moved_places(read.places))
    policy, start = open_policy(config, registry), assumed_start(read.plan)
    checked = check_plan(read.plan, registry, policy, limits=config.plan_limits, places=read.places, start=start)
    return read, checked, registry


def _bind_by_rules(plan: Plan, registry: Registry) -> PlanBinding:
    """The plan with its references bound by rules alone: a check asks no model and nobody."""
    from bicameral.binding import bind_by_rules

    return asyncio.run(bind_by_rules(plan, registry, today=datetime.now().date()))


def _parse_json(text: str) -> dict[str, Any]:
    """The JSON object, or an empty one: what is wrong with it is for the reader of plans to say."""
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return {}


def _read_text(name: str) -> str:
    place = Place(file="standard input" if name == "-" else name)
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(_MAX_PLAN_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(_MAX_PLAN_BYTES + 1)
    except OSError as error:
        raise _unreadable_error(f"the file cannot be read: {error.strerror or error}", place) from None
    if len(raw) > _MAX_PLAN_BYTES:
        raise PlanError("plan.too-long", f"the file is larger than {_MAX_PLAN_BYTES:,} bytes", place=place)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable_error("the file is not text", place) from None


def _unreadable_error(message: str, place: Place) -> PlanError:
    return PlanError(
        "plan.cannot-read", message, place=place, expected="a plan as JSON or in Python syntax", fix="Check the path."
    )


@click.command(short_help="Check a plan file.")
@click.argument("file")
@common_options
def command(chosen: CommonOptions, file: str) -> int:
    """Check the plan in FILE: JSON, Python syntax, or a list of tasks; `-` reads standard input.

    Says of each call what policy will say of it: proved, conditional (you may be asked), or refused.
    """
    out = chosen.out
    read, checked, _ = load_checked(chosen.config(), file)
    report = checked.report
    for note in read.notes:
        out.say(f"  note: {note}")
    show_bindings(out, read.bindings)
    for finding in report.findings:
        show_finding(out, finding)
    if report.ok:
        out.show(f"ok: {len(read.plan.steps)} steps; {effects_text(report)}")
    else:
        out.show(f"{len(report.errors)} error{'' if len(report.errors) == 1 else 's'}")
    show_verdicts(out, checked.proof)
    proof, plan = checked_json(checked)["proof"], read.plan.model_dump(mode="json")
    out.write_json(
        {
            **report.to_json(),
            "proof": proof,
            "notes": list(read.notes),
            "plan": plan,
            "bindings": [each.to_json() for each in read.bindings],
        }
    )
    return OK if report.ok else NO_PLAN
