"""`bicameral follow`: use the answer of a run as a request, after a person has endorsed it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from bicameral.cli._command_agent import run_until_terminated
from bicameral.cli._options import CommonOptions, common_options, planning_options, quarantine_option
from bicameral.cli._prompts import confirm_yes
from bicameral.cli.commands.run import RunCommand, RunOptions
from bicameral.display import break_line, terminal_width

if TYPE_CHECKING:
    from bicameral.agent import Endorsement
    from bicameral.runs import Journal


@click.command(short_help="Do what the answer of a run says, after you have seen it and said yes.")
@click.argument("run", default="last")
@click.option("--dry-run", is_flag=True, help="Plan and check, and change nothing.")
@planning_options
@quarantine_option
@common_options
def command(chosen: CommonOptions, run: str, deterministic: bool, fresh: bool, dry_run: bool) -> int:
    """Follow the answer of RUN (an id, or `last`) as if you had written it.

    For a to-do list, a page or a mail that says what to do: let a run read it, then follow its answer. It is shown
    whole, with where it came from, and planned from only if you say yes. Its plan is checked, and its calls are
    judged, like those of any other request.
    """
    from bicameral.agent import endorse_text
    from bicameral.cli._run_records import find_recorded_run, open_journals

    config = chosen.config()
    with open_journals(config) as known:
        journal, found = find_recorded_run(known, run)
        shown = _load_endorsement(journal, found)
    chosen.out.say(_endorsement_text(shown, found))
    endorser = TerminalEndorser() if chosen.out.is_interactive else None
    request = asyncio.run(endorse_text(shown, endorser))
    runner = RunCommand(chosen, config, RunOptions(deterministic, fresh, dry_run))
    runner.fetch_weights()
    return asyncio.run(run_until_terminated(runner.run_request(request)))


def _load_endorsement(journal: Journal, run: str) -> Endorsement:
    from bicameral.agent import endorsement_of_value
    from bicameral.errors import JournalError
    from bicameral.labels import label_tree_from_json
    from bicameral.types import value_from_json

    last = journal.events(run)[-1]
    if last.kind != "run-finished":
        raise JournalError("journal.no-answer", f"run {run} has no answer", fix="`bicameral runs list` shows which do.")
    shade = label_tree_from_json(last.body["shade"]) if "shade" in last.body else None
    return endorsement_of_value(value_from_json(last.body["answer"]), shade)


class TerminalEndorser:
    """Asks the person at the terminal. Without a person nothing is endorsed."""

    async def endorse(self, shown: Endorsement) -> bool:
        return await confirm_yes("Follow this as your own request?")


def _endorsement_text(shown: Endorsement, run: str) -> str:
    # Broken here and not by the terminal, so that every line of the untrusted text has the bar before it.
    width = max(terminal_width() - 4, 20)
    broken = (piece for line in shown.text.split("\n") for piece in break_line(line.replace("\t", "    "), width))
    lines = [f"The answer of run {run}:", *(f"  │ {piece}" for piece in broken)]
    if shown.sources:
        lines.append(f"  strangers had a hand in it: {', '.join(map(str, shown.sources))}")
    if shown.marks:
        lines.append(f"  ! the shield sees in it: {', '.join(shown.marks)}")
    return "\n".join(lines)
