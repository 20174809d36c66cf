"""Pages: templates, what every page shows, and calls of people with their session.

Every value is escaped by the template engine, always: no template marks a text as safe, and a test reads them all to
see that none does. An attribute that htmx would act on can therefore never come from a value. Texts of the world are
shown by the macros of `values.html`, which mark untrusted ones and write invisible characters out.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, wraps
from itertools import groupby
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bicameral.console._admission import SECURITY_HEADERS, SIGN_IN_PATH, header, parse_form
from bicameral.console._assets import asset_address
from bicameral.console._sessions import Session
from bicameral.console._values import as_table
from bicameral.display import hidden_places, letters_in_words, make_visible
from bicameral.secrets import mask
from bicameral.server import AccessToken, Role
from bicameral.server.surface import ServerContext, public_error, require_role

NAVIGATION = (
    ("/runs", "Runs", ("see",)),
    ("/approvals", "Approvals", ("see", "approve")),
    ("/ask", "Ask", ("run",)),
    ("/patterns", "Patterns", ("see", "run")),
    ("/policy", "Policy", ("see", "run")),
    ("/operations", "Operations", ("see",)),
)
"""The parts of the console, each with the roles that open it."""


class PageCall:
    """One request of a person: what was sent, who sent it, and how to answer."""

    def __init__(self, request: Request, form: Mapping[str, list[str]]) -> None:
        self.request, self._form = request, form
        self.context: ServerContext = request.app.state.context
        self.session: Session = request.state.session
        self.token: AccessToken = request.state.token

    @property
    def is_partial(self) -> bool:
        """Whether htmx asks for a part of the page that is already shown."""
        return self.request.headers.get("hx-request") == "true"

    def query(self, name: str, default: str = "") -> str:
        """A parameter of the address."""
        return _without_nul(self.request.query_params.get(name, default))

    def path(self, name: str) -> str:
        """A part of the path."""
        return _without_nul(str(self.request.path_params[name]))

    def field(self, name: str, default: str = "") -> str:
        """A field of the form."""
        return self._form.get(name, [default])[0]

    def fields(self, name: str) -> list[str]:
        """All values of a field of the form."""
        return list(self._form.get(name, ()))

    def page(self, template: str, *, status: int = 200, **facts: Any) -> Response:
        """A page, or a part of one."""
        return page_response(template, status, **shared_facts(self.session, self.request.url.path), **facts)

    def submission_key(self, *contents: str) -> str | None:
        """The idempotency key of what a form submits: the same form sent twice, by a double click, is one run.

        The contents are in it, so that a form that was changed since is another run.
        """
        once = self.field("once")
        return hashlib.sha256(json.dumps([once, *contents]).encode()).hexdigest() if once else None

    def redirect(self, address: str, notice: str = "") -> Response:
        """Go on to another page after a change, so that loading it again repeats nothing."""
        self.session.notice = notice
        return RedirectResponse(address, 303, headers=dict(SECURITY_HEADERS))


def _without_nul(text: str) -> str:
    """A text of an address such that a database can be asked for it: PostgreSQL refuses the character NUL."""
    return text.replace("\0", "\ufffd")


PageFunction = Callable[[PageCall], Awaitable[Response]]


def page_route(path: str, function: PageFunction, *roles: Role, every: bool = False, method: str = "GET") -> Route:
    """The route of a page for whoever has one of these roles, or `every` one of them."""

    @wraps(function)
    async def answer(request: Request) -> Response:
        needed: list[tuple[Role, ...]] = [(role,) for role in roles] if every else [roles]
        for wanted in needed:
            require_role(request.state.token, *wanted)
        form = parse_form(await request.body()) if method == "POST" else {}
        return await function(PageCall(request, form))

    return Route(path, answer, methods=[method])


def shared_facts(session: Session | None, page_path: str) -> dict[str, Any]:
    """What the frame around every page shows."""
    token = None if session is None else session.token
    return {"session": session, "token": token, "page_path": page_path, "navigation": NAVIGATION}


def page_response(template: str, status: int = 200, **facts: Any) -> Response:
    """A template with the headers that every page has."""
    return PageResponse(template, facts, status)


class PageResponse(Response):
    """A page that is rendered when it is sent, in another thread: while a long one is, everybody else is answered."""

    media_type = "text/html"

    def __init__(self, template: str, facts: Mapping[str, Any], status: int) -> None:
        super().__init__(None, status, headers=dict(SECURITY_HEADERS))
        self._template, self._facts = template, facts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        text = await asyncio.to_thread(render, self._template, **self._facts)
        self.body = text.encode()
        self.headers["Content-Length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def render(template: str, **facts: Any) -> str:
    """The text of a template. Known secrets are masked, and what cannot be encoded is replaced."""
    text = environment().get_template(template).render(**facts)
    return mask(text).encode("utf-8", "replace").decode()


def attachment(content: bytes, name: str, content_type: str) -> Response:
    """A file to be saved: never shown by the browser, whatever it holds."""
    plain = "".join(character if character.isalnum() or character in "._-" else "_" for character in name)
    headers = {**SECURITY_HEADERS, "Content-Disposition": f'attachment; filename="{plain}"'}
    return Response(content, headers=headers, media_type=content_type)


@cache
def environment() -> Environment:
    """The template engine with our filters and functions."""
    # Autoescape for every template, whatever its name; an undefined name is an error and no empty text.
    environment = Environment(
        loader=PackageLoader("bicameral.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    # Plain dicts: the library declares only the types of its own functions.
    functions: dict[str, Any] = {"static": asset_address, "as_table": as_table, "new_once": new_once}
    filters: dict[str, Any] = {
        "visible": visible_name,
        "pieces": visible_pieces,
        "letters": letters_in_words,
        "when": time_text,
        "iso": iso_text,
        "ago": age_text,
        "took": duration_text,
        "money": money_text,
        "part": path_part,
        "parameters": urlencode,
        "json": json.dumps,
    }
    environment.globals.update(functions)
    environment.filters.update(filters)
    return environment


def new_once() -> str:
    """The number of a form that is to be sent once."""
    return secrets.token_urlsafe(12)


def visible_name(text: object) -> str:
    """A name or a short text on one line, with invisible characters written out.

    What looks like a character that was written out is not one: its first sign is.
    """
    plain = _WRITTEN_OUT_IN_NAMES.sub("<003c>", mask(str(text)))
    return make_visible(plain, strict=True).replace("\n", "⏎")


_WRITTEN_OUT_IN_NAMES = re.compile("<(?=[0-9a-f]{4,6}>)")
_WRITTEN_OUT = re.compile("‹(?=[0-9A-Fa-f]{4})")
MOST_CODES = 40
"""Characters that are written out in one mark."""


def visible_pieces(text: str, strict: bool = False) -> Iterator[tuple[str, str]]:
    """A text in pieces: what is seen as it is, and invisible characters as their code points.

    Characters that follow one another are one piece: a text of nothing else must not become a page of marks. A text
    that looks like such a piece has the first sign of it written out.

    Args:
        text: The text.
        strict: Unusual spaces and joiners are written out as well.

    Example:
        >>> list(visible_pieces("pay\\u200b me"))
        [('pay', ''), ('', '200b'), (' me', '')]
        >>> list(visible_pieces("\\u200b\\u200b\\u2060"))
        [('', '200b ×2 2060')]
    """
    # Before it is escaped: afterwards a secret with a quotation mark would not be recognised.
    text, start = mask(text), 0
    places = {*hidden_places(text, strict=strict), *(found.start() for found in _WRITTEN_OUT.finditer(text))}
    for first, end in _spans(sorted(places)):
        if first > start:
            yield text[start:first], ""
        codes = [_code_words(character, len(list(same))) for character, same in groupby(text[first:end])]
        yield from (("", " ".join(codes[at : at + MOST_CODES])) for at in range(0, len(codes), MOST_CODES))
        start = end
    if start < len(text):
        yield text[start:], ""


def _spans(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where places that follow one another begin and end."""
    for _, some in groupby(enumerate(places), lambda pair: pair[1] - pair[0]):
        run = [place for _, place in some]
        yield run[0], run[-1] + 1


def _code_words(character: str, times: int) -> str:
    return f"{ord(character):04x}" + (f" ×{times:,}" if times > 1 else "")


def time_text(moment: datetime | float | None) -> str:
    """A moment in the server's time, to the second; the date only if it is another day."""
    if moment is None:
        return ""
    here = _as_datetime(moment).astimezone()
    today = here.date() == datetime.now(UTC).astimezone().date()
    return here.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M")


def iso_text(moment: datetime | float | None) -> str:
    """A moment for scripts, which show it in the time of the browser.

    With milliseconds: a page must not call a question expired that can still be answered.
    """
    return "" if moment is None else _as_datetime(moment).astimezone(UTC).isoformat(timespec="milliseconds")


def age_text(moment: datetime | float) -> str:
    """How long ago, or how soon, something is, in one unit."""
    seconds = (datetime.now(UTC) - _as_datetime(moment)).total_seconds()
    return f"in {duration_text(-seconds)}" if seconds < 0 else f"{duration_text(seconds)} ago"


SMALLEST_MONEY = 0.000001
"""The smallest amount that is shown as a number."""
_UNITS = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"))


def duration_text(seconds: float | None) -> str:
    """A time in one unit: `0.3 s`, `12 min`, `3 d`."""
    if seconds is None:
        return ""
    if seconds < 0.05:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    for below, unit, name in _UNITS:
        if seconds < below:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds // 86_400:.0f} d"


def money_text(amount: float | None, currency: str) -> str:
    """An amount; one that is not known is not shown as 0, and a small one neither.

    Example:
        >>> money_text(12.5, "USD"), money_text(0.0000123, "USD")
        ('12.5000 USD', '0.000012 USD')
    """
    if amount is None:
        return "price not known"
    if 0 < amount < SMALLEST_MONEY:
        return f"< {SMALLEST_MONEY:f} {currency}"
    if 0 < amount < 0.001:
        # Two digits that say something, and no power of ten.
        return f"{Decimal(f'{amount:.2g}'):f} {currency}"
    return f"{amount:,.2f} {currency}" if amount >= 100 or amount == 0 else f"{amount:,.4f} {currency}"


def path_part(text: object) -> str:
    """A text as a part of a path: nothing in it can lead elsewhere."""
    return quote(str(text), safe="")


def _as_datetime(moment: datetime | float) -> datetime:
    return moment if isinstance(moment, datetime) else datetime.fromtimestamp(moment, UTC)


class ErrorPage(Response):
    """The answer to a request that failed, in the form that whoever asked can show: a page, or a part of one.

    Made by the guard, which knows the error and not the request; so it is rendered when it is sent.
    """

    def __init__(self, error: Exception) -> None:
        self._public = public_error(error)
        super().__init__(None, self._public.status)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._response(scope)(scope, receive, send)

    def _response(self, scope: Scope) -> Response:
        partial = header(scope, b"hx-request") == "true"
        if self.status_code == 401 and scope["method"] == "GET" and not partial:
            back = scope["path"] + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
            where = SIGN_IN_PATH if back == "/" else f"{SIGN_IN_PATH}?{urlencode({'next': back})}"
            return RedirectResponse(where, 303, headers=dict(SECURITY_HEADERS))
        session: Session | None = scope.get("state", {}).get("session")
        facts = {"error": self._public.error, "code": self.status_code}
        shared = shared_facts(session, scope["path"])
        answer = page_response("error_part.html" if partial else "error.html", self.status_code, **facts, **shared)
        # `Bearer` is not how one signs in here, and a browser would ask for a password.
        kept = {name: value for name, value in self._public.headers.items() if name != "WWW-Authenticate"}
        answer.headers.update(kept)
        if self.status_code == 401:
            answer.headers["HX-Redirect"] = SIGN_IN_PATH
        elif partial:
            # An error takes the place of nothing: what was typed, and what comes anew by itself, stays on the page.
            answer.headers["HX-Retarget"], answer.headers["HX-Reswap"] = "#problem", "innerHTML"
        return answer
