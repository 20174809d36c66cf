"""Questions of one call to a person: in a form that the client shows, or in the inbox; anything but a clear yes is no.

A question says exactly what would be done. It stands in a code block, since a client may render it: an image or a link
in an argument must not be loaded by being asked about. An answer belongs to one question object, which belongs to one
call; nothing that the client sends names another one. A yes is the field `approve`, ticked, and nothing besides: a
client that merely says "accept" has not asked anybody.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from bicameral import types as t
from bicameral.display import question_text, visible_line
from bicameral.errors import RunError
from bicameral.firewall._results import redact, redact_texts
from bicameral.firewall._settings import Approvals
from bicameral.runs import Answers, ApprovalQuestion, ApprovalRequired, Grant, PendingCall, calls_text
from bicameral.secrets import mask_value
from bicameral.tools import Registry

Reply = Literal["approved", "refused", "dismissed"]
"""`dismissed`: nobody chose anything. It is a no that does not hold for the next time."""
MAX_MESSAGE = 24_000
"""Characters of a question. A person cannot judge a longer one in a form, so that the answer is no."""
_WIDTH = 96
_CONTENT_LINES = 200
"""Lines of content that a question shows; what directs a call is always shown whole."""
_BACKTICKS = re.compile("`+")
_HASH_DIGITS = 16


@dataclass(slots=True, eq=False)
class PersonQuestion:
    """One question that waits for the answer of a client's person.

    Args:
        message: The text of the form.
        schema: The fields of the form.
        reply: Resolved once, with what the client sent: the action, and the content of the form.
        until: When it is over, by the monotonic clock.
        id: Unguessable; it is the only thing that a client gives back.
    """

    message: str
    schema: dict[str, Any]
    until: float
    reply: asyncio.Future[tuple[str, Mapping[str, Any]]]
    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.until - time.monotonic())

    def set_reply(self, action: str, content: Mapping[str, Any] | None) -> None:
        """Give the answer; an answer to a question that is over changes nothing."""
        if not self.reply.done():
            self.reply.set_result((action, dict(content or {})))


Publish = Callable[[PersonQuestion], None]


class Inbox(Protocol):
    """Where people answer the questions of runs elsewhere, such as the durable runs (`bicameral.durable.Runs`)."""

    async def ask(
        self, question: ApprovalQuestion, *, run: str, user: str = "local", within: float, request: str = ""
    ) -> Answers:
        """Ask and wait; without an answer in time it is no."""
        ...


@dataclass(slots=True)
class PersonMemory:
    """What the people of one session have answered so far."""

    refused: set[str] = field(default_factory=set[str])
    """The hashes of calls that were refused: they stay refused."""
    grants: list[Grant] = field(default_factory=list[Grant])
    """What was allowed for the rest of the session."""


@dataclass(slots=True)
class CallPerson:
    """Approver and asker of one call.

    Args:
        way: How people are asked.
        seconds: How long an answer is waited for.
        memory: The answers of the session.
        publish: Hands a question to the client; None where it cannot ask.
        inbox: Where people answer elsewhere; None where there is none.
        run: The run of the session.
        owner: Whose question it is in the inbox.
        request: What the person is told of the session.
        unasked: The code of why a question was not put to anybody.
    """

    way: Approvals
    seconds: float
    memory: PersonMemory
    publish: Publish | None
    inbox: Inbox | None
    run: str
    owner: str
    request: str
    unasked: str = ""

    @property
    def can_approve(self) -> bool:
        """Whether there is anybody to ask about calls."""
        asks_client = self.way == "elicitation" and self.publish is not None
        return asks_client or (self.way != "refuse" and self.inbox is not None)

    async def approve(self, question: ApprovalQuestion) -> Answers:
        """The answer to these calls; without anybody to ask it is no."""
        if any(call.hash in self.memory.refused for call in question.calls):
            return Answers.no()
        if self.way == "elicitation" and self.publish is not None:
            reply = await self._approve_by_client(question, self.publish)
            if reply == "refused":
                self.memory.refused.update(call.hash for call in question.calls)
            return Answers.yes(question.calls) if reply == "approved" else Answers.no()
        if self.way != "refuse" and self.inbox is not None:
            return await self._approve_in_inbox(question, self.inbox)
        raise ApprovalRequired(question)

    async def _approve_by_client(self, question: ApprovalQuestion, publish: Publish) -> Reply:
        asked = self._question(approval_message(question), APPROVAL_SCHEMA)
        publish(asked)
        action, content = await self._wait(asked)
        return read_approval(action, content)

    async def _approve_in_inbox(self, question: ApprovalQuestion, inbox: Inbox) -> Answers:
        answers = await inbox.ask(question, run=self.run, user=self.owner, within=self.seconds, request=self.request)
        # Whoever said no is not asked again; a question that nobody answered may be put again.
        self.memory.refused |= answers.refused
        offered = [call.offer for call in question.calls if call.hash in answers.approved]
        self.memory.grants += [grant for grant in answers.for_run if grant in offered]
        return answers

    async def ask(self, question: str, type: t.Type) -> Any:
        """What a person replies to a question of a server; without anybody to ask, or without a reply, an error."""
        schema = reply_schema(type)
        if self.way != "elicitation" or self.publish is None or schema is None:
            raise _no_reply_error()
        asked = self._question(fenced(question_text(redact(question), _WIDTH)), schema)
        self.publish(asked)
        action, content = await self._wait(asked)
        if action != "accept" or set(content) != {"reply"}:
            raise _no_reply_error()
        reply = _parse_reply(content["reply"], type)
        if t.mismatch(reply, type):
            raise _no_reply_error()
        return reply

    def _question(self, message: str, schema: Mapping[str, Any]) -> PersonQuestion:
        if len(message) > MAX_MESSAGE:
            self.unasked = "firewall.question-too-long"
            raise RunError(
                self.unasked,
                f"what would be done takes {len(message):,} characters to show, and a form shows {MAX_MESSAGE:,}",
                fix='Set approvals = "inbox", or do it in smaller steps.',
            )
        reply = asyncio.get_running_loop().create_future()
        return PersonQuestion(message, dict(schema), time.monotonic() + self.seconds, reply)

    async def _wait(self, asked: PersonQuestion) -> tuple[str, Mapping[str, Any]]:
        try:
            async with asyncio.timeout(asked.seconds_left):
                return await asked.reply
        except TimeoutError:
            return "cancel", {}
        finally:
            # Whoever answers later finds the question closed.
            asked.reply.cancel()


APPROVAL_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "approve": {
            "type": "boolean",
            "title": "Do exactly this, once",
            "description": "Tick this only if you want what is shown above to be done.",
            "default": False,
        }
    },
    "required": ["approve"],
}


def approval_message(question: ApprovalQuestion) -> str:
    """A question as a client shows it: every argument, what others may have written, and what a yes is bound to."""
    # A form offers nothing wider than this one call, so that the offer, which names values, is left out.
    calls = [replace(call, arguments=_shown_arguments(call), offer=None) for call in question.calls]
    # With no tools: a call says itself which of its arguments carry content, and every other one is shown whole.
    text = calls_text(calls, Registry(()), width=_WIDTH, before=question.before, content_lines=_CONTENT_LINES, how="")
    bound = ", ".join(call.hash[:_HASH_DIGITS] for call in question.calls)
    return fenced(f"{text.strip()}\n\n  (the answer is for exactly this: {visible_line(bound)})")


def _shown_arguments(call: PendingCall) -> dict[str, Any]:
    """The arguments of a call without secrets, which the client would read. The hash covers the values.

    What directs the call is shown as it is but for the secrets that are known by name: whoever chose it could give it
    the form of a secret, and the person would say yes to a command or an address that they have not seen.
    """
    content = call.carries or ()
    return {
        name: redact_texts(value) if name in content else mask_value(value) for name, value in call.arguments.items()
    }


def fenced(text: str) -> str:
    """A text as a code block that nothing in the text can end."""
    longest = max((len(found) for found in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def read_approval(action: object, content: Mapping[str, Any]) -> Reply:
    """What a client's form says: a yes only if exactly the field for it is set to true."""
    if action == "accept" and set(content) == {"approve"}:
        if content["approve"] is True:
            return "approved"
        if content["approve"] is False:
            return "refused"
    return "refused" if action == "decline" else "dismissed"


def reply_schema(type_: t.Type) -> dict[str, Any] | None:
    """The form for a reply of a type; None for a type that no form of single values can hold."""
    plain = t.without_optional(type_)
    match plain:
        case t.BoolType() | t.IntType() | t.FloatType() | t.DateType():
            written: dict[str, Any] = dict(t.type_json_schema(plain))
        case t.LiteralType(values=values):
            written = {"type": "string", "enum": list(values)}
        case t.StrType():
            written = {"type": "string"}
        case _:
            return None
    written.pop("pattern", None)
    required = [] if plain is not type_ else ["reply"]
    return {"type": "object", "properties": {"reply": written | {"title": "Your reply"}}, "required": required}


def _parse_reply(reply: object, type_: t.Type) -> object:
    if isinstance(t.without_optional(type_), t.DateType) and isinstance(reply, str):
        import datetime as dt

        try:
            return dt.date.fromisoformat(reply)
        except ValueError:
            return reply
    return reply


def question_hash(tool: str, shown: object) -> str:
    """What an answer to a question of the firewall's own is bound to; the same for each call that would ask it."""
    return hashlib.sha256(repr((tool, shown)).encode("utf-8", "surrogatepass")).hexdigest()


def _no_reply_error() -> RunError:
    return RunError("run.needs-answer", "nobody answered the question of a server")
