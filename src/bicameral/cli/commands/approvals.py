"""`bicameral approvals`: the questions of submitted runs, and the answers to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._options import CommandFunction, CommonOptions, DefaultGroup, common_options, complete_approvals
from bicameral.cli._output import OK
from bicameral.cli._plain_values import local_time_text, render_table
from bicameral.cli._run_records import current_user, has_submitted_runs, open_submitted_runs
from bicameral.display import make_visible, question_text, shorten, terminal_width
from bicameral.errors import DurableError

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.durable import Approval, Runs
    from bicameral.runs import ApprovalQuestion
    from bicameral.types import Type


_MAX_REQUEST_LENGTH = 200


def approval_question(approval: Approval) -> ApprovalQuestion:
    """The question as a run at the terminal would ask it: the exact calls, with their untrusted parts."""
    from bicameral.runs import ApprovalQuestion, PendingCall

    return ApprovalQuestion(tuple(map(PendingCall.from_json, approval.calls)), approval.before)


def reply_type(approval: Approval) -> Type:
    """The type of the reply."""
    from bicameral.types import type_from_json

    return type_from_json(approval.type)


def approval_text(approval: Approval, *, full: bool = False) -> str:
    """A question with its run, the exact calls, and how to answer; `full` shows long values whole."""
    lines = [
        f"{approval.id}  {_approval_state_text(approval)}",
        f"  run {approval.run} of {make_visible(approval.user)}",
    ]
    if approval.kind == "ask":
        if approval.request:
            lines.append(f"  {shorten(make_visible(approval.request), _MAX_REQUEST_LENGTH)}")
        asked = question_text(approval.question, terminal_width())
        lines += ["", asked, f"  (the reply is {reply_type(approval)})"]
    else:
        lines.append(_approval_calls_text(approval, full=full))
    return "\n".join([*lines, *_answer_hints(approval, full=full)])


def _approval_calls_text(approval: Approval, *, full: bool) -> str:
    from bicameral.runs import calls_text
    from bicameral.tools import Registry

    width = terminal_width()
    # With no tools: those of this machine may have other declarations than the worker's. The call says itself which of
    # its arguments carry content; in one of an earlier version each counts as directing it, which cuts nothing.
    return calls_text(
        approval_question(approval).calls,
        Registry(()),
        width=width,
        whole=full,
        before=approval.before,
        request=approval.request,
        how="--full shows them",
    )


def _approval_state_text(approval: Approval) -> str:
    if approval.is_open:
        asked, expires = local_time_text(approval.asked), local_time_text(approval.expires)
        return f"asked {asked}; without an answer by {expires} it is no"
    when = f" {local_time_text(approval.answered)}" if approval.answered else ""
    by = f" by {make_visible(approval.by)}" if approval.by else ""
    return f"{approval.state}{when}{by}"


def _answer_hints(approval: Approval, *, full: bool) -> list[str]:
    if not approval.is_open:
        if approval.kind == "calls" and approval.state == "partly":
            return ["", f"approved: {_call_numbers(approval, approval.approved)}", *_granted_text(approval)]
        return _granted_text(approval)
    if approval.kind == "ask":
        return ["", f"reply:  bicameral approvals reply {approval.id} VALUE"]
    which = "--all" if len(approval.calls) == 1 else "NUMBER… (or --all)"
    yes = f"yes:  bicameral approvals approve {approval.id} {which}"
    offers = any("offer" in call for call in approval.calls)
    return [
        "",
        yes,
        *([f"{yes} --for-run NUMBER  (and what is offered with it)"] if offers else []),
        f"no:   bicameral approvals deny {approval.id}",
        *([] if full else [f"all:  bicameral approvals show {approval.id} --full"]),
    ]


def _granted_text(approval: Approval) -> list[str]:
    return [f"for the rest of the run: {_call_numbers(approval, approval.for_run)}"] if approval.for_run else []


def _call_numbers(approval: Approval, hashes: tuple[str, ...]) -> str:
    return ", ".join(str(number) for number, call in enumerate(approval.calls, 1) if call["hash"] in hashes)


def approval_gist(approval: Approval) -> str:
    """The question in a few words: its text, or the tools that would be called."""
    if approval.kind == "ask":
        return make_visible(approval.question)
    return ", ".join(dict.fromkeys(make_visible(str(call["tool"])) for call in approval.calls))


@click.group(short_help="What submitted runs ask, and your answers.", cls=DefaultGroup)
def command() -> None:
    """What submitted runs ask: calls that wait for a yes, and questions. Without a subcommand: the list.

    \b
    bicameral approvals list
    bicameral approvals show 20260301-1a2b
    bicameral approvals approve 20260301-1a2b 1 3
    """


def _approval_argument(function: CommandFunction) -> CommandFunction:
    """The arguments ID and --user. The id is required: nobody answers a question without naming it."""
    id_ = click.argument("id", metavar="ID", shell_complete=complete_approvals)
    user = click.option("--user", help="Only what runs of this user ask.")
    return id_(user(function))


@command.command("list")
@click.option("--all", "answered", is_flag=True, help="Also what was answered, expired or withdrawn.")
@click.option("--user", help="Only what runs of this user ask.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="At most so many.")
@common_options
def list_approvals(
    chosen: CommonOptions, answered: bool = False, user: str | None = None, limit: int = 100
) -> dict[str, Any]:
    """What waits for an answer, the oldest first."""

    async def listed(config: Config) -> list[Approval]:
        if not has_submitted_runs(config):
            return []
        async with open_submitted_runs(config) as runs:
            return await runs.approvals(user, open_only=not answered, limit=limit)

    found = asyncio.run(listed(chosen.config()))
    rows: list[dict[str, object]] = [
        {
            "id": each.id,
            "state": each.state,
            "asked": local_time_text(each.asked),
            "expires": local_time_text(each.expires),
            "user": each.user,
            "what": approval_gist(each),
            "request": each.request,
        }
        for each in found
    ]
    chosen.out.show(render_table(rows, chosen.out.width) if rows else "nothing waits for an answer")
    return {"approvals": [each.to_json() for each in found]}


@command.command("show")
@click.argument("id", metavar="[ID]", required=False, shell_complete=complete_approvals)
@click.option("--user", help="Only what runs of this user ask.")
@click.option("--full", is_flag=True, help="Show long values whole.")
@common_options
def show_approval(chosen: CommonOptions, id: str | None, user: str | None, full: bool) -> dict[str, Any]:
    """All that is asked: each call exactly as it would be made, and `!` at what a stranger may have written.

    ID is the id of a question or the beginning of it; without one, the only question that is open.
    """

    found = asyncio.run(_with_runs(chosen, lambda runs: _find_approval(runs, id, user)))
    chosen.out.show(approval_text(found, full=full))
    return found.to_json()


@command.command("approve")
@_approval_argument
@click.argument("numbers", metavar="[NUMBER]...", nargs=-1, type=click.IntRange(min=1))
@click.option("--all", "all_", is_flag=True, help="Say yes to all of its calls.")
@click.option(
    "--for-run",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="NUMBER",
    help="Take what is offered with this call for the rest of the run, too.",
)
@common_options
def approve(
    chosen: CommonOptions, id: str, user: str | None, numbers: tuple[int, ...], all_: bool, for_run: tuple[int, ...]
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
        accepted = _call_hashes(found, for_run)
        if all_ or numbers:
            approved = _call_hashes(found, numbers) if numbers else "all"
        else:
            approved, accepted = await _ask_person(chosen, found)
        return await runs.answer(found.id, approved, user, current_user(), accepted)

    return _submit_answer(chosen, answered)


@command.command("deny")
@_approval_argument
@common_options
def deny(chosen: CommonOptions, id: str, user: str | None) -> int:
    """Say no to all calls of a question. The run goes on without them, or ends."""

    async def answered(runs: Runs) -> Approval:
        return await runs.answer((await runs.approval(id, user)).id, "none", user, current_user())

    return _submit_answer(chosen, answered)


@command.command("reply")
@_approval_argument
@click.argument("value", required=False)
@common_options
def reply(chosen: CommonOptions, id: str, user: str | None, value: str | None) -> int:
    """Give VALUE as the reply to what a plan, or an unclear request, asks.

    It is read as the type that is asked for: a date as 2026-03-01, a list with commas, anything else as JSON. At a
    terminal, without a VALUE, the question is put to you.

    \b
    bicameral approvals reply 20260301-1a2b 2026-03-01
    """

    async def answered(runs: Runs) -> Approval:
        found = await runs.approval(id, user)
        return await runs.reply(found.id, await _reply_value(chosen, found, value), user, current_user())

    return _submit_answer(chosen, answered)


async def _with_runs(chosen: CommonOptions, work: Callable[[Runs], Awaitable[Approval]]) -> Approval:
    async with open_submitted_runs(chosen.config()) as runs:
        return await work(runs)


def _submit_answer(chosen: CommonOptions, work: Callable[[Runs], Awaitable[Approval]]) -> int:
    found = asyncio.run(_with_runs(chosen, work))
    state = found.state
    if found.kind == "calls" and found.state == "partly":
        state = f"{len(found.approved)} of {len(found.calls)} calls approved"
    chosen.out.show(f"{found.id}: {state}")
    chosen.out.say(f"`bicameral runs watch {found.run}` shows how it goes on")
    chosen.out.write_json({"ok": True, **found.to_json()})
    return OK


async def _find_approval(runs: Runs, id: str | None, user: str | None) -> Approval:
    """The question with this id; without an id, the only open one."""
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


def _call_hashes(asked: Approval, numbers: tuple[int, ...]) -> list[str]:
    """The hashes of the calls with these numbers."""
    for number in numbers:
        if number > len(asked.calls):
            raise click.UsageError(f"There is no call {number}: {asked.id} asks about {len(asked.calls)}.")
    return [str(asked.calls[number - 1]["hash"]) for number in dict.fromkeys(numbers)]


async def _ask_person(chosen: CommonOptions, asked: Approval) -> tuple[list[str], list[str]]:
    """Ask the person at the terminal; the hashes of the approved calls, and of those whose offer is accepted."""
    if not chosen.out.is_interactive:
        raise click.UsageError("Say which calls: their numbers, or --all.")
    if asked.kind != "calls" or not asked.is_open:
        # `Runs.answer` raises the error for it.
        return [], []
    from bicameral.cli._prompts import TerminalApprover
    from bicameral.tools import Registry

    question = approval_question(asked)
    answers = await TerminalApprover(chosen.out, Registry(()), request=asked.request).approve(question)
    yes = [call for call in question.calls if call.hash in answers.approved]
    return [call.hash for call in yes], [call.hash for call in yes if call.offer in answers.for_run]


async def _reply_value(chosen: CommonOptions, asked: Approval, value: str | None) -> Any:
    from bicameral.cli._prompts import TerminalAsker
    from bicameral.runs import parse_typed_reply

    if asked.kind != "ask":
        return None
    type_ = reply_type(asked)
    if value is None:
        if not chosen.out.is_interactive:
            raise click.UsageError("Give the reply.")
        return await TerminalAsker(chosen.out).ask(asked.question, type_)
    try:
        return parse_typed_reply(value, type_)
    except ValueError:
        raise DurableError(
            "durable.wrong-answer", f"{value[:80]!r} is no reply to this question", expected=str(type_)
        ) from None
