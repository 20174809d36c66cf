"""`bicameral estimate`: what a stack, patterns or a plan would take, before anything runs.

The rates of the models that would be asked, the estimate in parts, and for a plan file the blanks that the quarantined
model fills and the tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._options import CommonOptions, common_options
from bicameral.cli._output import OK, Output
from bicameral.cli._plain_values import render_table
from bicameral.cli._render import money_text
from bicameral.errors import PlanError

if TYPE_CHECKING:
    from bicameral.catalog.costs import Amounts, Estimate, Rates
    from bicameral.config import Config, TokenSpeeds
    from bicameral.limits import Prices
    from bicameral.plans import Extract, Plan, Report


_DAYS_PER_MONTH = 30


def parse_pairs(given: Iterable[str], what: str) -> dict[str, float]:
    """`name=value` as numbers."""
    found: dict[str, float] = {}
    for each in given:
        name, equals, value = each.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise click.UsageError(f"{each!r} is no {what}: write name=number.")
    return found


def parse_knobs(given: Iterable[str]) -> dict[str, dict[str, float]]:
    """`R4.max_steps=8` as knobs of patterns."""
    found: dict[str, dict[str, float]] = {}
    for name, value in parse_pairs(given, "knob").items():
        pattern, dot, knob = name.partition(".")
        if not dot or not knob:
            raise click.UsageError(f"{name!r} is no knob: write PATTERN.knob=number.")
        found.setdefault(pattern.upper(), {})[knob] = value
    return found


def show_estimate(
    out: Output, what: str, estimate: Estimate, prices: Prices, *, calls: int | None, silent: Sequence[str] = ()
) -> None:
    """Every part with what it takes, expected and at worst, then the sum and what is to be known of it."""
    from bicameral.catalog.costs import part_name

    run = [part for part in estimate.parts if not part.apart]
    rows = [_estimate_row(part_name(part), part.expected, part.worst, prices) for part in run]
    total = _estimate_row("in all", estimate.expected, estimate.worst, prices)
    out.show(f"{what}: one run, expected / at worst")
    out.show(render_table([*rows, total] if len(rows) != 1 else rows, out.width))
    for line in _estimate_remarks(estimate, prices, silent):
        out.show(line)
    if calls is not None:
        out.show(f"{calls:,} runs a day: {_month_text(estimate, calls, prices.currency)} a month")
    for note in estimate.notes:
        out.say(f"note: {note}")
    out.say("This is what it would take; `bicameral usage` tells what was spent.", style="dim")


def estimate_json(
    what: str,
    estimate: Estimate,
    prices: Prices,
    rates: Mapping[str, Rates],
    sizes: Mapping[str, float],
    calls: int | None,
) -> dict[str, Any]:
    """The same for a program."""
    found = {
        "ok": True,
        "of": what,
        "currency": prices.currency,
        "models": {name: rate.model for name, rate in rates.items()},
        "sizes": dict(sizes),
        **estimate.to_json(),
    }
    if calls is not None:
        usual, worst = estimate.expected.money, estimate.worst.money
        found["month"] = {
            "runs": calls * _DAYS_PER_MONTH,
            "expected": None if usual is None else usual * calls * _DAYS_PER_MONTH,
            "worst": None if worst is None else worst * calls * _DAYS_PER_MONTH,
        }
    return found


def _estimate_row(name: str, usual: Amounts, worst: Amounts, prices: Prices) -> dict[str, object]:
    from bicameral.catalog.costs import number_text, range_text

    return {
        "part": name,
        "calls": range_text(usual.calls, worst.calls),
        "read": range_text(usual.prompt, worst.prompt),
        "cached": number_text(usual.cached) if usual.cached else "",
        "written": range_text(usual.output, worst.output),
        "tools": range_text(usual.tools, worst.tools),
        "seconds": range_text(usual.seconds, worst.seconds),
        prices.currency: range_text(usual.money, worst.money, digits=4),
    }


def _estimate_remarks(estimate: Estimate, prices: Prices, silent: Sequence[str]) -> list[str]:
    from bicameral.catalog.costs import number_text

    usual, lines = estimate.expected, list[str]()
    if silent:
        lines.append(f"in the calls of others, or without a model: {', '.join(silent)}")
    if estimate.worst.longest:
        memory = f", {usual.memory / 1e6:,.0f} MB of cache" if usual.memory else ""
        lines.append(
            f"the longest call has {usual.longest:,.0f} tokens{memory}; at worst {estimate.worst.longest:,.0f}"
        )
    if estimate.apart.calls:
        money = money_text(estimate.apart.money, prices.currency)
        lines.append(f"beside runs, each time: {number_text(estimate.apart.calls)} calls, {money}")
    if estimate.unpriced:
        lines.append(f"price not known: {', '.join(estimate.unpriced)}")
    return lines


def _month_text(estimate: Estimate, calls: int, currency: str) -> str:
    usual, worst = estimate.expected.money, estimate.worst.money
    if usual is None or worst is None:
        return "price not known"
    days = calls * _DAYS_PER_MONTH
    return f"{money_text(usual * days, currency)}, at worst {money_text(worst * days, currency)}"


def plan_estimate(config: Config, file: str, sizes: Mapping[str, float], rates: Rates) -> Estimate:
    """A plan file in numbers. What is expected takes lists of unknown length for `items` items; the worst case is that
    of the check, with every blank asked for as often as it may be, at its longest."""
    from bicameral.cli.commands.check import load_checked
    from bicameral.plans import check

    read, checked, registry = load_checked(config, file)
    limits = config.plan_limits
    if not checked.report.ok:
        first = checked.report.errors[0]
        raise PlanError(first.code, first.message, place=first.place, nearest=first.nearest, fix=first.fix)
    items = min(limits.max_items, max(1, round(sizes["items"])))
    usual = check(read.plan, registry, limits=replace(limits, max_items=items), places=read.places)
    return _plan_amounts(read.plan, usual, checked.report, sizes, rates)


def _plan_amounts(plan: Plan, usual: Report, worst: Report, sizes: Mapping[str, float], rates: Rates) -> Estimate:
    from bicameral.agent._wiring import MAX_READ_TOKENS
    from bicameral.boundary import MAX_OUTPUT_TOKENS, MAX_TRIES
    from bicameral.catalog.costs import (
        Amounts,
        CostPart,
        Estimate,
        SessionLoad,
        expected_amounts,
        worst_amounts as at_most,
    )
    from bicameral.plans import Extract, walk

    blanks = [step for _, step in walk(plan.steps) if isinstance(step, Extract)]
    calls, most = usual.cost, worst.cost
    head, form = _prompt_lengths(blanks)
    reads = min(form + sizes["document"], MAX_READ_TOKENS - head)
    session = SessionLoad(calls.model_calls.most, head, reads, 0.0, min(sizes["item_output"], MAX_OUTPUT_TOKENS))
    longest = SessionLoad(most.model_calls.most * MAX_TRIES, head, MAX_READ_TOKENS - head, 0.0, MAX_OUTPUT_TOKENS)
    parts = [
        CostPart("", "plan", "extract", rates.model, expected_amounts(session, rates), at_most(longest, rates)),
        CostPart("", "plan", "tools", "", Amounts(tools=calls.tool_calls.most), Amounts(tools=most.tool_calls.most)),
    ]
    notes: list[str] = []
    if most.model_calls.assumed or most.tool_calls.assumed:
        notes.append("lists of unknown length: as many items as --size items says, at worst as the check assumes")
    unpriced = (rates.model,) if blanks and (rates.read is None or rates.written is None) else ()
    return Estimate(tuple(part for part in parts if part.worst != Amounts()), tuple(notes), unpriced)


def _prompt_lengths(blanks: list[Extract]) -> tuple[float, float]:
    """Tokens of what every blank is asked with, and of the form around its text, on the mean."""
    from bicameral.boundary._form import FORM_SETUP, render_form
    from bicameral.catalog.costs import estimate_tokens
    from bicameral.plans import Const

    head = sum(estimate_tokens(message.text) for message in FORM_SETUP)
    asked = [step.instruction.value if isinstance(step.instruction, Const) else "" for step in blanks]
    # Any day: all are of one length.
    forms = [
        estimate_tokens(render_form("", str(said), step.result_type, today=date.max))
        for said, step in zip(asked, blanks, strict=True)
    ]
    return head, sum(forms) / len(forms) if forms else 0.0


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
@common_options
def command(
    chosen: CommonOptions,
    what: tuple[str, ...],
    sizes: tuple[str, ...],
    knobs: tuple[str, ...],
    models: tuple[str, ...],
    speed: tuple[float, float] | None,
    calls: int | None,
) -> int:
    """What a run would take, expected and at worst: calls, tokens, tools, seconds and money, by part and in all.

    WHAT is a stack in YAML, a plan file, or the ids of patterns that work together. Nothing is run and no model is
    asked. `bicameral usage` tells what was spent; this tells what would be.
    """
    from bicameral.catalog.costs._composition import resolve_sizes
    from bicameral.config import TokenSpeeds, open_prices, tier_rates

    config, speeds = chosen.config(), TokenSpeeds(*speed) if speed else TokenSpeeds()
    measured = resolve_sizes(parse_pairs(sizes, "size"))
    rates = tier_rates(config, models, speeds)
    prices = open_prices(config)
    found, silent, name = _make_estimate(chosen, what, measured, rates, parse_knobs(knobs), speeds)
    show_estimate(chosen.out, name, found, prices, calls=calls, silent=silent)
    chosen.out.write_json(estimate_json(name, found, prices, rates, measured, calls))
    return OK


def _make_estimate(
    chosen: CommonOptions,
    what: tuple[str, ...],
    sizes: Mapping[str, float],
    rates: Mapping[str, Rates],
    knobs: Mapping[str, Mapping[str, float]],
    speeds: TokenSpeeds,
) -> tuple[Estimate, list[str], str]:
    """The estimate, the patterns that have no part of their own in it, and what it is an estimate of."""
    from bicameral.catalog import catalog
    from bicameral.catalog.costs import estimate
    from bicameral.catalog.stacks import read_stack
    from bicameral.config import stack_rates

    file = Path(what[0])
    is_stack = len(what) == 1 and file.suffix.lower() in (".yaml", ".yml")
    is_file = what[0] == "-" or file.suffix.lower() in (".py", ".json") or file.is_file()
    is_plan = not is_stack and len(what) == 1 and is_file
    if knobs and (is_stack or is_plan):
        raise click.UsageError("--set goes with ids; a stack says its knobs itself, and a plan has none.")
    if is_stack:
        stack = read_stack(what[0])
        found = estimate(stack, sizes, stack_rates(chosen.config(), stack, rates, speeds))
        ids = list(dict.fromkeys(use.id for member in stack.members for use in member.all_uses))
        return found, found.without_part(ids), stack.name
    if is_plan:
        return plan_estimate(chosen.config(), what[0], sizes, rates["small"]), [], what[0]
    ids = [catalog().pattern(id).id for id in what]
    if strange := [id for id in knobs if id not in ids]:
        raise click.UsageError(f"--set names {strange[0]}, which is none of {', '.join(ids)}.")
    found = estimate([{id: knobs.get(id, {})} for id in ids], sizes, rates)
    return found, found.without_part(ids), ", ".join(ids)
