"""The inbox: what runs ask, card by card, and the answers of people.

An answer is bound to what was shown: a hash over the whole question travels with the form, and an answer to anything
else is refused. A call that is not ticked is refused, and what is offered for later calls counts only if it was ticked.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass

from starlette.responses import Response

from bicameral.console._pages import PageCall, page_response, page_route, render
from bicameral.console._run_stream import page_part, pause_until, stream_message, stream_response
from bicameral.console._values import ShownPart, shown_value
from bicameral.durable import Approval
from bicameral.errors import DurableError, ServerError
from bicameral.labels import UNKNOWN, USER, Label, Source
from bicameral.runs import PendingCall, parse_typed_reply, typed_reply_hint
from bicameral.server.surface import ID_PATTERN, HttpError, get_own_approval
from bicameral.types import BoolType, LiteralType, Type, type_from_json

MAX_LISTED = 200
STREAM_PAUSE = 0.7


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call as a person decides on it.

    Args:
        call: The call.
        directs: What says to whom, to what or where: always shown in full.
        content: What it only carries.
        untrusted: By argument, where the untrusted text in it came from; the empty name is whether it is made at all.
    """

    call: PendingCall
    directs: Sequence[ShownPart]
    content: Sequence[ShownPart]
    untrusted: Mapping[str, Sequence[Source]]


def shown_call(call: PendingCall) -> ShownCall:
    """A call of a question, argument by argument."""
    untrusted = {part.argument: part.sources for part in call.untrusted}
    carried = frozenset(call.carries or ())
    directs: list[ShownPart] = []
    content: list[ShownPart] = []
    for name, value in call.arguments.items():
        # Of an argument the question records only whether untrusted text is in it.
        label = UNKNOWN if name in untrusted else Label((Source("user", "request"),), {USER})
        part = shown_value(value, label, name=name, whole=True)
        (content if name in carried else directs).append(part)
    return ShownCall(call, directs, content, untrusted)


@dataclass(frozen=True, slots=True)
class Card:
    """One question as a card.

    Args:
        asked: The question.
        calls: Its calls.
        shown: The hash over everything that is shown of it.
        hint: For a question with a reply: what to type.
        choices: For a reply of few values: what can be chosen.
    """

    asked: Approval
    calls: Sequence[ShownCall]
    shown: str
    hint: str = ""
    choices: Sequence[str] = ()

    @classmethod
    def of(cls, asked: Approval) -> Card:
        """The card of a question."""
        shown = question_hash(asked)
        if asked.kind == "calls":
            return cls(asked, [shown_call(PendingCall.from_json(each)) for each in asked.calls], shown)
        wanted = reply_type(asked)
        return cls(asked, [], shown, typed_reply_hint(wanted), reply_choices(wanted))


def question_hash(asked: Approval) -> str:
    """A hash over what is asked: the calls with everything that is shown of them, or the words and the type."""
    facts = [asked.id, asked.run, asked.kind, [dict(each) for each in asked.calls], asked.question, asked.type]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def reply_type(asked: Approval) -> Type:
    """The type of the reply that a question wants."""
    return type_from_json(asked.type)


def reply_choices(wanted: Type) -> tuple[str, ...]:
    """The replies that can be chosen; none if it is typed."""
    match wanted:
        case BoolType():
            return ("yes", "no")
        case LiteralType(values=values):
            return tuple(values)
        case _:
            return ()


async def inbox(call: PageCall) -> Response:
    """What waits for an answer, the oldest first; on request also what was answered."""
    with_answered = call.query("all") == "1"
    found = await _questions(call, open_only=not with_answered)
    cards = [Card.of(each) for each in found]
    ids = ",".join(each.id for each in found if each.is_open)
    return call.page("approvals.html", cards=cards, with_answered=with_answered, most=MAX_LISTED, ids=ids)


async def _questions(call: PageCall, *, open_only: bool = True) -> list[Approval]:
    found = await call.context.runs.approvals(call.token.owner, open_only, MAX_LISTED)
    return [each for each in found if each.is_open or not open_only]


async def open_count(call: PageCall) -> Response:
    """How many questions wait; empty if none does."""
    if not call.token.may("see", "approve"):
        return page_response("count.html", count=0)
    return page_response("count.html", count=len(await _questions(call)))


async def inbox_stream(call: PageCall) -> Response:
    """Says when questions have come or were answered elsewhere.

    A card never appears or moves by itself under a pointer that is about to click: the page offers to show what is new.
    """
    # They become parts of the names of elements: only what can be the id of a question.
    seen = frozenset(each for each in call.query("seen").split(",")[:MAX_LISTED] if re.fullmatch(ID_PATTERN, each))
    return stream_response(call, _inbox_changes(call, seen))


async def _inbox_changes(call: PageCall, seen: frozenset[str]) -> AsyncGenerator[bytes]:
    yield b"retry: 2000\n\n"
    told: frozenset[str] | None = None
    while True:
        now = frozenset(each.id for each in await _questions(call))
        if now != told:
            told = now
            parts = [page_part("inbox-news", render("approvals_news.html", new=len(now - seen)))]
            for gone in sorted(seen - now):
                # Answered elsewhere, expired or withdrawn: its buttons would only lead to an error.
                parts.append(page_part(f"state-{gone}", render("approvals_gone.html", id=gone)))
            yield stream_message("".join(parts))
        if not await pause_until(call, STREAM_PAUSE):
            return
        yield b": still here\n\n"


async def question_page(call: PageCall) -> Response:
    """One question."""
    asked = await get_own_approval(call.context, call.path("approval"), call.token.owner)
    return call.page("approval.html", card=Card.of(asked))


async def answer_question(call: PageCall) -> Response:
    """Take the answer to a question, exactly as it was shown."""
    asked = await get_own_approval(call.context, call.path("approval"), call.token.owner)
    if call.field("shown") != question_hash(asked):
        error = ServerError(
            "console.other-question",
            "this is not an answer to the question as it stands",
            fix="Look at the question again, and answer it there.",
        )
        raise HttpError(409, error)
    try:
        answered = await (_reply(call, asked) if asked.kind == "ask" else _answer_calls(call, asked))
    except DurableError as error:
        if error.code not in ("durable.answered", "durable.expired"):
            raise
        # Somebody else was faster, or the time is over: the question itself says what counts.
        return call.redirect(f"/approvals/{asked.id}", f"Your answer does not count: {error.message}.")
    waiting = await _questions(call)
    where = "/approvals" if waiting else f"/runs/{asked.run}" if call.token.may("see") else "/approvals"
    return call.redirect(where, f"{answered.state.capitalize()}: {gist(asked)}.")


def gist(asked: Approval) -> str:
    """A question in a few words."""
    if asked.kind == "ask":
        return asked.question[:100]
    return ", ".join(dict.fromkeys(str(each["tool"]) for each in asked.calls))


async def _answer_calls(call: PageCall, asked: Approval) -> Approval:
    runs, token = call.context.runs, call.token
    match call.field("answer"):
        case "all":
            approved = [str(each["hash"]) for each in asked.calls]
        case "none":
            approved = []
        case "ticked":
            approved = call.fields("approve")
        case _:
            raise HttpError(422, ServerError("server.bad-request", "the answer is neither yes nor no"))
    accepted = [each for each in call.fields("for_run") if each in approved]
    return await runs.answer(asked.id, approved, user=token.owner, by=token.user, for_run=accepted)


async def _reply(call: PageCall, asked: Approval) -> Approval:
    wanted = reply_type(asked)
    try:
        value = parse_typed_reply(call.field("reply").strip(), wanted)
    except ValueError:
        raise DurableError(
            "durable.wrong-answer", "that is no reply to this question", expected=typed_reply_hint(wanted)
        ) from None
    return await call.context.runs.reply(asked.id, value, user=call.token.owner, by=call.token.user)


approval_routes = [
    page_route("/approvals", inbox, "see", "approve"),
    page_route("/approvals/count", open_count, "see", "run", "approve"),
    page_route("/approvals/live", inbox_stream, "see", "approve"),
    page_route("/approvals/{approval}", question_page, "see", "approve"),
    page_route("/approvals/{approval}", answer_question, "approve", method="POST"),
]
