"""`bicameral cost`: what a stack, patterns or a plan would take, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .._cost import Speeds, cost_json, parse_knobs, parse_pairs, show_cost, stack_rates, tier_rates
from .._exits import OK
from .._options import Common, common

if TYPE_CHECKING:
    from bicameral.catalog.costs import Estimate, Rates


@click.command(short_help="What a stack, patterns or a plan would take: calls, tokens, money, time.")
@click.argument("what", metavar="STACK.yaml|PLAN|ID...", nargs=-1, required=True)
@click.option("--size", "sizes", metavar="NAME=NUMBER", multiple=True, help="A size that you measured, as in steps=6.")
@click.option(
    "--set", "knobs", metavar="ID.KNOB=NUMBER", multiple=True, help="A knob of a pattern, as in R4.max_steps=8."
)
@click.option(
    "--model",
    "models",
    metavar="[TIER=]NAME",
    multiple=True,
    help="The model of all sessions, or of small, mid or large.",
)
@click.option("--speed", type=(float, float), help="Tokens a second that a remote model reads, and that it writes.")
@click.option("--calls", type=click.IntRange(1, 10**9), help="Runs a day: what they cost in a month.")
@common
def command(
    chosen: Common,
    what: tuple[str, ...],
    sizes: tuple[str, ...],
    knobs: tuple[str, ...],
    models: tuple[str, ...],
    speed: tuple[float, float] | None,
    calls: int | None,
) -> int:
    """What a run would take, expected and at worst: calls, tokens, tools, seconds and money, by part and in all.

    WHAT is a stack in YAML, a plan file, or the ids of patterns that work together. Nothing is run and no model is
    asked. `bicameral costs` tells what was spent; this tells what would be.
    """
    from bicameral.catalog.costs._values import sizes_of
    from bicameral.config import open_prices

    config, speeds = chosen.config(), Speeds(*speed) if speed else Speeds()
    measured = sizes_of(parse_pairs(sizes, "size"))
    rates = tier_rates(config, models, speeds)
    prices = open_prices(config)
    found, silent, name = _estimated(chosen, what, measured, rates, parse_knobs(knobs), speeds)
    show_cost(chosen.out, name, found, prices, calls=calls, silent=silent)
    chosen.out.object(cost_json(name, found, prices, rates, measured, calls))
    return OK


def _estimated(
    chosen: Common,
    what: tuple[str, ...],
    sizes: Mapping[str, float],
    rates: Mapping[str, Rates],
    knobs: Mapping[str, Mapping[str, float]],
    speeds: Speeds,
) -> tuple[Estimate, list[str], str]:
    """The estimate, the patterns that have no part of their own in it, and what it is an estimate of."""
    from bicameral.catalog import catalog
    from bicameral.catalog.costs import estimate
    from bicameral.catalog.stacks import read_stack

    from .._plan_cost import plan_estimate

    is_stack = len(what) == 1 and Path(what[0]).suffix.lower() in (".yaml", ".yml")
    is_plan = not is_stack and len(what) == 1 and _is_file(what[0])
    if knobs and (is_stack or is_plan):
        raise click.UsageError("--set goes with ids; a stack says its knobs itself, and a plan has none.")
    if is_stack:
        stack = read_stack(what[0])
        found = estimate(stack, sizes, stack_rates(chosen.config(), stack, rates, speeds))
        ids = list(dict.fromkeys(use.id for member in stack.members for use in member.uses))
        return found, _silent(ids, found), stack.name
    if is_plan:
        return plan_estimate(chosen.config(), what[0], sizes, rates["small"]), [], what[0]
    ids = [catalog().pattern(id).id for id in what]
    if strange := [id for id in knobs if id not in ids]:
        raise click.UsageError(f"--set names {strange[0]}, which is none of {', '.join(ids)}.")
    found = estimate([{id: knobs.get(id, {})} for id in ids], sizes, rates)
    return found, _silent(ids, found), ", ".join(ids)


def _is_file(name: str) -> bool:
    """Whether a file is meant and no pattern."""
    return name == "-" or Path(name).suffix.lower() in (".py", ".json") or Path(name).is_file()


def _silent(ids: list[str], found: Estimate) -> list[str]:
    told = {part.pattern for part in found.parts}
    return [id for id in ids if id not in told]
