"""`bicameral approvals`: what submitted runs ask, and the answers, from any process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from bicameral.errors import BicameralError, DurableError

from .._completing import complete_approvals
from .._durable import is_there, submitted_runs, whoever
from .._exits import OK
from .._options import Common, Function, common
from .._periods import clock
from .._questions import approval_text, gist, question_of, reply_type
from .._values import table

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.durable import Approval, Runs
    from bicameral.tools import Registry


@click.group(short_help="What submitted runs ask, and your answers.", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int | None:
    """What submitted runs ask: calls that wait for a yes, and questions. Without a subcommand: the list.

    \b
    bicameral approvals list
    bicameral approvals show 20260301-1a2b
    bicameral approvals approve 20260301-1a2b 1 3
    """
    return context.invoke(list_approvals) if context.invoked_subcommand is None else None


def _one(function: Function) -> Function:
    """The question by its id, and whose questions there are. Nobody answers one that he did not name."""
    id_ = click.argument("id", metavar="ID", shell_complete=complete_approvals)
    user = click.option("--user", help="Only what runs of this user ask.")
    return id_(user(function))


@command.command("list")
@click.option("--all", "answered", is_flag=True, help="Also what was answered, expired or withdrawn.")
@click.option("--user", help="Only what runs of this user ask.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="At most so many.")
@common
def list_approvals(chosen: Common, answered: bool = False, user: str | None = None, limit: int = 100) -> int:
    """What waits for an answer, the oldest first."""

    async def listed(config: Config) -> list[Approval]:
        if not is_there(config):
            return []
        async with submitted_runs(config) as runs:
            return await runs.approvals(user, open_only=not answered, limit=limit)

    found = asyncio.run(listed(chosen.config()))
    rows: list[dict[str, object]] = [
        {
            "id": each.id,
            "state": each.state,
            "asked": clock(each.asked),
            "expires": clock(each.expires),
            "user": each.user,
            "what": gist(each),
            "request": each.request,
        }
        for each in found
    ]
    chosen.out.show(table(rows, chosen.out.width) if rows else "nothing waits for an answer")
    chosen.out.object({"ok": True, "approvals": [each.to_json() for each in found]})
    return OK


@command.command("show")
@click.argument("id", metavar="[ID]", required=False, shell_complete=complete_approvals)
@click.option("--user", help="Only what runs of this user ask.")
@click.option("--full", is_flag=True, help="Show long values whole.")
@common
def show_approval(chosen: Common, id: str | None, user: str | None, full: bool) -> int:
    """All that is asked: each call exactly as it would be made, and `!` at what a stranger may have written.

    ID is the id of a question or the beginning of it; without one, the only question that is open.
    """

    async def asked(runs: Runs) -> Approval:
        return await _found(runs, id, user)

    found = asyncio.run(_with_runs(chosen, asked))
    chosen.out.show(approval_text(found, full=full))
    chosen.out.object({"ok": True, **found.to_json()})
    return OK


@command.command("approve")
@_one
@click.argument("numbers", metavar="[NUMBER]...", nargs=-1, type=click.IntRange(min=1))
@click.option("--all", "all_", is_flag=True, help="Say yes to all of its calls.")
@click.option(
    "--for-run",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="NUMBER",
    help="Take what is offered with this call for the rest of the run, too.",
)
@common
def approve(
    chosen: Common, id: str, user: str | None, numbers: tuple[int, ...], all_: bool, for_run: tuple[int, ...]
) -> int:
    """Say yes to the calls with these NUMBERs, as `show` counts them, and no to all others.

    A yes holds for exactly what was shown, once for each time that was shown. Later calls are asked about again, unless
    --for-run takes what `show` offers. At a terminal, without a NUMBER or --all, the calls are shown and asked about. A
    question is answered once.

    \b
    bicameral approvals approve 20260301-1a2b --all
    bicameral approvals approve 20260301-1a2b 1 3 --for-run 3
    """
    if numbers and all_:
        raise click.UsageError("Give numbers or --all, not both.")

    async def answered(runs: Runs) -> Approval:
        found = await runs.approval(id, user)
        taken = _hashes(found, for_run)
        if all_ or numbers:
            yes = _hashes(found, numbers) if numbers else "all"
        else:
            yes, taken = await _asked(chosen, found)
        return await runs.answer(found.id, yes, user, whoever(), taken)

    return _answered(chosen, answered)


@command.command("deny")
@_one
@common
def deny(chosen: Common, id: str, user: str | None) -> int:
    """Say no to all calls of a question. The run goes on without them, or ends."""

    async def answered(runs: Runs) -> Approval:
        return await runs.answer((await runs.approval(id, user)).id, "none", user, whoever())

    return _answered(chosen, answered)


@command.command("reply")
@_one
@click.argument("value", required=False)
@common
def reply(chosen: Common, id: str, user: str | None, value: str | None) -> int:
    """Give VALUE as the reply to what a plan, or an unclear request, asks.

    It is read as the type that is asked for: a date as 2026-03-01, a list with commas, anything else as JSON. At a
    terminal, without a VALUE, the question is put to you.

    \b
    bicameral approvals reply 20260301-1a2b 2026-03-01
    """

    async def answered(runs: Runs) -> Approval:
        found = await runs.approval(id, user)
        return await runs.reply(found.id, await _value(chosen, found, value), user, whoever())

    return _answered(chosen, answered)


async def _with_runs(chosen: Common, work: Callable[[Runs], Awaitable[Approval]]) -> Approval:
    async with submitted_runs(chosen.config()) as runs:
        return await work(runs)


def _answered(chosen: Common, work: Callable[[Runs], Awaitable[Approval]]) -> int:
    found = asyncio.run(_with_runs(chosen, work))
    told = found.state
    if found.kind == "calls" and found.state == "partly":
        told = f"{len(found.approved)} of {len(found.calls)} calls approved"
    chosen.out.show(f"{found.id}: {told}")
    chosen.out.say(f"`bicameral runs watch {found.run}` shows how it goes on")
    chosen.out.object({"ok": True, **found.to_json()})
    return OK


async def _found(runs: Runs, id: str | None, user: str | None) -> Approval:
    """The question with this id; without one, the only one that is open."""
    if id is not None:
        return await runs.approval(id, user)
    waiting = await runs.approvals(user, limit=2)
    if not waiting:
        raise DurableError("durable.unknown-approval", "nothing waits for an answer")
    if len(waiting) > 1:
        raise DurableError(
            "durable.ambiguous-approval", "several questions are open", fix="`bicameral approvals list` has their ids."
        )
    return await runs.approval(waiting[0].id, user)


def _hashes(asked: Approval, numbers: tuple[int, ...]) -> list[str]:
    """The hashes of the calls with these numbers."""
    for number in numbers:
        if number > len(asked.calls):
            raise click.UsageError(f"There is no call {number}: {asked.id} asks about {len(asked.calls)}.")
    return [str(asked.calls[number - 1]["hash"]) for number in dict.fromkeys(numbers)]


async def _asked(chosen: Common, asked: Approval) -> tuple[list[str], list[str]]:
    """What the person at the terminal says: the calls with a yes, and those whose offer is taken, by their hashes."""
    if not chosen.out.interactive:
        raise click.UsageError("Say which calls: their numbers, or --all.")
    if asked.kind != "calls" or not asked.open:
        # Whoever answers says what is wrong with that.
        return [], []
    from .._approving import TerminalApprover

    question = question_of(asked)
    answers = await TerminalApprover(chosen.out, _registry(chosen)).approve(question)
    yes = [call for call in question.calls if call.hash in answers.approved]
    return [call.hash for call in yes], [call.hash for call in yes if call.offer in answers.for_run]


def _registry(chosen: Common) -> Registry:
    """The tools that say which arguments must never be cut; without them, none is."""
    from bicameral.config import open_registry
    from bicameral.tools import Registry

    try:
        return open_registry(chosen.config())
    except BicameralError:
        return Registry(())


async def _value(chosen: Common, asked: Approval, value: str | None) -> Any:
    from .._asking import TerminalAsker, parse_reply

    if asked.kind != "ask":
        return None
    type_ = reply_type(asked)
    if value is None:
        if not chosen.out.interactive:
            raise click.UsageError("Give the reply.")
        return await TerminalAsker(chosen.out).ask(asked.question, type_)
    try:
        return parse_reply(value, type_)
    except ValueError:
        raise DurableError(
            "durable.wrong-answer", f"{value[:80]!r} is no reply to this question", expected=str(type_)
        ) from None
