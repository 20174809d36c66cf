"""Questions of a server (elicitation and sampling): put to the person, and never answered by anything else.

The words of a question are the server's, so that they are shown as untrusted. An answer goes to that server alone. With
nobody to ask, with two calls in flight of which either may have led to the question, or with anything unexpected, the
answer is a refusal.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from bicameral.display import make_visible
from bicameral.foreign import type_from_schema
from bicameral.tools import AskPerson, current_person
from bicameral.types import (
    BOOL,
    STR,
    ListType,
    LiteralType,
    RecordType,
    Type,
    is_bounded,
    mismatch,
    without_optional,
)

if TYPE_CHECKING:
    from mcp_types import CreateMessageRequestParams, CreateMessageResult, ElicitResult, ErrorData

MAX_WORDS = 1_000
"""Characters of a server's words that are shown."""
_MOST_FIELDS = 20
_MAX_URL = 500
_PLAIN_CHOICE = re.compile(r"(?=.{1,40}\Z)[\w.:/+-]+( [\w.:/+-]+){0,3}")
_MOST_CHOICES = 20
"""Choices stand in a question without quotes, so that only a few short codes and names on one line may be some."""
MOST_QUESTIONS = 3
"""Questions during one request: whoever is asked again and again stops reading. What comes after is refused."""


@dataclass(slots=True, eq=False)
class _RequestInFlight:
    """A request to the server, the person who answers what it asks meanwhile, and how often they were asked."""

    person: AskPerson | None
    asked: int = 0


_ASKING: WeakValueDictionary[AskPerson, asyncio.Lock] = WeakValueDictionary()
"""A lock for each person who is asked, whichever servers ask: on one screen, a reply to one question would be read
as the reply to another. Whoever waits or asks holds the lock, so that it lasts as long as it is needed."""

_REQUEST: ContextVar[_RequestInFlight | None] = ContextVar("bicameral-mcp-request", default=None)


class ServerQuestions:
    """The questions of one server, and the person who can be asked during the requests in flight."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._requests: list[_RequestInFlight] = []

    @contextmanager
    def answering(self) -> Generator[None]:
        """While a request is in flight, its person answers what the server asks."""
        request = _RequestInFlight(current_person())
        token = _REQUEST.set(request)
        self._requests.append(request)
        try:
            yield
        finally:
            self._requests.remove(request)
            _REQUEST.reset(token)

    async def elicit(self, context: Any, params: Any) -> ElicitResult | ErrorData:
        """Put a form, or an address to visit, to the person."""
        from mcp_types import ElicitResult

        request = self._request_of_question()
        if request is None:
            return ElicitResult(action="decline")
        words = self._quote(params.message)
        try:
            async with self._asking(request) as person:
                if person is None:
                    return ElicitResult(action="decline")
                if getattr(params, "mode", "form") == "url":
                    return await self._ask_visit(person, words, str(params.url))
                return await self._ask_form(person, words, dict(params.requested_schema))
        except Exception:
            # Whatever went wrong while asking: nobody has agreed to anything.
            return ElicitResult(action="cancel")

    async def _ask_visit(self, person: AskPerson, words: str, url: str) -> ElicitResult:
        from mcp_types import ElicitResult

        if not _is_plain_url(url):
            return ElicitResult(action="decline")
        question = f"{words}\nIt asks you to visit {make_visible(url, strict=True)}. Agree?"
        return ElicitResult(action="accept" if await person(question, BOOL) is True else "decline")

    async def _ask_form(self, person: AskPerson, words: str, schema: Mapping[str, Any]) -> ElicitResult:
        from mcp_types import ElicitResult

        type_ = type_from_schema(schema)
        fields = type_.fields if isinstance(type_, RecordType) else ()
        if len(fields) > _MOST_FIELDS or not all(_can_be_asked(each.type) for each in fields):
            return ElicitResult(action="decline")
        if await person(f"{words}\nAnswer it{' in the next questions' if fields else ''}?", BOOL) is not True:
            return ElicitResult(action="decline")
        content: dict[str, Any] = {}
        for each in fields:
            name = make_visible(each.name, strict=True)[:100]
            given = await person(f"The MCP server {self._server!r} asks for {name!r}", without_optional(each.type))
            if mismatch(given, each.type):
                return ElicitResult(action="cancel")
            content[each.name] = given
        return ElicitResult(action="accept", content=content)

    async def sample(self, context: Any, params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:
        """Put to the person what the server wants a model to write. No model ever answers for them."""
        from mcp_types import INVALID_REQUEST, CreateMessageResult, ErrorData, TextContent

        refused = ErrorData(code=INVALID_REQUEST, message="the user does not answer this")
        request = self._request_of_question()
        if request is None:
            return refused
        asked = [getattr(block, "text", "") for each in params.messages for block in _blocks(each.content)]
        question = f"{self._quote(' '.join(map(str, asked)))}\nIt wants a text from a model. Write one yourself?"
        try:
            async with self._asking(request) as person:
                if person is None or await person(question, BOOL) is not True:
                    return refused
                text = await person(f"The text for the MCP server {self._server!r}", STR)
        except Exception:
            # As above: a question that failed is no answer.
            return refused
        if not isinstance(text, str):
            return refused
        return CreateMessageResult(
            role="assistant", content=TextContent(text=text), model="person", stop_reason="endTurn"
        )

    def _request_of_question(self) -> _RequestInFlight | None:
        """The request that led to a question, as far as that can be known; None if nobody may be asked."""
        # A question that came as the result of a request is put in its context; any other one may belong to any of
        # those in flight.
        request = _REQUEST.get() or (self._requests[0] if len(self._requests) == 1 else None)
        if request is None or request.person is None or request.asked >= MOST_QUESTIONS:
            return None
        request.asked += 1
        return request

    @asynccontextmanager
    async def _asking(self, request: _RequestInFlight) -> AsyncGenerator[AskPerson | None]:
        """The person of a request, who is asked nothing else meanwhile; None if the request has ended by then."""
        if request.person is None:
            yield None
            return
        lock = _ASKING.get(request.person)
        if lock is None:
            lock = _ASKING[request.person] = asyncio.Lock()
        async with lock:
            yield request.person if request in self._requests else None

    def _quote(self, words: object) -> str:
        given = str(words)
        # Cut first: looking for what is hidden takes seconds for megabytes, and all connections share this loop.
        text = make_visible(" ".join(given[: 4 * MAX_WORDS].split()))
        is_whole = len(given) <= 4 * MAX_WORDS and len(text) <= MAX_WORDS
        short = text if is_whole else f"{text[:MAX_WORDS]}… ({len(given):,} characters)"
        return f"The MCP server {self._server!r} asks, in its own words: {json.dumps(short, ensure_ascii=False)}"


def _is_plain_url(url: str) -> bool:
    """Whether an address can stand in a question: one line of a web address, and nothing that passes for our words."""
    if len(url) > _MAX_URL or not url.isprintable() or any(char.isspace() for char in url):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _blocks(content: object) -> list[Any]:
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def _can_be_asked(type_: Type) -> bool:
    plain = without_optional(type_)
    if isinstance(plain, ListType):
        plain = without_optional(plain.item)
    if isinstance(plain, LiteralType):
        return len(plain.values) <= _MOST_CHOICES and all(map(_PLAIN_CHOICE.fullmatch, plain.values))
    return plain == STR or is_bounded(plain) or getattr(plain, "format", None) in ("email", "url")
