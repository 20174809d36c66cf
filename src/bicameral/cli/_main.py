"""The command line: commands by name, and errors as exit codes.

Commands are imported when they are called: `--help` must be fast.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._command_agent import exit_despite_tools
from bicameral.cli._failed_plans import report_failure
from bicameral.cli._output import (
    FAILED,
    INTERRUPTED,
    OK,
    OUTPUT_LOST,
    TERMINATED,
    USAGE,
    Output,
    Terminated,
    command_ending,
    error_facts,
    exit_code,
)
from bicameral.cli._streams import steady_streams
from bicameral.errors import BicameralError
from bicameral.secrets import mask

if TYPE_CHECKING:
    pass

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
    "records": "What is kept between runs, and your review of it.",
    "undo": "Take back what a run changed in files, calendar and mail folders.",
    "submit": "Hand a request or a plan to the workers, now or for later.",
    "worker": "Do submitted runs, until told to stop.",
    "workers": "The workers that do submitted runs.",
    "approvals": "What submitted runs ask, and your answers.",
    "serve": "Serve runs over HTTP, and to clients that speak OpenAI's protocol.",
    "console": "Open the console: plans, runs, questions and their provenance, in a browser.",
    "mcp": "MCP servers: add and review their tools, serve as one, stand before others.",
    "openapi": "APIs with an OpenAPI document: add and review their operations.",
    "usage": "What the models took: calls, tokens and money.",
    "estimate": "What a stack, patterns or a plan would take: calls, tokens, money, time.",
    "evaluate": "Put every case of SUITE (YAML, or JSON Lines) to an agent or a pattern, and report what was right.",
    "advise": "The smallest stack of patterns that is enough for what you know of a task.",
    "patterns": "The catalogue of patterns for agents: what each is, needs and costs.",
    "lint": "Hold an architecture of agents against the rules of the catalogue.",
    "build": "Write typed Python for a stack of patterns.",
    "doctor": "Check the configuration and the machine, and say what to mend.",
    "init": "Write a commented bicameral.toml.",
    "config": "The configuration that counts here, and whether you have accepted it.",
    "chat": "A conversation: requests that may refer to earlier ones.",
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
        with steady_streams() as stdout:
            code = self._run_command(args, prog_name, complete_var, **extra)
            stdout.flush()
            if stdout.lost is not None:
                code = _report_lost_output(stdout.lost, code)
            sys.stderr.flush()
        if args is not None:
            # A program that calls this with words of its own goes on afterwards: its process is not ours to end.
            sys.exit(code)
        exit_despite_tools(code)

    def _run_command(
        self, args: Sequence[str] | None, prog_name: str | None, complete_var: str | None, **extra: Any
    ) -> int:
        words = list(sys.argv[1:] if args is None else args)
        if args is None:
            # The interpreter collects all garbage before it exits, which takes a tenth of the time of a short command.
            atexit.register(gc.freeze)
        # Looked up before click parses: a usage error must be JSON too. After `--` it is an argument.
        out = Output(as_json="--json" in words[: words.index("--")] if "--" in words else "--json" in words)
        try:
            with warnings.catch_warnings():
                # Commands say it themselves, in a line of their own.
                warnings.filterwarnings("ignore", message=r"(?s)the effect of .*\[tools\.lapsed\]$")
                code = super().main(words, prog_name or "bicameral", complete_var, standalone_mode=False, **extra)
        except Exception as error:
            code = _report_error(error, out, words)
        except KeyboardInterrupt:
            out.say("stopped")
            code = INTERRUPTED
        return code if isinstance(code, int) else OK


def _report_lost_output(error: OSError, code: int) -> int:
    """Say that standard output is incomplete, and return the exit code: a success is one without its output.

    Not the code of a failure: whoever repeats a failed command would repeat its effects.
    """
    why, name = error.strerror or str(error), "cli.output-lost"
    fix = "If it made a run, that is recorded: `bicameral runs show last` has what it did and its answer."
    Output().say(f"error: standard output could not be written: {why}. {fix} [{name}]")
    return OUTPUT_LOST if code == OK else code


def _report_error(error: Exception, out: Output, words: Sequence[str]) -> int:
    """Write an error in one line, or as JSON, and return its exit code."""
    if os.environ.get("BICAMERAL_DEBUG"):
        import traceback

        sys.stderr.write(mask("".join(traceback.format_exception(error))))
    match error:
        case BicameralError():
            report_failure(out, error, words, command_ending(error))
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
