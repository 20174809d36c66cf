"""`bicameral policy`: show and test policies, and prove plans against them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

import click

from bicameral.cli._options import CommonOptions, DefaultGroup, common_options
from bicameral.cli._output import FAILED, NO_PLAN, OK, Output
from bicameral.cli._render import verdict_lines

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.plans import Plan
    from bicameral.policy import CaseResult, Policy, PolicyRule
    from bicameral.tools import Registry


def schema_text() -> str:
    """The Cedar schema: what a policy can refer to."""
    return files("bicameral.policy").joinpath("schema.cedarschema").read_text(encoding="utf-8")


def show_policy(out: Output, policy: Policy) -> None:
    """Show every policy with its text, the defaults first."""
    for default in (True, False):
        rules = [rule for rule in policy.rules if rule.default is default]
        if rules:
            out.show("The defaults" if default else "\nYour own")
        for rule in rules:
            out.show(f"\n  {_rule_headline(rule)}\n{indent(rule.text, '    ')}")
    weaker = " (weaker: control flow does not count)" if policy.mode == "normal" else ""
    out.show(f"\nmode: {policy.mode}{weaker}")
    facts = {"mode": policy.mode, "fingerprint": policy.fingerprint}
    out.write_json({"ok": True, **facts, "policies": [rule.to_json() for rule in policy.rules]})


def _rule_headline(rule: PolicyRule) -> str:
    return f"{rule.id}: {rule.does}" + ("" if rule.default else f"  ({rule.where})")


def show_outcomes(out: Output, outcomes: Sequence[CaseResult]) -> None:
    """Show each test case, with the decision and its reason where it is not the expected one."""
    for outcome in outcomes:
        out.show(f"{'ok  ' if outcome.is_expected else 'FAIL'}  {outcome.case.name}: {outcome.decided}")
        if not outcome.is_expected:
            wanted = outcome.case.policies
            out.show(f"      expected {outcome.case.expect}" + (f" by {', '.join(wanted)}" if wanted else ""))
            named = f"by {', '.join(outcome.policies)}: " if outcome.policies else ""
            out.show(f"      {named}{outcome.explanation}" if outcome.explanation else "      no policy stops it")
    failed = sum(not outcome.is_expected for outcome in outcomes)
    out.show(f"\n{len(outcomes)} {'case' if len(outcomes) == 1 else 'cases'}, {failed or 'none'} failed")
    out.write_json({"ok": not failed, "cases": [outcome.to_json() for outcome in outcomes]})


def show_proof(out: Output, plan: Plan, registry: Registry, policy: Policy) -> bool:
    """Show the verdict on each call of a plan; False if one is refused."""
    from bicameral.plans import prove

    proof = prove(plan, registry, policy.preview, policy.mode)
    for line in verdict_lines(proof):
        out.show(line)
    if not proof.calls:
        out.show("it calls no tool")
    out.write_json({"ok": not proof.refused, "mode": policy.mode, "calls": [call.to_json() for call in proof.calls]})
    return not proof.refused


@click.group(short_help="What calls may be made, and why.", cls=DefaultGroup, default="show")
def command() -> None:
    """What calls may be made, and why. Without a subcommand: the policies that hold."""


@command.command("show")
@click.option("--schema", is_flag=True, help="What a policy can speak of: the Cedar schema.")
@common_options
def show(chosen: CommonOptions, schema: bool = False) -> int:
    """Every policy that holds: the defaults, and your own."""
    _, policy = _open_tools_and_policy(chosen.config())
    if schema:
        chosen.out.show(schema_text())
        chosen.out.write_json({"ok": True, "schema": schema_text()})
        return OK
    show_policy(chosen.out, policy)
    return OK


@command.command("test")
@click.argument("file", type=click.Path(path_type=Path))
@common_options
def test(chosen: CommonOptions, file: Path) -> int:
    """Try the cases in FILE (TOML or JSON): what must be said of which call. The exit code is 1 if one fails."""
    from bicameral.policy import read_cases, run_case

    registry, policy = _open_tools_and_policy(chosen.config())
    outcomes = [run_case(case, policy, registry) for case in read_cases(file)]
    show_outcomes(chosen.out, outcomes)
    return OK if all(outcome.is_expected for outcome in outcomes) else FAILED


@command.command("explain")
@click.argument("what", metavar="PLAN|RUN")
@common_options
def explain(chosen: CommonOptions, what: str) -> int:
    """What would be said of each call of a plan (a file, or the plan of a recorded run), before anything happens."""
    config = chosen.config()
    registry, policy = _open_tools_and_policy(config)
    plan = _load_any_plan(what, config, registry)
    return OK if show_proof(chosen.out, plan, registry, policy) else NO_PLAN


def _open_tools_and_policy(config: Config) -> tuple[Registry, Policy]:
    from bicameral.config import open_policy, open_registry

    registry = open_registry(config)
    return registry, open_policy(config, registry)


def _load_any_plan(what: str, config: Config, registry: Registry) -> Plan:
    """The plan of a file, or of a run by its id, a unique beginning of it, or `last`."""
    from bicameral.cli._run_records import find_recorded_run, open_journals
    from bicameral.cli.commands.check import read_plan
    from bicameral.plans import load_plan

    if what == "-" or Path(what).is_file() or Path(what).suffix in (".json", ".py"):
        return read_plan(what, registry).plan
    with open_journals(config) as known:
        journal, run = find_recorded_run(known, what)
        first = journal.events(run)[0]
    return load_plan(str(first.body.get("plan", "")), file=f"run {first.run}", keep_bindings=True)
