"""`bicameral runs verify`, `erase` and `prune`: whether the record is as it was written, and emptying it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from bicameral.errors import DurableError, RunError

from .._completing import complete_runs
from .._exits import FAILED, OK
from .._options import Common, common
from .._output import Output
from .._periods import Period
from .._records import Records, records

if TYPE_CHECKING:
    from bicameral.durable import Runs
    from bicameral.runs import Erased

_PAGE = 500


@click.command("verify")
@click.argument("run", required=False, shell_complete=complete_runs)
@common
def verify(chosen: Common, run: str | None) -> int:
    """Hold the record of RUN, or of all runs, against its seals. The exit code is 1 if something was changed.

    \b
    bicameral runs verify
    """
    journals, breaks = asyncio.run(_verified(chosen, run))
    for line in breaks:
        chosen.out.show(line)
    chosen.out.say(f"{', '.join(journals)}: " + ("as it was written" if not breaks else f"{len(breaks)} to look at"))
    chosen.out.object({"ok": not breaks, "journals": journals, "breaks": breaks})
    return FAILED if breaks else OK


async def _verified(chosen: Common, run: str | None) -> tuple[list[str], list[str]]:
    async with records(chosen.config()) as known:
        if known.trouble is not None:
            raise known.trouble
        if run is None:
            journals = known.journals
            breaks = [line for each in journals for line in await asyncio.to_thread(each.verify)]
        else:
            found = await known.find(run)
            journals = [found.recorded()]
            breaks = await asyncio.to_thread(journals[0].verify, found.run)
        return [str(each.path) for each in journals], breaks


@click.command("erase")
@click.argument("run", shell_complete=complete_runs)
@click.option("--why", default="asked for", show_default=True, help="What the mark in the record says.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common
def erase(chosen: Common, run: str, why: str, yes: bool) -> int:
    """Take away for good what RUN holds: request, plan, arguments, results, answer, and what it asked.

    What stays is that there was a run, when its events were, and that it was erased: the chain can still be verified.
    A submitted run must have ended.

    \b
    bicameral runs erase 20260301-1a2b
    """
    return asyncio.run(_erased(chosen, run, why, yes))


async def _erased(chosen: Common, run: str, why: str, yes: bool) -> int:
    async with records(chosen.config()) as known:
        found = await known.find(run)
        if found.view is not None and not found.view.ended:
            found.ended()
        if not await _may(chosen.out, f"Erase all that the run {found.run} holds, for good?", yes):
            return FAILED
        gone = None if found.journal is None else await asyncio.to_thread(found.journal.erase, found.run, why)
        if found.view is not None and known.runs is not None:
            await known.runs.forget(found.run)
    chosen.out.show(f"{found.run}: erased")
    _say_scrubbed(chosen.out, gone)
    chosen.out.object({"ok": True, "run": found.run, **_facts(gone)})
    return OK


@click.command("prune")
@click.option("--older-than", type=Period(), required=True, help="Runs that ended so long ago: 90d, 12w.")
@click.option("--unfinished", is_flag=True, help="Also runs without an end, whose process died long ago.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common
def prune(chosen: Common, older_than: float, unfinished: bool, yes: bool) -> int:
    """Erase all runs that ended long ago, as `erase` does.

    \b
    bicameral runs prune --older-than 90d --yes
    """
    return asyncio.run(_pruned(chosen, older_than, unfinished, yes))


async def _pruned(chosen: Common, older_than: float, unfinished: bool, yes: bool) -> int:
    async with records(chosen.config()) as known:
        if known.trouble is not None:
            raise known.trouble
        if unfinished:
            await _nothing_open(known)
        when = (datetime.now(UTC) - timedelta(seconds=older_than)).astimezone()
        what = "all runs that ended" if not unfinished else "all runs whose last event was"
        if not await _may(chosen.out, f"Erase for good what {what} before {when:%Y-%m-%d %H:%M} hold?", yes):
            return FAILED
        gone = [await asyncio.to_thread(_prune, each, older_than, unfinished) for each in known.journals]
        forgotten = [] if known.runs is None else await _forgotten(known.runs, when)
    runs = list(dict.fromkeys([*(run for each in gone for run in each.runs), *forgotten]))
    chosen.out.show(f"{len(runs)} run{'' if len(runs) == 1 else 's'} erased")
    for each in gone:
        _say_scrubbed(chosen.out, each)
    facts = {name: sum(getattr(each, name) for each in gone) for name in ("events", "values")}
    chosen.out.object({"ok": True, "runs": runs, **facts, "scrubbed": all(each.scrubbed for each in gone)})
    return OK


def _prune(journal: Any, older_than: float, unfinished: bool) -> Erased:
    return journal.prune(older_than, unfinished=unfinished)


async def _nothing_open(known: Records) -> None:
    """The record of a submitted run that waits, perhaps for months, is needed to go on."""
    counts = {} if known.runs is None else await known.runs.counts()
    still = sum(number for state, number in counts.items() if state in ("queued", "running", "waiting"))
    if still:
        raise DurableError(
            "durable.not-ended",
            f"{still} submitted run{' has' if still == 1 else 's have'} not ended, and --unfinished could erase them",
            fix="Let them end or cancel them, or leave --unfinished away.",
        )


async def _forgotten(runs: Runs, when: datetime) -> list[str]:
    """Forget the submitted runs that ended before then; gives their ids."""
    old: list[str] = []
    before: str | datetime = when
    while page := await runs.list(limit=_PAGE, before=before):
        before = page[-1].run
        old += [view.run for view in page if view.ended and view.updated < when]
    for run in old:
        await runs.forget(run)
    return old


async def _may(out: Output, question: str, yes: bool) -> bool:
    if yes:
        return True
    if not out.interactive:
        raise RunError("run.needs-answer", f"nobody is there to be asked: {question}", fix="--yes says yes.")
    from .._asking import confirmed

    if await confirmed(out, question):
        return True
    out.say("nothing was erased")
    return False


def _say_scrubbed(out: Output, gone: Erased | None) -> None:
    if gone is not None and not gone.scrubbed:
        out.say(
            "another process has the journal open, so that its file may still hold traces: erase once more later",
            style="yellow",
        )


def _facts(gone: Erased | None) -> dict[str, object]:
    if gone is None:
        return {"events": 0, "values": 0, "scrubbed": True}
    return {"events": gone.events, "values": gone.values, "scrubbed": gone.scrubbed}
