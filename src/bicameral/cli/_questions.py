"""Questions of submitted runs, shown as the one who is asked at a terminal sees them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from bicameral.display import visible

from ._pending import calls_text
from ._periods import clock
from ._rendering import question_text

if TYPE_CHECKING:
    from bicameral.durable import Approval
    from bicameral.runs import Question
    from bicameral.types import Type

_MAX_REQUEST = 200


def question_of(approval: Approval) -> Question:
    """The question as it would be asked in a run: the very calls, with what strangers had a hand in."""
    from bicameral.runs import PendingCall, Question

    return Question(tuple(map(PendingCall.from_json, approval.calls)), approval.before)


def reply_type(approval: Approval) -> Type:
    """The type that a reply must have."""
    from bicameral.types import from_json

    return from_json(approval.type)


def approval_text(approval: Approval, *, full: bool = False) -> str:
    """All of a question: whose run it is, the calls to the letter, and how to answer; long values whole if `full`."""
    lines = [f"{approval.id}  {_standing(approval)}", f"  run {approval.run} of {visible(approval.user)}"]
    if approval.request:
        request = " ".join(visible(approval.request).split())
        lines.append(f"  {request if len(request) <= _MAX_REQUEST else request[: _MAX_REQUEST - 1] + '…'}")
    if approval.kind == "ask":
        asked = question_text(approval.question, shutil.get_terminal_size().columns)
        lines += ["", asked, f"  (the reply is {reply_type(approval)})"]
    else:
        lines.append(_calls_text(approval, full=full))
    return "\n".join([*lines, *_how(approval)])


def _calls_text(approval: Approval, *, full: bool) -> str:
    from bicameral.tools import Registry

    width = shutil.get_terminal_size().columns
    # The tools of this machine may declare something else: each argument is shown as if it directed the call.
    return calls_text(
        question_of(approval).calls,
        Registry(()),
        width=width,
        whole=full,
        before=approval.before,
        how=f"`bicameral approvals show {approval.id} --full` shows all",
    )


def _standing(approval: Approval) -> str:
    if approval.open:
        return f"asked {clock(approval.asked)}; without an answer by {clock(approval.expires)} it is no"
    when = f" {clock(approval.answered)}" if approval.answered else ""
    by = f" by {visible(approval.by)}" if approval.by else ""
    return f"{approval.state}{when}{by}"


def _how(approval: Approval) -> list[str]:
    if not approval.open:
        if approval.kind == "calls" and approval.state == "partly":
            return ["", f"approved: {_numbers(approval, approval.approved)}", *_for_run(approval)]
        return _for_run(approval)
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
    ]


def _for_run(approval: Approval) -> list[str]:
    return [f"for the rest of the run: {_numbers(approval, approval.for_run)}"] if approval.for_run else []


def _numbers(approval: Approval, hashes: tuple[str, ...]) -> str:
    return ", ".join(str(number) for number, call in enumerate(approval.calls, 1) if call["hash"] in hashes)


def gist(approval: Approval) -> str:
    """What is asked, in a few words."""
    if approval.kind == "ask":
        return visible(approval.question)
    return ", ".join(dict.fromkeys(visible(str(call["tool"])) for call in approval.calls))
