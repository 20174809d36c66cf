"""Who may use the console: sessions in cookies, and only requests that come from its own pages under its own name.

Three things protect a person whose browser also shows pages of strangers. The name of the host in a request must be
one of this server, so that a stranger's name that is pointed to this machine (DNS rebinding) reaches nothing. A request
that changes something must come from a page of this origin, and carry the secret of the session. And no page can be
framed, so that nobody can be made to click on what they do not see.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from starlette.types import Scope

from bicameral.console._sessions import Session, Sessions
from bicameral.errors import ServerError
from bicameral.server import AccessToken
from bicameral.server.surface import HttpError, RateLimiter, client_name

SIGN_IN_PATH = "/login"
PROOF_PATH = "/login/proof"
"""Where a server proves to `bicameral console` that it is this user's own."""
STATIC_PREFIX = "/static/"
SIGN_INS_A_MINUTE = 120
"""Attempts to sign in from one address, a quarter of them at once; behind a proxy all people have one address."""
MAX_FIELDS = 5_000
"""Fields of a form."""
SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: with that, browsers do not say either which page sent a form.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class SessionAdmission:
    """Admits requests with the cookie of a session.

    Args:
        sessions: The sessions.
        names: Host names of this server besides `localhost` and addresses.
    """

    body_type = "application/x-www-form-urlencoded"

    def __init__(self, sessions: Sessions, names: tuple[str, ...]) -> None:
        self._sessions = sessions
        self._names = frozenset(name.lower() for name in names)
        self._sign_ins = RateLimiter(SIGN_INS_A_MINUTE)

    def is_public(self, scope: Scope) -> bool:
        if not self._is_own_name(header(scope, b"host")):
            error = ServerError(
                "console.other-host",
                "this server is not known under the name in the address",
                expected="`localhost`, an address in numbers, or a configured name",
                fix='Name it in bicameral.toml: `names = ["…"]` under [server].',
            )
            raise HttpError(421, error)
        # The pages say nothing of users before they have signed in, and the files are the same for everybody.
        return scope["method"] in ("GET", "HEAD") and scope["path"].startswith(STATIC_PREFIX)

    def find_holder(self, scope: Scope) -> AccessToken | None:
        reads = scope["method"] in ("GET", "HEAD")
        if not (_is_own_reading(scope) if reads else _is_same_origin(scope)):
            error = ServerError(
                "console.other-origin",
                "this was sent by a page of another site, or by a browser that does not say which page sent it",
                fix="Open the console itself, and try again there.",
            )
            raise HttpError(403, error)
        session = self._sessions.find(session_cookie(scope))
        scope.setdefault("state", {})["session"] = session
        if session is not None:
            return session.token
        if scope["path"] in (SIGN_IN_PATH, PROOF_PATH):
            if scope["method"] == "POST":
                self._sign_ins.count_request(client_name(scope))
            return None
        raise HttpError(401, signed_out_error())

    def check_body(self, scope: Scope, body: bytes) -> None:
        session: Session | None = scope["state"]["session"]
        if session is not None and not self._sessions.is_open(session):
            # The body takes time to arrive, and the person may have signed out meanwhile.
            raise HttpError(401, signed_out_error())
        if session is not None and not session.accepts(parse_form(body).get("csrf", [""])[0]):
            error = ServerError(
                "console.stale-page",
                "this page is from before you signed in, or was not made here",
                fix="Load the page again, and repeat what you did.",
            )
            raise HttpError(403, error)

    def _is_own_name(self, host: str) -> bool:
        """Whether a host is this server's: a stranger can point a name to any address, but owns no address here."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".").lower()
        except ValueError:
            return False
        if name in self._names or name == "localhost":
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def cookie_name(scope: Scope) -> str:
    """The name of the session's cookie: cookies are shared by all ports of a host, so the port is in it."""
    server = scope.get("server") or ("", 0)
    return f"bicameral_{server[1] or 0}"


def session_cookie(scope: Scope) -> str:
    """The text of the session's cookie; empty if there is none, or if it cannot be told which one counts.

    A site on another port, or of a neighbouring name, can set a cookie of the same name. Whoever is signed in is signed
    out at worst: with two cookies none counts. Somebody who is not signed in can be given the session of whoever has
    an account here and such a site, as docs/console.md says; the name of the user stands on every page.
    """
    name = cookie_name(scope)
    found: set[str] = set()
    for each, value in scope["headers"]:
        if each == b"cookie":
            pairs = (pair.partition("=") for pair in value.decode("latin-1").split(";"))
            found |= {text.strip() for key, _, text in pairs if key.strip() == name}
    return found.pop() if len(found) == 1 else ""


def header(scope: Scope, name: bytes) -> str:
    """The only value of a header; empty if there is none or several."""
    values = [value for each, value in scope["headers"] if each == name]
    return values[0].decode("latin-1").strip() if len(values) == 1 else ""


def parse_form(body: bytes) -> dict[str, list[str]]:
    """The fields of a form; an error if it is none."""
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except (ValueError, UnicodeDecodeError):
        raise HttpError(400, ServerError("server.bad-request", "this is no form")) from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        # Browsers write line breaks of forms as CR LF.
        fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return fields


def signed_out_error() -> ServerError:
    return ServerError("console.signed-out", "nobody is signed in", fix="Sign in with a token.")


def _is_own_reading(scope: Scope) -> bool:
    """Whether a page is asked for by one of ours, by the person, or by a link that they follow.

    A page of another site reads none of it in any case. But it could ask for many, and streams that stay open would use
    up those of the person. A browser that does not say who asks is an old one, or a program.
    """
    site, mode = header(scope, b"sec-fetch-site"), header(scope, b"sec-fetch-mode")
    return site in ("", "same-origin", "none") or mode == "navigate"


def _is_same_origin(scope: Scope) -> bool:
    """Whether a page of this very origin sent the request, by what the browser says; whoever says nothing did not."""
    site, origin = header(scope, b"sec-fetch-site"), header(scope, b"origin")
    if not origin or (site and site != "same-origin"):
        return False
    try:
        netloc = urlsplit(origin).netloc
    except ValueError:
        return False
    # Behind a TLS proxy the scheme differs from the one here; the name and the port do not.
    return netloc.lower() == header(scope, b"host").lower()
