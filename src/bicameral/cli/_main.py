"""The frame of the command line: commands by name, what they share at their start, and errors as exit codes.

Commands are imported when they are called. They share options, times, completion, the configuration, the agent, and
the handling of SIGTERM. A folder's configuration that the user has not accepted is shown and confirmed at a terminal,
and reported everywhere else. Completion offers nothing if anything fails. SIGTERM stops a command as Ctrl-C does:
running work is ended and recorded. `--help` must be fast, so slow modules (asyncio among them) are imported late.
"""

from __future__ import annotations

import atexit
import gc
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import click

from bicameral.cli._output import (
    FAILED,
    INTERRUPTED,
    OK,
    TERMINATED,
    USAGE,
    Output,
    Terminated,
    command_ending,
    error_facts,
    exit_code,
)
from bicameral.display import make_visible
from bicameral.errors import BicameralError
from bicameral.secrets import mask

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bicameral.agent import Agent
    from bicameral.config import Config, Profile, Role, UnacceptedConfig

COMMANDS = {
    "run": "Do what a request asks for: plan it, check it, run it.",
    "follow": "Do what the answer of a run says, after you have seen it and said yes.",
    "intent": "What a request asks for, as it was understood: steps, constraints, mentions, questions.",
    "plan": "Write the plan for a request and check it, without running it.",
    "check": "Check a plan file.",
    "explain": "Say in plain words what a plan does, step by step.",
    "tools": "The tools that plans can use.",
    "audit": "Whether a stranger's text could steal private data with these tools.",
    "policy": "What calls may be made, and why.",
    "models": "The models on this machine, and the names they go by.",
    "route": "Which model answered which call of a run, and why.",
    "runs": "What was run, and running it again from its record.",
    "submit": "Hand a request or a plan to the workers, now or for later.",
    "worker": "Do submitted runs, until told to stop.",
    "workers": "The workers that do submitted runs.",
    "approvals": "What submitted runs ask, and your answers.",
    "serve": "Serve runs over HTTP, and to clients that speak OpenAI's protocol.",
    "usage": "What the models took: calls, tokens and money.",
    "estimate": "What a stack, patterns or a plan would take: calls, tokens, money, time.",
    "advise": "The smallest stack of patterns that is enough for what you know of a task.",
    "patterns": "The catalogue of patterns for agents: what each is, needs and costs.",
    "lint": "Hold an architecture of agents against the rules of the catalogue.",
    "doctor": "Check the configuration and the machine, and say what to mend.",
    "init": "Write a commented bicameral.toml.",
    "config": "The configuration that counts here, and whether you have accepted it.",
    "chat": "Several requests in one sitting.",
    "completion": "Print the completion script for a shell.",
    "version": "Print the version.",
}
"""Every command with its short help, so that `--help` imports none of them."""

RENAMED_COMMANDS = {"cost": "estimate", "costs": "usage"}
"""Old names of commands. They work, say what they are called now, and are neither listed nor completed."""


class LazyCommands(click.Group):
    """A group whose commands are imported when they are called, and which turns errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = RENAMED_COMMANDS.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        # Shell completion resolves commands, too, and must print nothing but its candidates.
        if name != cmd_name and not ctx.resilient_parsing:
            Output().say(f"warning: `bicameral {cmd_name}` is now `bicameral {name}`; the old name will be removed")
        return import_module(f"bicameral.cli.commands.{name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Say which command was probably meant; a whole request in one argument was probably meant for `run`."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from bicameral.errors import nearest_name

            meant = nearest_name(args[0], COMMANDS)
            if " " in args[0].strip():
                hint = ' To run a request: bicameral run "…".'
            else:
                hint = f" Did you mean {meant!r}?" if meant else ""
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx) from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit with its code; no error ends in a traceback."""
        words = list(sys.argv[1:] if args is None else args)
        if args is None:
            # The interpreter collects all garbage before it exits, which takes a tenth of the time of a short command.
            atexit.register(gc.freeze)
        # Looked up before click parses: a usage error must be JSON too. After `--` it is an argument.
        out = Output(as_json="--json" in words[: words.index("--")] if "--" in words else "--json" in words)
        try:
            code = super().main(words, prog_name or "bicameral", complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except Exception as error:
            code = _report_error(error, out)
        except KeyboardInterrupt:
            out.say("stopped")
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else OK)


def _report_error(error: Exception, out: Output) -> int:
    """Write an error in one line, or as JSON, and return its exit code."""
    if os.environ.get("BICAMERAL_DEBUG"):
        import traceback

        sys.stderr.write(mask("".join(traceback.format_exception(error))))
    match error:
        case BicameralError():
            out.error(error.to_json(), str(error), command_ending(error))
            return exit_code(error)
        case click.exceptions.Abort():
            out.say("stopped")
            return INTERRUPTED
        case Terminated():
            out.say("stopped: the process was told to end")
            return TERMINATED
        case click.ClickException():
            if isinstance(error, click.UsageError) and error.ctx is not None and not out.as_json:
                out.say(error.ctx.get_usage())
            out.error({"code": "cli.usage", "message": error.format_message()}, f"{error.format_message()} [cli.usage]")
            return USAGE
        case BrokenPipeError():
            # The reader has closed the pipe. Python would report it once more when it flushes standard output at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FAILED
        case _:
            facts = error_facts(error)
            out.error(facts, f"{facts['message']}. {facts['fix']} [{facts['code']}]")
            return FAILED


@click.command(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="bicameral", message="%(prog)s %(version)s")
def main() -> None:
    """Say what you want; see the plan; have it checked; run it.

    \b
    bicameral run "Count the lines of notes.txt that mention invoices"
    """


CommandFunction = Callable[..., Any]


@dataclass(frozen=True)
class CommonOptions:
    """The options of every command: the folder, the configuration, the profile and the output."""

    config_file: Path | None
    folder: Path | None
    profile: Profile | Path | None
    out: Output

    def config(self) -> Config:
        """The configuration; one of the folder that the user has not accepted is shown first."""
        from bicameral.config import load_config

        return load_config(
            self.config_file,
            base=self.folder,
            profile=self.profile,
            confirm=lambda found: confirm_config(self.out, found),
        )


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
        *args: Any, as_json: bool, folder: Path | None, config_file: Path | None, profile: Any, **rest: Any
    ) -> Any:
        chosen = CommonOptions(config_file, folder, profile, Output(as_json=as_json))
        result = function(chosen, *args, **rest)
        if not isinstance(result, dict):
            return result
        chosen.out.write_json({"ok": True, **cast("dict[str, Any]", result)})
        return OK

    return with_common


def planning_options(function: CommandFunction) -> CommandFunction:
    """`--deterministic` and `--no-cache`: how a plan is made."""
    deterministic = click.option(
        "--deterministic", is_flag=True, help="Plan from the request as it stands, without Echo."
    )
    fresh = click.option("--no-cache", "fresh", is_flag=True, help="Write the plan anew even if it is known.")
    return deterministic(fresh(function))


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


def local_time_text(moment: datetime) -> str:
    """A moment in local time: the time of day if it is today, else with its date."""
    here = moment.astimezone()
    return here.strftime("%H:%M:%S" if here.date() == datetime.now().date() else "%Y-%m-%d %H:%M")


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


MakeAgent: TypeAlias = "Callable[[Config], Agent]"


def _injected_agent() -> MakeAgent | None:
    """The factory that the caller of the command line put into click's context: tests bring their own models."""
    context = click.get_current_context(silent=True)
    return cast("MakeAgent", context.obj) if context is not None and callable(context.obj) else None


@asynccontextmanager
async def open_agent(config: Config) -> AsyncGenerator[Agent]:
    """The agent, closed at the end. Telemetry is exported if the OTEL_* variables say where to."""
    from bicameral.agent import Agent

    make = _injected_agent()
    problems: list[str] = []
    with ExitStack() as stack:
        if any(name.startswith("OTEL_") for name in os.environ):
            from bicameral.telemetry import export_from_environment

            problems = stack.enter_context(export_from_environment()).problems
        agent = make(config) if make else Agent.from_config(config)
        try:
            yield agent
        finally:
            await agent.aclose()
    for problem in problems:
        Output().say(f"telemetry: {problem}")


def fetch_missing_weights(out: Output, config: Config, roles: Iterable[Role]) -> None:
    """Fetch the weights that these roles need and this machine does not have, after saying so."""
    if _injected_agent() is not None:
        return
    from bicameral.config import fetch_weights, missing_weights, size_text
    from bicameral.models import SilentProgress, terminal_progress

    wanted = tuple(roles)
    missing = missing_weights(config, wanted)
    if not missing:
        return
    for weights in missing:
        out.say(f"{weights.title} is not on this machine yet: fetching {size_text(weights.bytes)}, once.")
    fetch_weights(config, wanted, progress=SilentProgress() if out.as_json else terminal_progress())


T = TypeVar("T")


def on_signals(callback: Callable[[signal.Signals], object], *signals: signal.Signals) -> None:
    """Call this on the event loop for these signals, where the platform allows it."""
    import asyncio

    # Signal handlers are not available in a thread, or on Windows.
    with suppress(NotImplementedError, RuntimeError, ValueError):
        for each in signals:
            asyncio.get_running_loop().add_signal_handler(each, callback, each)


async def run_until_terminated(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work. SIGTERM cancels it, and raises `Terminated` once it has ended."""
    import asyncio

    loop, task, terminated = asyncio.get_running_loop(), asyncio.current_task(), False

    def stop(_: signal.Signals) -> None:
        nonlocal terminated
        terminated = True
        if task is not None:
            task.cancel()

    on_signals(stop, signal.SIGTERM)
    try:
        result = await work
    except asyncio.CancelledError:
        if terminated:
            raise Terminated from None
        raise
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGTERM)
    # The work may have finished despite the cancellation.
    if terminated:
        raise Terminated
    return result
