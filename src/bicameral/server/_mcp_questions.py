"""Questions to the person behind an MCP client: forms, how they are sent, and what counts as an answer.

Only a form that was filled in as it was sent counts. Everything else (dismissed, malformed, from a client that answers
for itself with nothing) decides nothing: the run waits on. Two protocols carry a form. Until 2025-11-25 the server asks
the client while the call runs; from 2026-07-28 on the call ends with the question, and the client calls again with the
reply and a sealed state, which holds for one reply of one user to one call.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import bicameral.types as t
from bicameral.display import make_visible, question_text
from bicameral.errors import ServerError
from bicameral.runs import PendingCall, calls_text
from bicameral.server._context import HttpError
from bicameral.types import Type, type_from_json

if TYPE_CHECKING:
    from mcp.server.session import ServerSession
    from mcp_types import ElicitRequest, ElicitResult

    from bicameral.agent import Endorsement
    from bicameral.durable import Approval

MAX_FORM_CALLS = 10
"""Calls that are answered one by one in a form; of more, only all or none can be approved."""
MAX_MESSAGE = 30_000
"""Characters of a question: nobody reads a longer one in a dialogue of a client."""
ASK_SECONDS = 3600.0
"""How long a form waits for its answer, and how long a sealed state holds."""
MAX_OPEN_STATES = 256
"""Sealed states of one user that can still be used; the oldest gives way."""
_WIDTH = 78
_BACKTICKS = re.compile("`+")


@dataclass(frozen=True, slots=True)
class Form:
    """A question to the person: what is asked, and the fields of the answer as a flat JSON Schema.

    `key` is what the question is about. A reply counts only for the question that it was given to.
    """

    key: str
    message: str
    fields: Mapping[str, Mapping[str, Any]]

    def schema(self) -> dict[str, Any]:
        properties = {name: dict(schema) for name, schema in self.fields.items()}
        return {"type": "object", "properties": properties, "required": list(self.fields)}

    def request(self) -> ElicitRequest:
        """The form as the embedded request of a result."""
        from mcp_types import ElicitRequest, ElicitRequestFormParams

        return ElicitRequest(params=ElicitRequestFormParams(message=self.message, requested_schema=self.schema()))


@dataclass(frozen=True, slots=True)
class Filled:
    """The person filled in the form; each field has a value of its type."""

    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Declined:
    """The person said no."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """Nobody has decided: the form was dismissed, timed out, or did not come back as it was sent."""


FormReply = Filled | Declined | Undecided


class CannotAsk(HttpError):
    """A question that cannot be put to the person here: it must be answered elsewhere."""

    def __init__(self, why: str, *, expected: str | None = None, approval: str = "ID") -> None:
        fix = f"The user answers with `bicameral approvals show {approval}`."
        super().__init__(409, ServerError("server.cannot-ask", why, expected=expected, fix=fix))


class QuestionPending(Exception):
    """The call must end with this question; the client calls again with the reply."""

    def __init__(self, form: Form) -> None:
        super().__init__(form.key)
        self.form = form


class Person(Protocol):
    """The person behind a client."""

    @property
    def can_be_asked(self) -> bool: ...

    async def ask(self, form: Form) -> FormReply: ...


def read_reply(form: Form, action: object, content: object) -> FormReply:
    """What a reply says; anything that is not the filled-in form decides nothing."""
    if action == "decline":
        return Declined()
    if action != "accept" or not isinstance(content, dict):
        return Undecided()
    values = cast("dict[str, Any]", content)
    # Extra fields too: a client that invents fields did not show this form.
    if values.keys() != form.fields.keys():
        return Undecided()
    return Filled(values) if all(_fits(values[name], each) for name, each in form.fields.items()) else Undecided()


def _fits(value: object, schema: Mapping[str, Any]) -> bool:
    match schema["type"]:
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return isinstance(value, str) and ("enum" not in schema or value in schema["enum"])


@dataclass(frozen=True, slots=True)
class NobodyToAsk:
    """A client that cannot ask its user."""

    @property
    def can_be_asked(self) -> bool:
        return False

    async def ask(self, form: Form) -> FormReply:
        return Undecided()


@dataclass(frozen=True, slots=True)
class SessionPerson:
    """Asked through the client while the call runs, as protocols until 2025-11-25 do it."""

    session: ServerSession
    request_id: str | int | None
    stopping: asyncio.Event

    @property
    def can_be_asked(self) -> bool:
        return True

    async def ask(self, form: Form) -> FormReply:
        from anyio import BrokenResourceError, ClosedResourceError
        from mcp.shared.exceptions import MCPError
        from mcp.shared.message import ServerMessageMetadata
        from mcp_types import ElicitResult
        from pydantic import ValidationError

        asking = asyncio.ensure_future(
            self.session.send_request(
                form.request(), ElicitResult, ASK_SECONDS, ServerMessageMetadata(related_request_id=self.request_id)
            )
        )
        # A server that is told to stop does not wait for a person.
        stopped = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait({asking, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                return Undecided()
            reply = asking.result()
        except (MCPError, ValidationError, BrokenResourceError, ClosedResourceError):
            # The client cannot ask, gave up, went away, or replied with something else.
            return Undecided()
        finally:
            for each in (asking, stopped):
                each.cancel()
        return read_reply(form, reply.action, reply.content)


@dataclass(slots=True)
class CallState:
    """What a call that ended with a question knows when the client calls again."""

    about: str = ""
    """The key of the question."""
    run: str | None = None
    """The run that the call has begun."""
    read: int = -1
    """The last event of the run's journal that was read, and how many were told as progress."""
    told: int = 0


@dataclass(slots=True)
class ReturningPerson:
    """Asked by the result of the call, as protocols from 2026-07-28 on do it. `replies` came with this call."""

    state: CallState
    replies: Mapping[str, ElicitResult]

    @property
    def can_be_asked(self) -> bool:
        return True

    async def ask(self, form: Form) -> FormReply:
        reply = self.replies.get(REPLY_KEY)
        # A reply is used once, and only for the very question that it answers.
        if reply is None or self.state.about != form.key:
            raise QuestionPending(form)
        self.state.about = ""
        return read_reply(form, reply.action, reply.content)


REPLY_KEY = "person"
"""The key of the form among the input requests of a result; there is only one."""


@dataclass(slots=True)
class OpenStates:
    """The sealed states that can still be used, by user: each for one call.

    The seal (key, time, user, tool and arguments) is that of `RequestStateBoundary`. This makes a state single-use.
    """

    _open: dict[str, OrderedDict[str, None]] = field(default_factory=dict[str, "OrderedDict[str, None]"])

    def issue(self, user: str, state: CallState, form: Form) -> str:
        """The state for a question, as text for the seal."""
        nonce = secrets.token_urlsafe(16)
        mine = self._open.setdefault(user, OrderedDict())
        mine[nonce] = None
        while len(mine) > MAX_OPEN_STATES:
            mine.popitem(last=False)
        return json.dumps({"nonce": nonce, "state": asdict(replace(state, about=form.key))})

    def redeem(self, user: str, text: str | None) -> CallState | None:
        """The state of a call that comes back, used up by this; None if it cannot be used (again)."""
        if text is None:
            return CallState()
        facts = cast("dict[str, Any]", json.loads(text))
        mine = self._open.get(user)
        if mine is None or facts["nonce"] not in mine:
            return None
        del mine[facts["nonce"]]
        if not mine:
            del self._open[user]
        return CallState(**facts["state"])


# The forms


def endorsement_form(shown: Endorsement, what: str, details: Sequence[str] = ()) -> Form:
    """Whether a text of the client's is what the person wants; `what` says what would be done with it."""
    lines = [f"Your MCP client asks to {what}:", "", fenced(shown.text)]
    lines += ["", fenced("\n".join(details))] if details else []
    if shown.marks:
        lines += ["", f"! It looks like an order to a model: {', '.join(shown.marks)}."]
    lines += ["", "Say yes only if these are your words, or as good as yours: they count as what you asked for."]
    field_ = {"type": "boolean", "title": "Yes, this is what I want", "default": False}
    return Form(f"endorse {shown.hash}", "\n".join(lines), {"yes": field_})


def calls_form(approval: Approval) -> Form:
    """Which calls of a question may be made."""
    from bicameral.tools import Registry

    # What is offered for the rest of the run is for the command line: a form has one yes, and it is for these calls.
    calls = [replace(PendingCall.from_json(call), offer=None) for call in approval.calls]
    text = calls_text(calls, Registry(()), width=_WIDTH, whole=True, before=approval.before, request=approval.request)
    fields = {"approve": _yes(f"Make all {len(calls)} calls" if len(calls) > 1 else "Make this call")}
    if 1 < len(calls) <= MAX_FORM_CALLS:
        fields = {f"call_{number}": _yes(f"Make call {number}") for number in range(1, len(calls) + 1)}
    return Form(f"approval {approval.id}", _bounded(fenced(text.lstrip("\n")), approval.id), fields)


def approved_calls(approval: Approval, reply: Filled) -> list[str]:
    """The hashes of the calls that a filled-in form approves."""
    hashes = [str(call["hash"]) for call in approval.calls]
    if "approve" in reply.values:
        return hashes if reply.values["approve"] is True else []
    return [each for number, each in enumerate(hashes, 1) if reply.values[f"call_{number}"] is True]


def _yes(title: str) -> dict[str, Any]:
    return {"type": "boolean", "title": title, "default": False}


def reply_form(approval: Approval) -> Form:
    """What a plan asks; `server.cannot-ask` if a form has no field for a reply of its type."""
    wanted = type_from_json(approval.type)
    asked = question_text(approval.question, _WIDTH)
    lines = ["A run of yours asks:", "", fenced(asked)]
    if approval.request:
        lines += ["", "You asked for:", "", fenced(make_visible(approval.request))]
    found = _reply_field(wanted)
    if found is None:
        raise CannotAsk(f"a form has no field for a reply that is {wanted}", approval=approval.id)
    return Form(f"approval {approval.id}", _bounded("\n".join(lines), approval.id), {"reply": found[0]})


def reply_value(approval: Approval, reply: Filled) -> Any:
    """The reply as a value of the wanted type; None if it is none."""
    found = _reply_field(type_from_json(approval.type))
    try:
        return None if found is None else found[1](reply.values["reply"])
    except ValueError:
        return None


_DAY_SCHEMA = {"type": "string", "format": "date"}
_Field = tuple[dict[str, Any], Callable[[Any], Any]]


def _reply_field(wanted: Type) -> _Field | None:
    """The field of a form for a type, and how its value is read; None for a type that no form has."""
    match wanted:
        case t.StrType():
            return {"type": "string", "title": "Reply"}, str
        case t.BoolType():
            return {"type": "boolean", "title": "Yes"}, bool
        case t.IntType():
            return {"type": "integer", "title": "Reply"}, int
        case t.FloatType():
            return {"type": "number", "title": "Reply"}, float
        case t.DateType():
            return {**_DAY_SCHEMA, "title": "Day"}, dt.date.fromisoformat
        case t.TimeType():
            return {"type": "string", "title": "Time, such as 14:30"}, dt.time.fromisoformat
        case t.LiteralType(values=values):
            return {"type": "string", "title": "Reply", "enum": list(values)}, str
        case t.OptionalType(item=item):
            return _reply_field(item)
        case _:
            return None


def fenced(text: str) -> str:
    """A text as a code block that nothing in it ends: a client may render Markdown, and load an image by showing it."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _bounded(message: str, approval: str) -> str:
    if len(message) > MAX_MESSAGE:
        why = f"the question has {len(message):,} characters, and nobody reads that in a dialogue"
        raise CannotAsk(why, expected=f"at most {MAX_MESSAGE:,}", approval=approval)
    return message
