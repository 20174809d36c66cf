"""`bicameral undo`: take back what a run changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from bicameral.cli._command_agent import run_until_terminated
from bicameral.cli._options import CommonOptions, common_options, complete_runs
from bicameral.cli._output import FAILED, OK, Output
from bicameral.cli._run_records import open_records
from bicameral.errors import RunError

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.runs import Undo


@click.command(short_help="Take back what a run changed in files, calendar and mail folders.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option("--dry-run", is_flag=True, help="Show what would be put back, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common_options
def command(chosen: CommonOptions, run: str, dry_run: bool, yes: bool) -> int:
    """Take back what RUN (its id, the beginning of it, or `last`) changed in files, calendar and mail folders.

    The difference is shown first, and you are asked. All of it is put back or nothing: if anything else has changed
    one of the files since, it is named, and nothing is touched. What was sent cannot be taken back and is named, too.
    A run can be taken back once.

    \b
    bicameral undo last --dry-run
    """
    return asyncio.run(run_until_terminated(undo_run(chosen.out, chosen.config(), run, dry_run=dry_run, yes=yes)))


async def undo_run(out: Output, config: Config, run: str = "last", *, dry_run: bool = False, yes: bool = False) -> int:
    """Show what taking back a run does, ask, and do it; the exit code.

    Args:
        out: Where it is shown.
        config: The configuration, whose folders are the only ones in which anything is put back.
        run: The id of the run, the beginning of it, or `last`.
        dry_run: Change nothing.
        yes: Do not ask.
    """
    from bicameral.config import open_registry, surroundings_of
    from bicameral.runs import apply_undo, plan_undo

    folders, registry = surroundings_of(config).folders, open_registry(config)
    async with open_records(config) as known:
        found = await known.find(run)
        # A worker may still change files for a submitted run that has not ended.
        journal = found.ended_journal()
        undo = await asyncio.to_thread(plan_undo, journal, found.run, folders, registry)
        _show_undo(out, undo)
        if dry_run:
            out.say("nothing was changed (--dry-run)")
            out.write_json({"ok": not undo.conflicts, "dry_run": True, **undo.to_json()})
            return FAILED if undo.conflicts else OK
        undo.require()
        if not await _confirm(out, undo, yes):
            return FAILED
        left = await asyncio.to_thread(apply_undo, journal, undo, folders)
    for folder in left:
        out.say(f"{folder}/ is not empty, and stays")
    out.show(f"{undo.run}: taken back")
    out.write_json({"ok": True, **undo.to_json(), "left": list(left)})
    return OK


def _show_undo(out: Output, undo: Undo) -> None:
    for each in undo.restorations:
        out.say(each.diff.text())
    for conflict in undo.conflicts:
        out.say(f"cannot be put back: {conflict}", style="red")
    for lasting in undo.lasting:
        out.say(f"cannot be taken back: {lasting}", style="yellow")


async def _confirm(out: Output, undo: Undo, yes: bool) -> bool:
    if yes:
        return True
    number = len(undo.restorations)
    question = f"Take back {number} change{'' if number == 1 else 's'} of run {undo.run}?"
    if not out.is_interactive:
        raise RunError("run.needs-answer", f"nobody is there to be asked: {question}", fix="--yes says yes.")
    from bicameral.cli._prompts import confirm_yes

    if await confirm_yes(question):
        return True
    out.say("nothing was changed")
    return False
