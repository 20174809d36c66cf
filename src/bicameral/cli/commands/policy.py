"""`bicameral policy`: what calls may be made, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .._exits import FAILED, NO_PLAN, OK
from .._options import Common, common

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.plans import Plan
    from bicameral.policy import Policy
    from bicameral.tools import Registry


@click.group(short_help="What calls may be made, and why.", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int | None:
    """What calls may be made, and why. Without a subcommand: the policies that hold."""
    return context.invoke(show) if context.invoked_subcommand is None else None


@command.command("show")
@click.option("--schema", is_flag=True, help="What a policy can speak of: the Cedar schema.")
@common
def show(chosen: Common, schema: bool = False) -> int:
    """Every policy that holds: the defaults, and your own."""
    from .._policy import schema_text, show_policy

    _, policy = _opened(chosen.config())
    if schema:
        chosen.out.show(schema_text())
        chosen.out.object({"ok": True, "schema": schema_text()})
        return OK
    show_policy(chosen.out, policy)
    return OK


@command.command("test")
@click.argument("file", type=click.Path(path_type=Path))
@common
def test(chosen: Common, file: Path) -> int:
    """Try the cases in FILE (TOML or JSON): what must be said of which call. The exit code is 1 if one fails."""
    from bicameral.policy import read_cases, try_case

    from .._policy import show_outcomes

    registry, policy = _opened(chosen.config())
    outcomes = [try_case(case, policy, registry) for case in read_cases(file)]
    show_outcomes(chosen.out, outcomes)
    return OK if all(outcome.ok for outcome in outcomes) else FAILED


@command.command("explain")
@click.argument("what", metavar="PLAN|RUN")
@common
def explain(chosen: Common, what: str) -> int:
    """What would be said of each call of a plan (a file, or the plan of a recorded run), before anything happens."""
    from .._policy import show_proof

    config = chosen.config()
    registry, policy = _opened(config)
    plan = _plan(what, config, registry)
    return OK if show_proof(chosen.out, plan, registry, policy) else NO_PLAN


def _opened(config: Config) -> tuple[Registry, Policy]:
    from bicameral.config import open_policy, open_registry

    registry = open_registry(config)
    return registry, open_policy(config, registry)


def _plan(what: str, config: Config, registry: Registry) -> Plan:
    """The plan in a file, or of a run: its id, the beginning of it, or `last`."""
    from bicameral.plans import load_plan

    from .._plan_files import read_plan
    from .._records import journals, recorded_in

    if what == "-" or Path(what).is_file() or Path(what).suffix in (".json", ".py"):
        return read_plan(what, registry).plan
    with journals(config) as known:
        journal, run = recorded_in(known, what)
        first = journal.events(run)[0]
    return load_plan(str(first.body.get("plan", "")), file=f"run {first.run}")
