"""`bicameral chat`: several requests in one session, with the models loaded once."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._command_agent import fetch_missing_weights, note_larger_models, open_agent, run_until_terminated
from bicameral.cli._failed_plans import report_failure
from bicameral.cli._options import CommonOptions, common_options, planning_options
from bicameral.cli._output import OK
from bicameral.cli._plain_values import answer_text, to_plain_json
from bicameral.cli._render import planned_json
from bicameral.cli.commands.run import RunCommand, RunOptions
from bicameral.errors import BicameralError, ToolError

if TYPE_CHECKING:
    from bicameral.agent import Agent, Planned
    from bicameral.config import Config
    from bicameral.patterns import Outcome

_HELP = """\
Say what you want, one request a line. Each request stands for itself: nothing is remembered but the last answer.
  /save FILE   write the last answer to a file (JSON if it ends in .json)
  /again       run the last plan again
  /plan        show the last plan
  /tools       list the tools
  /dry         plan without running, or run again (a switch)
  /quit        leave (or Ctrl-D)"""


@click.command(short_help="Several requests in one sitting.")
@click.option("--dry-run", is_flag=True, help="Plan and check, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before sending or changing something for good.")
@planning_options
@common_options
def command(chosen: CommonOptions, deterministic: bool, fresh: bool, dry_run: bool, yes: bool) -> int:
    """Several requests in one sitting: the models are loaded once, and the last answer can be saved.

    Reads requests from standard input, one a line. With --json each request gives one JSON object on a line of its own.
    """
    config = chosen.config()
    fetch_missing_weights(chosen.out, config, ["privileged"])
    chat = ChatSession(chosen, config, RunOptions(deterministic, fresh, dry_run, yes))
    with asyncio.Runner() as runner:
        opening = open_agent(config)
        agent = runner.run(opening.__aenter__())
        try:
            chat.greet()
            while (line := chat.next_line()) not in (None, "/quit", "/exit"):
                chat.handle(line, agent, runner)
        finally:
            runner.run(opening.__aexit__(None, None, None))
    return OK


class ChatSession:
    """One session: its options, the last plan or rounds, and the last answer."""

    def __init__(self, chosen: CommonOptions, config: Config, options: RunOptions) -> None:
        self._chosen, self._config, self._options = chosen, config, options
        self._out = chosen.out
        self._planned: Planned | None = None
        """The last plan; None if the last request was worked on in rounds."""
        self._source = ""
        """The last plan, or the plans of the last rounds, as people read them."""
        self._answer: Any = None
        self._answered = False

    def greet(self) -> None:
        if self._out.is_interactive:
            self._read_history()
            self._out.say("Say what you want. /help lists what else can be said; Ctrl-D ends.", style="dim")

    def next_line(self) -> str | None:
        """The next request or command; None at the end. Ctrl-C at the prompt drops the line, as in a shell."""
        import sys

        if not self._out.is_interactive:
            line = sys.stdin.readline()
            return line.strip() if line else None
        try:
            return input("> ").strip()
        except EOFError:
            self._out.say("")
            return None
        except KeyboardInterrupt:
            self._out.say("")
            return ""

    def handle(self, line: str, agent: Agent, runner: asyncio.Runner) -> None:
        """Do a request or a command; an error is written and the session goes on."""
        try:
            match line.split(maxsplit=1):
                case []:
                    return
                case [word, *rest] if word.startswith("/"):
                    self._command(word, rest[0] if rest else "", agent, runner)
                case _:
                    runner.run(run_until_terminated(self._request(line, agent)))
        except BicameralError as error:
            note_larger_models(error, self._config)
            report_failure(self._out, error, ["chat"])
        except KeyboardInterrupt:
            self._out.say("stopped")

    async def _request(self, request: str, agent: Agent) -> None:
        from bicameral.agent import FirstLook, Planned

        command = self._run_command()
        # One budget for planning and running.
        with agent.spending():
            found = await command.plan_or_look(agent, request)
            if isinstance(found, FirstLook):
                # Whatever comes of the rounds, the plan of an earlier request is not the last one any more.
                self._planned, self._source = None, ""
                found = await command.look_first(agent, found)
            if isinstance(found, Planned):
                self._planned, self._source = found, found.source
                await self._run(command, agent, found)
            else:
                self._keep_rounds(found)

    def _keep_rounds(self, reasoned: Outcome[Any]) -> None:
        """Remember the plans and the answer of rounds."""
        from bicameral.patterns import Answered

        self._source = "\n".join(f"# round {each.number}\n{each.source}" for each in reasoned.rounds if each.source)
        if isinstance(reasoned, Answered):
            self._answer, self._answered = reasoned.value, True

    async def _run(self, command: RunCommand, agent: Agent, planned: Planned) -> None:
        from bicameral.runs import Finished

        _, outcome = await command.execute(agent, planned, planned_json(planned))
        if isinstance(outcome, Finished):
            self._answer, self._answered = outcome.answer, True

    def _command(self, word: str, rest: str, agent: Agent, runner: asyncio.Runner) -> None:
        match word:
            case "/help":
                self._out.say(_HELP)
            case "/tools":
                self._out.say("\n".join(tool.signature for tool in agent.planning_registry))
                for absent in agent.absent_tools:
                    self._out.say(f"not set up: {absent}. {absent.missing.fix}")
            case "/dry":
                self._options = replace(self._options, dry_run=not self._options.dry_run)
                self._out.say("plans are not run now" if self._options.dry_run else "plans are run now")
            case "/plan" if self._source:
                self._out.say(self._source)
            case "/again" if self._planned is not None:
                runner.run(run_until_terminated(self._run(self._run_command(), agent, self._planned)))
            case "/again" if self._source:
                self._out.say("the last request took rounds, each planned after the one before: say it again")
            case "/save" if rest and self._answered:
                self._save(rest)
            case "/plan" | "/again" | "/save":
                self._out.say("there is nothing yet" if word != "/save" or rest else "say where: /save FILE")
            case _:
                self._out.say(f"there is no {word}; /help lists what there is")

    def _save(self, name: str) -> None:
        """Write the last answer to a file that the person names. No approval: it is the person's own command."""
        from bicameral.config import surroundings_of

        as_json = Path(name).suffix == ".json"
        value = to_plain_json(self._answer)
        text = json.dumps(value, ensure_ascii=False, indent=2) if as_json else answer_text(self._answer)
        folders = surroundings_of(self._config).folders
        try:
            folders.write_text(name, text + "\n")
        except ToolError as error:
            self._out.error(error.to_json(), str(error))
        else:
            self._out.say(f"saved to {name}")

    def _run_command(self) -> RunCommand:
        return RunCommand(self._chosen, self._config, self._options)

    def _read_history(self) -> None:
        """Load the history of earlier sessions for the arrow keys, and save it at exit."""
        import atexit
        import readline

        from bicameral.config import user_folder

        file = user_folder("state") / "chat_history"
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            # Requests are private.
            file.touch(mode=0o600)
            readline.read_history_file(file)
            readline.set_history_length(1000)
            atexit.register(_write_history, file)


def _write_history(file: Path) -> None:
    import readline

    with suppress(OSError):
        readline.write_history_file(file)
