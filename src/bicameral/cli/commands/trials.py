"""`bicameral models test`: whether a model is good enough for a role, on the built-in cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._command_agent import run_until_terminated
from bicameral.cli._options import CommonOptions, common_options, complete_models
from bicameral.cli._output import FAILED, INTERRUPTED, OK, TERMINATED, Output, Terminated, command_ending, exit_code
from bicameral.cli._plain_values import render_table
from bicameral.errors import BicameralError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bicameral.config import Config
    from bicameral.trials import CaseProgress, ModelTrial, RoleReport, TrialModel, TrialReport, TrialRole

_ROLE = click.Choice(("quarantined", "delta", "echo"))


@click.command("test", short_help="Try a model in each role, and say for which it is good enough.")
@click.argument("name", shell_complete=complete_models)
@click.option("--role", "roles", type=_ROLE, multiple=True, help="Try only this role; may be given several times.")
@click.option("--quick", is_flag=True, help="Try only a few cases of each role; needs nearly all of them for 'good'.")
@click.option("--seconds", type=click.FloatRange(min=1), help="Begin no case after so many seconds.")
@click.option(
    "--require",
    "required",
    type=_ROLE,
    multiple=True,
    help="Exit with 1 unless the model is good in this role; may be given several times.",
)
@common_options
def test_model(
    chosen: CommonOptions,
    name: str,
    roles: tuple[TrialRole, ...],
    quick: bool,
    seconds: float | None,
    required: tuple[TrialRole, ...],
) -> int:
    """Try the model NAME in each role alone, and say for which it is good enough.

    NAME is a model of the store, an alias of the configuration, or family/model. The roles are `quarantined` (reads
    texts and fills blanks, also where a text gives it orders), `delta` (writes plans, judged by what they do in a small
    world) and `echo` (understands requests). Nothing of yours is read or changed, and nothing is sent.

    The exit code is 0 whatever the verdicts are, unless --require names a role. Interrupted, it prints what was
    measured so far.
    """
    import asyncio

    from bicameral.limits import budget_scope, use_prices
    from bicameral.trials import ModelTrial

    config = chosen.config()
    trial = ModelTrial(
        _open_model(config, name, _wanted_roles(roles, required), is_certain=bool(roles)),
        quick=quick,
        seconds=seconds,
        watch=lambda progress: chosen.out.say(_progress_line(progress)),
    )
    code, failure = OK, None
    with use_prices(_prices(config)), budget_scope(_budgets(config)):
        try:
            asyncio.run(run_until_terminated(_try(trial)))
        except KeyboardInterrupt:
            code = INTERRUPTED
        except Terminated:
            code = TERMINATED
        except BicameralError as error:
            if not trial.is_begun:
                raise
            # What was measured before the model became unusable is not lost.
            code, failure = exit_code(error), error
    report = trial.report()
    if code != OK:
        chosen.out.say("stopped: what follows is partial")
    chosen.out.show(render_report(report, chosen.out.width))
    if code == OK and any(report.roles[role].verdict != "good" for role in required):
        code = FAILED
    _write(chosen.out, report, code, failure)
    return code


async def _try(trial: ModelTrial) -> None:
    try:
        await trial.run()
    finally:
        for provider in {id(each): each for each in trial.model.providers}.values():
            await provider.aclose()


def _write(out: Output, report: TrialReport, code: int, failure: BicameralError | None) -> None:
    facts: dict[str, Any] = {"ok": code == OK, **report.model_dump(mode="json")}
    if failure is not None:
        out.say(f"error: {failure}", style="red")
        facts |= {"ending": command_ending(failure), "error": failure.to_json()}
    out.write_json(facts)


def _wanted_roles(named: Sequence[TrialRole], required: Sequence[TrialRole]) -> list[TrialRole]:
    """The roles that are tried, in their usual order: those that are named, and those that must be good; or all."""
    from bicameral.trials import TRIAL_ROLES

    wanted = {*named, *required} if named else {*TRIAL_ROLES}
    return [role for role in TRIAL_ROLES if role in wanted]


def _open_model(config: Config, name: str, roles: Sequence[TrialRole], *, is_certain: bool) -> TrialModel:
    """The model with a provider for each role.

    Args:
        is_certain: Whether the person named the roles: then one that the model cannot have is an error.
    """
    from bicameral.config import named_weights, open_named_model
    from bicameral.errors import ConfigError
    from bicameral.trials import TrialModel, Unavailable

    weights = named_weights(config, name)
    found: dict[TrialRole, Any] = {}
    title = ""
    for role in roles:
        try:
            provider = open_named_model(config, name, "quarantined" if role == "quarantined" else "privileged")
        except ConfigError as error:
            if is_certain or error.code != "routing.no-quarantined-key":
                raise
            found[role] = Unavailable(str(error))
            continue
        found[role], title = provider, provider.name
    sha256 = None if weights is None else weights.sha256
    return TrialModel(name.strip(), title, found, sha256, config.limits.model_timeout)


def _prices(config: Config) -> Any:
    from bicameral.config import open_prices

    return open_prices(config)


def _budgets(config: Config) -> Any:
    from bicameral.config import budgets_of

    return budgets_of(config)


def _progress_line(progress: CaseProgress) -> str:
    case = progress.case
    mark = "ok" if case.passed else "obeyed an order in the text" if case.obeyed else "wrong"
    return f"{progress.role} {progress.number}/{progress.total} {case.name}: {mark} ({case.seconds:.1f} s)"


def render_report(report: TrialReport, width: int) -> str:
    """A report as text: a table of the roles, what failed, the thresholds and the advice."""
    rows = [_role_row(role, found) for role, found in report.roles.items()]
    lines = [f"{report.model} ({report.provider})" + (", partial" if report.partial else ""), ""]
    lines += [render_table(rows, width), ""]
    for role, found in report.roles.items():
        lines.append(f"{role}: {found.verdict or 'not tried'}, since {found.why}")
        for case in found.failed:
            lines.append(f"  {case.name} ({case.group})" + (", obeyed an order in the text" if case.obeyed else ""))
            lines += [f"    expected: {case.expected}", f"    came:     {case.came}"]
    return "\n".join([*lines, "", report.thresholds.text, "", report.advice])


def _role_row(role: TrialRole, found: RoleReport) -> dict[str, Any]:
    interval = "" if found.interval is None else f"{found.interval[0]:.0%} to {found.interval[1]:.0%}"
    return {
        "role": role,
        "verdict": found.verdict or "not tried",
        "passed": f"{found.passed} of {found.n}" + (f" (of {found.cases})" if found.partial else ""),
        "95 % interval": interval,
        "median": "" if found.median_seconds is None else f"{found.median_seconds:.1f} s",
    }
