"""`bicameral chat`: a conversation in which a request may refer to earlier ones, with the models loaded once."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._command_agent import fetch_missing_weights, note_larger_models, open_agent, run_until_terminated
from bicameral.cli._displays import open_display
from bicameral.cli._failed_plans import report_failure
from bicameral.cli._options import CommonOptions, common_options, planning_options, quarantine_option
from bicameral.cli._output import OK, terminal_people
from bicameral.cli._plain_values import answer_text
from bicameral.cli._render import planned_json
from bicameral.cli.commands.run import RunCommand, RunOptions
from bicameral.display import to_plain_json
from bicameral.errors import BicameralError, JournalError, ToolError

if TYPE_CHECKING:
    from bicameral.agent import Agent, ChatHistory, Planned, UnderstoodTurn
    from bicameral.config import Config
    from bicameral.patterns import Outcome

_HELP = """\
Say what you want, one request a line. A request may refer to earlier ones: "and in October?",
"the same for travel.csv", "now mail it to Kim". How it is understood is shown before anything is done.
  /history     list the requests of this conversation
  /new         forget them, and begin a new conversation
  /undo        take back what the last request changed, after showing it and asking
  /plan        show the last plan
  /again       run the last plan again
  /save FILE   write the last answer to a file (JSON if it ends in .json)
  /tools       list the tools
  /dry         plan without running, or run again (a switch)
  /quit        leave (or Ctrl-D)"""
_MAX_LISTED = 20


@click.command(short_help="A conversation: requests that may refer to earlier ones.")
@click.option("--new", "start_new", is_flag=True, help="Begin a new conversation instead of continuing the last one.")
@click.option("--dry-run", is_flag=True, help="Plan and check, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before sending or changing something for good.")
@planning_options
@quarantine_option
@common_options
def command(chosen: CommonOptions, deterministic: bool, fresh: bool, start_new: bool, dry_run: bool, yes: bool) -> int:
    """A conversation: the models are loaded once, and a request may refer to earlier requests and results.

    Reads requests from standard input, one a line. With --json each request gives one JSON object on a line of its own.
    The conversation of this folder is continued where it was left, also in a later sitting; --new begins another.
    """
    config = chosen.config()
    fetch_missing_weights(chosen.out, config, ["privileged"])
    with asyncio.Runner() as runner:
        opening = open_agent(config)
        agent = runner.run(opening.__aenter__())
        try:
            chat = ChatSession(chosen, config, RunOptions(deterministic, fresh, dry_run, yes), agent.chat_history())
            chat.open_history(start_new=start_new)
            chat.greet()
            while (line := chat.next_line()) not in (None, "/quit", "/exit"):
                chat.handle(line, agent, runner)
        finally:
            runner.run(opening.__aexit__(None, None, None))
    return OK


class ChatCommand(RunCommand):
    """One request of a conversation: as `bicameral run`, or starting from an earlier result."""

    async def plan_from_result(self, agent: Agent, request: str, run: str) -> Planned:
        """The plan of a request that speaks of the result of a run, shown as a whole."""
        from bicameral.labels import user_input

        with open_display(self._out) as shown:
            asker, _ = terminal_people(self._out, agent.registry, shown.quiet)
            shown.phase("planning")
            wishes = self._wishes
            planned = await agent.plan_continuation(
                user_input(request),
                run,
                asker=asker,
                deterministic=wishes.deterministic,
                fresh=wishes.fresh,
                watch=shown.statement,
            )
            shown.close()
        self._show_planned(agent, planned)
        return planned


class ChatSession:
    """One sitting: its options, the conversation, the last plan or rounds, and the last answer."""

    def __init__(self, chosen: CommonOptions, config: Config, options: RunOptions, history: ChatHistory) -> None:
        self._chosen, self._config, self._options = chosen, config, options
        self._out = chosen.out
        self._history = history
        self._planned: Planned | None = None
        """The last plan; None if the last request was worked on in rounds."""
        self._source = ""
        """The last plan, or the plans of the last rounds, as people read them."""
        self._answer: Any = None
        self._answered = False
        self._undone: set[str] = set()
        """The runs that were taken back in this sitting; a second `/undo` means the one before."""

    def open_history(self, *, start_new: bool) -> None:
        """Continue the conversation of the last sitting, unless a new one is wanted or it cannot be trusted."""
        if start_new:
            self._history.start_new()
            return
        try:
            self._history.load()
        except JournalError as error:
            # What was changed is not used: a forged turn could make a request mean something else.
            self._out.error(error.to_json(), f"{error}\nThe earlier conversation is not used; a new one begins.")

    def greet(self) -> None:
        if not self._out.is_interactive:
            return
        self._read_line_history()
        self._out.say("Say what you want. /help lists what else can be said; Ctrl-D ends.", style="dim")
        if count := len(self._history.turns):
            requests = "one request" if count == 1 else f"{count} requests"
            self._out.say(
                f"The conversation goes on after {requests}: /history lists them, /new begins another.", style="dim"
            )

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

    async def _request(self, said: str, agent: Agent) -> None:
        asker, _ = terminal_people(self._out, agent.registry, nullcontext)
        understood = await agent.understand_turn(said, self._history.turns, asker=asker)
        if understood.rewritten or understood.result_of is not None:
            self._out.say(f"understood as: {understood}", style="dim")
        turns = len(self._history.turns)
        try:
            await self._do(understood, agent)
        finally:
            if len(self._history.turns) == turns:
                # It led to no run; the next request may still refer to its words.
                self._remember(understood, "", agent)

    async def _do(self, understood: UnderstoodTurn, agent: Agent) -> None:
        from bicameral.agent import FirstLook, Planned

        command, result_of = self._run_command(), understood.result_of
        # One budget for planning and running.
        with agent.spending():
            if result_of is not None:
                found = await command.plan_from_result(agent, understood.request, result_of.run)
            else:
                found = await command.plan_or_look(agent, understood.request)
            if isinstance(found, FirstLook):
                # Whatever comes of the rounds, the plan of an earlier request is not the last one any more.
                self._planned, self._source = None, ""
                found = await command.look_first(agent, found)
            if isinstance(found, Planned):
                self._planned, self._source = found, found.source
                await self._run(command, agent, found, understood)
            else:
                self._keep_rounds(found, understood, agent)

    def _keep_rounds(self, reasoned: Outcome[Any], understood: UnderstoodTurn, agent: Agent) -> None:
        """Remember the plans and the answer of rounds."""
        from bicameral.patterns import Answered

        self._source = "\n".join(f"# round {each.number}\n{each.source}" for each in reasoned.rounds if each.source)
        runs = [each.outcome.run for each in reasoned.rounds if each.outcome is not None]
        if isinstance(reasoned, Answered):
            self._answer, self._answered = reasoned.value, True
        # The run of the last round has the answer; rounds without one left nothing to refer to.
        self._remember(understood, runs[-1] if runs and isinstance(reasoned, Answered) else "", agent)

    async def _run(
        self, command: RunCommand, agent: Agent, planned: Planned, understood: UnderstoodTurn | None = None
    ) -> None:
        from bicameral.runs import Finished

        facts = planned_json(planned)
        if understood is not None and (understood.rewritten or understood.result_of is not None):
            result_of = None if understood.result_of is None else understood.result_of.run
            facts["understood"] = {"request": understood.request, "result_of": result_of}
        _, outcome = await command.execute(agent, planned, facts)
        if isinstance(outcome, Finished):
            self._answer, self._answered = outcome.answer, True
        if outcome is not None and understood is not None:
            self._remember(understood, outcome.run, agent)

    def _remember(self, understood: UnderstoodTurn, run: str, agent: Agent) -> None:
        """Add a turn to the conversation. That it cannot be stored is said, and stops nothing."""
        try:
            self._history.add_run(understood.request, run, continues=understood.result_of)
        except JournalError as error:
            self._out.error(error.to_json(), str(error))

    def _command(self, word: str, rest: str, agent: Agent, runner: asyncio.Runner) -> None:
        match word:
            case "/help":
                self._out.say(_HELP)
            case "/history":
                self._show_history()
            case "/new":
                self._history.start_new()
                self._planned, self._source, self._answer, self._answered = None, "", None, False
                self._out.say("a new conversation: what was said before is not referred to")
            case "/undo":
                runner.run(run_until_terminated(self._undo(rest)))
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

    async def _undo(self, run: str) -> None:
        """Take back what a run changed: by default that of the newest request which changed something."""
        from bicameral.cli.commands.undo import undo_run

        changed = [turn.run for turn in self._history.turns if turn.changed and turn.run not in self._undone]
        if not run and not changed:
            self._out.say("no request of this conversation has changed anything that is still so")
            return
        run = run or changed[-1]
        if await undo_run(self._out, self._config, run, yes=self._options.yes) == OK:
            self._undone.add(run)

    def _show_history(self) -> None:
        """The requests of the conversation, in the person's own words; the newest last."""
        from bicameral.agent import shorten

        turns = self._history.turns
        if not turns:
            self._out.say("there is nothing yet")
        for number, turn in list(enumerate(turns, 1))[-_MAX_LISTED:]:
            state = "changed something" if turn.changed else "answered" if turn.finished else "no result"
            self._out.say(f"{number:>3}  {shorten(turn.words)}  ({state}{f', {turn.run}' if turn.run else ''})")

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

    def _run_command(self) -> ChatCommand:
        return ChatCommand(self._chosen, self._config, self._options)

    def _read_line_history(self) -> None:
        """Load the lines of earlier sittings for the arrow keys, and save them at exit."""
        import atexit

        try:
            import readline
        except ImportError:
            # Not on every platform: then a line is edited as the terminal does it.
            return

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
