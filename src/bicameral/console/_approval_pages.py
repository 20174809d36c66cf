"""The inbox: what runs ask, card by card, and the answers of people.

An answer is bound to what was shown: a hash over the whole question travels with the form, and an answer to anything
else is refused. A call that is not ticked is refused, and what is offered for later calls counts only if it was ticked.
What directs a call is never cut: a call of which not all can be shown is not approved here at all.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from bicameral.console._pages import PageCall, attachment, page_response, page_route, render
from bicameral.console._run_stream import page_part, pause_until, stream_message, stream_response
from bicameral.console._values import Room, ShownPart, content_bytes, shown_value
from bicameral.durable import Approval
from bicameral.errors import DurableError, ServerError
from bicameral.labels import UNKNOWN, Label, Source
from bicameral.runs import Grant, PendingCall, parse_typed_reply, typed_reply_hint
from bicameral.secrets import mask
from bicameral.server.surface import ID_PATTERN, HttpError, get_own_approval
from bicameral.types import BoolType, ListType, LiteralType, OptionalType, Type, type_from_json

MAX_LISTED = 50
"""Questions on one page of the inbox."""
MAX_LISTED_CHARS = 200_000
"""Characters of all cards on one page of the inbox; those that do not fit are opened one by one."""
MAX_CALL_CHARS, MAX_CARD_CHARS = 20_000, 100_000
"""Characters that direct a call, and all calls of a question; a call of which more directs it has no yes here."""
MAX_CONTENT_CHARS, MAX_CARD_CONTENT_CHARS = 20_000, 60_000
"""Characters of what a call carries, and all calls of a question; the rest is a file."""
CALL_CHARS = 200
"""What a call counts beside its arguments."""
LONG_CONTENT, FEW_PARTS = 1_200, 12
"""Characters, or parts, from which on content scrolls within the card, so that the buttons stay near."""
MAX_REQUEST, MAX_WHY, MAX_CHANGE = 600, 2_000, 500
MAX_CHANGES, MAX_SOURCES = 50, 10
MAX_CHOICES, MAX_TOOLS, MAX_NAME = 100, 5, 100
STREAM_PAUSE = 0.7


@dataclass(frozen=True, slots=True)
class CutText:
    """A text as far as it is shown, and how many characters of it are not."""

    text: str
    left_out: int = 0

    @classmethod
    def of(cls, text: str, most: int) -> CutText:
        """The beginning of a text."""
        # Before it is cut: half of a secret would not be recognised when the page is rendered.
        text = mask(text)
        return cls(text[:most], max(0, len(text) - most))


@dataclass(frozen=True, slots=True)
class ShownArgument:
    """An argument of a call.

    Args:
        part: Its value, as far as it is shown.
        sources: Where untrusted text in it came from; none if there is none in it.
        more_sources: How many other sources there are.
        size: How many bytes the whole value has, if not all of it is shown.
        sha256: Their hash.
    """

    part: ShownPart
    sources: Sequence[str] = ()
    more_sources: int = 0
    size: int = 0
    sha256: str = ""

    @property
    def is_long(self) -> bool:
        return self.part.size > LONG_CONTENT or bool(self.sha256) or len(self.part.parts) > FEW_PARTS


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call as a person decides on it.

    Args:
        call: The call.
        directs: What says to whom, to what or where.
        content: What it only carries.
        control: Where the untrusted text came from that decided that it is made at all.
        why: Why the person is asked.
        changed: What is different about its files.
        files: How many of its files are shown.
        is_whole: Whether everything that directs it is shown. Only then it can be approved here.
    """

    call: PendingCall
    directs: Sequence[ShownArgument]
    content: Sequence[ShownArgument]
    control: Sequence[str]
    why: CutText
    changed: Sequence[CutText]
    files: int
    is_whole: bool

    @property
    def is_untrusted(self) -> bool:
        """Whether untrusted text is in anything of it."""
        return bool(self.call.untrusted)

    @property
    def offer(self) -> Grant | None:
        """What may be allowed for later calls too. The card names its value by the argument that is shown above it."""
        offer = self.call.offer
        same = offer is not None and self.call.arguments.get(offer.argument) == offer.value
        return offer if same else None


def shown_call(call: PendingCall, directing: Room, carried: Room) -> ShownCall:
    """A call of a question, argument by argument.

    Args:
        call: The call.
        directing: What there is room for of what directs it.
        carried: What there is room for of its content.
    """
    untrusted = {part.argument: part.sources for part in call.untrusted}
    contents = frozenset(call.carries or ())
    # What directs comes first and has room of its own: no content can push it out.
    directing.spend(CALL_CHARS)
    directs = [
        shown_argument(name, value, untrusted.get(name, ()), directing, directs=True)
        for name, value in call.arguments.items()
        if name not in contents
    ]
    files = sum(bool(directing.take(file.name + file.sha256)) for file in call.files)
    content = [
        shown_argument(name, value, untrusted.get(name, ()), carried, directs=False)
        for name, value in call.arguments.items()
        if name in contents
    ]
    return ShownCall(
        call,
        directs,
        content,
        [str(each) for each in untrusted.get("", ())][:MAX_SOURCES],
        CutText.of(call.why, MAX_WHY),
        [CutText.of(each, MAX_CHANGE) for each in call.changed[:MAX_CHANGES]],
        files,
        not directing.was_too_small and bool(directing.left),
    )


def shown_argument(name: str, value: Any, sources: Sequence[Source], room: Room, *, directs: bool) -> ShownArgument:
    """An argument, as far as there is room for it."""
    # Of an argument the question records only whether untrusted text is in it, and not whose the rest is.
    own = Room(room.left, room)
    part = shown_value(value, UNKNOWN if sources else Label(), name=name, whole=True, room=own, directs=directs)
    size, sha256 = 0, ""
    if own.was_too_small:
        room.was_too_small = True
        content, _ = content_bytes(value)
        size, sha256 = len(content), hashlib.sha256(content).hexdigest()
    shown = [str(each)[:MAX_CHANGE] for each in sources[:MAX_SOURCES]]
    return ShownArgument(part, shown, len(sources) - len(shown), size, sha256)


@dataclass(frozen=True, slots=True)
class Choice:
    """A reply that can be chosen; `is_ours` if its words are, and not those of the question."""

    value: Any
    words: str
    is_ours: bool = True


@dataclass(frozen=True, slots=True)
class Card:
    """One question as a card.

    Args:
        asked: The question.
        shown: The hash over everything that is shown of it.
        request: The request of its run.
        calls: Its calls.
        calls_left_out: How many calls there are more.
        question: For a question with a reply: what is asked.
        hint: What to type.
        choices: For a reply of few values: what can be chosen.
        may_be_empty: Whether nothing is a reply, too.
        chars: How much is shown of it.
    """

    asked: Approval
    shown: str
    request: CutText
    calls: Sequence[ShownCall] = ()
    calls_left_out: int = 0
    question: CutText = CutText("")
    hint: str = ""
    choices: Sequence[Choice] = ()
    may_be_empty: bool = False
    chars: int = 0

    @classmethod
    def of(cls, asked: Approval) -> Card:
        """The card of a question. It may be long: not on the event loop."""
        shown, request = question_hash(asked), CutText.of(asked.request, MAX_REQUEST)
        if asked.kind == "calls":
            directing, carried = Room(MAX_CARD_CHARS), Room(MAX_CARD_CONTENT_CHARS)
            calls: list[ShownCall] = []
            for each in asked.calls:
                if not directing.left:
                    break
                rooms = Room(MAX_CALL_CHARS, directing), Room(MAX_CONTENT_CHARS, carried)
                calls.append(shown_call(PendingCall.from_json(each), *rooms))
            more = len(asked.calls) - len(calls)
            return cls(asked, shown, request, calls, more, chars=directing.spent + carried.spent)
        wanted, question = reply_type(asked), CutText.of(asked.question, MAX_CALL_CHARS)
        return cls(
            asked,
            shown,
            request,
            question=question,
            hint=CutText.of(typed_reply_hint(wanted), MAX_CHANGE).text,
            choices=reply_choices(wanted),
            may_be_empty=isinstance(wanted, OptionalType | ListType),
            chars=len(question.text),
        )

    @property
    def whole_calls(self) -> frozenset[str]:
        """The hashes of the calls that are shown so that they can be approved."""
        return frozenset(each.call.hash for each in self.calls if each.is_whole)

    @property
    def is_whole(self) -> bool:
        """Whether all of its calls can be approved here."""
        return not self.calls_left_out and all(each.is_whole for each in self.calls)


def question_hash(asked: Approval) -> str:
    """A hash over what is asked, and over all that is shown with it and does not change by itself."""
    facts = [
        *(asked.id, asked.run, asked.user, asked.kind, asked.request, asked.before),
        *(asked.asked.isoformat(), asked.expires.isoformat()),
        [dict(each) for each in asked.calls],
        *(asked.question, asked.type),
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def reply_type(asked: Approval) -> Type:
    """The type of the reply that a question wants."""
    return type_from_json(asked.type)


def reply_choices(wanted: Type) -> tuple[Choice, ...]:
    """The replies that can be chosen; none if it is typed."""
    match wanted:
        case BoolType():
            return Choice(True, "yes"), Choice(False, "no")
        case LiteralType(values=values) if len(values) <= MAX_CHOICES and sum(map(len, values)) <= MAX_CALL_CHARS:
            return tuple(Choice(value, value, is_ours=False) for value in values)
        case OptionalType(item=item) if choices := reply_choices(item):
            return (*choices, Choice(None, "nothing"))
        case _:
            return ()


async def inbox(call: PageCall) -> Response:
    """What waits for an answer, the oldest first; on request also what was answered."""
    with_answered, user = call.query("all") == "1", _wanted_user(call)
    runs = call.context.runs
    waiting = await runs.open_questions(call.token.owner)
    after = call.query("after") if re.fullmatch(ID_PATTERN, call.query("after")) else None
    found = await runs.approvals(user, not with_answered, MAX_LISTED + 1, after)
    page = [each for each in found[:MAX_LISTED] if with_answered or each.is_open]
    cards, opened = await asyncio.to_thread(_listed_cards, page)
    return call.page(
        "approvals.html",
        cards=cards,
        opened=opened,
        with_answered=with_answered,
        waiting=waiting,
        count=waiting.total if user is None else waiting.by_user.get(user, 0),
        user=user if call.token.all_users else None,
        after=after,
        last=page[-1].id if page and len(found) > MAX_LISTED else None,
        ids=",".join(each.id for each in page if each.is_open),
    )


def _wanted_user(call: PageCall) -> str | None:
    """Whose questions are wanted: one's own, or of all users those of one."""
    return call.token.owner if not call.token.all_users else call.query("user") or None


def _listed_cards(found: Sequence[Approval]) -> tuple[list[Card], frozenset[str]]:
    """The cards of a page, and which of them are opened one by one since they do not fit on it."""
    cards, chars, opened = [Card.of(each) for each in found], 0, set[str]()
    for card in cards:
        chars += card.chars
        if chars > MAX_LISTED_CHARS:
            opened.add(card.asked.id)
    return cards, frozenset(opened)


async def open_count(call: PageCall) -> Response:
    """How many questions wait; empty if none does."""
    if not call.token.may("see", "approve"):
        return page_response("count.html", count=0)
    waiting = await call.context.runs.open_questions(call.token.owner)
    return page_response("count.html", count=waiting.total)


async def inbox_stream(call: PageCall) -> Response:
    """Says when questions have come or were answered elsewhere.

    A card never appears or moves by itself under a pointer that is about to click: the page offers to show what is new.
    """
    # They become parts of the names of elements: only what can be the id of a question.
    seen = frozenset(each for each in call.query("seen").split(",")[:MAX_LISTED] if re.fullmatch(ID_PATTERN, each))
    return stream_response(call, _inbox_changes(call, seen, _moment(call.query("since")), _wanted_user(call)))


def _moment(text: str) -> float:
    """A time in seconds; 0 for what is none."""
    try:
        moment = float(text)
    except ValueError:
        return 0.0
    return moment if math.isfinite(moment) else 0.0


async def _inbox_changes(call: PageCall, seen: frozenset[str], since: float, user: str | None) -> AsyncGenerator[bytes]:
    yield b"retry: 2000\n\n"
    loop = asyncio.get_running_loop()
    # As every watch: a page that nobody looks at does not hold one for good. Browsers come again by themselves.
    end = loop.time() + call.context.config.server.watch_seconds
    told: tuple[frozenset[str], int] | None = None
    while True:
        now = await call.context.runs.still_open(seen, user, since)
        if now != told:
            told, (still, new) = now, now
            parts = [page_part("inbox-news", render("approvals_news.html", new=new))]
            for gone in sorted(seen - still):
                # Answered elsewhere, expired or withdrawn: its buttons would only lead to an error.
                parts.append(page_part(f"state-{gone}", render("approvals_gone.html", id=gone)))
            yield stream_message("".join(parts))
        if not await pause_until(call, STREAM_PAUSE) or loop.time() > end:
            return
        yield b": still here\n\n"


async def question_page(call: PageCall) -> Response:
    """One question."""
    asked = await get_own_approval(call.context, call.path("approval"), call.token.owner)
    return call.page("approval.html", card=await asyncio.to_thread(Card.of, asked))


async def content_file(call: PageCall) -> Response:
    """What a call carries, or what a question asks, as a whole: a file that no browser shows."""
    asked = await get_own_approval(call.context, call.path("approval"), call.token.owner)
    wanted, name = call.query("call"), call.query("name")

    def content() -> tuple[bytes, str]:
        if asked.kind == "ask":
            return content_bytes(asked.question)
        for each in asked.calls:
            if each["hash"] == wanted and name in each["arguments"]:
                return content_bytes(PendingCall.from_json(each).arguments[name])
        raise HttpError(404, ServerError("console.unknown-value", "the question has no such value"))

    found, content_type = await asyncio.to_thread(content)
    ending = "txt" if content_type.startswith("text/") else "json"
    return attachment(found, f"{asked.id}-{name or 'question'}.{ending}", content_type)


async def answer_question(call: PageCall) -> Response:
    """Take the answer to a question, exactly as it was shown."""
    asked = await get_own_approval(call.context, call.path("approval"), call.token.owner)
    if call.field("shown") != await asyncio.to_thread(question_hash, asked):
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
    waiting = await call.context.runs.open_questions(call.token.owner)
    where = "/approvals" if waiting.total else f"/runs/{asked.run}" if call.token.may("see") else "/approvals"
    return call.redirect(where, f"{answered.state.capitalize()}: {gist(asked)}.")


def gist(asked: Approval) -> str:
    """A question in a few words of ours: a notice is no place for its text."""
    if asked.kind == "ask":
        return "the question"
    tools = list(dict.fromkeys(str(each["tool"])[:MAX_NAME] for each in asked.calls))
    more = f" and {len(tools) - MAX_TOOLS} more" if len(tools) > MAX_TOOLS else ""
    return f"{'the call' if len(asked.calls) == 1 else 'the calls'} of {', '.join(tools[:MAX_TOOLS])}{more}"


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
    card = await asyncio.to_thread(Card.of, asked)
    if not card.whole_calls.issuperset(approved):
        error = ServerError(
            "console.not-shown",
            "a call that is too long to be shown is not approved here",
            fix=f"Refuse it, or look at it with `bicameral approvals show {asked.id} --full` and answer there.",
        )
        raise HttpError(409, error)
    accepted = [each for each in call.fields("for_run") if each in approved]
    return await runs.answer(asked.id, approved, user=token.owner, by=token.user, for_run=accepted)


async def _reply(call: PageCall, asked: Approval) -> Approval:
    wanted = reply_type(asked)
    choices = reply_choices(wanted)
    try:
        # By its number: the text of a choice may have blanks at its ends, or differ from another one in its case only.
        value = _chosen(choices, call.field("choice")) if choices else parse_typed_reply(_typed(call), wanted)
    except ValueError:
        raise DurableError(
            "durable.wrong-answer", "that is no reply to this question", expected=typed_reply_hint(wanted)[:MAX_CHANGE]
        ) from None
    return await call.context.runs.reply(asked.id, value, user=call.token.owner, by=call.token.user)


def _typed(call: PageCall) -> str:
    return call.field("reply").strip()


def _chosen(choices: Sequence[Choice], number: str) -> Any:
    """The value of the choice with this number."""
    if not re.fullmatch("[0-9]{1,4}", number) or int(number) >= len(choices):
        raise ValueError("there is no such choice")
    return choices[int(number)].value


approval_routes = [
    page_route("/approvals", inbox, "see", "approve"),
    page_route("/approvals/count", open_count, "see", "run", "approve"),
    page_route("/approvals/live", inbox_stream, "see", "approve"),
    page_route("/approvals/{approval}", question_page, "see", "approve"),
    page_route("/approvals/{approval}/content", content_file, "see", "approve"),
    page_route("/approvals/{approval}", answer_question, "approve", method="POST"),
]
