"""Options that commands share: the configuration, how plans are made, times, and completion of names.

A folder's configuration that the user has not accepted is shown and confirmed at a terminal, and reported everywhere
else. Completion offers nothing if anything fails. `--help` must be fast, so slow modules (asyncio among them) are
imported late.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from bicameral.cli._output import OK, Output
from bicameral.display import make_visible

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bicameral.config import Config, Confirm, Profile, QuarantineVariant, UnacceptedConfig

CommandFunction = Callable[..., Any]


@dataclass(frozen=True)
class CommonOptions:
    """The options of every command: the folder, the configuration, the profile and the output."""

    config_file: Path | None
    folder: Path | None
    profile: Profile | Path | None
    out: Output
    model: str | None = None
    """The model that plans, instead of the configured one."""
    variant: QuarantineVariant | None = None
    """How untrusted text is read, instead of the configured way."""

    def config(self) -> Config:
        """The configuration; one of the folder that the user has not accepted is shown first."""
        return self._load(lambda found: confirm_config(self.out, found))

    def config_again(self) -> Config:
        """The configuration as it is now. Nobody is asked: what is not accepted by now is left out."""
        return self._load(lambda _: False)

    def _load(self, confirm: Confirm) -> Config:
        from bicameral.config import load_config, with_planning_model, with_quarantine_variant

        config = load_config(self.config_file, base=self.folder, profile=self.profile, confirm=confirm)
        config = config if self.variant is None else with_quarantine_variant(config, self.variant)
        return config if self.model is None else with_planning_model(config, self.model)


class DefaultGroup(click.Group):
    """A group that is one of its commands where none is named: `bicameral runs --json` is `bicameral runs list --json`.

    Args:
        default: The name of that command.
    """

    def __init__(self, *args: Any, default: str = "list", **more: Any) -> None:
        super().__init__(*args, invoke_without_command=True, **more)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default before options that stand alone; completion and `--help` are about the group itself."""
        alone = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        return super().parse_args(ctx, [self.default, *args] if alone and not ctx.resilient_parsing else args)


def _parse_profile(context: click.Context, parameter: click.Parameter, value: str | None) -> Profile | Path | None:
    if value is None or value == "default" or value == "small":
        return value
    if Path(value).suffix.lower() in (".yaml", ".yml"):
        return Path(value)
    raise click.BadParameter(f"{value!r} is not 'default', 'small' or a YAML file.", context, parameter)


def common_options(function: CommandFunction) -> CommandFunction:
    """`--json`, `--folder`, `--config` and `--profile`; the command gets them as its first argument.

    A command returns its exit code, or the facts of its JSON object if it has succeeded.
    """

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for a program to read.")
    @click.option(
        "--folder",
        type=click.Path(file_okay=False, path_type=Path),
        help="Work in this folder instead of the current one.",
    )
    @click.option(
        "--config", "config_file", type=click.Path(dir_okay=False, path_type=Path), help="Use this configuration file."
    )
    @click.option(
        "--profile",
        metavar="default|small|FILE.yaml",
        callback=_parse_profile,
        help="Use this profile: 'small' needs only the small model, a YAML file says which model answers which call.",
    )
    @wraps(function)
    def with_common(
        *args: Any,
        as_json: bool,
        folder: Path | None,
        config_file: Path | None,
        profile: Any,
        planning_model: str | None = None,
        quarantine_variant: QuarantineVariant | None = None,
        **rest: Any,
    ) -> Any:
        out = Output(as_json=as_json)
        chosen = CommonOptions(config_file, folder, profile, out, planning_model, quarantine_variant)
        result = function(chosen, *args, **rest)
        if not isinstance(result, dict):
            return result
        chosen.out.write_json({"ok": True, **cast("dict[str, Any]", result)})
        return OK

    return with_common


def _complete_model(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return complete_models(context, parameter, begun)


def model_option(function: CommandFunction) -> CommandFunction:
    """`--model`: which model plans; `common_options` takes it."""
    return click.option(
        "--model",
        "planning_model",
        metavar="NAME",
        shell_complete=_complete_model,
        help="Plan with this model: weights (0.5b, 1.5b), an alias of the configuration, or family/model such as "
        "openai/gpt-4.1. The quarantined model stays as configured.",
    )(function)


def quarantine_option(function: CommandFunction) -> CommandFunction:
    """`--quarantine-variant`: how untrusted text is read; `common_options` takes it."""
    return click.option(
        "--quarantine-variant",
        "quarantine_variant",
        type=click.Choice(["extract", "read-only", "triple"]),
        help="Read untrusted text in this way instead of the configured one: by the model alone, with tools that only "
        "read, or with validators.",
    )(function)


def planning_options(function: CommandFunction) -> CommandFunction:
    """`--model`, `--deterministic` and `--no-cache`: how a plan is made."""
    deterministic = click.option(
        "--deterministic", is_flag=True, help="Plan from the request as it stands, without Echo."
    )
    fresh = click.option("--no-cache", "fresh", is_flag=True, help="Write the plan anew even if it is known.")
    return model_option(deterministic(fresh(function)))


def plans_option(function: CommandFunction) -> CommandFunction:
    """`--plans`: how many plans a doubtful one is compared with."""
    return click.option(
        "--plans",
        type=click.IntRange(0, 16),
        metavar="N",
        help="How many more plans to draw where the first is doubtful, instead of the configured number; 0 for none.",
    )(function)


_ACCEPT_FIX = "Look at it, then run `bicameral config accept`, or name it with --config."


def confirm_config(out: Output, found: UnacceptedConfig) -> bool:
    """Whether the person at the terminal accepts a configuration; without a person the answer is no, with a warning."""
    if not out.is_interactive:
        facts = {"code": "config.unaccepted", "file": str(found.file), "withheld": list(found.withheld)}
        out.add_notice("unaccepted", {**facts, "fix": _ACCEPT_FIX})
        out.say(f"warning: {found}. {_ACCEPT_FIX} [config.unaccepted]", style="yellow")
        return False
    show_unaccepted(out, found)
    # A blocking read: no event loop runs yet that it could hold up.
    sys.stderr.write(make_visible("Use these settings from now on? [y/N] "))
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    out.say(f"not used: {', '.join(found.withheld)}", style="yellow")
    return False


def show_unaccepted(out: Output, found: UnacceptedConfig) -> None:
    """Show what a configuration would change, each setting and file on a line of its own."""
    out.heading(f"{found.file} {'has changed since you accepted it' if found.was_accepted else 'is new to you'}:")
    for line in found.describe():
        out.say(f"  {line}")
    out.say("Whoever wrote this file decides with it what runs as you, what may be reached, and what you are asked.")


_UNIT_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PERIOD_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(min|[smhdw])")
_MAX_PERIOD = 10 * 365 * 86_400


def parse_seconds(text: str) -> float:
    """The seconds of a duration such as `90d` or `2h30m`; a ValueError if it is none.

    Example:
        >>> parse_seconds("2h30m")
        9000.0
    """
    parts = _PERIOD_PART.findall(text.lower())
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
    if _PERIOD_PART.sub("", text.lower()).strip() or not 0 < seconds <= _MAX_PERIOD:
        raise ValueError(f"{text!r} is no time")
    return seconds


class PeriodType(click.ParamType[float]):
    """A duration: `90d`, `2h30m`, `45s`."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_seconds(str(value))
        except ValueError:
            return self.fail(f"{value!r} is no time. Write a number and s, m, h, d or w: 90d, 2h30m.", param, ctx)


class MomentType(click.ParamType[datetime]):
    """A date, a date with a time, or a time of day; in the machine's time zone unless it names one."""

    name = "when"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return _parse_moment(str(value).strip())
        except ValueError:
            message = f"{value!r} is no time. Write 2026-03-01T09:00, 2026-03-01 or 09:00."
            return self.fail(message, param, ctx)


def _parse_moment(text: str) -> datetime:
    if re.fullmatch(r"\d{1,2}:\d{2}", text):
        hour, minute = map(int, text.split(":"))
        now = datetime.now()
        then = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
        return (then if then > now else then + timedelta(days=1)).astimezone(UTC)
    return datetime.fromisoformat(text).astimezone(UTC)


_MAX_COMPLETIONS = 50


def completer(
    names: Callable[[], Iterable[str] | Mapping[str, str]],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Completion by the names that begin with what was typed; the values of a mapping are their help texts.

    Names in capital letters are completed from small ones, too.
    """

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        # An error must not end up in the line that the user is typing: what cannot be read is not offered.
        with suppress(Exception):
            known = names()
            helps = cast("Mapping[str, str]", known if isinstance(known, Mapping) else {})
            found = (name for name in known if name.startswith((begun, begun.upper())))
            return [CompletionItem(name, help=helps.get(name) or None) for name in found]
        return []

    return complete


@completer
def complete_runs() -> Mapping[str, str]:
    """The newest runs, recorded or submitted, and `last`."""
    requests: dict[str, str] = {}
    # Each on its own: the runs of one store are offered although the other cannot be read.
    with suppress(Exception):
        import asyncio

        requests |= asyncio.run(_submitted_requests())
    with suppress(Exception):
        from bicameral.config import open_journal

        with open_journal(load_config_quietly()) as journal:
            requests |= {run.run: run.request for run in journal.runs(_MAX_COMPLETIONS)}
    return {**requests, "last": ""}


def load_config_quietly() -> Config:
    """The configuration without any output: settings that need acceptance are not used, and nobody is asked."""
    from bicameral.config import load_config

    return load_config(confirm=lambda _: False)


async def _submitted_requests() -> dict[str, str]:
    from bicameral.cli._run_records import has_submitted_runs, open_submitted_runs

    config = load_config_quietly()
    if not has_submitted_runs(config):
        return {}
    async with open_submitted_runs(config) as runs:
        return {view.run: view.request for view in await runs.list(limit=_MAX_COMPLETIONS)}


@completer
def complete_approvals() -> Mapping[str, str]:
    """The open questions."""
    import asyncio

    return asyncio.run(_open_approvals())


async def _open_approvals() -> dict[str, str]:
    from bicameral.cli._run_records import open_submitted_runs
    from bicameral.cli.commands.approvals import approval_gist

    async with open_submitted_runs(load_config_quietly()) as runs:
        return {each.id: approval_gist(each) for each in await runs.approvals(limit=_MAX_COMPLETIONS)}


@completer
def complete_records() -> Mapping[str, str]:
    """The ids of records, and of proposals that wait."""
    from bicameral.records import Records, record_collections
    from bicameral.types import ANY

    place, found = load_config_quietly().records_database, dict[str, str]()
    if "://" not in place and not Path(place).exists():
        return found
    for owner, collection in record_collections(place):
        with Records[Any](place, ANY, owner=owner, collection=collection) as records:
            found |= dict.fromkeys(records.ids()[:_MAX_COMPLETIONS], f"{collection} of {owner}")
    return found


@completer
def complete_models() -> Mapping[str, str]:
    """The models that can plan, by name."""
    from bicameral.config import planning_models

    return planning_models(load_config_quietly())
